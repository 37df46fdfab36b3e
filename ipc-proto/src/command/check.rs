//! The rules that runtimes apply to the values of a request: one function for each rule that a row of the table names.
use core::fmt;

use super::field_path::FieldPath;
use super::table::Request;
use super::types::{
    DumpType, EventFilter, EventLevel, Format, PerfMapType, Provider, SessionBufferMode, SessionConfig,
    SessionConfig6, StreamingProvider, TracepointConfig, TracepointSet, UserEventsSession,
};
use super::violation::{InvalidValue, Violation};
use crate::user_events::TracepointFormat;
use crate::{Array, Decode, DecodeError, HResult, Text};

/// Why a runtime refuses a message before it carries out a command.
///
/// ```
/// use ipc_proto::{Code, HResult, Message, RequestError, Violation};
///
/// // EnablePerfMap with an unknown type
/// let message = Message { code: Code(0x0405), payload: &[4, 0, 0, 0] };
/// let error = message.request()?.into_checked().unwrap_err();
/// assert_eq!(error.to_string(), "perf_map_type: the perf map type is not 1, 2 or 3");
/// let RequestError::Violation { request, violation, .. } = error else { unreachable!() };
/// assert_eq!((request, violation), (message.request()?, Violation::PerfMapType));
/// assert_eq!(HResult::from(error), HResult::INVALID_ARG);
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError<'a> {
    /// The bytes are not a request.
    Decode(DecodeError),
    /// The bytes are a request with a value that runtimes refuse. A server that accepts the value can answer all the same.
    Violation {
        /// The request.
        request: Request<'a>,
        /// The rule that it breaks.
        violation: Violation,
        /// The value that breaks the rule.
        place: FieldPath,
    },
    /// The server does not have the command: see [`Serve::finish_for`](crate::Serve::finish_for).
    Refused(HResult),
}

impl fmt::Display for RequestError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(e) => e.fmt(f),
            Self::Violation { violation, place, .. } => {
                InvalidValue { violation: *violation, place: *place }.fmt(f)
            }
            Self::Refused(hresult) => write!(f, "the server does not have the command ({hresult})"),
        }
    }
}
impl core::error::Error for RequestError<'_> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Decode(e) => Some(e),
            Self::Violation { violation, .. } => Some(violation),
            Self::Refused(_) => None,
        }
    }
}
impl From<DecodeError> for RequestError<'_> {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}
impl From<RequestError<'_>> for HResult {
    fn from(e: RequestError<'_>) -> Self {
        match e {
            RequestError::Decode(e) => e.into(),
            RequestError::Violation { violation, .. } => violation.hresult(),
            RequestError::Refused(hresult) => hresult,
        }
    }
}

impl<'a> Request<'a> {
    /// Returns the request if its values pass [`check`](Self::check).
    ///
    /// # Errors
    /// [`RequestError::Violation`], with the request.
    pub fn into_checked(self) -> Result<Self, RequestError<'a>> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(InvalidValue { violation, place }) => {
                Err(RequestError::Violation { request: self, violation, place })
            }
        }
    }
}

/// The result of a rule.
type Checked = Result<(), InvalidValue>;

/// The names of the fields that are checked.
type Names = &'static [&'static str];

const BUFFER_MB: Names = &["buffer_mb"];
const FORMAT: Names = &["format"];
const SESSION_TYPE: Names = &["session_type"];
const SESSION_BUFFER_MODE: Names = &["session_buffer_mode"];
const PROVIDERS: Names = &["providers"];
const LEVEL: Names = &["providers", "level"];
const NAME: Names = &["providers", "name"];
const EVENT_IDS: Names = &["providers", "filter.event_ids"];
const TRACEPOINTS: Names = &["providers", "tracepoints"];
const DEFAULT_TRACEPOINT: Names = &["providers", "tracepoints.default_tracepoint_name"];
const SET_TRACEPOINT: Names = &["providers", "tracepoints.sets", "tracepoint_name"];
const SET_EVENT_IDS: Names = &["providers", "tracepoints.sets", "event_ids"];

