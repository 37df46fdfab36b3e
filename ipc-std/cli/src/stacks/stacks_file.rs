//! Files with the stacks of a trace, for people and for other tools: what `flame` writes.
use core::fmt::{self, Write as _};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::DecimalBytes;
use inferno::{differential, flamegraph};
use nettrace::TraceEvent;
use nettrace_analysis::call_tree::{CallTree, NodeId};
use nettrace_analysis::formats::{Profile, TimeProfile, Timeline};
use nettrace_analysis::samples::{Clock, Samples, Unit};
use serde_json::json;

use super::clock_args::{self, ClockArgs};
use super::flame_page::{self, Recording, has_weights};
use super::stack_names::STACK_LIMIT;
use crate::output::atomic_output::AtomicOutput;
use crate::output::failure::{Failure, Kind};
use crate::output::globals::Globals;
use crate::output::output_file::OverwriteArgs;
use crate::output::printable::printable_name;
use crate::output::stdout;
use crate::process::trace_target::TraceTarget;
use crate::recording::analysis_input::InputRead;

/// The file to write, and what counts in it. The command has [`OverwriteArgs`] beside it.
#[derive(Debug, clap::Args)]
pub(crate) struct StacksFileArgs {
    /// The file to write; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format of the output [default: by the suffix of its name]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Show how the shares differ from those in OLD: svg, html and folded
    #[arg(long, value_name = "OLD")]
    diff: Option<PathBuf>,
    /// Leave out modules and arguments of methods
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    clock: ClockArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// .svg: a flame graph for a browser, with zoom and search
    Svg,
    /// .html: one page for a browser, with zoom, search, and a choice of clocks and threads
    Html,
    /// .folded: a stack a line, for flamegraph.pl and inferno
    Folded,
    /// .speedscope.json: for www.speedscope.app, by thread; in the order of time with --thread-time and --contention
    Speedscope,
    /// The same, always with stacks that are added up
    SpeedscopeSampled,
    /// .chromium.json: trace events for ui.perfetto.dev and Chromium, of --thread-time (the default) or --contention
    Chromium,
    /// .firefox.json: for profiler.firefox.com, in the order of time
    Firefox,
    /// .pb.gz: for pprof, with the thread of each stack as labels
    Pprof,
}

impl Format {
    /// Returns the clocks that a file has: a page has several.
    fn clocks(self, clock: &Clock) -> Vec<Clock> {
        if self == Self::Html { flame_page::clocks(clock) } else { vec![clock.clone()] }
    }

    /// Returns the format that the name of a file states.
    fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.to_string_lossy();
        let formats = [
            (".svg", Self::Svg),
            (".html", Self::Html),
            (".folded", Self::Folded),
            (".speedscope.json", Self::Speedscope),
            (".chromium.json", Self::Chromium),
            (".firefox.json", Self::Firefox),
            (".pb.gz", Self::Pprof),
        ];
        let found = formats.into_iter().find(|(suffix, _)| name.ends_with(suffix));
        found.map(|(_, format)| format).ok_or_else(|| {
            let suffixes = formats.map(|(suffix, _)| suffix).join(", ");
            Failure::new(Kind::Usage, format!("the name of {} states no format", path.display()))
                .with_hint(format!("choose --format, or a name that ends with one of {suffixes}"))
        })
    }

    /// Returns whether a file has the stacks of a clock in the order of time.
    fn is_in_time(self, clock: &Clock) -> bool {
        match self {
            Self::Chromium | Self::Firefox => true,
            Self::Speedscope => clock.unit() == Unit::Nanoseconds,
            _ => false,
        }
    }
}

