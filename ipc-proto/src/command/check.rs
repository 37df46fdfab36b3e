//! What a runtime refuses although it can read it.
use core::fmt;

use super::types::{
    DumpType, EventFilter, EventLevel, Format, PerfMapType, Provider, SessionBufferMode, SessionConfig,
    SessionConfig6, StreamingProvider, TracepointConfig, UserEventsProvider, UserEventsSession,
};
use crate::user_events::TracepointFormat;
use crate::{Array, HResult, Request, Text};

/// Declares the rules: name, what a runtime answers, what is wrong, and the section of the project's notes on the
/// protocol (`facts/protocol.md`) that says so.
macro_rules! violations {
    ($($name:ident, $hresult:ident, $sentence:literal, $section:literal;)*) => {
        /// A value of a request that its layout allows and runtimes refuse.
        ///
        /// ```
        /// use ipc_proto::{EnablePerfMap, HResult, Request, Violation, types::PerfMapType};
        ///
        /// let request = Request::EnablePerfMap(EnablePerfMap { perf_map_type: PerfMapType(4) });
        /// let violation = request.check().unwrap_err();
        /// assert_eq!(violation, Violation::PerfMapType);
        /// assert_eq!(violation.hresult(), HResult::INVALID_ARG);
        /// assert_eq!(violation.to_string(), "the perf map type is not 1, 2 or 3");
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Violation {
            $(#[doc = concat!($sentence, ": `", stringify!($hresult), "`.")] $name,)*
        }

        impl Violation {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What a runtime answers.
            #[must_use]
            pub const fn hresult(self) -> HResult {
                match self { $(Self::$name => HResult::$hresult,)* }
            }
        }
        impl fmt::Display for Violation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $sentence,)* })
            }
        }
    };
}
violations! {
    BufferSize, BAD_ENCODING, "the buffer has 0 MB", "2.2";
    Format, BAD_ENCODING, "the format is neither 0 nor 1", "2.2";
    SessionType, BAD_ENCODING, "the session type is neither 0 nor 1", "2.2";
    SessionBufferMode, BAD_ENCODING, "the buffer mode is neither 0 nor 1", "2.2";
    ProviderCount, BAD_ENCODING, "there are not 1 to 1000 providers", "2.2";
    ProviderLevel, BAD_ENCODING, "a provider's level is over 5", "2.2";
    ProviderName, BAD_ENCODING, "a provider has no name", "2.2";
    NoTracepoint, BAD_ENCODING, "a provider has no tracepoint", "2.2";
    TracepointSetName, BAD_ENCODING, "a set's tracepoint has no name", "2.2";
    DefaultTracepointName, FAIL, "the default tracepoint's name is empty", "9";
    TracepointNameLength, FAIL, "a tracepoint's name makes its format longer than 512 bytes", "9";
    DuplicateEventId, FAIL, "an event id stands twice", "9";
    DumpType, FAIL, "the dump type is not 1 to 4", "2.1";
    ProfilerPath, FAIL, "the profiler has no path", "2.3";
    VariableName, INVALID_ARG, "the environment variable has no name", "2.4";
    PerfMapType, INVALID_ARG, "the perf map type is not 1, 2 or 3", "2.4";
    StartupHookPath, INVALID_ARG, "the startup hook has no path", "2.4";
}
impl core::error::Error for Violation {}

impl Request<'_> {
    /// Whether a runtime would refuse a value of it. A tool can ask before it sends; [`Serve`](crate::Serve) refuses by it.
    ///
    /// What depends on more than the request, on whether the runtime is suspended say, is not looked at.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), Violation> {
        match self {
            Self::GenerateCoreDump(dump) => dump_type(dump.dump_type),
            Self::GenerateCoreDump2(dump) => dump_type(dump.dump_type),
            Self::GenerateCoreDump3(dump) => dump_type(dump.dump_type),
            Self::CollectTracing(start) => session(start.buffer_mb, start.format, start.providers),
            Self::CollectTracing2(start) => session(start.buffer_mb, start.format, start.providers),
            Self::CollectTracing3(start) => session(start.buffer_mb, start.format, start.providers),
            Self::CollectTracing4(start) => session(start.buffer_mb, start.format, start.providers),
            Self::CollectTracing5(start) => match &start.session {
                SessionConfig::Streaming(session) => {
                    stream(session.buffer_mb, session.format)?;
                    streaming(session.providers)
                }
                SessionConfig::UserEvents(session) => user_events(session),
                SessionConfig::Unknown { .. } => Err(Violation::SessionType),
            },
            Self::CollectTracing6(start) => match &start.session {
                SessionConfig6::Streaming(session) => {
                    stream(session.buffer_mb, session.format)?;
                    let mode = session.session_buffer_mode;
                    unless(mode <= SessionBufferMode::BLOCK, Violation::SessionBufferMode)?;
                    streaming(session.providers)
                }
                SessionConfig6::UserEvents(session) => user_events(session),
                SessionConfig6::Unknown { .. } => Err(Violation::SessionType),
            },
            Self::AttachProfiler(attach) => named(attach.profiler_path, Violation::ProfilerPath),
            Self::SetEnvironmentVariable(set) => unless(!set.name.is_empty(), Violation::VariableName),
            Self::EnablePerfMap(enable) => {
                let known = PerfMapType::ALL..=PerfMapType::PERF_MAP;
                unless(known.contains(&enable.perf_map_type), Violation::PerfMapType)
            }
            Self::ApplyStartupHook(hook) => {
                unless(!hook.startup_hook_path.is_empty(), Violation::StartupHookPath)
            }
            // The others have no value that a runtime would mind.
            _ => Ok(()),
        }
    }
}

