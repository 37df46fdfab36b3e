//! The options for the clock (what counts in a trace), and the samples of a trace by clocks.
use core::ops::ControlFlow;
use std::path::Path;

use dotnet_ipc_syntax::keywords::RUNTIME_PROVIDER;
use dotnet_ipc_syntax::only_arg::OnlyArg;
use nettrace_analysis::call_tree;
use nettrace_analysis::samples::{Clock, Samples, Unit, Waits};
use nettrace_analysis::{Analysis as _, RuntimeEvent};

use crate::args::frame_args::FrameArgs;
use crate::input::trace_file;
use crate::output::failure::{Failure, Kind};
use crate::output::globals::Globals;
use crate::process::trace_target::TraceTarget;

pub(crate) const NO_STACK: &str = "no event has a stack";

/// Returns why no event of a clock has a stack, and which event has one instead.
pub(crate) fn why_no_stack(samples: &Samples, clock: &Clock) -> String {
    if !samples.has_stacks() {
        return "a program that was compiled ahead of time sends stacks only with samples, since .NET 10, and `trace \
                --no-stacks` leaves them out"
            .to_owned();
    }
    let event_id = match clock {
        Clock::Events { provider, event_id } if provider.eq_ignore_ascii_case(RUNTIME_PROVIDER) => *event_id,
        _ => None,
    };
    let other =
        event_id.and_then(|id| INSTEAD.iter().find(|(without_stack, ..)| without_stack.contains(&id)));
    let instead = other.map_or_else(String::new, |(_, event, what)| {
        format!("; {RUNTIME_PROVIDER}/{} has the stack of the code that {what}", event.id())
    });
    format!(
        "the runtime sends these events from threads that run no managed code, or leaves out their stacks{instead}"
    )
}

/// Events of the runtime without a stack, the related event that has one, and its meaning.
const INSTEAD: [(&[u32], RuntimeEvent, &str); 5] = [
    // Of a thread: running, created, terminated.
    (&[50, 71, 85, 86], RuntimeEvent::ThreadCreating, "starts a thread (ThreadCreating)"),
    // Of a collection: its phases and the size of the heap.
    (
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 33, 39, 202, 203, 204, 205],
        RuntimeEvent::GCTriggered,
        "triggers a collection (GCTriggered)",
    ),
    (&[91], RuntimeEvent::ContentionStart, "waits for a lock (ContentionStart)"),
    (
        &[250, 251, 252, 253, 254, 255, 256],
        RuntimeEvent::ExceptionThrown,
        "throws an exception (ExceptionThrown)",
    ),
    (
        &[141, 143, 146],
        RuntimeEvent::MethodJittingStarted,
        "has a method compiled, at level verbose (MethodJittingStarted)",
    ),
];

/// The choice of a clock, and its form.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ClockArgs {
    #[command(flatten)]
    choice: ClockChoice,
    /// With --allocations: add the type of the objects
    #[arg(long, requires = "allocations")]
    pub(crate) by_type: bool,
}

/// The choice of a clock.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ClockChoice {
    /// Count samples of threads that run managed code, the default
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
        let ClockChoice { cpu, wall, thread_time, allocations, exceptions, contention, event } = &self.choice;
        !(*cpu || *wall || *thread_time || *allocations || *exceptions || *contention || event.is_some())
    }

    /// Returns the clock, and its name.
    pub(crate) fn clock(&self) -> Result<(Clock, &'static str), Failure> {
        Ok(match &self.choice {
            ClockChoice { wall: true, .. } => (Clock::Wall, "wall"),
            ClockChoice { thread_time: true, .. } => (Clock::ThreadTime, "thread-time"),
            ClockChoice { allocations: true, .. } if self.by_type => (Clock::AllocatedTypes, "allocations"),
            ClockChoice { allocations: true, .. } => (Clock::Allocations, "allocations"),
            ClockChoice { exceptions: true, .. } => (Clock::Exceptions, "exceptions"),
            ClockChoice { contention: true, .. } => (Clock::Contention, "contention"),
            ClockChoice { event: Some(event), .. } if event == "all" => (Clock::AllEvents, "event"),
            ClockChoice { event: Some(event), .. } => {
                let invalid = |e: &str| {
                    Failure::new(Kind::Usage, format!("invalid value {event:?} for --event: {e}"))
                        .with_hint("an event is PROVIDER/ID, PROVIDER or all")
                };
                let only = OnlyArg::parse(event).map_err(|e| invalid(&e))?;
                let selector = only.as_filter();
                if let Some(name) = selector.event_name {
                    return Err(invalid(&format!("{name:?} after the / is not an ID")));
                }
                let provider = selector.provider.to_owned();
                (Clock::Events { provider, event_id: selector.event_id }, "event")
            }
            _ => (Clock::Cpu, "cpu"),
        })
    }
}

