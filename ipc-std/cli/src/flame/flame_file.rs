//! Files with the stacks of a trace, for people and for other tools: what `flame` writes.
use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use indicatif::DecimalBytes;
use nettrace::TraceEvent;
use nettrace_analysis::Analysis as _;
use nettrace_analysis::Part;
use nettrace_analysis::formats::{TimeProfile, Timeline};
use nettrace_analysis::report::Uncounted;
use nettrace_analysis::samples::{Clock, Samples, Unit};
use serde::Serialize;

use super::flame_page::{Recording, has_weights};
use super::output::{AddedUp, Clocks, FlameOutput, InTime, Writer};
use super::outputs::OUTPUTS;
use crate::args::clock_args::ClockArgs;
use crate::args::frame_args::FrameArgs;
use crate::input::trace_file;
use crate::output::atomic_output::AtomicOutput;
use crate::output::output_file::OverwriteArgs;
use crate::output::stdout;
use crate::process::cpu_lines::HIDES_RUNNING;
use crate::process::trace_target::TraceTarget;
use crate::recording::analysis_input::InputRead;
use crate::recording::sample_gaps;
use crate::run::{Failure, Globals};
use crate::text::printable::printable_name;

/// The file to write, and what counts in it. The command has [`OverwriteArgs`] beside it.
#[derive(Debug, clap::Args)]
pub(crate) struct FlameFileArgs {
    /// The file to write; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format of the output [default: by the suffix of its name]
    #[arg(long, value_name = "FORMAT", value_parser = Format::parser())]
    format: Option<Format>,
    /// Show how the shares differ from those in OLD: html and folded
    #[arg(long, value_name = "OLD")]
    diff: Option<PathBuf>,
    /// Leave out modules and arguments of methods
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    frames: FrameArgs,
    #[command(flatten)]
    clock: ClockArgs,
}

/// A value of `--format`.
#[derive(Debug, Clone, Copy)]
struct Format(&'static FlameOutput);

impl Format {
    /// Returns the parser of the option, which knows the formats for the help.
    fn parser() -> impl TypedValueParser<Value = Self> {
        let values = OUTPUTS.iter().map(|output| PossibleValue::new(output.name).help(output.help));
        PossibleValuesParser::new(values).try_map(|name| {
            let found = OUTPUTS.iter().find(|output| output.name == name);
            found.map(Self).ok_or_else(|| format!("{name} is no format"))
        })
    }

    /// Returns the format that the name of a file states.
    fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.to_string_lossy();
        let found = OUTPUTS.iter().find(|output| name.ends_with(output.suffix));
        found.map(Self).ok_or_else(|| {
            let suffixes: Vec<_> = OUTPUTS.iter().map(|output| output.suffix).collect();
            let failure = Failure::usage(format!("the name of {} states no format", path.display()));
            let suffixes = suffixes.join(", ");
            failure.with_hint(format!("choose --format, or a name that ends with one of {suffixes}"))
        })
    }
}

impl FlameFileArgs {
    /// Returns the file to write for a part of a trace, without any stacks yet. The older trace is read whole. Fails if the file cannot be written, or if the older trace
    /// cannot be read.
    pub(crate) fn open<'a>(
        &'a self,
        overwrite: &'a OverwriteArgs,
        part: Part,
        globals: &Globals,
    ) -> Result<FlameFile<'a>, Failure> {
        let Format(format) = self.format.map_or_else(|| Format::of(&self.output), Ok)?;
        let needs_times = matches!(format.clocks, Clocks::Times);
        let clock = match self.clock.clock()? {
            Clock::Cpu if self.clock.is_default() && needs_times => Clock::SampledTime,
            // For files in the order of time, `dotnet-trace convert` counts by samples and allocations only.
            Clock::ThreadTime if format.is_in_time(&Clock::ThreadTime) => Clock::SampledTime,
            clock => clock,
        };
        if needs_times && clock.unit() != Unit::Nanoseconds {
            let message = format!("the format {} shows times, and this clock has none", format.name);
            return Err(Failure::usage(message).with_hint("choose --thread-time or --contention"));
        }
        if self.diff.is_some() && !format.has_diff {
            let failure = Failure::usage("--diff does not work with this format");
            let with_diff = OUTPUTS.iter().filter(|output| output.has_diff);
            let mut names: Vec<_> = with_diff.map(|output| output.name).collect();
            let last = names.pop().unwrap_or_default();
            return Err(failure.with_hint(format!("choose {} or {last}", names.join(", "))));
        }
        AtomicOutput::check(&self.output, overwrite)?;
        let mut clocks = format.clocks(&clock);
        clocks.extend(clock.recorded().filter(|also| !clocks.contains(also)).collect::<Vec<_>>());
        let is_any_clock = matches!(format.clocks, Clocks::Several(_)) && self.clock.is_default();
        let samples = || self.frames.samples(clocks.iter().cloned(), self.short);
        let read_old = |path| -> Result<_, Failure> {
            let mut samples = trace_file::analyse(path, samples(), globals)?;
            // A failure is ignored: the symbols can belong to only one of the traces.
            let _ = self.frames.names.symbols.name_native(samples.names_mut());
            // The older trace is checked before a process is recorded. A page needs data of any clock, other files of
            // the chosen one.
            let found = clocks.iter().find(|clock| is_any_clock && has_weights(&samples, clock));
            let trace = TraceTarget::File(path);
            let clock = samples.shown_clock(found.unwrap_or(&clock).clone());
            check(&mut samples, &clock, trace)?;
            Ok((trace, samples))
        };
        let old = self.diff.as_deref().map(read_old).transpose()?;
        Ok(FlameFile {
            path: &self.output,
            overwrite,
            format,
            timeline: format.is_in_time(&clock).then(|| Timeline::new(clock.clone())),
            is_exact: self.frames.raw || clock == Clock::ThreadTime,
            clock,
            is_any_clock,
            samples: samples().of_part(part),
            frames: &self.frames,
            old,
            unix_start: None,
        })
    }
}

