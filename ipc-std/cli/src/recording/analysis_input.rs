//! The input of an analysis: the events of a trace, or of a process that is recorded for the analysis.
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use dotnet_ipc_sans_io::syntax::keywords::{self, RUNTIME_PROVIDER};
use dotnet_ipc_sans_io::syntax::provider::{self, ProviderSpec};
use ipc_proto::types::EventLevel;
use ipc_std::{Client, TraceReader, TraceSession};
use nettrace::{End, EventAssembler, EventOrder, ReadOptions, TraceClock, TraceEvent};
use nettrace_analysis::Analysis;
use nettrace_analysis::names::Names;
use nettrace_analysis::samples::Clock;

use super::args::LiveArgs;
use super::part_args::{PartArgs, TracePart};
use super::progress::Progress;
use super::session::{self, LiveEvents, LiveSession};
use super::summary::{RecordedAmount, lost_warning};
use super::trace_profile::TraceProfile;
use crate::args::process_arg::ProcessArg;
use crate::args::symbol_args::SymbolArgs;
use crate::input::trace_file;
use crate::process::connection_args::ConnectionArgs;
use crate::process::cpu_usage::{CpuTimes, CpuUsage};
use crate::process::target::Target;
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::run::signals;
use crate::run::{Failure, Globals};

/// The options of an analysis that can record a process. The command has [`TraceTargetArgs`] before them.
#[derive(Debug, clap::Args)]
#[command(mut_arg("duration", |arg| arg.help("Record a process for DURATION; Ctrl-C ends it earlier [default: 10s]")))]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting the session, and again when ending it [default: 10s, 2m]")))]
pub(crate) struct AnalysisArgs {
    #[command(flatten)]
    process: ProcessArg,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

impl AnalysisArgs {
    /// How long a process is recorded without `--duration`.
    const DURATION: Duration = Duration::from_secs(10);

    /// Returns the trace or the process to read. A trace is read for the names of its threads, if `--thread` has one.
    pub(crate) fn input<'a>(
        &'a self,
        target: &'a TraceTargetArgs,
        globals: &Globals,
    ) -> Result<AnalysisInput<'a>, Failure> {
        let is_about_sessions = self.live.is_used() || self.connection.is_used();
        let target = target.target(is_about_sessions)?;
        Ok(AnalysisInput { target, part: self.part.part(target, globals)?, args: self })
    }
}

/// The provider of the requests that a program receives.
const HOSTING_PROVIDER: &str = "Microsoft.AspNetCore.Hosting";

/// The events that an analysis needs, and whether it needs their stacks.
#[derive(Debug)]
pub(crate) struct Needs {
    providers: Vec<ProviderSpec>,
    /// Whether the analysis needs stacks of events and names of their frames.
    stacks: bool,
    /// The keywords of the rundown that the analysis needs beside names.
    rundown: u64,
}

impl Needs {
    /// Returns the needs of an analysis by these clocks.
    pub(crate) fn of(clocks: &[Clock]) -> Self {
        let mut providers = Vec::new();
        for spec in clocks.iter().flat_map(Self::providers) {
            // This cannot fail, because no provider here has arguments.
            let _ = provider::add(&mut providers, &spec);
        }
        Self { providers, stacks: true, rundown: 0 }
    }