impl StacksFileArgs {
    /// Returns what to write, with the stacks of no event yet. Fails if the file cannot be written, or if the older trace
    /// cannot be read.
    pub(crate) fn open<'a>(
        &'a self,
        overwrite: &'a OverwriteArgs,
        globals: &Globals,
    ) -> Result<StacksFile<'a>, Failure> {
        let format = self.format.map_or_else(|| Format::of(&self.output), Ok)?;
        let clock = match self.clock.clock()?.0 {
            Clock::Cpu if self.clock.is_default() && format == Format::Chromium => Clock::SampledTime,
            // The rule of `dotnet-trace convert`, which writes such files, differs from that of `dotnet-trace report`.
            Clock::ThreadTime if format.is_in_time(&Clock::ThreadTime) => Clock::SampledTime,
            clock => clock,
        };
        if format == Format::Chromium && clock.unit() != Unit::Nanoseconds {
            let failure =
                Failure::new(Kind::Usage, "the format chromium shows times, and this clock has none");
            return Err(failure.with_hint("choose --thread-time or --contention"));
        }
        if self.diff.is_some() && !matches!(format, Format::Svg | Format::Html | Format::Folded) {
            let failure = Failure::new(Kind::Usage, "--diff does not work with this format");
            return Err(failure.with_hint("choose svg, html or folded"));
        }
        AtomicOutput::check(&self.output, overwrite)?;
        let clocks = format.clocks(&clock);
        let is_any_clock = format == Format::Html && self.clock.is_default();
        let samples = || clock_args::samples(clocks.iter().cloned(), self.short);
        let read_old = |path| -> Result<_, Failure> {
            let samples = clock_args::read_samples(samples(), path, globals)?;
            // Before a process is recorded. A page needs any clock.
            let found = clocks.iter().find(|clock| is_any_clock && has_weights(&samples, clock));
            let trace = TraceTarget::File(path);
            check(&samples, found.unwrap_or(&clock), trace)?;
            Ok((trace, samples))
        };
        let old = self.diff.as_deref().map(read_old).transpose()?;
        Ok(StacksFile {
            path: &self.output,
            overwrite,
            format,
            timeline: format.is_in_time(&clock).then(|| Timeline::new(clock.clone())),
            clock,
            is_any_clock,
            samples: samples(),
            old,
            unix_start: 0,
        })
    }
}

/// The stacks of a trace, and the file for them.
pub(crate) struct StacksFile<'a> {
    path: &'a Path,
    overwrite: &'a OverwriteArgs,
    format: Format,
    clock: Clock,
    /// Whether another clock will do for a page that shows several.
    is_any_clock: bool,
    samples: Samples,
    /// For a file in the order of time.
    timeline: Option<Timeline>,
    /// What to compare with.
    old: Option<(TraceTarget<'a>, Samples)>,
    /// The start of the trace.
    unix_start: i128,
}

