//! `jit`: the methods that a process compiles, or did during a trace.
use core::cmp::Reverse;
use std::io::{self, Write};

use dotnet_ipc_sans_io::syntax::keywords;
use ipc_proto::types::EventLevel;
use ipc_proto::wire::to_u64;
use nettrace_analysis::Part;
use nettrace_analysis::jit::{Compilation, Compilations, JitReport, TierStatistics};
use serde::Serialize;

use crate::output::dates::{DateField, Dates};
use crate::output::integer::Integer;
use crate::output::rows::{milliseconds, milliseconds_at, time_cell};
use crate::output::tables::{Cells, table_of_rows, write_table};
use crate::recording::analysis_input::Needs;
use crate::recording::findings::{FindingsArgs, FindingsView, ShownFindings};
use crate::run::{Failure, Globals};
use crate::text::printable::printable_name;

/// Show the methods that a process compiles, or did during a trace: times, tiers and sizes
#[derive(Debug, clap::Args)]
#[command(mut_arg("top", |arg| arg.help("Show the N compilations that took longest")))]
#[command(mut_arg("csv", |arg| arg.help("Write all compilations as CSV")))]
#[command(after_help = include_str!("jit.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    findings: FindingsArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.findings.run::<JitView>(Needs::of_runtime(keywords::JIT, EventLevel::VERBOSE), globals)
}

struct JitView;

/// A compilation with `--json` and `--csv`.
#[derive(Serialize)]
struct CompilationRow {
    process_id: Option<Integer>,
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: DateField,
    start_ms: f64,
    jit_ms: Option<f64>,
    il_size: Option<u64>,
    native_size: Option<u64>,
    tier: Option<String>,
    thread: Integer,
}

/// The object of `--summary --json`.
#[derive(Serialize)]
struct JitSummary {
    all: TierRow,
    tiers: Vec<TierRow>,
    incomplete: u64,
}

/// Statistics of some of the compilations.
#[derive(Serialize)]
struct TierRow {
    tier: String,
    compilations: u64,
    timed: u64,
    jit_ms: Option<f64>,
    mean_jit_ms: Option<f64>,
    p50_jit_ms: Option<f64>,
    p99_jit_ms: Option<f64>,
    max_jit_ms: Option<f64>,
    il_size: u64,
    native_size: u64,
}

impl FindingsView for JitView {
    type Analysis = Compilations;
    type Finding = Compilation;
    type Row = CompilationRow;
    /// The time, the size of the code, and the number of the finding.
    type Key = (u64, u64, Reverse<u64>);
    const NONE_IN_PROCESS: [&str; 2] = [
        "compiled no method",
        "record for longer with --duration; a program that was compiled ahead of time compiles none",
    ];
    const NONE_IN_TRACE: [&str; 2] = [
        "has no compiled method",
        "if the program compiled one, record it with `dotnet-ipc trace PID --clr-events jit --clr-event-level \
         verbose`, or its start with `dotnet-ipc monitor --trace FILE --clr-events jit --clr-event-level verbose -- \
         COMMAND`",
    ];

    const NEXT: &'static str = "dotnet-ipc report TARGET --wall --tree --short";

    fn of_part(part: Part) -> Compilations {
        Compilations::default().of_part(part)
    }

    fn pop(compilations: &mut Compilations) -> Option<Compilation> {
        compilations.pop()
    }

    fn rest(report: &mut JitReport) -> Vec<Compilation> {
        core::mem::take(&mut report.compilations)
    }

    fn process_id(compilation: &Compilation) -> Option<u64> {
        compilation.process_id
    }

    fn key(compilation: &Compilation, number: u64) -> Option<Self::Key> {
        Some((compilation.duration.unwrap_or_default(), compilation.native_size?, Reverse(number)))
    }

    fn to_json(JitReport { statistics, .. }: &JitReport, incomplete: u64) -> impl Serialize {
        let tiers = statistics.tiers().map(|(tier, statistics)| TierRow::new(tier.to_string(), statistics));
        JitSummary {
            all: TierRow::new("all".to_owned(), &statistics.all),
            tiers: tiers.collect(),
            incomplete,
        }
    }

