//! `rewrite`: copies a trace with fewer events, or in another format.
use core::ops::ControlFlow;
use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;

use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use indicatif::{DecimalBytes, HumanCount};
use nettrace::{
    End, EventSelector, Record, Rewrite, RewriteCounts, RewriteError, RewriteOptions, RewriteSpace, Slot,
    TimeFilter, Trace, TraceClock, Version,
};
use serde::Serialize;

use crate::args::time_range_args::{TimeRangeArgs, report_skipped};
use crate::input::source::{self, Source};
use crate::output::atomic_output::AtomicOutput;
use crate::output::output_file::OverwriteArgs;
use crate::output::stdout;
use crate::run::{Failure, Globals, Kind};

/// Copy a trace: only some events, in another format, or without command lines
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("rewrite.txt"))]
pub(crate) struct Args {
    /// The trace; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Keep only the events of a provider, or only the one with this ID or name; repeatable
    #[arg(long, value_name = "PROVIDER[/EVENT]", value_parser = OnlyArg::parse)]
    only: Vec<OnlyArg>,
    #[command(flatten)]
    times: TimeRangeArgs,
    /// Version of the format to write: 4 or 6 [default: that of the trace, or 4 for version 3]
    #[arg(long, value_name = "4|6", value_parser = parse_format)]
    format: Option<Version>,
    /// Empty the fields with the command line of the program
    #[arg(long)]
    strip_command_line: bool,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

fn parse_format(text: &str) -> Result<Version, String> {
    match text {
        "4" => Ok(Version::V4),
        "6" => Ok(Version::V6),
        _ => Err("use 4 or 6".to_owned()),
    }
}

impl Args {
    fn options<'o>(&self, only: &'o [EventSelector<'o>], trace: &Trace<'_>) -> RewriteOptions<'o> {
        let (from, to) = self.times.part().ticks(&TraceClock::new(trace)).into_inner();
        let strip_command_line = self.strip_command_line;
        RewriteOptions { only, from, to, version: self.format, strip_command_line }
    }
}

/// Size of the buffer in bytes: two records of the maximum length, with their headers. The system provides memory only
/// for the part that is used.
const BUFFER: usize = 0x200_2000;
/// Slots for metadata records, and for threads. Runtimes have some hundreds of each, a whole machine some ten thousand.
const SLOTS: usize = 1 << 18;
/// Slots for activities, or for label lists between two sequence points.
const LABELS: usize = 1 << 16;

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let only: Vec<EventSelector<'_>> = args.only.iter().map(OnlyArg::as_filter).collect();
    let (mut records, mut source) = Source::open(&args.file)?.records(globals)?;
    let mut output = AtomicOutput::open(&args.output, &args.overwrite)?;
    let mut buffer = vec![0; BUFFER];
    let (mut metadata, mut threads) = (vec![Slot::default(); SLOTS], vec![Slot::default(); SLOTS]);
    let mut labels = vec![Slot::default(); LABELS];
    let space = RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut labels,
    };
    let mut space = Some(space);
    let mut rewrite: Option<Rewrite<'_>> = None;
    let (mut times, mut keeps_names) = (TimeFilter::new(0, u64::MAX), true);
    let end = loop {
        if let Some(rewrite) = &mut rewrite {
            let copied = records.try_for_each_event(|event| {
                times.event(event);
                copy(rewrite, &Record::Event(*event), &mut output)
            });
            if let ControlFlow::Break(result) = copied {
                return result;
            }
        }
        let record = records.next_record();
        // The first record has the clock for --from and --to.
        if let Record::Trace(trace) = &record {
            if let Some(space) = space.take() {
                let options = args.options(&only, trace);
                (times, keeps_names) = (TimeFilter::new(options.from, options.to), options.keeps_names());
                rewrite = Some(Rewrite::new(options, space).map_err(failed)?);
            }
        }
        if let Some(rewrite) = &mut rewrite {
            if let ControlFlow::Break(result) = copy(rewrite, &record, &mut output) {
                return result;
            }
        }
        // A block of any time can have names.
        let is_skipped = !keeps_names && times.record(&record);
        match record {
            _ if is_skipped => {
                records.skip_block();
                if let Some(rewrite) = &mut rewrite {
                    rewrite.resync();
                }
            }
            Record::More { .. } => {
                if let Err(e) = records.read_from(&mut source) {
                    return Err(source.failed(&e));
                }
            }
            Record::End(end) => break end,
            _ => {}
        }
    };
    source.hide_progress();
    let name = source.name().to_string();
    let Some(rewrite) = rewrite else {
        // Without a valid part there is nothing to write.
        return source::check(end, name);
    };
    let (rewritten, mut rest) = (*rewrite.counts(), rewrite.finish());
    while let Some(bytes) = rest.next_bytes().map_err(failed)? {
        output.write_all(&bytes).map_err(|e| output.failed(&e))?;
    }
    if output.is_closed() {
        return Ok(());
    }
    let bytes = output.persist()?;
    report_losses(&rewritten, globals);
    report_skipped(&times, globals);
    summarize(&rewritten, times.skipped_blocks(), bytes, args, end, globals)?;
    source::check(end, name)
}