    /// Returns the providers of the events of a clock.
    fn providers(clock: &Clock) -> Vec<ProviderSpec> {
        const INFORMATIONAL: EventLevel = EventLevel::INFORMATIONAL;
        let runtime = |keywords, level| vec![ProviderSpec::new(RUNTIME_PROVIDER, keywords, level, "")];
        match clock {
            // A runtime since .NET 10 then sends AllocationSampled in place of AllocationTick.
            Clock::Allocations | Clock::AllocatedTypes => {
                runtime(keywords::GC | keywords::ALLOCATION_SAMPLING, EventLevel::VERBOSE)
            }
            Clock::Exceptions => runtime(keywords::EXCEPTION, INFORMATIONAL),
            Clock::Contention => runtime(keywords::CONTENTION, INFORMATIONAL),
            Clock::Waits => runtime(keywords::WAIT_HANDLE, EventLevel::VERBOSE),
            Clock::Events { provider, .. } => {
                let is_runtime = provider.eq_ignore_ascii_case(RUNTIME_PROVIDER);
                let keywords = if is_runtime { keywords::MODERATE } else { u64::MAX };
                let name = provider.clone().into();
                vec![ProviderSpec { name, ..ProviderSpec::new("", keywords, EventLevel::VERBOSE, "") }]
            }
            Clock::AllEvents => {
                TraceProfile::DEFAULT.iter().flat_map(|profile| profile.providers()).cloned().collect()
            }
            _ => TraceProfile::DotnetSampledThreadTime.providers().to_vec(),
        }
    }

    /// Returns all that a diagnosis counts: the profile sick without meters, which would delay the end.
    pub(crate) fn of_diagnosis() -> Self {
        let providers = TraceProfile::Sick.providers().iter();
        let providers =
            providers.filter(|spec| !spec.is_named("System.Diagnostics.Metrics")).cloned().collect();
        Self { providers, stacks: true, rundown: keywords::THREADING }
    }

    /// Returns waits for locks, samples, and the numbers of threads.
    pub(crate) fn of_locks() -> Self {
        let mut needs = Self::of(&[Clock::Contention, Clock::Waits, Clock::Wall]);
        let threads = ProviderSpec::new(RUNTIME_PROVIDER, keywords::THREADING, EventLevel::INFORMATIONAL, "");
        // This cannot fail: the provider has no arguments.
        let _ = provider::add(&mut needs.providers, &threads);
        Self { rundown: keywords::THREADING, ..needs }
    }

    /// Returns the events of HTTP requests. With `waits`, also those of asynchronous methods that wait.
    pub(crate) fn of_requests(waits: bool) -> Self {
        const FLOW_ACTIVITY_IDS: u64 = 0x80;
        const ASYNC_OPERATIONS: u64 = 0x8;
        // Events without a keyword have those that an event source reserves for its sessions.
        const NO_KEYWORD: u64 = 0xf000_0000_0000;
        let provider = |name, keywords| ProviderSpec::new(name, keywords, EventLevel::INFORMATIONAL, "");
        let operations = if waits { ASYNC_OPERATIONS } else { 0 };
        let providers = vec![
            provider(HOSTING_PROVIDER, NO_KEYWORD),
            provider("System.Net.Http", NO_KEYWORD),
            provider("System.Threading.Tasks.TplEventSource", FLOW_ACTIVITY_IDS | operations),
        ];
        Self { providers, stacks: true, rundown: 0 }
    }

    /// Returns events of the runtime, without their stacks.
    pub(crate) fn of_runtime(keywords: u64, level: EventLevel) -> Self {
        let providers = vec![ProviderSpec::new(RUNTIME_PROVIDER, keywords, level, "")];
        Self { providers, stacks: false, rundown: 0 }
    }
}

/// The trace or the process that an analysis reads.
#[derive(Debug)]
pub(crate) struct AnalysisInput<'a> {
    pub(crate) target: TraceTarget<'a>,
    /// The part that the analysis counts. It takes all events.
    pub(crate) part: TracePart,
    args: &'a AnalysisArgs,
}

/// The result of reading the input of an analysis.
#[derive(Debug)]
pub(crate) struct InputRead {
    /// The number of events that the runtime dropped.
    pub(crate) lost: u64,
    /// The id of the process, as the trace states it.
    pub(crate) process_id: Option<u32>,
    /// The time of the last sequence point in nanoseconds, up to which the recording lasted at least.
    pub(crate) last_point: Option<i64>,
    /// The start of the input in nanoseconds since 1970; `None` if the trace states no date that exists.
    pub(crate) start: Option<i128>,
    /// The CPU time of the process during the recording, if this system shows the process.
    pub(crate) cpu: Option<CpuUsage>,
    /// The client of the process, if one was recorded.
    pub(crate) client: Option<Client>,
    /// An error if the end of the input is missing. The events before the error were read.
    pub(crate) result: Result<(), Failure>,
}

