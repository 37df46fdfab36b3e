//! `flame`: a flame graph of a process or of a trace, or another file with stacks.
use core::ops::ControlFlow;

use crate::flame::flame_file::FlameFileArgs;
use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::{AnalysisArgs, Needs};
use crate::run::{Failure, Globals};

/// Draw a flame graph of a process or of a trace, or write a file for speedscope, pprof and others
#[derive(Debug, clap::Args)]
#[command(visible_alias = "convert")]
#[command(after_help = include_str!("flame.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    #[command(flatten)]
    file: FlameFileArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let input = args.analysis.input(&args.target, globals)?;
    let overwrite = &args.analysis.connection.wire_log.overwrite;
    let mut file = args.file.open(overwrite, input.part.part(), globals)?;
    let needs = Needs::of(&file.clocks());
    let read = input.read(needs, false, globals, |event| {
        file.event(event);
        ControlFlow::Continue(())
    })?;
    file.finish(read, input.target, globals)
}