fn invalid(violation: Violation, names: Names, indexes: &[usize]) -> InvalidValue {
    InvalidValue { violation, place: FieldPath::new(names, indexes) }
}

fn require(condition: bool, violation: Violation, names: Names, indexes: &[usize]) -> Checked {
    if condition { Ok(()) } else { Err(invalid(violation, names, indexes)) }
}

/// Returns whether a runtime reads an empty string: it reads up to the first NUL.
fn reads_empty(text: Text<'_>) -> bool {
    text.units().next().is_none_or(|unit| unit == 0)
}

pub(super) fn dump_type(dump_type: DumpType) -> Checked {
    let is_known = (DumpType::NORMAL..=DumpType::FULL).contains(&dump_type);
    require(is_known, Violation::DumpType, &["dump_type"], &[])
}

pub(super) fn profiler_path(path: Text<'_>) -> Checked {
    require(!reads_empty(path), Violation::ProfilerPath, &["profiler_path"], &[])
}

pub(super) fn variable_name(name: Text<'_>) -> Checked {
    require(!name.is_empty(), Violation::VariableName, &["name"], &[])
}

pub(super) fn perf_map_type(kind: PerfMapType) -> Checked {
    let is_known = (PerfMapType::ALL..=PerfMapType::PERF_MAP).contains(&kind);
    require(is_known, Violation::PerfMapType, &["perf_map_type"], &[])
}

pub(super) fn startup_hook_path(path: Text<'_>) -> Checked {
    require(!path.is_empty(), Violation::StartupHookPath, &["startup_hook_path"], &[])
}

/// Applies the rules of a session whose providers have no filters.
pub(crate) fn session(buffer_mb: u32, format: Format, list: Array<'_, Provider<'_>>) -> Checked {
    stream(buffer_mb, format)?;
    providers(list, |provider| (provider.level, provider.name))
}

pub(super) fn session_config(config: SessionConfig<'_>) -> Checked {
    match config {
        SessionConfig::Streaming(session) => {
            stream(session.buffer_mb, session.format)?;
            streaming(session.providers)
        }
        SessionConfig::UserEvents(session) => user_events(&session),
        SessionConfig::Unknown { .. } => Err(invalid(Violation::SessionType, SESSION_TYPE, &[])),
    }
}

pub(crate) fn session_config6(config: SessionConfig6<'_>) -> Checked {
    match config {
        SessionConfig6::Streaming(session) => {
            stream(session.buffer_mb, session.format)?;
            buffer_mode(session.session_buffer_mode)?;
            streaming(session.providers)
        }
        SessionConfig6::UserEvents(session) => user_events(&session),
        SessionConfig6::Unknown { .. } => Err(invalid(Violation::SessionType, SESSION_TYPE, &[])),
    }
}

pub(crate) fn buffer_mode(mode: SessionBufferMode) -> Checked {
    let is_known = mode <= SessionBufferMode::BLOCK;
    require(is_known, Violation::SessionBufferMode, SESSION_BUFFER_MODE, &[])
}

fn stream(buffer_mb: u32, format: Format) -> Checked {
    require(buffer_mb > 0, Violation::BufferSize, BUFFER_MB, &[])?;
    require(format <= Format::NET_TRACE, Violation::Format, FORMAT, &[])
}