impl InputRead {
    /// Returns the result of reading a trace, after its end.
    pub(crate) fn of<R: io::Read>(trace: &TraceReader<R>, result: Result<(), Failure>) -> Self {
        let lost = trace_file::lost(trace);
        let process_id = trace.summary().trace.and_then(|trace| trace.process_id);
        let last_point = trace.summary().last_point;
        let start = trace.summary().trace.and_then(|trace| TraceClock::new(&trace).unix_start());
        Self { lost, process_id, last_point, start, cpu: None, client: None, result }
    }

    /// Makes an analysis last as long as the recording.
    pub(crate) fn extend(&self, analysis: &mut impl Analysis) {
        self.last_point.into_iter().for_each(|time| analysis.extend_to(time));
    }
}

impl AnalysisInput<'_> {
    /// Returns whether a process is recorded.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.target, TraceTarget::Process(_))
    }

    /// Reads all events into an analysis, names native code, and returns the report. Fails if there can be no event.
    pub(crate) fn analyse<A: Analysis>(
        &self,
        needs: Needs,
        mut analysis: A,
        symbols: &SymbolArgs,
        names: impl FnOnce(&mut A) -> &mut Names,
        globals: &Globals,
    ) -> Result<(A::Report, InputRead), Failure> {
        let read = self.read(needs, false, globals, |event| {
            analysis.event(event);
            ControlFlow::Continue(())
        })?;
        symbols.name_native(names(&mut analysis))?;
        read.extend(&mut analysis);
        Ok((analysis.finish(), read))
    }

    /// Passes each event to `take` in the order of time, until that breaks. Fails if there can be no event.
    ///
    /// Notes report events that may be missing or out of order. A terminal shows the progress, unless `take` writes
    /// output. Output mostly appears on the same terminal, even through a pipe, and would mix with the progress.
    pub(crate) fn read(
        &self,
        needs: Needs,
        is_output: bool,
        globals: &Globals,
        mut take: impl FnMut(&TraceEvent<'_>) -> ControlFlow<()>,
    ) -> Result<InputRead, Failure> {
        let process = &self.args.process;
        let mut part = self.part.clone();
        let take = |event: &TraceEvent<'_>| {
            if !process.includes(event) {
                return ControlFlow::Continue(());
            }
            part.includes(event);
            take(event)
        };
        let mut read = match self.target {
            TraceTarget::File(path) => {
                let mut trace = trace_file::open(path, needs.stacks, globals)?;
                if is_output {
                    trace.get_mut().hide_progress();
                }
                let result = trace_file::read_all(&mut trace, globals, take);
                let result = result.and_then(|()| process.check(trace.get_ref().name()));
                InputRead::of(&trace, result)
            }
            TraceTarget::Process(target) => self.record(target, needs, is_output, globals, take)?,
        };
        read.last_point.into_iter().for_each(|time| part.extend_to(time));
        read.result = read.result.and_then(|()| part.check(self.target));
        Ok(read)
    }

    fn record(
        &self,
        target: Target<'_>,
        needs: Needs,
        is_output: bool,
        globals: &Globals,
        take: impl FnMut(&TraceEvent<'_>) -> ControlFlow<()>,
    ) -> Result<InputRead, Failure> {
        let AnalysisArgs { live, connection, .. } = self.args;
        let mut plan = live.plan(needs.providers);
        plan.duration.get_or_insert(AnalysisArgs::DURATION);
        let plan = if needs.stacks { plan.with_named_stacks(needs.rundown) } else { plan };
        let (client, wire_log) = connection.session_client(target)?;
        let LiveSession { session, started, resumption, stopping, notes: _notes } =
            session::start(client.clone(), &plan, None, globals)?;
        let system = target.process_id().filter(|_| needs.stacks);
        let cpu = system.and_then(RecordedCpu::start);
        let progress = (!is_output).then(|| Progress::start(started, plan.duration, Arc::clone(&stopping)));
        let options = ReadOptions { stacks: needs.stacks, ..ReadOptions::default() };
        let trace = TraceReader::with_assembler(session, EventAssembler::new(EventOrder::BY_TIME, options));
        let mut recorded = AnalysedEvents { trace, take, is_done: false, events: 0, progress, cpu, stopping };
        let (end, read) = session::read_events(&mut recorded);
        let AnalysedEvents { trace, events, progress, cpu, .. } = recorded;
        progress.inspect(Progress::finish);
        // The recording has ended, so from here on a signal ends the tool.
        signals::handle(|_| false)?;
        let session = trace.get_ref();
        let (bytes, buffer_mb, blocks) = (session.received(), plan.buffer_mb, plan.blocks(session));
        let recorded = RecordedAmount { events, bytes, buffer_mb, blocks };
        if let Some(warning) = lost_warning(trace_file::loss_report(&trace), &recorded) {
            globals.note(&warning);
        }
        trace_file::report_late(&trace, globals);
        let check = || {
            resumption.check().and(read)?;
            let session = trace.get_ref();
            session::check_end(end, session, plan.no_resume, target.process_id())?;
            session::report_end(session, globals);
            wire_log.check()
        };
        let read = InputRead::of(&trace, check());
        // The system can know another process by the id that the runtime has in its own container.
        let cpu = cpu.filter(|cpu| read.process_id == Some(cpu.process_id)).and_then(|cpu| cpu.usage());
        Ok(InputRead { cpu, client: Some(client.with_deadline(None)), ..read })
    }
}