fn unless(good: bool, violation: Violation) -> Result<(), Violation> {
    if good { Ok(()) } else { Err(violation) }
}

/// Whether a runtime reads nothing: it reads up to the first NUL.
fn reads_empty(text: Text<'_>) -> bool {
    text.units().next().is_none_or(|unit| unit == 0)
}

fn named(text: Text<'_>, violation: Violation) -> Result<(), Violation> {
    unless(!reads_empty(text), violation)
}

fn dump_type(dump_type: DumpType) -> Result<(), Violation> {
    unless((DumpType::NORMAL..=DumpType::FULL).contains(&dump_type), Violation::DumpType)
}

fn stream(buffer_mb: u32, format: Format) -> Result<(), Violation> {
    unless(buffer_mb > 0, Violation::BufferSize)?;
    unless(format <= Format::NET_TRACE, Violation::Format)
}

fn session(buffer_mb: u32, format: Format, list: Array<'_, Provider<'_>>) -> Result<(), Violation> {
    stream(buffer_mb, format)?;
    providers(list, |provider| (provider.level, provider.name))
}

fn providers<'a, T: crate::Decode<'a> + Copy>(
    providers: Array<'a, T>,
    parts: impl Fn(T) -> (EventLevel, Text<'a>),
) -> Result<(), Violation> {
    unless((1..=1000).contains(&providers.len()), Violation::ProviderCount)?;
    for provider in providers {
        let (level, name) = parts(provider);
        unless(level <= EventLevel::VERBOSE, Violation::ProviderLevel)?;
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
    session.providers.iter().try_for_each(|provider| tracepoints_parse(&provider.tracepoints))?;
    session.providers.iter().try_for_each(|UserEventsProvider { filter: ids, tracepoints, .. }| {
        filter(&ids)?;
        tracepoints_register(&tracepoints)
    })
}

fn filter(filter: &EventFilter<'_>) -> Result<(), Violation> {
    distinct(filter.event_ids.iter())
}

/// What a runtime refuses while it reads.
fn tracepoints_parse(config: &TracepointConfig<'_>) -> Result<(), Violation> {
    let some = !config.default_tracepoint_name.is_null() || !config.sets.is_empty();
    unless(some, Violation::NoTracepoint)?;
    config.sets.iter().try_for_each(|set| named(set.tracepoint_name, Violation::TracepointSetName))
}

/// What fails when the tracepoints are made.
fn tracepoints_register(config: &TracepointConfig<'_>) -> Result<(), Violation> {
    if let Some(name) = config.default_tracepoint_name.non_null() {
        named(name, Violation::DefaultTracepointName)?;
        tracepoint_length(name)?;
    }
    config.sets.iter().try_for_each(|set| tracepoint_length(set.tracepoint_name))?;
    distinct(config.sets.iter().flat_map(|set| set.event_ids))
}

fn tracepoint_length(name: Text<'_>) -> Result<(), Violation> {
    unless(TracepointFormat::len_with(name) <= TracepointFormat::MAX_LEN, Violation::TracepointNameLength)
}

/// Whether no id stands twice. A message holds 16,000, and there is nowhere to sort them: each few are kept, and compared
/// with all that follow.
fn distinct(mut ids: impl Iterator<Item = u32> + Clone) -> Result<(), Violation> {
    loop {
        let mut kept = [0; 64];
        let mut len = 0;
        for (place, id) in kept.iter_mut().zip(ids.by_ref()) {
            *place = id;
            len = usize::saturating_add(len, 1);
        }
        let kept = kept.get(..len).unwrap_or_default();
        let among = (1..len).any(|at| kept.get(at).is_some_and(|id| kept.iter().take(at).any(|k| k == id)));
        unless(!among && !ids.clone().any(|id| kept.contains(&id)), Violation::DuplicateEventId)?;
        if len < 64 {
            return Ok(());
        }
    }
}
