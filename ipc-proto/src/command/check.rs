//! The rules that runtimes apply to the values of a request: a function for each rule that a row of `table.rs` names.
use super::field_path::{FieldPath, Position};
use super::invalid_value::InvalidValue;
use super::tracepoint_format::TracepointFormat;
use super::types::{
    DumpType, EventFilter, EventLevel, Format, PerfMapType, Provider, SessionBufferMode, SessionConfig,
    SessionConfig6, StreamingProvider, TracepointConfig, TracepointSet, UserEventsProvider,
    UserEventsSession,
};
use super::violation::Violation;
use crate::wire::Iter;
use crate::{Array, Text};

fn require(condition: bool, violation: Violation) -> Result<(), Violation> {
    if condition { Ok(()) } else { Err(violation) }
}

/// Applies `rules`, which set the position of each value that they check. Adds the path of the value to a violation.
pub(crate) fn check(rules: impl FnOnce(&mut Position) -> Result<(), Violation>) -> Result<(), InvalidValue> {
    let mut at = Position::default();
    rules(&mut at).map_err(|violation| InvalidValue { violation, place: FieldPath::known(violation, at) })
}

/// Requires a text with a unit before the first NUL: a runtime reads these texts only up to their first NUL.
fn named(text: Text<'_>, violation: Violation) -> Result<(), Violation> {
    require(text.units().next().is_some_and(|unit| unit != 0), violation)
}

pub(super) fn dump_type(dump_type: DumpType, _: &mut Position) -> Result<(), Violation> {
    require((DumpType::NORMAL..=DumpType::FULL).contains(&dump_type), Violation::DumpType)
}

pub(super) fn profiler_path(path: Text<'_>, _: &mut Position) -> Result<(), Violation> {
    named(path, Violation::ProfilerPath)
}

pub(super) fn variable_name(name: Text<'_>, _: &mut Position) -> Result<(), Violation> {
    require(!name.is_empty(), Violation::VariableName)
}

pub(super) fn perf_map_type(kind: PerfMapType, _: &mut Position) -> Result<(), Violation> {
    require((PerfMapType::ALL..=PerfMapType::PERF_MAP).contains(&kind), Violation::PerfMapType)
}

pub(super) fn startup_hook_path(path: Text<'_>, _: &mut Position) -> Result<(), Violation> {
    require(!path.is_empty(), Violation::StartupHookPath)
}

/// Applies the rules of CollectTracing to CollectTracing4: sessions without filters of event ids and without blocking.
pub(super) fn session(
    buffer_mb: u32,
    format: Format,
    list: Array<'_, Provider<'_>>,
    at: &mut Position,
) -> Result<(), Violation> {
    let providers = list.iter().map(StreamingProvider::from);
    streaming(buffer_mb, format, SessionBufferMode::DROP, list.len(), providers, at)
}

/// Applies the rules of a session that streams. `len` is the number of providers in `list`.
pub(crate) fn streaming<'a>(
    buffer_mb: u32,
    format: Format,
    mode: SessionBufferMode,
    len: usize,
    list: impl Iterator<Item = StreamingProvider<'a>> + Clone,
    at: &mut Position,
) -> Result<(), Violation> {
    require(buffer_mb > 0, Violation::BufferSize)?;
    require(format <= Format::NET_TRACE, Violation::Format)?;
    require(mode <= SessionBufferMode::BLOCK, Violation::SessionBufferMode)?;
    count(len)?;
    each(list.clone(), at, |provider, _| level_and_name(provider.level, provider.name))?;
    each(list, at, |provider, at| filter(&provider.filter, at))
}

pub(super) fn session_config(config: SessionConfig<'_>, at: &mut Position) -> Result<(), Violation> {
    match config {
        SessionConfig::Streaming(s) => {
            let providers = s.providers.iter();
            streaming(s.buffer_mb, s.format, SessionBufferMode::DROP, providers.len(), providers, at)
        }
        SessionConfig::UserEvents(session) => user_events(&session, at),
        SessionConfig::Unknown { .. } => Err(Violation::SessionType),
    }
}

pub(super) fn session_config6(config: SessionConfig6<'_>, at: &mut Position) -> Result<(), Violation> {
    match config {
        SessionConfig6::Streaming(s) => {
            let providers = s.providers.iter();
            streaming(s.buffer_mb, s.format, s.session_buffer_mode, providers.len(), providers, at)
        }
        SessionConfig6::UserEvents(session) => user_events(&session, at),
        SessionConfig6::Unknown { .. } => Err(Violation::SessionType),
    }
}

/// Applies a rule to each provider, with `at` at that provider.
fn each<T>(
    providers: impl IntoIterator<Item = T>,
    at: &mut Position,
    rule: impl Fn(T, &mut Position) -> Result<(), Violation>,
) -> Result<(), Violation> {
    at.provider = 0;
    for provider in providers {
        rule(provider, at)?;
        at.provider = at.provider.saturating_add(1);
    }
    Ok(())
}

