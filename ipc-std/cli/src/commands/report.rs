//! `report`: where a program spends its time, by the samples and events of a process or of a trace.
mod frame;
mod older;
mod options;
mod rows;
mod text;
mod threads;
mod types;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::report::CallReport;
use nettrace_analysis::samples::{Clock, Samples};

pub(crate) use self::options::Args;
use self::rows::ReportRows;
use crate::output::dates::RecordedSpan;
use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::recording::analysis_input::{InputRead, Needs};
use crate::recording::{sample_gaps, thread_samples};
use crate::run::{Failure, Globals};

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (query, zone) = (args.query()?, args.zone.zone()?.unwrap_or_default());
    // A mistake on the command line is reported before the older trace is read, which can take long.
    let input = args.analysis.input(&args.target, globals)?;
    let samples = || args.frames.samples(query.clock.recorded(), args.short);
    let older = args.diff.as_deref().map(|file| older::read(file, samples(), &query.clock, globals));
    let mut older = older.transpose()?;
    // A failure is ignored: the symbols can belong to only one of the traces.
    let symbols = &args.frames.names.symbols;
    let _ = older.as_mut().map(|older| symbols.name_native(older.names_mut()));
    let needs = Needs::of(core::slice::from_ref(&query.clock));
    let (mut samples, InputRead { lost, start, cpu, client, result: read, .. }) =
        input.analyse(needs, samples().of_part(input.part.part()), symbols, Samples::names_mut, globals)?;
    let span = RecordedSpan { start, end: samples.end().nanoseconds() };
    if let (Clock::Contention, Some(client), Ok(()), true) =
        (&query.clock, &client, &read, samples.part().is_whole())
    {
        samples.begin_trace();
        // A failure is ignored: without samples, only a note is missing.
        let _ = thread_samples::read(client, |event| samples.event(event));
    }
    let report = CallReport::new(&query, &mut samples, older.as_mut());
    if report.gap.is_some() && read.is_err() {
        // That the trace cannot be read explains why nothing was found.
        return read;
    }
    let rows = ReportRows::new(&report, args, lost, span.row(&zone), cpu.as_ref());
    if globals.json {
        json_to_stdout(&rows)?;
    }
    if let Some(gap) = report.gap {
        let has_stacks = report.samples.has_stacks();
        return Err(sample_gaps::failure(gap, &report.clock, has_stacks, input.target));
    }
    sample_gaps::remarks(&report.uncounted).iter().for_each(|remark| globals.note(remark));
    if !globals.json {
        to_stdout(|out| text::write(&rows, args, out))?;
        show_next(&text::next_command(&rows, input.target), globals)?;
    }
    read
}
