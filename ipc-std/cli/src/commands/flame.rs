//! `flame`: a flame graph of a process or of a trace, or another file with stacks.
use core::ops::ControlFlow;

use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::{AnalysisArgs, Needs};
use crate::stacks::stacks_file::StacksFileArgs;

/// Draw a flame graph of a process or of a trace, or write a file for speedscope, pprof and others
#[derive(Debug, clap::Args)]
#[command(visible_alias = "convert")]
#[command(after_help = "\
A number is a process ID, anything else a file; --file makes a number a file. A
process is recorded as `report` does it, for html with the events of all clocks
but --event.

The options that select a clock, and --from, --to and --thread, are those of
`report`. A frame is named module!Type.Method(args), or ?!? if the trace does
not name it; --short leaves out module and arguments.

Stacks are added up, except in files of chromium and firefox, and of speedscope
with --thread-time or --contention: these show each thread in the order of time.
Their --thread-time has the times of `dotnet-trace convert`. It ignores events
of event sources, which `report` counts, and ends with CPU_TIME if the thread
ran, UNMANAGED_CODE_TIME if it waited or ran native code. Such a file has at
most 1,048,576 changes of stacks, from the beginning of the trace.

In html and svg, code of the program (see --own) is orange and other code blue,
[threads and async] stands for functions that start threads, dispatch work items
and continue async methods, and ~ marks the part of an async method or an
iterator that the compiler moved into a MoveNext. A narrow label has no
arguments, then no module, then less of the namespace. --raw shows all functions
with exact names, as --thread-time and the other formats do.

A page of html has all clocks and threads of the trace to choose from, loads
nothing and sends nothing. It and a picture of svg show 50,000 calls at most,
the heaviest; smaller ones count for their callers.

--diff compares shares, because recordings differ in length: OLD is read whole,
and its weights are scaled to the new total. Red is a larger share, blue a
smaller one. A line of folded ends with both weights, before and after.

Processes have the names that the trace states, or else that of the file. In
files of chromium, an id of a thread with more than 32 bits is a small number,
and its name has the id. If there is nothing to draw, the exit status is 9.

After a truncated or corrupt trace the file has what could be read, and the exit
status is 6; it is 7 if the process exited while it was recorded. After any
other failure the output file is unchanged.

Examples:
  dotnet-ipc flame 4242 -o app.html
  dotnet-ipc flame --name Shop -o waits.svg --wall --duration 30s
  dotnet-ipc flame 4242 -o new.html --diff old.nettrace
  dotnet-ipc flame app.nettrace -o stall.html --from 61.5 --to 62
  dotnet-ipc convert app.nettrace -o app.speedscope.json --thread-time
  dotnet-ipc convert app.nettrace -o app.chromium.json --short
  dotnet-ipc convert app.nettrace -o app.pb.gz --thread-time
  dotnet-ipc convert app.nettrace -o - --format folded --wall | sort")]
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
