//! `locks`: the locks for which threads wait, their owners, and threads that wait for each other.
mod json;
mod shown_threads;
mod text;

use nettrace_analysis::locks::{LockReport, Locks};

use self::shown_threads::ShownThreads;
use self::text::LockText;
use crate::args::frame_args::OwnArgs;
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::next_command::show_next;
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::{AnalysisArgs, InputRead, Needs};

/// Show the locks of a process or of a trace for which threads wait: waits, owners and deadlocks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A number is a process ID, anything else a file; --file makes a number a file. A
process is recorded for --duration or until Ctrl-C, with samples of its threads
and then the names of its methods. A suspended runtime is resumed. If the
process exits meanwhile, the events before that are shown, and the exit status
is 7.

A lock has its waits with the methods of the program that wait, and the methods
in which its owners were sampled while others waited (\"held in\"). An owner may
have released the lock already, so a few samples mean nothing. Threads that wait
at the end have an owner with its stack, unless the runtime does not know it.

\"deadlock\" are threads that have waited for each other's locks for a second or
more; for less, it is \"perhaps a deadlock\", as is an owner that has itself
waited for a lock since before the recording. Such a wait has no event: it is a
thread that waits in the same stack in all samples. Which lock it waits for is
not known, and stacks of .NET 8 and 9 do not show the wait.

Only `lock`, Monitor and System.Threading.Lock send events, since .NET 8 with
the lock and its owner. ReaderWriterLockSlim, SemaphoreSlim and tasks send none:
their threads are counted by stacks, if they have waited since before the
recording. A program that was compiled ahead of time sends no stacks of waits.

--from, --to and --thread show the waits of a part of the trace or of the
recording, as if nothing else had been recorded. T is a time since its start
(90s, 00:01:30, 1.5), or a date such as 2026-11-20T21:45:13Z; names are those of
`report`.

With --json, the result is {\"duration_ms\", \"waits\", \"wait_ms\", \"longest_ms\",
\"locks\", \"cycles\", \"waiting_before\", \"ended_before\", \"without_end\",
\"without_stack\", \"sampled_threads\", \"lost\", \"dropped\"}. A lock is
{\"process_id\", \"lock\", \"object\", \"waits\", \"wait_ms\", \"longest_ms\", \"methods\",
\"held_in\", \"held_samples\", \"waiting\", \"owner\", \"perhaps_deadlock\"}, and a group
of \"waiting_before\" {\"process_id\", \"kind\", \"count\", \"method\", \"own\", \"threads\",
\"frames\"}. All locks and groups are there. What is not known is null. That no
thread waited is no failure.

Record a trace with all of this by `trace --profile sick`. Waits are events of
the keyword contention, numbers of threads of threading, and the rest are
samples.

Examples:
  dotnet-ipc locks 4242
  dotnet-ipc locks --name Shop --duration 30s --short
  dotnet-ipc trace 4242 --profile sick -o app.nettrace
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
    own: OwnArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let input = args.analysis.input(&args.target, globals)?;
    let own = args.own.code();
    let locks = Locks::default().of_part(input.part.part()).with_own_code(own.clone());
    let (report, InputRead { lost, process_id, result: read, .. }) =
        input.analyse(Needs::of_locks(), locks, globals)?;
    let threads = ShownThreads::new(input.target, process_id);
    if globals.json {
        json_to_stdout(&json::to_json(&report, lost, args.short, &threads))?;
    } else {
        let (top, is_short) = (args.top, args.short);
        let text = LockText { report: &report, threads: &threads, own: &own, top, is_short };
        to_stdout(|out| text.write(out))?;
        let has_waits = !(report.locks.is_empty() && report.waiting_before.is_empty());
        let target = input.target.argument();
        match input.is_live() {
            true if has_waits => show_next(&format!("dotnet-ipc stack {target} --group"), globals)?,
            false if has_waits => show_next(&format!("dotnet-ipc report {target} --contention"), globals)?,
            _ => {}
        }
    }
    remarks(&report, input.is_live() || !input.part.is_whole())
        .iter()
        .for_each(|remark| globals.note(remark));
    read
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
             `dotnet-ipc trace PID --profile sick`"
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