/// Applies a rule to each set of tracepoints of a provider, with `at` at that set.
fn each_set<'a>(
    sets: Array<'a, TracepointSet<'a>>,
    at: &mut Position,
    rule: impl Fn(TracepointSet<'a>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    (at.set, at.is_in_set) = (0, true);
    for set in sets {
        rule(set)?;
        at.set = at.set.saturating_add(1);
    }
    Ok(())
}

fn count(providers: usize) -> Result<(), Violation> {
    require((1..=1000).contains(&providers), Violation::ProviderCount)
}

fn level_and_name(level: EventLevel, name: Text<'_>) -> Result<(), Violation> {
    require(level <= EventLevel::VERBOSE, Violation::ProviderLevel)?;
    named(name, Violation::ProviderName)
}

fn user_events(session: &UserEventsSession<'_>, at: &mut Position) -> Result<(), Violation> {
    count(session.providers.len())?;
    each(session.providers, at, |provider, _| level_and_name(provider.level, provider.name))?;
    each(session.providers, at, |provider, at| parse_tracepoints(&provider.tracepoints, at))?;
    each(session.providers, at, |UserEventsProvider { filter: ids, tracepoints, .. }, at| {
        filter(&ids, at)?;
        register_tracepoints(&tracepoints, at)
    })
}

fn filter(filter: &EventFilter<'_>, at: &mut Position) -> Result<(), Violation> {
    at.is_in_set = false;
    distinct(Ids::new(filter.event_ids, Array::EMPTY.iter()), at)
}

/// Applies the rules that a runtime checks while it reads the tracepoints of a provider.
fn parse_tracepoints(config: &TracepointConfig<'_>, at: &mut Position) -> Result<(), Violation> {
    let has_tracepoint = !config.default_tracepoint_name.is_null() || !config.sets.is_empty();
    require(has_tracepoint, Violation::NoTracepoint)?;
    each_set(config.sets, at, |set| named(set.tracepoint_name, Violation::TracepointSetName))
}

/// Applies the rules that a runtime checks when it registers tracepoints, after it has read those of all providers.
fn register_tracepoints(config: &TracepointConfig<'_>, at: &mut Position) -> Result<(), Violation> {
    tracepoint_length(config.default_tracepoint_name)?;
    each_set(config.sets, at, |set| tracepoint_length(set.tracepoint_name))?;
    let mut sets = config.sets.iter();
    let first = sets.next().map_or(Array::EMPTY, |set| set.event_ids);
    distinct(Ids::new(first, sets), at)
}

fn tracepoint_length(name: Text<'_>) -> Result<(), Violation> {
    require(TracepointFormat::len_with(name) <= TracepointFormat::MAX_LEN, Violation::TracepointNameLength)
}

/// Checks that no id occurs twice. If one does, sets the position to an occurrence that equals an earlier id.
fn distinct(ids: Ids<'_>, at: &mut Position) -> Result<(), Violation> {
    let Some(Ids { set, taken, .. }) = repeated(ids) else { return Ok(()) };
    (at.set, at.event_id) = (set, taken.saturating_sub(1));
    Err(Violation::DuplicateEventId)
}

/// Returns the ids after one that equals an earlier id; `None` if no id occurs twice. A message can contain 16,000 ids,
/// and there is no memory to sort them. 64 ids at a time are copied, and compared with each id after them.
fn repeated(mut ids: Ids<'_>) -> Option<Ids<'_>> {
    loop {
        let (mut copied, mut len, mut after_them) = ([0; 64], 0usize, None);
        while let Some(id) = ids.next() {
            if copied.get(..len).is_some_and(|copied| copied.contains(&id)) {
                return Some(ids);
            }
            if let Some(slot) = copied.get_mut(len) {
                *slot = id;
                len = len.saturating_add(1);
                after_them = (len == copied.len()).then(|| ids.clone());
            }
        }
        ids = after_them?;
    }
}

/// The ids of a list, then the ids of each set. Filters and sets share this type, so that `repeated` is compiled once.
#[derive(Clone)]
struct Ids<'a> {
    ids: Iter<'a, u32>,
    /// The number of ids that were taken from `ids`.
    taken: u16,
    sets: Iter<'a, TracepointSet<'a>>,
    /// The number of sets that were taken from `sets`.
    set: u16,
}

impl<'a> Ids<'a> {
    fn new(ids: Array<'a, u32>, sets: Iter<'a, TracepointSet<'a>>) -> Self {
        Self { ids: ids.iter(), taken: 0, sets, set: 0 }
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            if let Some(id) = self.ids.next() {
                self.taken = self.taken.saturating_add(1);
                return Some(id);
            }
            self.ids = self.sets.next()?.event_ids.iter();
            (self.taken, self.set) = (0, self.set.saturating_add(1));
        }
    }
}
