//! Options that select what to record, and `SessionPlan`, the session that they describe.
use core::time::Duration;

use clap::ValueEnum;
use dotnet_ipc_sans_io::syntax::durations;
use dotnet_ipc_sans_io::syntax::event_ids::{self, EventIds};
use dotnet_ipc_sans_io::syntax::keywords::{self, PRIVATE_PROVIDER, RUNTIME_PROVIDER};
use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use dotnet_ipc_sans_io::syntax::provider::{self, ProviderList, ProviderSpec};
use ipc_proto::plan::{DEFAULT_RUNDOWN, LostFeature};
use ipc_proto::types::{EventLevel, SessionBufferMode, StreamingProvider};
use ipc_std::{Client, TraceConfig, TraceSession};
use nettrace::Metadata;

use super::rundown;
use super::trace_profile::{self, TraceProfile};
use crate::run::signals;
use crate::run::{Failure, Globals, Kind};

/// Options of every command that starts a session.
#[derive(Debug, clap::Args)]
pub(crate) struct LiveArgs {
    /// Stop after DURATION [default: at Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    pub(crate) duration: Option<Duration>,
    /// Size of the runtime's event buffer in MB
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) buffer: u32,
    /// Keep a runtime suspended that is suspended at startup
    #[arg(long)]
    pub(crate) no_resume: bool,
}

/// Options of the commands for which the user selects what to record.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Enable the providers of this profile; repeatable
    #[arg(long = "profile", value_name = "P", value_enum, value_delimiter = ',')]
    profiles: Vec<TraceProfile>,
    /// Enable this provider; repeatable, or separated by commas. KEYWORDS are hexadecimal, or names such as
    /// gc+jit+exception for Microsoft-Windows-DotNETRuntime [default: all]; LEVEL is 0 to 5 or logalways, critical,
    /// error, warning, informational, verbose [default: informational]; ARGS are KEY=VALUE;KEY=VALUE
    #[arg(long = "provider", value_name = "NAME[:KEYWORDS[:LEVEL[:ARGS]]]")]
    providers: Vec<ProviderList>,
    /// Enable the runtime's own provider with these keywords, such as gc+jit+exception
    #[arg(long, value_name = "NAMES", alias = "clrevents", value_parser = keywords::parse_names)]
    clr_events: Option<u64>,
    /// Level of --clr-events, by number or name [default: informational]
    #[arg(long, value_name = "LEVEL", alias = "clreventlevel", requires = "clr_events", value_parser = provider::parse_level)]
    clr_event_level: Option<EventLevel>,
    /// Record only these events of an enabled provider, or with - all others; repeatable (.NET 10)
    #[arg(long, value_name = "NAME=+ID,ID|NAME=-ID,ID")]
    event_ids: Vec<EventIds>,
    /// What happens when the event buffer is full
    #[arg(long, value_enum, value_name = "MODE", default_value = "drop")]
    buffering: Buffering,
}

/// Options of the commands that record to a file.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Leave out the rundown, the method names at the end of a trace: smaller, but stacks have no names
    #[arg(long)]
    no_rundown: bool,
    /// Keywords of the rundown (method names written at the end), hexadecimal [default: those of the profiles] (.NET 9)
    #[arg(long, value_name = "KEYWORDS", value_parser = keywords::parse_hex, conflicts_with = "no_rundown")]
    rundown_keyword: Option<u64>,
    /// Leave out the stacks of events (.NET 9)
    #[arg(long)]
    no_stacks: bool,
}

/// What the runtime does when its event buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffering {
    /// It drops events
    Drop,
    /// The threads that write events wait for the tool (.NET 11)
    Block,
    /// block if only collections are recorded, on .NET 11; else drop. A note says which
    Auto,
    /// block on .NET 11, else drop
    #[value(skip)]
    Preferred,
}

/// The session to start: the options, checked.
#[derive(Debug)]
pub(crate) struct SessionPlan<'o> {
    /// How long the session lasts, unless the user ends it earlier.
    pub(crate) duration: Option<Duration>,
    pub(crate) buffer_mb: u32,
    pub(crate) no_resume: bool,
    providers: Vec<ProviderSpec>,
    event_ids: &'o [EventIds],
    buffering: Buffering,
    rundown_keyword: u64,
    stackwalk: bool,
    /// The features whose absence is worth a note: those that the user asked for.
    reported: fn(&LostFeature) -> bool,
    /// The runtime's own provider as the user enables it, if the session also has [`NAMES`].
    shown_runtime: Option<ProviderSpec>,
}