/// Returns the failure of a copy.
fn failed(e: RewriteError) -> Failure {
    Failure::new(Kind::Other, format!("cannot rewrite the trace: {e}"))
}

/// Writes what the next record becomes. Breaks with the result of the command if that fails, or if nothing reads the
/// output any more.
fn copy(
    rewrite: &mut Rewrite<'_>,
    record: &Record<'_>,
    output: &mut AtomicOutput,
) -> ControlFlow<Result<(), Failure>> {
    let bytes = rewrite.record(record).map_err(failed);
    let written = bytes.and_then(|bytes| output.write_all(&bytes).map_err(|e| output.failed(&e)));
    if written.is_err() || output.is_closed() {
        return ControlFlow::Break(written);
    }
    ControlFlow::Continue(())
}

/// Reports what the format version of the copy cannot represent.
fn report_losses(rewritten: &RewriteCounts, globals: &Globals) {
    let RewriteCounts { descriptions, labels, label_lists, thread_entries, pairs, .. } = *rewritten;
    let RewriteCounts { types, description_parts, unjudged, .. } = *rewritten;
    for (count, what) in [
        (descriptions, "event descriptions lost fields"),
        (types, "event descriptions have bytes instead of texts in UTF-8 or booleans"),
        (description_parts, "templates, meanings, GUIDs and attributes of event descriptions were removed"),
        (labels, "labels were removed"),
        (thread_entries, "properties of threads, such as names and processes, were removed"),
        (pairs, "properties of the trace were removed"),
    ] {
        if count > 0 {
            globals.note(&format!("{count} {what}: this version of the format cannot represent them"));
        }
    }
    if unjudged > 0 {
        globals.note(&format!(
            "{unjudged} events and event descriptions were emptied: it is unknown whether they have a command line"
        ));
    }
    if label_lists > 0 {
        globals.note(&format!("{label_lists} label lists were removed: there are too many"));
    }
}

/// What a copy contains, as JSON.
#[derive(Serialize)]
struct WrittenCopy<'c> {
    file: Cow<'c, str>,
    bytes: u64,
    events: u64,
    kept: u64,
    names: u64,
    skipped_blocks: u64,
    command_lines: u64,
    unjudged: u64,
    complete: bool,
}

/// Reports what the copy contains.
fn summarize(
    rewritten: &RewriteCounts,
    skipped_blocks: u64,
    bytes: u64,
    args: &Args,
    end: End,
    globals: &Globals,
) -> Result<(), Failure> {
    let RewriteCounts { events, kept, names, command_lines, unjudged, .. } = *rewritten;
    let stripped = match command_lines {
        0 => String::new(),
        n => format!(", command lines removed: {}", HumanCount(n)),
    };
    let skipped = match skipped_blocks {
        0 => String::new(),
        n => format!(" in the blocks read, {} blocks skipped", HumanCount(n)),
    };
    let named = match names {
        0 => String::new(),
        n => format!(", {} of them from other times, because they name code", HumanCount(n)),
    };
    let file = stdout::name(&args.output);
    let (shown, of, size) = (HumanCount(kept), HumanCount(events), DecimalBytes(bytes));
    let sentence = format!("Wrote {size} ({shown} of {of} events{skipped}{named}{stripped}) to {file}");
    let summary = WrittenCopy {
        file: args.output.to_string_lossy(),
        bytes,
        events,
        kept,
        names,
        skipped_blocks,
        command_lines,
        unjudged,
        complete: end == End::Complete,
    };
    stdout::wrote(globals, &args.output, &sentence, &summary)
}
