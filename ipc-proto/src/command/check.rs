//! The rules that runtimes apply to the values of a request: one function for each rule that a row of the table names.
use super::field_path::{FieldPath, Place, index_u16};
use super::invalid_value::InvalidValue;
use super::types::{
    DumpType, EventFilter, EventLevel, Format, PerfMapType, Provider, SessionBufferMode, SessionConfig,
    SessionConfig6, StreamingProvider, TracepointConfig, TracepointSet, UserEventsProvider,
    UserEventsSession,
};
use super::violation::Violation;
use crate::user_events::TracepointFormat;
use crate::{Array, Decode, Text};

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
            locate_id(place, before.saturating_add(at), sets);
            return Err(Violation::DuplicateEventId);
        }
        if len < 64 {
            return Ok(());
        }
        before = before.saturating_add(len);
    }
}

/// Sets the event id of the place to the one with this index among the ids of all sets.
fn locate_id(place: &mut Place, mut index: usize, sets: Array<'_, TracepointSet<'_>>) {
    place.set = 0;
    for set in sets {
        let Some(later) = index.checked_sub(set.event_ids.len()) else { break };
        index = later;
        place.set = place.set.saturating_add(1);
    }
    place.event_id = index_u16(index);
}