impl LiveArgs {
    /// Returns whether there is an option that does not apply to a file.
    pub(crate) const fn is_used(&self) -> bool {
        self.duration.is_some() || self.no_resume
    }

    /// Returns a session of these providers, without stacks and rundown.
    pub(crate) fn plan(&self, providers: Vec<ProviderSpec>) -> SessionPlan<'_> {
        SessionPlan {
            duration: self.duration,
            buffer_mb: self.buffer,
            no_resume: self.no_resume,
            providers,
            event_ids: &[],
            buffering: Buffering::Drop,
            rundown_keyword: 0,
            stackwalk: false,
            reported: |_| false,
            shown_runtime: None,
        }
    }
}

/// The events that name the methods that are compiled during a session.
pub(super) const NAMES: ProviderSpec =
    ProviderSpec::new(RUNTIME_PROVIDER, keywords::LOADER | keywords::JIT, EventLevel::VERBOSE, "");

impl SessionArgs {
    /// Returns whether there is an option that selects what to record.
    pub(crate) fn is_used(&self) -> bool {
        let Self { live, profiles, providers, clr_events, event_ids, .. } = self;
        live.duration.is_some()
            || !profiles.is_empty()
            || !providers.is_empty()
            || clr_events.is_some()
            || !event_ids.is_empty()
    }

    /// Returns the session of these options, with `defaults` unless they name a profile or provider.
    fn plan(&self, defaults: &[TraceProfile]) -> Result<SessionPlan<'_>, Failure> {
        let mut named: Vec<ProviderSpec> =
            self.providers.iter().flat_map(|ProviderList(providers)| providers).cloned().collect();
        if let Some(keywords) = self.clr_events {
            let level = self.clr_event_level.unwrap_or(EventLevel::INFORMATIONAL);
            named.push(ProviderSpec::new(RUNTIME_PROVIDER, keywords, level, ""));
        }
        let profiles = if self.profiles.is_empty() && named.is_empty() { defaults } else { &self.profiles };
        let providers = trace_profile::select(profiles, &named).map_err(Failure::usage)?;
        // The filters are computed here only to report a mistake before a runtime is contacted.
        event_ids::filters(&providers, &self.event_ids).map_err(Failure::usage)?;
        let rundown_keyword = trace_profile::rundown_keyword(profiles);
        Ok(SessionPlan {
            event_ids: &self.event_ids,
            buffering: self.buffering,
            rundown_keyword,
            stackwalk: true,
            reported: |_| true,
            ..self.live.plan(providers)
        })
    }

    /// Returns a session whose events are shown, without rundown and sampler. With `stackwalk` it has stacks, and the
    /// events that name methods compiled during the session.
    pub(crate) fn live_plan(&self, stackwalk: bool) -> Result<SessionPlan<'_>, Failure> {
        let mut plan = self.plan(&[TraceProfile::DotnetCommon])?;
        if stackwalk {
            let runtime = plan.providers.iter().find(|spec| spec.is_named(RUNTIME_PROVIDER));
            plan.shown_runtime = runtime.cloned();
            plan = plan.with_names(EventLevel::VERBOSE)?;
        }
        let reported = |lost: &LostFeature| *lost != LostFeature::Stackwalk;
        Ok(SessionPlan { rundown_keyword: 0, stackwalk, reported, ..plan })
    }
}

impl RecordingArgs {
    /// Returns whether there is an option that selects what to record.
    pub(crate) fn is_used(&self) -> bool {
        self.session.is_used() || self.no_rundown || self.rundown_keyword.is_some() || self.no_stacks
    }