impl StacksFile<'_> {
    /// Returns the clocks of the file.
    pub(crate) fn clocks(&self) -> Vec<Clock> {
        self.format.clocks(&self.clock)
    }

    /// Takes the next event of the trace.
    pub(crate) fn event(&mut self, event: &TraceEvent<'_>) {
        self.unix_start = event.clock().unix_start();
        match &mut self.timeline {
            Some(timeline) => {
                self.samples.event_with(event, &mut |clock, interval| timeline.add(clock, interval))
            }
            None => self.samples.event(event),
        }
    }

    /// Writes the file after the trace was read, as far as that succeeded: a failure is returned after the file has the
    /// stacks before it.
    pub(crate) fn finish(
        self,
        read: InputRead,
        trace: TraceTarget<'_>,
        globals: &Globals,
    ) -> Result<(), Failure> {
        let InputRead { lost, process_id, result: read } = read;
        let Self { path, overwrite, format, mut clock, mut samples, mut old, .. } = self;
        if self.is_any_clock {
            let is_in_old = |clock: &Clock| old.as_ref().is_none_or(|(_, old)| has_weights(old, clock));
            let found = flame_page::clocks(&clock).into_iter();
            let found = found.filter(|clock| has_weights(&samples, clock)).find(is_in_old);
            clock = found.unwrap_or(clock);
        }
        if let Err(failure) = check(&samples, &clock, trace) {
            // A trace that cannot be read is the reason why nothing was found.
            return read.and(Err(failure));
        }
        if let Some((trace, samples)) = &old {
            check(samples, &clock, *trace)?;
        }
        if let Some(dropped @ 1..) = self.timeline.as_ref().map(Timeline::dropped) {
            globals.note(&format!(
                "the file has the beginning of the trace: it would need {dropped} more changes of stacks than the {} \
                 that fit",
                Timeline::LIMIT
            ));
        }
        let mut output = AtomicOutput::open(path, overwrite)?;
        let mut file = Sink { output: &mut output, failure: None };
        let new = &mut Recording { name: trace.to_string(), samples: &mut samples, lost };
        let old =
            old.as_mut().map(|(trace, samples)| Recording { name: trace.to_string(), samples, lost: 0 });
        let mut out = BufWriter::new(&mut file);
        let written = match self.timeline {
            Some(timeline) => {
                let profile = TimeProfile::new(new.samples, timeline);
                let process_id = process_id.unwrap_or_default();
                write_in_time(format, &profile, &new.name, process_id, self.unix_start, &mut out)
            }
            None => write(format, new, old, &clock, self.unix_start, &mut out),
        };
        drop(out);
        if let Some(failure) = file.failure {
            return Err(failure);
        }
        written.map_err(|e| Failure::io("cannot convert the trace", &e))?;
        if !output.is_closed() {
            let bytes = output.persist()?;
            let sentence = format!("Wrote {} to {}", DecimalBytes(bytes), stdout::name(path));
            let summary = json!({ "file": path.to_string_lossy(), "bytes": bytes });
            stdout::wrote(globals, path, &sentence, &summary)?;
        }
        read
    }
}

/// Fails if no stack weighs something by a clock.
fn check(samples: &Samples, clock: &Clock, trace: TraceTarget<'_>) -> Result<(), Failure> {
    if has_weights(samples, clock) {
        return Ok(());
    }
    if *clock == Clock::Cpu && samples.samples() > 0 {
        let failure = Failure::new(Kind::Other, format!("{trace}: no sample is in managed code"));
        return Err(failure.with_hint("--wall and --thread-time also have threads that wait"));
    }
    if samples.weights(clock).next().is_some() {
        let failure = Failure::new(Kind::Other, format!("{trace}: {}", clock_args::NO_STACK));
        return Err(failure.with_hint(clock_args::WHY_NO_STACK));
    }
    Err(clock_args::missing(clock, trace))
}

fn write(
    format: Format,
    new: &mut Recording<'_>,
    mut old: Option<Recording<'_>>,
    clock: &Clock,
    unix_start: i128,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = new.name.clone();
    let samples = &mut *new.samples;
    match (format, &mut old) {
        (Format::Html, old) => flame_page::write(new, old.as_mut(), clock, out)?,
        (Format::Svg, old) => {
            let mut options = flamegraph::Options::default();
            options.title = name;
            options.count_name = match clock.unit() {
                Unit::Nanoseconds => "ns".to_owned(),
                unit => unit.name().to_owned(),
            };
            // From the top, so that a graph of deep stacks opens with the calls that most of them have.
            options.direction = flamegraph::Direction::Inverted;
            // The same trace makes the same file.
            options.deterministic = true;
            let lines = match old {
                Some(old) => {
                    options.title = format!("{} compared with {}", options.title, old.name);
                    // No call is left out: it can be wide in the other trace.
                    differential(&drawn(old.samples, clock, 0.0), &drawn(samples, clock, 0.0))?
                }
                None => drawn(samples, clock, options.min_width),
            };
            flamegraph::from_lines(&mut options, lines.lines(), &mut *out)?;
        }
        (Format::Folded, Some(old)) => {
            let lines = differential(&folded(old.samples, clock), &folded(samples, clock))?;
            out.write_all(lines.as_bytes())?;
        }
        (Format::Folded, None) => {
            let tree = CallTree::new(samples, clock, |_, weight| weight.total());
            Text::write(out, |text| tree.write_folded(samples.names(), text))?;
        }
        (Format::Speedscope | Format::SpeedscopeSampled | Format::Chromium | Format::Firefox, _) => {
            let profile = Profile::new(samples, clock, |_, weight| weight.total());
            Text::write(out, |text| profile.write_speedscope(&name, text))?;
        }
        (Format::Pprof, _) => {
            let profile = Profile::new(samples, clock, |_, weight| weight.total());
            let mut compressed = GzEncoder::new(&mut *out, Compression::default());
            profile.write_pprof(unix_start, |piece| compressed.write_all(piece))?;
            compressed.finish()?;
        }
    }
    out.flush()
}