/// Returns the clocks to record for a clock. The report of CPU time also states how many threads only wait, and shows
/// all samples if they do not tell which threads run; that of locks states how many threads wait from before the
/// recording. So both need the wall clock.
pub(crate) fn recorded(clock: &Clock) -> impl Iterator<Item = Clock> {
    [clock.clone()].into_iter().chain([Clock::Cpu, Clock::Contention].contains(clock).then_some(Clock::Wall))
}

/// Returns the clock to show: all samples in place of CPU time, if samples do not tell which threads run.
pub(crate) fn shown(samples: &mut Samples, clock: Clock) -> Clock {
    if clock == Clock::Cpu && !samples.tells_running() { Clock::Wall } else { clock }
}

/// Returns `Samples` without any event. Their names are short or whole, and state what belongs to the program.
pub(crate) fn samples(
    clocks: impl IntoIterator<Item = Clock>,
    is_short: bool,
    frames: &FrameArgs,
) -> Samples {
    let mut samples = Samples::new(clocks);
    frames.prepare(samples.names_mut());
    if is_short {
        samples.names_mut().shorten();
    }
    samples
}

/// Reads the samples of a trace, up to its end.
pub(crate) fn read_samples(mut samples: Samples, file: &Path, globals: &Globals) -> Result<Samples, Failure> {
    trace_file::read_all(&mut trace_file::open(file, true, globals)?, globals, |event| {
        samples.event(event);
        ControlFlow::Continue(())
    })?;
    Ok(samples.finish())
}

/// Returns the failure of a trace or a process that has nothing to show for a clock, and what to do.
pub(crate) fn nothing(samples: &mut Samples, clock: &Clock, target: TraceTarget<'_>) -> Failure {
    let failure = |what: &str, hint: &str| {
        Failure::new(Kind::NothingFound, format!("{target}{what}")).with_hint(hint.to_owned())
    };
    if !samples.part().is_whole() && samples.count(clock) == 0 {
        return failure(
            ": this part has nothing to show",
            "without --from, --to and --thread the whole trace is read",
        );
    }
    if let (Clock::Contention, Some(waits)) = (clock, waits_from_before(samples)) {
        return failure(&format!(": no wait began or ended, but {waits}"), SHOW_WAITS);
    }
    if samples.weights(clock).any(|(_, _, weight)| weight.total() > 0) {
        return failure(&format!(": {NO_STACK}"), &why_no_stack(samples, clock));
    }
    if *clock == Clock::Cpu && samples.samples() > 0 {
        return failure(
            ": no sample is in managed code",
            "--wall and --thread-time also have threads that wait",
        );
    }
    if samples.count(clock) > 0 && clock.unit() == Unit::Nanoseconds {
        let hint = match clock {
            Clock::Contention => "`--event Microsoft-Windows-DotNETRuntime/81` counts waits",
            _ => {
                "a time ends with the next event of a thread, and no thread has a later one; --wall counts samples"
            }
        };
        return failure(": no time is known", hint);
    }
    if samples.unknown(clock) > 0 {
        let hint = "`dotnet-ipc stats FILE` shows the versions of its events";
        return failure(": the sizes of the allocations are not known", hint);
    }
    let (what, hint) = match target {
        TraceTarget::File(_) => missing_in_file(clock),
        TraceTarget::Process(_) => missing_in_process(clock),
    };
    failure(what, hint)
}