    /// Returns a session for a recording, by default with the profiles that dotnet-trace has as defaults.
    pub(crate) fn plan(&self) -> Result<SessionPlan<'_>, Failure> {
        let plan = self.session.plan(&TraceProfile::DEFAULT)?;
        let rundown_keyword =
            if self.no_rundown { 0 } else { self.rundown_keyword.unwrap_or(plan.rundown_keyword) };
        Ok(SessionPlan { rundown_keyword, stackwalk: !self.no_stacks, ..plan })
    }

    /// Returns [`plan`](Self::plan) for a trace that a process records of itself. The default rundown replaces that of a
    /// profile, because variables select no other. The process blocks only if the user requests it, because the tool
    /// does not know its version.
    ///
    /// Also returns the names of providers that are left out: those of a profile whose arguments have separators of the
    /// variables.
    pub(crate) fn startup_plan(&self) -> Result<(SessionPlan<'_>, Vec<String>), Failure> {
        let plan = self.plan()?;
        let named: Vec<_> =
            self.session.providers.iter().flat_map(|ProviderList(providers)| providers).collect();
        let (left_out, providers): (Vec<_>, _) = plan.providers.into_iter().partition(|spec| {
            trace_profile::has_separators(spec) && !named.iter().any(|named| named.is_named(&spec.name))
        });
        let is_default = !self.no_rundown && self.rundown_keyword.is_none();
        let rundown_keyword = if is_default { DEFAULT_RUNDOWN } else { plan.rundown_keyword };
        let buffering = if plan.buffering == Buffering::Auto { Buffering::Drop } else { plan.buffering };
        let left_out = left_out.into_iter().map(|spec| spec.name.into_owned()).collect();
        Ok((SessionPlan { rundown_keyword, buffering, providers, ..plan }, left_out))
    }
}

