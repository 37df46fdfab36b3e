//! `gc`: the garbage collections of a process or of a trace.
use std::io::{self, Write};

use dotnet_ipc_sans_io::syntax::keywords;
use ipc_proto::types::EventLevel;
use ipc_proto::wire::to_u64;
use nettrace_analysis::gc::{Collection, Collections, GcReport, GcStatistics, GenerationStatistics};
use nettrace_analysis::{Durations, Part};
use serde::Serialize;

use crate::output::dates::{DateField, Dates};
use crate::output::integer::Integer;
use crate::output::rows::{milliseconds, milliseconds_at, time_cell};
use crate::output::tables::{Cells, table_of_rows, write_table};
use crate::recording::analysis_input::Needs;
use crate::recording::findings::{FindingsArgs, FindingsView, ShownFindings};
use crate::run::{Failure, Globals};

/// Show the garbage collections of a process or of a trace: pauses, reasons and heap sizes
#[derive(Debug, clap::Args)]
#[command(mut_arg("top", |arg| arg.help("Show the N collections with the longest pauses, in the order of time")))]
#[command(mut_arg("csv", |arg| arg.help("Write all collections as CSV")))]
#[command(mut_arg("thread", |arg| arg.hide(true)))]
#[command(after_help = include_str!("gc.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    findings: FindingsArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.findings.analysis.part.check_no_threads("a collection stops all threads")?;
    args.findings.run::<GcView>(Needs::of_runtime(keywords::GC, EventLevel::INFORMATIONAL), globals)
}

struct GcView;

/// A collection with `--json` and `--csv`.
#[derive(Serialize)]
struct CollectionRow {
    process_id: Option<Integer>,
    number: u32,
    generation: u32,
    #[serde(rename = "type")]
    collection_type: Option<String>,
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: DateField,
    start_ms: Option<f64>,
    pause_start_ms: Option<f64>,
    pause_ms: Option<f64>,
    suspend_ms: Option<f64>,
    duration_ms: Option<f64>,
    heap_after_mb: Option<f64>,
    promoted_mb: Option<f64>,
    complete: bool,
    gen0_mb: Option<f64>,
    gen1_mb: Option<f64>,
    gen2_mb: Option<f64>,
    large_mb: Option<f64>,
    pinned_mb: Option<f64>,
}

/// The object of `--summary --json`.
#[derive(Serialize)]
struct GcSummary {
    all: CollectionsRow,
    generations: [CollectionsRow; 3],
    processes: u64,
    incomplete: u64,
    span_ms: f64,
    paused_percent: f64,
}

/// Statistics of some of the collections.
#[derive(Serialize)]
struct CollectionsRow {
    collections: u64,
    induced: u64,
    pause_ms: f64,
    mean_pause_ms: Option<f64>,
    p50_pause_ms: Option<f64>,
    p90_pause_ms: Option<f64>,
    p99_pause_ms: Option<f64>,
    max_pause_ms: Option<f64>,
    max_suspend_ms: Option<f64>,
    promoted_mb: f64,
    max_heap_after_mb: Option<f64>,
}

impl FindingsView for GcView {
    type Analysis = Collections;
    type Finding = Collection;
    type Row = CollectionRow;
    /// The pause, and the number of the finding.
    type Key = (u64, u64);
    const NONE_IN_PROCESS: [&str; 2] = ["ran no garbage collection", "record for longer with --duration"];
    const NONE_IN_TRACE: [&str; 2] = [
        "has no garbage collection",
        "if the program ran one, record it with `dotnet-ipc trace PID --profile gc-collect`",
    ];

    const NEXT: &'static str = "dotnet-ipc report TARGET --allocations";

    fn of_part(part: Part) -> Collections {
        Collections::default().of_part(part)
    }

    fn pop(collections: &mut Collections) -> Option<Collection> {
        collections.pop()
    }

    fn rest(report: &mut GcReport) -> Vec<Collection> {
        core::mem::take(&mut report.collections)
    }

    fn process_id(collection: &Collection) -> Option<u64> {
        collection.process_id
    }

    fn key(collection: &Collection, number: u64) -> Option<(u64, u64)> {
        collection.is_complete.then_some((collection.pause.unwrap_or_default(), number))
    }

    fn remarks(report: &GcReport) -> Vec<String> {
        let suspended = report.open_suspensions.iter().map(|suspension| {
            let program = match suspension.process_id {
                Some(id) => format!("process {id}"),
                None => "the program".to_owned(),
            };
            format!(
                "{program} was still suspended for a collection at the end, for {:.3} ms",
                milliseconds_at(report.end.saturating_sub(suspension.start))
            )
        });
        suspended.collect()
    }

    fn to_json(GcReport { statistics, .. }: &GcReport, incomplete: u64) -> impl Serialize {
        GcSummary {
            all: CollectionsRow::new(&statistics.all),
            generations: statistics.generations.each_ref().map(CollectionsRow::new),
            processes: statistics.processes,
            incomplete,
            span_ms: milliseconds(statistics.span),
            paused_percent: statistics.paused_share() * 100.0,
        }
    }

