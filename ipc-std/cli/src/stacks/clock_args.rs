//! The options for the clock (what counts in a trace), and the samples of a trace by clocks.
use core::ops::ControlFlow;
use std::path::Path;

use dotnet_ipc_syntax::only_arg::OnlyArg;
use nettrace_analysis::samples::{Clock, Samples};

use crate::input::trace_file;
use crate::output::failure::{Failure, Kind};
use crate::output::globals::Globals;
use crate::process::trace_target::TraceTarget;

pub(crate) const NO_STACK: &str = "no event has a stack";
pub(crate) const WHY_NO_STACK: &str = "a program that was compiled ahead of time sends none before .NET 10, and `trace --no-stacks` leaves them out";

/// The choice of a clock.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct ClockArgs {
    /// Count samples in managed code, the default
    #[arg(long)]
    cpu: bool,
    /// Count all samples
    #[arg(long)]
    wall: bool,
    /// Add up the time of threads, as dotnet-trace does
    #[arg(long)]
    thread_time: bool,
    /// Add up allocated bytes
    #[arg(long)]
    allocations: bool,
    /// Count exceptions
    #[arg(long)]
    exceptions: bool,
    /// Add up the time of waiting for locks
    #[arg(long)]
    contention: bool,
    /// Count the events PROVIDER[/ID], or `all` with a stack
    #[arg(long, value_name = "PROVIDER/ID")]
    event: Option<String>,
}

impl ClockArgs {
    /// Returns whether no clock was chosen.
    pub(crate) const fn is_default(&self) -> bool {
        let Self { cpu, wall, thread_time, allocations, exceptions, contention, event } = self;
        !(*cpu || *wall || *thread_time || *allocations || *exceptions || *contention || event.is_some())
    }

    /// Returns the clock, and its name.
    pub(crate) fn clock(&self) -> Result<(Clock, &'static str), Failure> {
        Ok(match self {
            Self { wall: true, .. } => (Clock::Wall, "wall"),
            Self { thread_time: true, .. } => (Clock::ThreadTime, "thread-time"),
            Self { allocations: true, .. } => (Clock::Allocations, "allocations"),
            Self { exceptions: true, .. } => (Clock::Exceptions, "exceptions"),
            Self { contention: true, .. } => (Clock::Contention, "contention"),
            Self { event: Some(event), .. } if event == "all" => (Clock::AllEvents, "event"),
            Self { event: Some(event), .. } => {
                let only = OnlyArg::parse(event).map_err(|e| {
                    Failure::new(Kind::Usage, format!("invalid value {event:?} for --event: {e}"))
                        .with_hint("an event is PROVIDER/ID, PROVIDER or all")
                })?;
                let selector = only.as_filter();
                let provider = selector.provider.to_owned();
                (Clock::Events { provider, event_id: selector.event_id }, "event")
            }
            _ => (Clock::Cpu, "cpu"),
        })
    }
}

/// Returns `Samples` without any event. Their names are short or whole.
pub(crate) fn samples(clocks: impl IntoIterator<Item = Clock>, is_short: bool) -> Samples {
    let mut samples = Samples::new(clocks);
    if is_short {
        samples.names_mut().shorten();
    }
    samples
}

/// Reads the samples of a trace.
pub(crate) fn read_samples(mut samples: Samples, file: &Path, globals: &Globals) -> Result<Samples, Failure> {
    trace_file::read_all(&mut trace_file::open(file)?, globals, |event| {
        samples.event(event);
        ControlFlow::Continue(())
    })?;
    Ok(samples)
}

/// Returns the failure of a trace or a process that has nothing for a clock, and how to record it.
pub(crate) fn missing(clock: &Clock, target: TraceTarget<'_>) -> Failure {
    match target {
        TraceTarget::File(_) => missing_in_file(clock, target),
        TraceTarget::Process(_) => missing_in_process(clock, target),
    }
}

fn missing_in_file(clock: &Clock, file: TraceTarget<'_>) -> Failure {
    let (what, how) = match clock {
        Clock::Cpu | Clock::Wall | Clock::ThreadTime | Clock::SampledTime => (
            "no samples of threads: the provider Microsoft-DotNETCore-SampleProfiler was not recorded",
            "record them with `dotnet-ipc trace PID -o FILE --profile dotnet-sampled-thread-time`; a program that was \
             compiled ahead of time sends them since .NET 10",
        ),
        Clock::Allocations => (
            "no allocations: the events of the garbage collector were not recorded at level verbose",
            "record them with `dotnet-ipc trace PID -o FILE --profile gc-verbose`",
        ),
        Clock::Exceptions => (
            "no exceptions: none was thrown, or the keyword exception was not recorded",
            "record them with `dotnet-ipc trace PID -o FILE --clr-events exception`",
        ),
        Clock::Contention => (
            "no contended locks: there were none, or the keyword contention was not recorded",
            "record them with `dotnet-ipc trace PID -o FILE --clr-events contention`",
        ),
        _ => ("no such events", "`dotnet-ipc stats FILE` lists the events of a trace"),
    };
    Failure::new(Kind::Other, format!("{file}: the trace has {what}")).with_hint(how)
}

fn missing_in_process(clock: &Clock, process: TraceTarget<'_>) -> Failure {
    const LONGER: &str = "record for longer with --duration";
    let (what, how) = match clock {
        Clock::Cpu | Clock::Wall | Clock::ThreadTime | Clock::SampledTime => (
            "sent no samples of threads",
            "a program that was compiled ahead of time sends them since .NET 10; --allocations, --exceptions, \
             --contention and --event need no samples",
        ),
        Clock::Allocations => (
            "sent no allocation, which it does every 100 KB or so",
            "record for longer with --duration; a program that was compiled ahead of time sends them since .NET 9",
        ),
        Clock::Exceptions => ("threw no exception", LONGER),
        Clock::Contention => ("did not wait for a lock", LONGER),
        Clock::Events { .. } => (
            "sent no such event",
            "check the name of the provider and the ID, or record for longer with --duration",
        ),
        _ => ("sent no event with a stack", LONGER),
    };
    Failure::new(Kind::Other, format!("{process} {what}")).with_hint(how)
}
