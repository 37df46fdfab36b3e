//! `flame`: a flame graph of a process or of a trace, or another file with stacks.
use core::ops::ControlFlow;

use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::{AnalysisArgs, Needs};
use crate::run::failure::Failure;
use crate::run::globals::Globals;
use crate::stacks::stacks_file::StacksFileArgs;

/// Draw a flame graph of a process or of a trace, or write a file for speedscope, pprof and others
#[derive(Debug, clap::Args)]
#[command(visible_alias = "convert")]
#[command(after_help = include_str!("flame.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    #[command(flatten)]
    stacks: StacksFileArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let input = args.analysis.input(&args.target, globals)?;
    let overwrite = &args.analysis.connection.wire_log.overwrite;
    let mut stacks = args.stacks.open(overwrite, input.part.part(), globals)?;
    let needs = Needs::of(&stacks.clocks());
    let read = input.read(needs, false, globals, |event| {
        stacks.event(event);
        ControlFlow::Continue(())
    })?;
    stacks.finish(read, input.target, globals)
}