const fn missing_in_file(clock: &Clock) -> (&'static str, &'static str) {
    match clock {
        Clock::Cpu | Clock::Wall | Clock::ThreadTime | Clock::SampledTime => (
            ": the trace has no samples of threads",
            "record them with `dotnet-ipc trace PID -o FILE --profile dotnet-sampled-thread-time`; a program that was \
             compiled ahead of time sends them since .NET 10",
        ),
        Clock::Allocations | Clock::AllocatedTypes => (
            ": the trace has no allocations",
            "if the program allocated, record them with `dotnet-ipc trace PID -o FILE --profile gc-verbose`, or since \
             .NET 10 with `--clr-events allocationsampling`",
        ),
        Clock::Exceptions => (
            ": the trace has no exceptions",
            "if any was thrown, record them with `dotnet-ipc trace PID -o FILE --clr-events exception`",
        ),
        Clock::Contention => (
            ": the trace has no contended locks",
            "if there were any, record them with `dotnet-ipc trace PID -o FILE --clr-events contention`",
        ),
        _ => (": the trace has no such events", "`dotnet-ipc stats FILE` lists the events of a trace"),
    }
}

const fn missing_in_process(clock: &Clock) -> (&'static str, &'static str) {
    const LONGER: &str = "record for longer with --duration";
    match clock {
        Clock::Cpu | Clock::Wall | Clock::ThreadTime | Clock::SampledTime => (
            " sent no samples of threads",
            "a program that was compiled ahead of time sends them since .NET 10; --allocations, --exceptions, \
             --contention and --event need no samples",
        ),
        Clock::Allocations | Clock::AllocatedTypes => (
            " sent no allocation, which it does every 100 KB or so",
            "record for longer with --duration; a program that was compiled ahead of time sends them since .NET 9",
        ),
        Clock::Exceptions => (" threw no exception", LONGER),
        Clock::Contention => (" did not wait for a lock", LONGER),
        Clock::Events { .. } => (
            " sent no such event",
            "check the name of the provider and the ID, or record for longer with --duration",
        ),
        _ => (" sent no event with a stack", LONGER),
    }
}

/// How to see the threads that wait for locks.
const SHOW_WAITS: &str = "see `stack` and `locks`";

/// Returns a sentence about the threads that wait for locks from before the recording, if there are any.
fn waits_from_before(samples: &mut Samples) -> Option<String> {
    match call_tree::old_waits(samples).len() {
        0 => None,
        1 => Some("1 thread waits for a lock since before the recording".to_owned()),
        count => Some(format!("{count} threads wait for locks since before the recording")),
    }
}

/// Returns what the trace lacks for a clock, in sentences.
pub(crate) fn remarks(samples: &mut Samples, clock: &Clock) -> Vec<String> {
    let mut remarks = Vec::new();
    if *clock == Clock::Contention {
        if let Some(waits) = waits_from_before(samples) {
            remarks.push(format!("{waits}: {SHOW_WAITS}"));
        }
        let Waits { open, without_end, without_start, .. } = samples.waits();
        if open > 0 {
            remarks.push(format!("waits that had not ended: {open}; they count up to the end of the trace"));
        }
        if without_end > 0 || without_start > 0 {
            remarks.push(format!(
                "waits without an end in the trace: {without_end}, ends without a start: {without_start}; their times \
                 are not known and not counted"
            ));
        }
    }
    if let unknown @ 1.. = samples.unknown(clock) {
        remarks.push(format!("allocations whose size is not known: {unknown}; they are not counted"));
    }
    remarks
}