/// The CPU time of a process at the start and at the end of its recording. The rundown after the recording does not
/// count.
struct RecordedCpu {
    process_id: u32,
    begin: CpuTimes,
    end: Option<CpuTimes>,
}

impl RecordedCpu {
    fn start(process_id: u32) -> Option<Self> {
        Some(Self { process_id, begin: CpuTimes::of(process_id)?, end: None })
    }

    fn usage(&self) -> Option<CpuUsage> {
        CpuUsage::between(&self.begin, self.end.as_ref()?)
    }
}

/// The events of a process that is recorded.
struct AnalysedEvents<T> {
    trace: TraceReader<TraceSession>,
    take: T,
    /// Whether `take` wants no more events.
    is_done: bool,
    events: u64,
    progress: Option<Progress>,
    cpu: Option<RecordedCpu>,
    /// Whether a signal or the end of the duration has stopped the session.
    stopping: Arc<AtomicBool>,
}

impl<T: FnMut(&TraceEvent<'_>) -> ControlFlow<()>> LiveEvents for AnalysedEvents<T> {
    fn advance(&mut self) -> io::Result<Option<End>> {
        let Self { trace, take, is_done, events, progress, cpu, stopping } = self;
        if let Some(RecordedCpu { process_id, end: end @ None, .. }) = cpu {
            if stopping.load(Ordering::Relaxed) {
                *end = CpuTimes::of(*process_id);
            }
        }
        match trace.next_event()? {
            Some(event) => {
                *events = events.saturating_add(1);
                *is_done = *is_done || take(&event).is_break();
            }
            None => return Ok(trace.summary().end),
        }
        if let Some(progress) = progress {
            progress.update(trace.get_ref().received(), *events, trace_file::lost(trace));
        }
        Ok(None)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn session(&mut self) -> &mut TraceSession {
        self.trace.get_mut()
    }
}