impl SessionPlan<'_> {
    /// Makes it a session for a heap snapshot: without losses where the runtime can, with the names of modules.
    pub(crate) fn with_snapshot(self) -> Self {
        Self { buffering: Buffering::Preferred, rundown_keyword: rundown::MODULES, ..self }
    }

    /// Adds the stacks of events, and the events that name methods. The rundown is not enough: it lacks code that is
    /// unloaded before the end, and a process that exits sends none. `rundown` has further keywords of the rundown.
    pub(crate) fn with_named_stacks(mut self, rundown: u64) -> Self {
        // This cannot fail: the provider has no arguments.
        let _ = provider::add(&mut self.providers, &NAMES);
        Self { stackwalk: true, rundown_keyword: rundown::KEYWORDS | rundown, ..self }
    }

    /// Returns what the runtime should do when its event buffer is full.
    fn buffer_mode(&self) -> SessionBufferMode {
        match self.buffering {
            Buffering::Drop => SessionBufferMode::DROP,
            Buffering::Block | Buffering::Preferred => SessionBufferMode::BLOCK,
            Buffering::Auto if self.providers.iter().all(is_of_collections) => SessionBufferMode::BLOCK,
            Buffering::Auto => SessionBufferMode::DROP,
        }
    }

    /// Returns whether threads of the program wait when the event buffer is full.
    pub(crate) fn blocks(&self, session: &TraceSession) -> bool {
        self.buffer_mode() == SessionBufferMode::BLOCK
            && !session.lost_features().contains(LostFeature::Blocking)
    }

    /// Returns whether the runtime may serve no request before the tool has read the events of a heap snapshot: the
    /// thread that serves requests writes it, and waits when the event buffer is full.
    pub(crate) fn blocks_requests(&self, session: &TraceSession) -> bool {
        let takes_snapshot = |spec: &ProviderSpec| {
            spec.is_named(RUNTIME_PROVIDER) && spec.keywords & keywords::HEAP_COLLECT != 0
        };
        self.blocks(session) && self.providers.iter().any(takes_snapshot)
    }

    /// Returns whether the runtime can be asked for names while the session runs, and says if it cannot.
    pub(crate) fn can_ask_for_names(&self, session: &TraceSession, globals: &Globals) -> bool {
        let is_busy = self.blocks_requests(session);
        if is_busy {
            globals.note(
                "no names at the start: a runtime that writes a heap snapshot answers nothing meanwhile",
            );
        }
        !is_busy
    }

    /// Returns the choice of [`Buffering::Auto`].
    pub(crate) fn chosen_buffering(&self, session: &TraceSession) -> Option<&'static str> {
        let mode = if self.blocks(session) { "block" } else { "drop" };
        (self.buffering == Buffering::Auto).then_some(mode)
    }

    /// Returns the providers, each with the filter of its events.
    pub(crate) fn providers(&self) -> Result<Vec<StreamingProvider<'_>>, Failure> {
        let filters = event_ids::filters(&self.providers, self.event_ids).map_err(Failure::usage)?;
        let providers = self.providers.iter().map(ProviderSpec::to_provider).zip(filters);
        Ok(providers.map(|(provider, filter)| StreamingProvider { filter, ..provider.into() }).collect())
    }

    /// Returns the configuration of the session. `providers` are those of [`providers`](Self::providers).
    pub(crate) fn config<'p>(&self, providers: &'p [StreamingProvider<'p>]) -> TraceConfig<'p> {
        TraceConfig {
            buffer_mb: self.buffer_mb,
            rundown_keyword: self.rundown_keyword,
            stackwalk: self.stackwalk,
            buffer_mode: self.buffer_mode(),
            ..TraceConfig::new(providers)
        }
    }

    /// Starts the session.
    pub(crate) fn start(&self, client: &Client) -> Result<TraceSession, Failure> {
        let session = client.start_tracing(&self.config(&self.providers()?))?;
        if self.blocks(&session) {
            // A tool that is stopped would make the threads of the program wait.
            signals::end_on_stop()?;
        }
        // The user requested a trace without losses. The session ends when it is dropped.
        if self.buffering == Buffering::Block && session.lost_features().contains(LostFeature::Blocking) {
            return Err(Failure::new(Kind::Unsupported, LostFeature::Blocking.to_string())
                .with_hint("without --buffering block, a larger --buffer loses fewer events"));
        }
        Ok(session)
    }

    /// Adds the events that name the methods that are compiled during the session. With level informational, the
    /// runtime sends them only while another session has level verbose.
    pub(crate) fn with_names(mut self, level: EventLevel) -> Result<Self, Failure> {
        provider::add(&mut self.providers, &ProviderSpec { level, ..NAMES }).map_err(Failure::usage)?;
        Ok(self)
    }

    /// Fails if the session does not enable the provider of an event that should end it.
    pub(crate) fn check_until(&self, until: &[OnlyArg]) -> Result<(), Failure> {
        let is_missing =
            |until: &&OnlyArg| !self.providers.iter().any(|spec| spec.is_named(until.provider()));
        let Some(missing) = until.iter().find(is_missing) else { return Ok(()) };
        Err(Failure::usage(format!("the provider {} of --until is not enabled", missing.provider()))
            .with_hint("enable it with --provider"))
    }

    /// Returns whether the user enables an event of the session.
    pub(crate) fn enables(&self, event: &Metadata<'_>) -> bool {
        let provider = event.provider.to_string();
        if self.stackwalk && NAMES.is_named(&provider) {
            return self.shown_runtime.as_ref().is_some_and(|spec| spec.enables(event));
        }
        self.providers.iter().any(|spec| spec.is_named(&provider))
    }

    /// Returns a sentence for each requested feature that the runtime is too old for, and for the choice of
    /// [`Buffering::Auto`].
    pub(crate) fn limitations(&self, session: &TraceSession) -> Vec<String> {
        let lost = session
            .lost_features()
            .iter()
            .filter(self.reported)
            .filter(|lost| *lost != LostFeature::Blocking);
        let choice = self.chosen_buffering(session).map(|mode| {
            let why = match self.buffer_mode() {
                _ if self.blocks(session) => "only collections are recorded".to_owned(),
                SessionBufferMode::BLOCK => LostFeature::Blocking.to_string(),
                _ => "more than collections is recorded".to_owned(),
            };
            format!("buffering is {mode}: {why}")
        });
        lost.map(|lost| lost.to_string()).chain(choice).collect()
    }
}

/// Returns whether a provider sends events of collections only. They are few: the runtime's buffer does not fill while
/// the tool reads, and it fills slowly if the tool does not.
fn is_of_collections(spec: &ProviderSpec) -> bool {
    let is_low = spec.level != EventLevel::LOG_ALWAYS && spec.level <= EventLevel::INFORMATIONAL;
    is_low
        && spec.keywords == keywords::GC
        && [RUNTIME_PROVIDER, PRIVATE_PROVIDER].iter().any(|name| spec.is_named(name))
}