fn providers<'a, T: Decode<'a> + Copy>(
    providers: Array<'a, T>,
    parts: impl Fn(T) -> (EventLevel, Text<'a>),
) -> Checked {
    require((1..=1000).contains(&providers.len()), Violation::ProviderCount, PROVIDERS, &[])?;
    for (at, provider) in providers.iter().enumerate() {
        let (level, name) = parts(provider);
        require(level <= EventLevel::VERBOSE, Violation::ProviderLevel, LEVEL, &[at])?;
        require(!reads_empty(name), Violation::ProviderName, NAME, &[at])?;
    }
    Ok(())
}

fn streaming(streaming: Array<'_, StreamingProvider<'_>>) -> Checked {
    providers(streaming, |provider| (provider.level, provider.name))?;
    streaming.iter().enumerate().try_for_each(|(at, provider)| filter(at, &provider.filter))
}

fn user_events(session: &UserEventsSession<'_>) -> Checked {
    providers(session.providers, |provider| (provider.level, provider.name))?;
    let mut all = session.providers.iter().enumerate();
    all.try_for_each(|(at, provider)| parse_tracepoints(at, &provider.tracepoints))?;
    let mut all = session.providers.iter().enumerate();
    all.try_for_each(|(at, provider)| {
        filter(at, &provider.filter)?;
        register_tracepoints(at, &provider.tracepoints)
    })
}

/// Applies the rules to the filter of the provider with this index.
fn filter(at: usize, filter: &EventFilter<'_>) -> Checked {
    match repeated(filter.event_ids.iter()) {
        Some(repeated) => Err(invalid(Violation::DuplicateEventId, EVENT_IDS, &[at, repeated])),
        None => Ok(()),
    }
}

/// Applies the rules of a runtime that reads the tracepoints of the provider with this index.
fn parse_tracepoints(at: usize, config: &TracepointConfig<'_>) -> Checked {
    let has_tracepoint = !config.default_tracepoint_name.is_null() || !config.sets.is_empty();
    require(has_tracepoint, Violation::NoTracepoint, TRACEPOINTS, &[at])?;
    config.sets.iter().enumerate().try_for_each(|(set, TracepointSet { tracepoint_name, .. })| {
        require(!reads_empty(tracepoint_name), Violation::TracepointSetName, SET_TRACEPOINT, &[at, set])
    })
}

/// Applies the rules of a runtime that registers the tracepoints: it does so after it has read all providers.
fn register_tracepoints(at: usize, config: &TracepointConfig<'_>) -> Checked {
    if let Some(name) = config.default_tracepoint_name.non_null() {
        require(!reads_empty(name), Violation::DefaultTracepointName, DEFAULT_TRACEPOINT, &[at])?;
        require(fits(name), Violation::TracepointNameLength, DEFAULT_TRACEPOINT, &[at])?;
    }
    let mut sets = config.sets.iter().enumerate();
    sets.try_for_each(|(set, TracepointSet { tracepoint_name, .. })| {
        require(fits(tracepoint_name), Violation::TracepointNameLength, SET_TRACEPOINT, &[at, set])
    })?;
    let Some(mut repeated) = repeated(config.sets.iter().flat_map(|set| set.event_ids)) else {
        return Ok(());
    };
    // The index among the ids of all sets becomes one in its set.
    let mut set = 0usize;
    for TracepointSet { event_ids, .. } in config.sets {
        let Some(later) = repeated.checked_sub(event_ids.len()) else { break };
        repeated = later;
        set = set.saturating_add(1);
    }
    Err(invalid(Violation::DuplicateEventId, SET_EVENT_IDS, &[at, set, repeated]))
}

/// Returns whether the format of a tracepoint with this name is short enough.
fn fits(name: Text<'_>) -> bool {
    TracepointFormat::len_with(name) <= TracepointFormat::MAX_LEN
}

/// Returns the index of an id that equals an earlier one; `None` if no id occurs twice. A message can contain 16,000 ids, and
/// there is no memory to sort them: 64 at a time are copied, and compared with one another and with all that follow.
fn repeated(mut ids: impl Iterator<Item = u32> + Clone) -> Option<usize> {
    let mut before = 0usize;
    loop {
        let mut copied = [0; 64];
        let mut len = 0;
        for (slot, id) in copied.iter_mut().zip(ids.by_ref()) {
            *slot = id;
            len = usize::saturating_add(len, 1);
        }
        let copied = copied.get(..len).unwrap_or_default();
        let among_them =
            (1..len).find(|at| copied.get(*at).is_some_and(|id| copied.iter().take(*at).any(|k| k == id)));
        let after = || ids.clone().position(|id| copied.contains(&id)).map(|at| at.saturating_add(len));
        if let Some(at) = among_them.or_else(after) {
            return Some(before.saturating_add(at));
        }
        if len < 64 {
            return None;
        }
        before = before.saturating_add(len);
    }
}