/// The stacks of a trace, and the file for them.
pub(crate) struct FlameFile<'a> {
    path: &'a Path,
    overwrite: &'a OverwriteArgs,
    format: &'static FlameOutput,
    clock: Clock,
    /// Whether data of any clock is enough, because the file is a page with several clocks.
    is_any_clock: bool,
    /// Whether a graph has all frames, with their exact names.
    is_exact: bool,
    samples: Samples,
    frames: &'a FrameArgs,
    /// The stacks in the order of time, for a file that has them so.
    timeline: Option<Timeline>,
    /// The older trace to compare with.
    old: Option<(TraceTarget<'a>, Samples)>,
    /// The start of the trace, in nanoseconds since 1970, if the trace states it.
    unix_start: Option<i128>,
}

impl FlameFile<'_> {
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

    /// Writes the file with the stacks that were read. If reading failed, the failure is returned after the file is
    /// written.
    pub(crate) fn finish(
        self,
        read: InputRead,
        trace: TraceTarget<'_>,
        globals: &Globals,
    ) -> Result<(), Failure> {
        let Self { path, overwrite, format, mut clock, mut samples, mut timeline, mut old, is_exact, .. } =
            self;
        self.frames.names.symbols.name_native(samples.names_mut())?;
        read.extend(&mut samples);
        let InputRead { lost, process_id, result: read, .. } = read;
        samples.finish_with(&mut |clock, interval| {
            timeline.iter_mut().for_each(|timeline| timeline.add(clock, interval));
        });
        let chosen = clock.clone();
        for samples in [&mut samples].into_iter().chain(old.as_mut().map(|(_, samples)| samples)) {
            clock = samples.shown_clock(clock);
        }
        if clock != chosen {
            globals.note(HIDES_RUNNING);
        }
        if self.is_any_clock {
            let is_in_old = |clock: &Clock| old.as_ref().is_none_or(|(_, old)| has_weights(old, clock));
            let found = format.clocks(&clock).into_iter();
            let found = found.filter(|clock| has_weights(&samples, clock)).find(is_in_old);
            clock = found.unwrap_or(clock);
        }
        if let Err(failure) = check(&mut samples, &clock, trace) {
            // If the trace cannot be read, that failure explains why nothing was found.
            return read.and(Err(failure));
        }
        if let Some((trace, samples)) = &mut old {
            check(samples, &clock, *trace)?;
        }
        if let Some(dropped @ 1..) = timeline.as_ref().map(Timeline::dropped) {
            globals.note(&format!(
                "the file has the beginning of the trace: it would need {dropped} more changes of stacks than the {} \
                 that fit",
                Timeline::LIMIT
            ));
        }
        sample_gaps::remarks(&Uncounted::new(&mut samples, &clock))
            .iter()
            .for_each(|remark| globals.note(remark));
        let mut output = AtomicOutput::open(path, overwrite)?;
        let new = &mut Recording { name: title(trace), samples: &mut samples, lost };
        let old = old.as_mut().map(|(trace, samples)| Recording { name: title(*trace), samples, lost: 0 });
        let mut out = BufWriter::new(&mut output);
        let unix_start = self.unix_start;
        let written = match (&format.writer, timeline) {
            (Writer::InTime(write) | Writer::Either(_, write), Some(timeline)) => {
                let profile = TimeProfile::new(new.samples, timeline);
                let process_id = process_id.unwrap_or_default();
                write(InTime { profile: &profile, name: &new.name, process_id, unix_start }, &mut out)
            }
            (Writer::AddedUp(write) | Writer::Either(write, _), _) => {
                write(AddedUp { new, old, clock: &clock, is_exact, unix_start }, &mut out)
            }
            // Impossible: a file in the order of time always has a timeline.
            (Writer::InTime(_), None) => Ok(()),
        };
        let written = written.and_then(|()| out.flush());
        drop(out);
        written.map_err(|e| output.failed(&e))?;
        if !output.is_closed() {
            let bytes = output.persist()?;
            let sentence = format!("Wrote {} to {}", DecimalBytes(bytes), stdout::name(path));
            let summary = WrittenFile { file: path.to_string_lossy(), bytes };
            stdout::wrote(globals, path, &sentence, &summary)?;
        }
        read
    }
}

/// A written file, as JSON.
#[derive(Serialize)]
struct WrittenFile<'p> {
    file: Cow<'p, str>,
    bytes: u64,
}

/// Fails if no stack weighs something by a clock.
fn check(samples: &mut Samples, clock: &Clock, trace: TraceTarget<'_>) -> Result<(), Failure> {
    if has_weights(samples, clock) {
        return Ok(());
    }
    Err(sample_gaps::nothing(samples, clock, trace))
}

/// Returns the name of a trace in its file. The name of a trace can have characters that control a terminal.
fn title(trace: TraceTarget<'_>) -> String {
    printable_name(&trace.to_string())
}
