//! The rules that runtimes apply to the values of a request: one function for each rule that a row of the table names.
use core::fmt;

use super::field_path::{FieldPath, Place};
use super::table::Request;
use super::types::{
    DumpType, EventFilter, EventLevel, Format, PerfMapType, Provider, SessionBufferMode, SessionConfig,
    SessionConfig6, StreamingProvider, TracepointConfig, TracepointSet, UserEventsProvider,
    UserEventsSession,
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

impl<'a> RequestError<'a> {
    pub(crate) const fn violation(
        request: Request<'a>,
        InvalidValue { violation, place }: InvalidValue,
    ) -> Self {
        Self::Violation { request, violation, place }
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
            Err(invalid) => Err(RequestError::violation(self, invalid)),
        }
    }
}

fn require(condition: bool, violation: Violation) -> Result<(), Violation> {
    if condition { Ok(()) } else { Err(violation) }
}

/// Applies rules, and adds to a broken one the place of the value, which they set.
pub(crate) fn check(rules: impl FnOnce(&mut Place) -> Result<(), Violation>) -> Result<(), InvalidValue> {
    let mut place = Place::default();
    rules(&mut place)
        .map_err(|violation| InvalidValue { violation, place: FieldPath::known(violation, place) })
}

/// Returns whether a runtime reads an empty string: it reads up to the first NUL.
fn reads_empty(text: Text<'_>) -> bool {
    text.units().next().is_none_or(|unit| unit == 0)
}

fn named(text: Text<'_>, violation: Violation) -> Result<(), Violation> {
    require(!reads_empty(text), violation)
}

pub(super) fn dump_type(dump_type: DumpType, _: &mut Place) -> Result<(), Violation> {
    require((DumpType::NORMAL..=DumpType::FULL).contains(&dump_type), Violation::DumpType)
}

pub(super) fn profiler_path(path: Text<'_>, _: &mut Place) -> Result<(), Violation> {
    named(path, Violation::ProfilerPath)
}

pub(super) fn variable_name(name: Text<'_>, _: &mut Place) -> Result<(), Violation> {
    require(!name.is_empty(), Violation::VariableName)
}

pub(super) fn perf_map_type(kind: PerfMapType, _: &mut Place) -> Result<(), Violation> {
    require((PerfMapType::ALL..=PerfMapType::PERF_MAP).contains(&kind), Violation::PerfMapType)
}

pub(super) fn startup_hook_path(path: Text<'_>, _: &mut Place) -> Result<(), Violation> {
    require(!path.is_empty(), Violation::StartupHookPath)
}

/// Applies the rules of a session whose providers have no filters.
pub(crate) fn session(
    buffer_mb: u32,
    format: Format,
    list: Array<'_, Provider<'_>>,
    place: &mut Place,
) -> Result<(), Violation> {
    stream(buffer_mb, format)?;
    providers(list, place, |provider| (provider.level, provider.name))
}

pub(super) fn session_config(config: SessionConfig<'_>, place: &mut Place) -> Result<(), Violation> {
    match config {
        SessionConfig::Streaming(session) => {
            stream(session.buffer_mb, session.format)?;
            streaming(session.providers, place)
        }
        SessionConfig::UserEvents(session) => user_events(&session, place),
        SessionConfig::Unknown { .. } => Err(Violation::SessionType),
    }
}

pub(crate) fn session_config6(config: SessionConfig6<'_>, place: &mut Place) -> Result<(), Violation> {
    match config {
        SessionConfig6::Streaming(session) => {
            stream(session.buffer_mb, session.format)?;
            buffer_mode(session.session_buffer_mode)?;
            streaming(session.providers, place)
        }
        SessionConfig6::UserEvents(session) => user_events(&session, place),
        SessionConfig6::Unknown { .. } => Err(Violation::SessionType),
    }
}

pub(crate) fn buffer_mode(mode: SessionBufferMode) -> Result<(), Violation> {
    require(mode <= SessionBufferMode::BLOCK, Violation::SessionBufferMode)
}

fn stream(buffer_mb: u32, format: Format) -> Result<(), Violation> {
    require(buffer_mb > 0, Violation::BufferSize)?;
    require(format <= Format::NET_TRACE, Violation::Format)
}

