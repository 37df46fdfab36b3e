//! `flame`: a flame graph of a process or of a trace, or another file with stacks.
use core::ops::ControlFlow;

use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::{AnalysisArgs, Needs};
use crate::stacks::stacks_file::StacksFileArgs;

/// Draw a flame graph of a process or of a trace, or write a file for speedscope, pprof and others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A number is a process ID, anything else a file; --file makes a number a file. A
process is recorded as `report` does it, for html with the events of all clocks
but --event, and a trace written as by `convert`: the clocks and the formats are
theirs.

After a truncated or corrupt trace the file has what could be read, and the exit
status is 6; it is 7 if the process exited while it was recorded. After any
other failure the output file is unchanged.

Examples:
  dotnet-ipc flame 4242 -o app.html
  dotnet-ipc flame --name Shop -o waits.svg --wall --duration 30s
  dotnet-ipc flame app.nettrace -o app.html
  dotnet-ipc flame 4242 -o new.html --diff old.nettrace")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    #[command(flatten)]
    stacks: StacksFileArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let input = args.analysis.input(&args.target)?;
    let mut stacks = args.stacks.open(&args.analysis.wire_log.overwrite, globals)?;
    let needs = Needs::of(&stacks.clocks());
    let read = input.read(needs, false, globals, |event| {
        stacks.event(event);
        ControlFlow::Continue(())
    })?;
    stacks.finish(read, input.target, globals)
}