    fn write(report: &JitReport, shown: &ShownFindings<Self>, out: &mut dyn Write) -> io::Result<()> {
        let statistics = &report.statistics;
        let all = &statistics.all;
        write!(out, "{} compilations", all.count)?;
        if shown.incomplete > 0 {
            write!(out, ", and {} without an end", shown.incomplete)?;
        }
        writeln!(out, "; {:.3} ms on all threads together", milliseconds(all.durations.total()))?;
        if !report.has_start {
            writeln!(
                out,
                "The start of the program, with most compilations, is not in the trace. To record it:\n  \
                 dotnet-ipc monitor --trace FILE --clr-events jit --clr-event-level verbose -- COMMAND"
            )?;
        }
        let tiers = statistics.tiers();
        let rows = tiers.map(|(tier, statistics)| statistics_cells(&tier.to_string(), statistics));
        write_table(&table_of_rows(rows.chain([statistics_cells("all", all)]), &[0]), out)?;
        if !shown.largest.is_empty() {
            if all.count > to_u64(shown.largest.len()) {
                writeln!(out, "\nThe {} that took longest:", shown.largest.len())?;
            }
            shown.write_table(&[4, 5], shown.largest.values().rev(), cells, out)?;
        }
        if !shown.first_incomplete.is_empty() {
            writeln!(out, "\nWithout an end in the trace:")?;
            shown.write_table(&[4, 5], shown.first_incomplete.iter(), cells, out)?;
        }
        Ok(())
    }

    fn row(compilation: &Compilation, dates: &Dates) -> CompilationRow {
        let Compilation { process_id, method, start, duration, il_size, native_size, tier, thread, .. } =
            compilation;
        CompilationRow {
            process_id: process_id.map(Integer),
            method: (!method.is_empty()).then(|| method.clone()),
            start: dates.field(Some(*start)),
            start_ms: milliseconds_at(*start),
            jit_ms: duration.map(milliseconds),
            il_size: *il_size,
            native_size: *native_size,
            tier: tier.map(|tier| tier.to_string()),
            thread: Integer(*thread),
        }
    }
}

fn statistics_cells(name: &str, statistics: &TierStatistics) -> Cells<9> {
    let TierStatistics { count, durations, il_size, native_size, .. } = statistics;
    let cell = |time| if durations.count() > 0 { time_cell(time) } else { String::new() };
    [
        ("TIER", name.to_owned()),
        ("COUNT", count.to_string()),
        ("JIT ms", cell(durations.total())),
        ("MEAN", cell(durations.mean())),
        ("P50", cell(durations.quantile(500))),
        ("P99", cell(durations.quantile(990))),
        ("MAX", cell(durations.longest())),
        ("IL BYTES", il_size.to_string()),
        ("NATIVE BYTES", native_size.to_string()),
    ]
}

fn cells(compilation: &Compilation, dates: &Dates) -> Cells<6> {
    let size = |size: Option<u64>| size.map_or_else(String::new, |size| size.to_string());
    [
        ("JIT ms", compilation.duration.map_or_else(String::new, time_cell)),
        dates.cell(Some(compilation.start)),
        ("IL", size(compilation.il_size)),
        ("NATIVE", size(compilation.native_size)),
        ("TIER", compilation.tier.map_or_else(String::new, |tier| tier.to_string())),
        ("METHOD", printable_name(&compilation.method)),
    ]
}

impl TierRow {
    fn new(tier: String, statistics: &TierStatistics) -> Self {
        let TierStatistics { count, durations, il_size, native_size, .. } = statistics;
        let of_timed = |time| (durations.count() > 0).then(|| milliseconds(time));
        Self {
            tier,
            compilations: *count,
            timed: durations.count(),
            jit_ms: of_timed(durations.total()),
            mean_jit_ms: of_timed(durations.mean()),
            p50_jit_ms: of_timed(durations.quantile(500)),
            p99_jit_ms: of_timed(durations.quantile(990)),
            max_jit_ms: of_timed(durations.longest()),
            il_size: *il_size,
            native_size: *native_size,
        }
    }
}