/// Applies a rule to each provider.
fn each<'a, T: Decode<'a> + Copy>(
    providers: Array<'a, T>,
    place: &mut Place,
    rule: impl Fn(T, &mut Place) -> Result<(), Violation>,
) -> Result<(), Violation> {
    place.provider = 0;
    for provider in providers {
        rule(provider, place)?;
        place.provider = place.provider.saturating_add(1);
    }
    Ok(())
}

/// Applies a rule to each set of tracepoints of a provider.
fn each_set<'a>(
    sets: Array<'a, TracepointSet<'a>>,
    place: &mut Place,
    rule: impl Fn(TracepointSet<'a>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    (place.set, place.is_in_set) = (0, true);
    for set in sets {
        rule(set)?;
        place.set = place.set.saturating_add(1);
    }
    Ok(())
}

fn providers<'a, T: Decode<'a> + Copy>(
    providers: Array<'a, T>,
    place: &mut Place,
    parts: impl Fn(T) -> (EventLevel, Text<'a>),
) -> Result<(), Violation> {
    require((1..=1000).contains(&providers.len()), Violation::ProviderCount)?;
    each(providers, place, |provider, _| {
        let (level, name) = parts(provider);
        require(level <= EventLevel::VERBOSE, Violation::ProviderLevel)?;
        named(name, Violation::ProviderName)
    })
}

fn streaming(streaming: Array<'_, StreamingProvider<'_>>, place: &mut Place) -> Result<(), Violation> {
    providers(streaming, place, |provider| (provider.level, provider.name))?;
    each(streaming, place, |provider, place| filter(&provider.filter, place))
}

fn user_events(session: &UserEventsSession<'_>, place: &mut Place) -> Result<(), Violation> {
    providers(session.providers, place, |provider| (provider.level, provider.name))?;
    each(session.providers, place, |provider, place| parse_tracepoints(&provider.tracepoints, place))?;
    each(session.providers, place, |UserEventsProvider { filter: ids, tracepoints, .. }, place| {
        filter(&ids, place)?;
        register_tracepoints(&tracepoints, place)
    })
}

fn filter(filter: &EventFilter<'_>, place: &mut Place) -> Result<(), Violation> {
    place.is_in_set = false;
    let set = [TracepointSet { tracepoint_name: Text::NULL, event_ids: filter.event_ids }];
    distinct(Array::from(&set), place)
}

/// Applies the rules of a runtime that reads the tracepoints of a provider.
fn parse_tracepoints(config: &TracepointConfig<'_>, place: &mut Place) -> Result<(), Violation> {
    let has_tracepoint = !config.default_tracepoint_name.is_null() || !config.sets.is_empty();
    require(has_tracepoint, Violation::NoTracepoint)?;
    each_set(config.sets, place, |set| named(set.tracepoint_name, Violation::TracepointSetName))
}

/// Applies the rules of a runtime that registers the tracepoints: it does so after it has read all providers.
fn register_tracepoints(config: &TracepointConfig<'_>, place: &mut Place) -> Result<(), Violation> {
    if let Some(name) = config.default_tracepoint_name.non_null() {
        named(name, Violation::DefaultTracepointName)?;
        tracepoint_length(name)?;
    }
    each_set(config.sets, place, |set| tracepoint_length(set.tracepoint_name))?;
    distinct(config.sets, place)
}

fn tracepoint_length(name: Text<'_>) -> Result<(), Violation> {
    require(TracepointFormat::len_with(name) <= TracepointFormat::MAX_LEN, Violation::TracepointNameLength)
}

/// Checks that no id occurs twice in all sets. A message can contain 16,000 ids, and there is no memory to sort them: 64 at a
/// time are copied, and compared with one another and with all that follow.
fn distinct(sets: Array<'_, TracepointSet<'_>>, place: &mut Place) -> Result<(), Violation> {
    let mut ids = sets.iter().flat_map(|set| set.event_ids);
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
            place.locate_id(before.saturating_add(at), sets);
            return Err(Violation::DuplicateEventId);
        }
        if len < 64 {
            return Ok(());
        }
        before = before.saturating_add(len);
    }
}
