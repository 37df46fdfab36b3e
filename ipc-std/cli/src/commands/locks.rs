//! `locks`: the locks for which threads wait, their owners, and threads that wait for each other.
mod text;

use core::ops::ControlFlow;

use nettrace_analysis::OwnCode;
use nettrace_analysis::locks::{
    ContendedLock, Cycle, LockOwner, LockReport, LockThread, Locks, OwnerWait, WaitGroup, WaitTimes,
    WaitingMethod, WaitingThread,
};
use nettrace_analysis::names::short_name;
use serde_json::{Value, json};

use self::text::LockText;
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::printable::{integer, printable_name};
use crate::output::rows::milliseconds;
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::system_threads;
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::recording::analysis_input::{AnalysisArgs, InputRead, Needs};

/// Show the locks of a process or of a trace for which threads wait: waits, owners and deadlocks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A number is a process ID, anything else a file; --file makes a number a file. A
process is recorded for --duration or until Ctrl-C, with samples of its threads
and then the names of its methods. A suspended runtime is resumed. If the process
exits meanwhile, the events before that are shown, and the exit status is 7.

A lock has its waits with the methods of the program that wait, and the methods
in which its owners were sampled while others waited (\"held in\"). An owner may
have released the lock already, so a few samples mean nothing. Threads that wait
at the end have an owner with its stack, unless the runtime does not know it.

\"deadlock\" are threads that have waited for each other's locks for a second or
more; for less, it is \"perhaps a deadlock\", as is an owner that has itself waited
for a lock since before the recording. Such a wait has no event: it is a thread
that waits in the same stack in all samples. Which lock it waits for is not known,
and stacks of .NET 8 and 9 do not show the wait.

Only `lock`, Monitor and System.Threading.Lock send events, since .NET 8 with the
lock and its owner. ReaderWriterLockSlim, SemaphoreSlim and tasks send none: their
threads are counted by stacks, if they have waited since before the recording. A
program that was compiled ahead of time sends no stacks of waits.

--from, --to and --thread show the waits of a part of the trace or of the recording,
as if nothing else had been recorded. T is a time since its start (90s, 00:01:30,
1.5), or a date such as 2026-11-20T21:45:13Z; names are those of `report`.

With --json, the result is {\"duration_ms\", \"waits\", \"wait_ms\", \"longest_ms\",
\"locks\", \"cycles\", \"waiting_before\", \"ended_before\", \"without_end\",
\"without_stack\", \"sampled_threads\", \"lost\", \"dropped\"}. A lock is
{\"process_id\", \"lock\", \"object\", \"waits\", \"wait_ms\", \"longest_ms\", \"methods\",
\"held_in\", \"held_samples\", \"waiting\", \"owner\", \"perhaps_deadlock\"}, and a group
of \"waiting_before\" {\"process_id\", \"kind\", \"count\", \"method\", \"own\", \"threads\",
\"frames\"}. All locks and groups are there. What is not known is null. That no
thread waited is no failure.

In a trace, waits need the keyword contention, and the rest threading and samples:
the profile sick of `trace` has them, with the rundown for owners.

Examples:
  dotnet-ipc locks 4242
  dotnet-ipc locks --name Shop --duration 30s --short
  dotnet-ipc locks app.nettrace
  dotnet-ipc locks 4242 --json | jq '.cycles'")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    /// Show N locks, and N groups of threads
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Show methods without module and arguments
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let input = args.analysis.input(&args.target)?;
    let mut locks = Locks::default().of_part(input.part.part());
    let InputRead { lost, process_id, result: read, .. } =
        input.read(Needs::of_locks(), false, globals, |event| {
            locks.event(event);
            ControlFlow::Continue(())
        })?;
    let own = OwnCode::default();
    let report = locks.finish(&own);
    let shown = ShownThreads { process_id: shown_process(input.target, process_id) };
    if globals.json {
        json_to_stdout(&to_json(&report, lost, args.short, &shown))?;
    } else {
        let (threads, top, is_short) = (&shown, args.top, args.short);
        let text = LockText { report: &report, threads, own: &own, top, is_short };
        to_stdout(|out| text.write(out))?;
        let has_waits = !(report.locks.is_empty() && report.waiting_before.is_empty());
        let target = input.target.argument();
        match input.is_live() {
            true if has_waits => globals.next(&format!("dotnet-ipc stack {target} --group"))?,
            false if has_waits => globals.next(&format!("dotnet-ipc report {target} --contention"))?,
            _ => {}
        }
    }
    remarks(&report, input.is_live() || !input.part.is_whole())
        .iter()
        .for_each(|remark| globals.note(remark));
    read
}

/// Returns the process whose threads this system shows by the ids of the trace.
fn shown_process(target: TraceTarget<'_>, in_trace: Option<u32>) -> Option<u32> {
    let TraceTarget::Process(target) = target else { return None };
    target.process_id().filter(|id| Some(*id) == in_trace)
}

/// The names of threads.
struct ShownThreads {
    /// The process that this system shows, if there is one.
    process_id: Option<u32>,
}

impl ShownThreads {
    /// Returns the name of a thread: that of the system, or else its purpose in the runtime.
    fn name(&self, thread: &LockThread) -> Option<String> {
        let name = self.process_id.and_then(|process_id| system_threads::name(process_id, thread.id));
        name.or_else(|| Some(thread.name.to_owned()).filter(|name| !name.is_empty()))
    }
}

/// Returns what the trace lacks, in sentences. `is_recorded` states that a wait would have been recorded, or that only a
/// part of the trace was read.
fn remarks(report: &LockReport, is_recorded: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    let waits = report.locks.iter().fold(0_u64, |sum, lock| sum.saturating_add(lock.waits.count));
    let has_others = report.ended.count > 0 || !report.waiting_before.is_empty();
    if waits == 0 && !has_others && !is_recorded {
        remarks.push(
            "the trace has no waits for locks; if there were any, record them with \
             `dotnet-ipc trace PID --clr-events contention`"
                .to_owned(),
        );
    }
    if waits > 0 && report.without_stack == waits {
        remarks.push(
            "the waits have no stacks: a program that was compiled ahead of time sends none, and \
             `trace --no-stacks` leaves them out"
                .to_owned(),
        );
    }
    if report.without_end > 0 {
        remarks.push(format!("waits without an end: {}; their times are not known", report.without_end));
    }
    if report.dropped > 0 {
        remarks.push(format!(
            "events of too many threads, locks or stacks: {}; they do not count",
            report.dropped
        ));
    }
    remarks
}

fn to_json(report: &LockReport, lost: u64, is_short: bool, threads: &ShownThreads) -> Value {
    let json = LockJson { is_short, threads };
    let mut all = WaitTimes::default();
    report.locks.iter().for_each(|lock| all.merge(lock.waits));
    json!({
        "duration_ms": milliseconds(report.span),
        "waits": all.count,
        "wait_ms": milliseconds(all.total),
        "longest_ms": milliseconds(all.longest),
        "locks": report.locks.iter().map(|lock| json.lock(lock)).collect::<Value>(),
        "cycles": report.cycles.iter().map(|cycle| json.cycle(cycle)).collect::<Value>(),
        "waiting_before": report.waiting_before.iter().map(|group| json.group(group)).collect::<Value>(),
        "ended_before": times(report.ended),
        "without_end": report.without_end,
        "without_stack": report.without_stack,
        "sampled_threads": report.sampled_threads,
        "lost": lost,
        "dropped": report.dropped,
    })
}

fn times(times: WaitTimes) -> Value {
    json!({
        "waits": times.count,
        "wait_ms": milliseconds(times.total),
        "longest_ms": milliseconds(times.longest),
    })
}

/// Returns the id of a lock, or an address, as text.
fn hexadecimal(id: u64) -> String {
    format!("{id:#x}")
}

/// The objects of `--json`.
struct LockJson<'a> {
    is_short: bool,
    threads: &'a ShownThreads,
}

impl LockJson<'_> {
    fn method(&self, name: &str) -> String {
        printable_name(if self.is_short { short_name(name) } else { name })
    }

    fn frames(&self, frames: &[impl AsRef<str>]) -> Value {
        frames.iter().map(|frame| self.method(frame.as_ref())).collect()
    }

    fn lock(&self, lock: &ContendedLock) -> Value {
        let method = |of: &WaitingMethod| {
            json!({
                "method": of.method.as_deref().map(|name| self.method(name)),
                "own": of.is_own,
                "waits": of.waits.count,
                "wait_ms": milliseconds(of.waits.total),
                "longest_ms": milliseconds(of.waits.longest),
            })
        };
        let held =
            lock.held_in.iter().map(|of| json!({ "method": self.method(&of.method), "samples": of.samples }));
        let waiting = |of: &WaitingThread| {
            json!({
                "thread_id": integer(of.thread.id),
                "thread_name": self.threads.name(&of.thread),
                "wait_ms": milliseconds(of.time),
                "method": of.method.as_deref().map(|name| self.method(name)),
            })
        };
        json!({
            "process_id": lock.process_id.map(integer),
            "lock": lock.id.map(hexadecimal),
            "object": lock.object.map(hexadecimal),
            "waits": lock.waits.count,
            "wait_ms": milliseconds(lock.waits.total),
            "longest_ms": milliseconds(lock.waits.longest),
            "methods": lock.methods.iter().map(method).collect::<Value>(),
            "held_in": held.collect::<Value>(),
            "held_samples": lock.held_samples,
            "waiting": lock.waiting.iter().map(waiting).collect::<Value>(),
            "owner": lock.owner.as_ref().map(|owner| self.owner(owner)),
            "perhaps_deadlock": lock.owner_is_stuck(),
        })
    }

    fn owner(&self, owner: &LockOwner) -> Value {
        let waits_for = owner.waits_for.map(|wait| match wait {
            OwnerWait::Lock(lock) => json!({ "lock": hexadecimal(lock), "since_before": false }),
            OwnerWait::SinceBefore => json!({ "lock": null, "since_before": true }),
        });
        json!({
            "thread_id": owner.thread.as_ref().map(|thread| integer(thread.id)),
            "thread_name": owner.thread.as_ref().and_then(|thread| self.threads.name(thread)),
            "number": integer(owner.number),
            "waits_for": waits_for,
            "frames": self.frames(&owner.stack),
        })
    }

    fn cycle(&self, cycle: &Cycle) -> Value {
        let threads = cycle.threads.iter().map(|of| {
            json!({
                "thread_id": integer(of.thread.id),
                "thread_name": self.threads.name(&of.thread),
                "lock": of.lock.map(hexadecimal),
                "method": of.method.as_deref().map(|name| self.method(name)),
            })
        });
        json!({
            "process_id": cycle.process_id.map(integer),
            "wait_ms": milliseconds(cycle.time),
            "threads": threads.collect::<Value>(),
        })
    }

    fn group(&self, group: &WaitGroup) -> Value {
        json!({
            "process_id": group.process_id.map(integer),
            "kind": group.kind.name(),
            "count": group.threads.len(),
            "method": self.method(&group.method),
            "own": group.is_own,
            "threads": group.threads.iter().map(|thread| integer(thread.id)).collect::<Value>(),
            "frames": self.frames(&group.stack),
        })
    }
}