    fn write(report: &GcReport, shown: &ShownFindings<Self>, out: &mut dyn Write) -> io::Result<()> {
        let statistics = &report.statistics;
        let GcStatistics { all, generations, span, processes, .. } = statistics;
        let of_processes = if *processes > 1 { format!(" of {processes} processes") } else { String::new() };
        writeln!(
            out,
            "{} collections ({} induced) in {:.3} s{of_processes}; paused for {:.3} ms, {:.3} % of the time",
            all.count,
            all.induced,
            milliseconds(*span) / 1e3,
            milliseconds(all.pauses.total()),
            statistics.paused_share() * 100.0,
        )?;
        let rows = ["0", "1", "2", "all"].into_iter().zip(generations.iter().chain([all]));
        let rows = rows.map(|(name, statistics)| statistics_cells(name, statistics));
        write_table(&table_of_rows(rows, &[]), out)?;
        if !shown.largest.is_empty() {
            let mut longest: Vec<_> = shown.largest.iter().collect();
            longest.sort_by_key(|((_, order), _)| *order);
            if all.count > to_u64(longest.len()) {
                writeln!(out, "\nThe {} longest pauses:", longest.len())?;
            }
            let longest = longest.into_iter().map(|(_, collection)| collection);
            shown.write_table(&[7, 8], longest, cells, out)?;
        }
        if shown.incomplete > 0 {
            writeln!(out, "\n{} more collections are not complete in the trace", shown.incomplete)?;
        }
        if !shown.first_incomplete.is_empty() {
            shown.write_table(&[7, 8], shown.first_incomplete.iter(), cells, out)?;
        }
        Ok(())
    }

    fn row(collection: &Collection, dates: &Dates) -> CollectionRow {
        let heap = collection.heap.as_ref();
        let part = |part: usize| heap.and_then(|heap| heap.after.get(part)).map(|size| megabytes(*size));
        CollectionRow {
            process_id: collection.process_id.map(Integer),
            number: collection.number,
            generation: collection.generation,
            collection_type: collection.collection_type.map(|of| of.to_string()),
            reason: collection.reason.map(|of| of.to_string()),
            start: dates.field(collection.start),
            start_ms: collection.start.map(milliseconds_at),
            pause_start_ms: collection.pause_start.map(milliseconds_at),
            pause_ms: collection.pause.map(milliseconds),
            suspend_ms: collection.suspension.map(milliseconds),
            duration_ms: collection.duration.map(milliseconds),
            heap_after_mb: heap.map(|heap| megabytes(heap.total_after())),
            promoted_mb: heap.map(|heap| megabytes(heap.total_promoted())),
            complete: collection.is_complete,
            gen0_mb: part(0),
            gen1_mb: part(1),
            gen2_mb: part(2),
            large_mb: part(3),
            pinned_mb: part(4),
        }
    }
}

fn statistics_cells(name: &str, statistics: &GenerationStatistics) -> Cells<11> {
    let GenerationStatistics { count, induced, pauses, suspensions, largest_heap, .. } = statistics;
    [
        ("GENERATION", name.to_owned()),
        ("COUNT", count.to_string()),
        ("INDUCED", induced.to_string()),
        ("PAUSE ms", time_cell(pauses.total())),
        ("MEAN", time_cell(pauses.mean())),
        ("P50", time_cell(pauses.quantile(500))),
        ("P90", time_cell(pauses.quantile(900))),
        ("P99", time_cell(pauses.quantile(990))),
        ("MAX", time_cell(pauses.longest())),
        ("MAX SUSPEND", time_cell(suspensions.longest())),
        (
            "MAX MB",
            if *largest_heap > 0 { format!("{:.3}", megabytes(*largest_heap)) } else { "-".to_owned() },
        ),
    ]
}

fn cells(collection: &Collection, dates: &Dates) -> Cells<9> {
    let size =
        |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| format!("{:.3}", megabytes(bytes)));
    let time = |time: Option<u64>| time.map_or_else(String::new, time_cell);
    [
        ("NUMBER", collection.number.to_string()),
        ("GEN", collection.generation.to_string()),
        dates.cell(collection.start),
        ("PAUSE ms", time(collection.pause)),
        ("SUSPEND", time(collection.suspension)),
        ("AFTER MB", size(collection.heap.map(|heap| heap.total_after()))),
        ("PROMOTED", size(collection.heap.map(|heap| heap.total_promoted()))),
        ("TYPE", collection.collection_type.map_or_else(String::new, |of| of.to_string())),
        ("REASON", collection.reason.map_or_else(String::new, |of| of.to_string())),
    ]
}

impl CollectionsRow {
    fn new(statistics: &GenerationStatistics) -> Self {
        let GenerationStatistics { count, induced, pauses, suspensions, promoted, largest_heap, .. } =
            statistics;
        let of_any = |durations: &Durations, time| (durations.count() > 0).then(|| milliseconds(time));
        Self {
            collections: *count,
            induced: *induced,
            pause_ms: milliseconds(pauses.total()),
            mean_pause_ms: of_any(pauses, pauses.mean()),
            p50_pause_ms: of_any(pauses, pauses.quantile(500)),
            p90_pause_ms: of_any(pauses, pauses.quantile(900)),
            p99_pause_ms: of_any(pauses, pauses.quantile(990)),
            max_pause_ms: of_any(pauses, pauses.longest()),
            max_suspend_ms: of_any(suspensions, suspensions.longest()),
            promoted_mb: megabytes(*promoted),
            max_heap_after_mb: (*largest_heap > 0).then(|| megabytes(*largest_heap)),
        }
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
