//! The rules that runtimes apply to the values of a request: one function for each rule that a row of the table names.
use core::fmt;

use super::table::Request;
use super::types::{
    DumpType, EventFilter, EventLevel, Format, PerfMapType, Provider, SessionBufferMode, SessionConfig,
    SessionConfig6, StreamingProvider, TracepointConfig, UserEventsProvider, UserEventsSession,
};
use super::violation::Violation;
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
/// let RequestError::Violation { request, violation } = error else { unreachable!() };
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
    },
    /// The server does not have the command: see [`Serve::finish_for`](crate::Serve::finish_for).
    Refused(HResult),
}

impl fmt::Display for RequestError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(e) => e.fmt(f),
            Self::Violation { violation, .. } => violation.fmt(f),
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
            Err(violation) => Err(RequestError::Violation { request: self, violation }),
        }
    }
}

fn require(condition: bool, violation: Violation) -> Result<(), Violation> {
    if condition { Ok(()) } else { Err(violation) }
}

/// Returns whether a runtime reads an empty string: it reads up to the first NUL.
fn reads_empty(text: Text<'_>) -> bool {
    text.units().next().is_none_or(|unit| unit == 0)
}

fn named(text: Text<'_>, violation: Violation) -> Result<(), Violation> {
    require(!reads_empty(text), violation)
}

pub(super) fn dump_type(dump_type: DumpType) -> Result<(), Violation> {
    require((DumpType::NORMAL..=DumpType::FULL).contains(&dump_type), Violation::DumpType)
}

pub(super) fn profiler_path(path: Text<'_>) -> Result<(), Violation> {
    named(path, Violation::ProfilerPath)
}

pub(super) fn variable_name(name: Text<'_>) -> Result<(), Violation> {
    require(!name.is_empty(), Violation::VariableName)
}

pub(super) fn perf_map_type(kind: PerfMapType) -> Result<(), Violation> {
    require((PerfMapType::ALL..=PerfMapType::PERF_MAP).contains(&kind), Violation::PerfMapType)
}

pub(super) fn startup_hook_path(path: Text<'_>) -> Result<(), Violation> {
    require(!path.is_empty(), Violation::StartupHookPath)
}

/// Applies the rules of a session whose providers have no filters.
pub(crate) fn session(
    buffer_mb: u32,
    format: Format,
    list: Array<'_, Provider<'_>>,
) -> Result<(), Violation> {
    stream(buffer_mb, format)?;
    providers(list, |provider| (provider.level, provider.name))
}

pub(super) fn session_config(config: SessionConfig<'_>) -> Result<(), Violation> {
    match config {
        SessionConfig::Streaming(session) => {
            stream(session.buffer_mb, session.format)?;
            streaming(session.providers)
        }
        SessionConfig::UserEvents(session) => user_events(&session),
        SessionConfig::Unknown { .. } => Err(Violation::SessionType),
    }
}

pub(crate) fn session_config6(config: SessionConfig6<'_>) -> Result<(), Violation> {
    match config {
        SessionConfig6::Streaming(session) => {
            stream(session.buffer_mb, session.format)?;
            let mode = session.session_buffer_mode;
            require(mode <= SessionBufferMode::BLOCK, Violation::SessionBufferMode)?;
            streaming(session.providers)
        }
        SessionConfig6::UserEvents(session) => user_events(&session),
        SessionConfig6::Unknown { .. } => Err(Violation::SessionType),
    }
}

fn stream(buffer_mb: u32, format: Format) -> Result<(), Violation> {
    require(buffer_mb > 0, Violation::BufferSize)?;
    require(format <= Format::NET_TRACE, Violation::Format)
}

fn providers<'a, T: Decode<'a> + Copy>(
    providers: Array<'a, T>,
    parts: impl Fn(T) -> (EventLevel, Text<'a>),
) -> Result<(), Violation> {
    require((1..=1000).contains(&providers.len()), Violation::ProviderCount)?;
    for provider in providers {
        let (level, name) = parts(provider);
        require(level <= EventLevel::VERBOSE, Violation::ProviderLevel)?;
        named(name, Violation::ProviderName)?;
    }
    Ok(())
}

fn streaming(streaming: Array<'_, StreamingProvider<'_>>) -> Result<(), Violation> {
    providers(streaming, |provider| (provider.level, provider.name))?;
    streaming.iter().try_for_each(|provider| filter(&provider.filter))
}

fn user_events(session: &UserEventsSession<'_>) -> Result<(), Violation> {
    providers(session.providers, |provider| (provider.level, provider.name))?;
    session.providers.iter().try_for_each(|provider| parse_tracepoints(&provider.tracepoints))?;
    session.providers.iter().try_for_each(|UserEventsProvider { filter: ids, tracepoints, .. }| {
        filter(&ids)?;
        register_tracepoints(&tracepoints)
    })
}

fn filter(filter: &EventFilter<'_>) -> Result<(), Violation> {
    distinct(filter.event_ids.iter())
}

/// Applies the rules of a runtime that reads the tracepoints of a provider.
fn parse_tracepoints(config: &TracepointConfig<'_>) -> Result<(), Violation> {
    let has_tracepoint = !config.default_tracepoint_name.is_null() || !config.sets.is_empty();
    require(has_tracepoint, Violation::NoTracepoint)?;
    config.sets.iter().try_for_each(|set| named(set.tracepoint_name, Violation::TracepointSetName))
}

/// Applies the rules of a runtime that registers the tracepoints: it does so after it has read all providers.
fn register_tracepoints(config: &TracepointConfig<'_>) -> Result<(), Violation> {
    if let Some(name) = config.default_tracepoint_name.non_null() {
        named(name, Violation::DefaultTracepointName)?;
        tracepoint_length(name)?;
    }
    config.sets.iter().try_for_each(|set| tracepoint_length(set.tracepoint_name))?;
    distinct(config.sets.iter().flat_map(|set| set.event_ids))
}

fn tracepoint_length(name: Text<'_>) -> Result<(), Violation> {
    require(TracepointFormat::len_with(name) <= TracepointFormat::MAX_LEN, Violation::TracepointNameLength)
}

/// Checks that no id occurs twice. A message can contain 16,000 ids, and there is no memory to sort them: 64 at a time
/// are copied, and compared with one another and with all that follow.
fn distinct(mut ids: impl Iterator<Item = u32> + Clone) -> Result<(), Violation> {
    loop {
        let mut copied = [0; 64];
        let mut len = 0;
        for (slot, id) in copied.iter_mut().zip(ids.by_ref()) {
            *slot = id;
            len = usize::saturating_add(len, 1);
        }
        let copied = copied.get(..len).unwrap_or_default();
        let repeats =
            (1..len).any(|at| copied.get(at).is_some_and(|id| copied.iter().take(at).any(|k| k == id)));
        require(!repeats && !ids.clone().any(|id| copied.contains(&id)), Violation::DuplicateEventId)?;
        if len < 64 {
            return Ok(());
        }
    }
}
