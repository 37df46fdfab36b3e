//! `locks`: the locks for which threads wait, their owners, and threads that wait for each other.
mod json;
mod shown_threads;
mod text;

use nettrace_analysis::locks::{LockReport, Locks};

use self::shown_threads::ShownThreads;
use self::text::LockText;
use crate::args::frame_args::NameArgs;
use crate::args::zone_args::ZoneArgs;
use crate::output::dates::Dates;
use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::{AnalysisArgs, InputRead, Needs};
use crate::run::{Failure, Globals};

/// Show the locks of a process or of a trace for which threads wait: waits, owners and deadlocks
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("locks.txt"))]
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
    names: NameArgs,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let zone = args.zone.zone()?;
    let input = args.analysis.input(&args.target, globals)?;
    let own = args.names.own_code();
    let locks = Locks::default().of_part(input.part.part()).with_own_code(own.clone());
    let (report, InputRead { lost, process_id, start, result: read, .. }) =
        input.analyse(Needs::of_locks(), locks, &args.names.symbols, Locks::names_mut, globals)?;
    let threads = ShownThreads::new(input.target, process_id);
    let dates = Dates::new(zone, start);
    if globals.json {
        json_to_stdout(&json::to_json(&report, lost, args.short, &threads, &dates))?;
    } else {
        let (top, is_short) = (args.top, args.short);
        let text = LockText { report: &report, threads: &threads, dates: &dates, own: &own, top, is_short };
        to_stdout(|out| text.write(out))?;
        let has_waits = !(report.locks.is_empty() && report.waiting_before.is_empty());
        let target = input.target.argument();
        match input.is_live() {
            true if has_waits => show_next(&format!("dotnet-ipc stack {target} --group"), globals)?,
            false if has_waits => show_next(&format!("dotnet-ipc report {target} --contention"), globals)?,
            _ => {}
        }
    }
    dates.report(globals);
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
    let has_others =
        report.ended.count > 0 || !report.waiting_before.is_empty() || report.other_handles.count > 0;
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
