//! `convert`: the stacks of a trace as a file for another tool.
use core::fmt;
use core::ops::ControlFlow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::DecimalBytes;
use inferno::flamegraph;
use nettrace_analysis::call_tree::CallTree;
use nettrace_analysis::formats::Profile;
use nettrace_analysis::samples::{Clock, Samples, Unit};
use serde_json::json;

use crate::atomic_output::AtomicOutput;
use crate::clock_args::{self, ClockArgs};
use crate::failure::{Failure, Kind};
use crate::globals::Globals;
use crate::output_file::OverwriteArgs;
use crate::stderr::{json_to_stderr, to_stderr};
use crate::stdout::json_to_stdout;
use crate::{source, trace_file};

/// Write the stacks of a trace as a flame graph, or for speedscope, pprof and others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The suffix of the output decides the format, unless there is --format:

  .svg               svg, a flame graph for a browser: zoom by click, search
  .folded            folded, for flamegraph.pl and inferno: a stack a line
  .speedscope.json   speedscope, for https://www.speedscope.app, by thread
  .pb.gz             pprof, with the thread of each stack as labels

The options that select a clock are those of `report`. A frame is named
module!Type.Method(args), or ?!? if the trace does not name it. Stacks are added
up: the order of time is not in the file.

After a truncated or corrupt trace the file has what could be read, and the exit
status is 6. After any other failure the output file is unchanged.

Examples:
  dotnet-ipc convert app.nettrace -o app.svg
  dotnet-ipc convert app.nettrace -o app.speedscope.json
  dotnet-ipc convert app.nettrace -o app.pb.gz --thread-time
  dotnet-ipc convert app.nettrace -o - --format folded --wall | sort")]
pub(crate) struct Args {
    /// The trace; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format of the output
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    clock: ClockArgs,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Svg,
    Folded,
    Speedscope,
    Pprof,
}

impl Format {
    /// Returns the format that the name of a file states.
    fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.to_string_lossy();
        let formats = [
            (".svg", Self::Svg),
            (".folded", Self::Folded),
            (".speedscope.json", Self::Speedscope),
            (".pb.gz", Self::Pprof),
        ];
        let found = formats.into_iter().find(|(suffix, _)| name.ends_with(suffix));
        found.map(|(_, format)| format).ok_or_else(|| {
            Failure::new(Kind::Usage, format!("the name of {} states no format", path.display())).with_hint(
                "choose --format, or a name that ends with .svg, .folded, .speedscope.json or .pb.gz",
            )
        })
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (clock, _) = args.clock.clock()?;
    let format = args.format.map_or_else(|| Format::of(&args.output), Ok)?;
    let mut output = AtomicOutput::open(&args.output, &args.overwrite)?;
    let mut samples = Samples::new([clock.clone()]);
    let mut trace = trace_file::open(&args.file)?;
    let mut unix_start = 0;
    let read = trace_file::read_all(&mut trace, globals, |event| {
        unix_start = event.clock().unix_start();
        samples.event(event);
        ControlFlow::Continue(())
    });
    if samples.weights(&clock).next().is_none() {
        // A trace that cannot be read is the reason why nothing was found.
        read?;
        if clock == Clock::Cpu && samples.samples() > 0 {
            let name = source::name(&args.file);
            let failure = Failure::new(Kind::Other, format!("{name}: no sample is in managed code"));
            return Err(failure.with_hint("--wall and --thread-time also have threads that wait"));
        }
        return Err(clock_args::missing(&clock, &args.file));
    }
    let mut file = Sink { output: &mut output, failure: None };
    let written = write(format, &mut samples, &clock, unix_start, &args.file, &mut BufWriter::new(&mut file));
    if let Some(failure) = file.failure {
        return Err(failure);
    }
    written.map_err(|e| Failure::io("cannot convert the trace", &e))?;
    if !output.is_closed() {
        let bytes = output.persist()?;
        let is_stdout = args.output.as_os_str() == "-";
        let name = if is_stdout { "standard output".into() } else { args.output.to_string_lossy() };
        let summary = json!({ "file": args.output.to_string_lossy(), "bytes": bytes });
        match (globals.json, is_stdout) {
            (true, true) => json_to_stderr(&summary),
            (true, false) => json_to_stdout(&summary)?,
            (false, _) => to_stderr(&format!("Wrote {} to {name}", DecimalBytes(bytes))),
        }
    }
    read
}

fn write(
    format: Format,
    samples: &mut Samples,
    clock: &Clock,
    unix_start: i128,
    trace: &Path,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Svg => {
            let tree = CallTree::new(samples, clock, |_, weight| weight.total());
            let mut folded = String::new();
            // Writing to a string cannot fail.
            let _ = tree.write_folded(samples.names(), &mut folded);
            let mut options = flamegraph::Options::default();
            options.title = source::name(trace).to_string();
            options.count_name = match clock.unit() {
                Unit::Samples => "samples",
                Unit::Nanoseconds => "ns",
                Unit::Bytes => "bytes",
                Unit::Events => "events",
            }
            .to_owned();
            // From the top, so that a graph of deep stacks opens with the calls that most of them have.
            options.direction = flamegraph::Direction::Inverted;
            // The same trace makes the same file.
            options.deterministic = true;
            flamegraph::from_lines(&mut options, folded.lines(), &mut *out)?;
        }
        Format::Folded => {
            let tree = CallTree::new(samples, clock, |_, weight| weight.total());
            Text::write(out, |text| tree.write_folded(samples.names(), text))?;
        }
        Format::Speedscope => {
            let name = source::name(trace).to_string();
            let profile = Profile::new(samples, clock, |_, weight| weight.total());
            Text::write(out, |text| profile.write_speedscope(&name, text))?;
        }
        Format::Pprof => {
            let profile = Profile::new(samples, clock, |_, weight| weight.total());
            let mut compressed = GzEncoder::new(&mut *out, Compression::default());
            profile.write_pprof(unix_start, |piece| compressed.write_all(piece))?;
            compressed.finish()?;
        }
    }
    out.flush()
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
