//! Sentences on what samples do not show: why there is nothing by a clock, and what is not counted.
use dotnet_ipc_sans_io::syntax::keywords::RUNTIME_PROVIDER;
use nettrace_analysis::RuntimeEvent;
use nettrace_analysis::report::{Gap, Uncounted};
use nettrace_analysis::samples::{Clock, Samples, Waits};

use crate::process::trace_target::TraceTarget;
use crate::run::{Failure, Kind};

pub(crate) const NO_STACK: &str = "no event has a stack";

/// Returns why no event of a clock has a stack, and which event has one instead. `has_stacks` states whether another
/// event of the trace has one.
pub(crate) fn why_no_stack(clock: &Clock, has_stacks: bool) -> String {
    if !has_stacks {
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

/// Returns the failure of samples, whose trace has ended, that show nothing by a clock.
pub(crate) fn nothing(samples: &mut Samples, clock: &Clock, target: TraceTarget<'_>) -> Failure {
    let uncounted = Uncounted::new(samples, clock);
    failure(Gap::new(samples, clock, &uncounted), clock, samples.has_stacks(), target)
}

/// Returns the failure of a trace or a process that has nothing to show for a clock, and what to do.
pub(crate) fn failure(gap: Gap, clock: &Clock, has_stacks: bool, target: TraceTarget<'_>) -> Failure {
    let why_no_stack = why_no_stack(clock, has_stacks);
    let (what, hint) = match (gap, target) {
        (Gap::Part, _) => {
            (": this part has nothing to show", "without --from, --to and --thread the whole trace is read")
        }
        (Gap::OldWaits(count), _) => {
            (&*format!(": no wait began or ended, but {}", old_waits(count)), SHOW_WAITS)
        }
        (Gap::IdleWaits, _) => (
            ": only timers and idle threads of the pool waited on WaitHandles",
            "record for longer, while the program waits",
        ),
        (Gap::Stacks, _) => (&*format!(": {NO_STACK}"), &*why_no_stack),
        (Gap::Running, _) => {
            (": no sample is in managed code", "--wall and --thread-time also have threads that wait")
        }
        (Gap::Times, _) if *clock == Clock::Contention => {
            (NO_TIME, "`--event Microsoft-Windows-DotNETRuntime/81` counts waits")
        }
        (Gap::Times, _) if *clock == Clock::Waits => {
            (NO_TIME, "`--event Microsoft-Windows-DotNETRuntime/301` counts waits")
        }
        (Gap::Times, _) => (
            NO_TIME,
            "a time ends with the next event of a thread, and no thread has a later one; --wall counts samples",
        ),
        (Gap::Sizes, _) => (
            ": the sizes of the allocations are not known",
            "`dotnet-ipc stats FILE` shows the versions of its events",
        ),
        (Gap::Events, TraceTarget::File(_)) => missing_in_file(clock),
        (Gap::Events, TraceTarget::Process(_)) => missing_in_process(clock),
    };
    Failure::new(Kind::NothingFound, format!("{target}{what}")).with_hint(hint.to_owned())
}

const NO_TIME: &str = ": no time is known";

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
        Clock::Waits => (
            ": the trace has no waits on WaitHandles",
            "if there were any, record them with `dotnet-ipc trace PID -o FILE --clr-events waithandle \
             --clr-event-level verbose` (.NET 9)",
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
        Clock::Waits => (" did not wait on a WaitHandle, which runtimes report since .NET 9", LONGER),
        Clock::Events { .. } => (
            " sent no such event",
            "check the name of the provider and the ID, or record for longer with --duration",
        ),
        _ => (" sent no event with a stack", LONGER),
    }
}

/// How to see the threads that wait for locks.
const SHOW_WAITS: &str = "see `stack` and `locks`";

/// Returns a sentence about the threads that wait for locks from before the recording.
fn old_waits(count: usize) -> String {
    match count {
        1 => "1 thread waits for a lock since before the recording".to_owned(),
        _ => format!("{count} threads wait for locks since before the recording"),
    }
}

/// Returns what is not counted, in sentences.
pub(crate) fn remarks(uncounted: &Uncounted) -> Vec<String> {
    let Uncounted { waits: Waits { open, without_end, without_start, .. }, idle, waiting_before, unknown } =
        *uncounted;
    let mut remarks = Vec::new();
    if waiting_before > 0 {
        remarks.push(format!("{}: {SHOW_WAITS}", old_waits(waiting_before)));
    }
    for (waits, of) in [(idle.timers, "timers"), (idle.pool, "idle threads of the pool")] {
        if waits.total() > 0 {
            let (count, seconds) = (waits.count, waits.total() as f64 / 1e9);
            remarks.push(format!("not counted: {count} waits of {of}, {seconds:.3} s"));
        }
    }
    if open > 0 {
        remarks.push(format!("waits that had not ended: {open}; they count up to the end of the trace"));
    }
    if without_end > 0 || without_start > 0 {
        remarks.push(format!(
            "waits without an end in the trace: {without_end}, ends without a start: {without_start}; their times \
             are not known and not counted"
        ));
    }
    if unknown > 0 {
        remarks.push(format!("allocations whose size is not known: {unknown}; they are not counted"));
    }
    remarks
}