fn write_in_time(
    format: Format,
    profile: &TimeProfile<'_>,
    name: &str,
    process_id: u32,
    unix_start: i128,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Firefox => {
            serde_json::to_writer(&mut *out, &profile.to_firefox(name, process_id, unix_start))?
        }
        Format::Chromium => Text::write(out, |text| profile.write_chromium(name, process_id, text))?,
        _ => Text::write(out, |text| profile.write_speedscope(name, text))?,
    }
    out.flush()
}

/// Returns the stacks, each on a line with its weight.
fn folded(samples: &mut Samples, clock: &Clock) -> String {
    let tree = CallTree::new(samples, clock, |_, weight| weight.total());
    let mut folded = String::new();
    // Writing to a string cannot fail.
    let _ = tree.write_folded(samples.names(), &mut folded);
    folded
}

/// Returns the stacks that a graph shows, each on a line with its weight. It shows no call of less than `min_width` percent:
/// that counts for its caller. A graph needs the lines in memory, so that their names and depth have limits.
fn drawn(samples: &mut Samples, clock: &Clock, min_width: f64) -> String {
    let tree = CallTree::new(samples, clock, |_, weight| weight.total());
    let (mut lines, mut path) = (String::new(), String::new());
    // Calls, each with the length of the path of its caller, and its depth.
    let mut next: Vec<_> = tree.children(NodeId::ROOT).into_iter().map(|call| (call, 0, 1_usize)).collect();
    while let Some(((node, entry), len, depth)) = next.pop() {
        path.truncate(len);
        path.push_str(if len > 0 { ";" } else { "" });
        path.push_str(&printable_name(samples.names().text(entry.frame)).replace(';', ":"));
        let mut own = entry.inclusive;
        if depth < STACK_LIMIT {
            for call in tree.children(node) {
                // The graph adds the weights up again, in floats: it must get a call that is just as wide.
                if tree.share(call.1.inclusive) >= min_width * 0.99 {
                    own = own.saturating_sub(call.1.inclusive);
                    next.push((call, path.len(), depth.saturating_add(1)));
                }
            }
        }
        if own > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{path} {own}");
        }
    }
    lines
}

/// Returns the stacks of two lists, each on a line with its weights before and after. Those before are scaled to the
/// total of those after, because recordings differ in length.
fn differential(before: &str, after: &str) -> io::Result<String> {
    let options = differential::Options { normalize: true, ..Default::default() };
    let mut lines = Vec::new();
    differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut lines)?;
    // The same traces make the same file.
    let lines = String::from_utf8_lossy(&lines);
    let mut lines: Vec<_> = lines.split_inclusive('\n').collect();
    lines.sort_unstable();
    Ok(lines.concat())
}

/// The output file as a writer, which retains the failure.
struct Sink<'o> {
    output: &'o mut AtomicOutput,
    failure: Option<Failure>,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.output.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(failure) => {
                self.failure = Some(failure);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer of text, which retains the error of the writer of bytes.
struct Text<'o> {
    out: &'o mut dyn Write,
    written: io::Result<()>,
}

impl<'o> Text<'o> {
    fn write(out: &'o mut dyn Write, text: impl FnOnce(&mut Self) -> fmt::Result) -> io::Result<()> {
        let mut this = Self { out, written: Ok(()) };
        // The error of the bytes says more.
        let _ = text(&mut this);
        this.written
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.written = self.out.write_all(text.as_bytes());
        if self.written.is_ok() { Ok(()) } else { Err(fmt::Error) }
    }
}
