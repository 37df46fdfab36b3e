//! `convert`: the stacks of a trace as a file for another tool.
use core::ops::ControlFlow;
use std::path::PathBuf;

use crate::input::trace_file;
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::output_file::OverwriteArgs;
use crate::process::trace_target::TraceTarget;
use crate::recording::analysis_input::InputRead;
use crate::stacks::stacks_file::StacksFileArgs;

/// Write the stacks of a trace as a flame graph, or for speedscope, pprof and others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The options that select a clock are those of `report`. A frame is named
module!Type.Method(args), or ?!? if the trace does not name it; --short leaves
out module and arguments.

Stacks are added up, except in files of chromium and firefox, and of speedscope
with --thread-time or --contention: these show each thread in the order of time.
Their --thread-time has the times of `dotnet-trace convert`. It ignores events of
event sources, which `report` counts, and ends with CPU_TIME if the thread ran,
UNMANAGED_CODE_TIME if it waited or ran native code. Such a file has at most
1,048,576 changes of stacks, from the beginning of the trace.

A page of html has all clocks and threads of the trace to choose from, loads nothing
and sends nothing. It shows 50,000 calls at most, the heaviest; smaller ones count
for their callers.

--diff compares shares, because recordings differ in length: weights of OLD are
scaled to the total of FILE. Red is a larger share, blue a smaller one. A line of
folded ends with both weights, before and after.

After a truncated or corrupt trace the file has what could be read, and the exit
status is 6. After any other failure the output file is unchanged.

Examples:
  dotnet-ipc convert app.nettrace -o app.html
  dotnet-ipc convert app.nettrace -o app.svg
  dotnet-ipc convert app.nettrace -o app.speedscope.json
  dotnet-ipc convert app.nettrace -o app.speedscope.json --thread-time
  dotnet-ipc convert app.nettrace -o app.chromium.json --short
  dotnet-ipc convert app.nettrace -o app.pb.gz --thread-time
  dotnet-ipc convert app.nettrace -o - --format folded --wall | sort
  dotnet-ipc convert new.nettrace -o new.html --diff old.nettrace")]
pub(crate) struct Args {
    /// The trace; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    stacks: StacksFileArgs,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut stacks = args.stacks.open(&args.overwrite, globals)?;
    let mut trace = trace_file::open(&args.file)?;
    let result = trace_file::read_all(&mut trace, globals, |event| {
        stacks.event(event);
        ControlFlow::Continue(())
    });
    stacks.finish(InputRead::of(&trace, result), TraceTarget::File(&args.file), globals)
}
