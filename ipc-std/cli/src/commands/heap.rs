//! `heap`: the objects on the heap of a process or of a trace, by type.
mod collection;
mod gcdump_file;
mod meanings;
mod types;

use std::path::{Path, PathBuf};

use nettrace_analysis::Analysis as _;
use nettrace_analysis::heap::{HeapSnapshot, Snapshots};
use regex::Regex;

use self::collection::{Collected, CollectionArgs};
use self::types::{HeapTypes, TypeOrder};
use crate::args::frame_args::NameArgs;
use crate::args::process_arg::ProcessArg;
use crate::input::symbol_file::SymbolsOf;
use crate::input::trace_file;
use crate::output::atomic_output::AtomicOutput;
use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::run::{Failure, Globals, Kind};

/// Show what fills the memory: the objects on the heap of a process or of a trace, by type
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when connecting, and when no more objects arrive [default: 10s]")))]
#[command(after_help = include_str!("heap.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    /// Show N types, in each table
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Show only types whose name or module matches REGEX
    #[arg(long = "type", value_name = "REGEX")]
    type_pattern: Option<Regex>,
    /// The order of the types
    #[arg(long, value_enum, value_name = "COLUMN", default_value = "bytes")]
    sort: TypeOrder,
    #[command(flatten)]
    names: NameArgs,
    /// Write the snapshot to FILE, in the format of dotnet-gcdump, instead of showing it; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    process: ProcessArg,
    #[command(flatten)]
    collection: CollectionArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let target = args.target.target(args.collection.is_used())?;
    if let Some(path) = &args.output {
        AtomicOutput::check(path, args.collection.overwrite())?;
    }
    let (mut snapshots, read) = match target {
        TraceTarget::File(path) => read(path, &args.process, globals)?,
        TraceTarget::Process(process) => args.collection.collect(process, globals)?,
    };
    let Some(snapshot) = snapshots.first_mut() else {
        read?;
        let failure = Failure::new(Kind::NothingFound, format!("{target} has no heap snapshot"));
        return Err(failure.with_hint("take one with `dotnet-ipc heap PID`"));
    };
    let graph = &mut snapshot.graph;
    args.names.symbols.read(graph.native_images(), SymbolsOf::Types, |image, symbols| {
        graph.native_symbols(image, symbols)
    })?;
    if let Some(path) = &args.output {
        let time = if matches!(target, TraceTarget::Process(_)) { gcdump_file::now() } else { None };
        gcdump_file::write(snapshot, time, path, args.collection.overwrite(), globals)?;
        remarks(&snapshots).iter().for_each(|remark| globals.note(remark));
        return read;
    }
    let types = HeapTypes::new(snapshot, &args.names.own_code(), args.type_pattern.as_ref(), args.sort);
    if globals.json {
        json_to_stdout(&types.to_json())?;
    } else {
        to_stdout(|out| types.write(args.top, out))?;
        show_next(&format!("dotnet-ipc report {} --allocations", target.argument()), globals)?;
    }
    remarks(&snapshots).iter().for_each(|remark| globals.note(remark));
    read
}

/// Returns the snapshots of a trace, or that of a `.gcdump` file.
fn read(path: &Path, process: &ProcessArg, globals: &Globals) -> Result<Collected, Failure> {
    if let Some(snapshot) = gcdump_file::read(path, globals)? {
        process.includes_id(|| snapshot.process_id);
        process.check(path.display())?;
        return Ok((vec![snapshot], Ok(())));
    }
    let mut snapshots = Snapshots::default();
    let mut trace = trace_file::open(path, false, globals)?;
    let read = trace_file::read_all(&mut trace, globals, |event| {
        if process.includes(event) {
            snapshots.event(event);
        }
        core::ops::ControlFlow::Continue(())
    });
    let read = read.and_then(|()| process.check(trace.get_ref().name()));
    Ok((snapshots.finish(), read))
}

/// Returns what the table of the first snapshot does not say.
fn remarks(snapshots: &[HeapSnapshot]) -> Vec<String> {
    let mut remarks = Vec::new();
    if let [shown, others @ ..] = snapshots {
        if !others.is_empty() {
            let ids: Vec<_> = others.iter().filter_map(|of| of.process_id).map(|id| id.to_string()).collect();
            remarks.push(format!("--process shows the snapshots of other processes: {}", ids.join(", ")));
        }
        let missing = shown.graph.missing();
        let events =
            missing.node_events.saturating_add(missing.edge_events).saturating_add(missing.root_events);
        if events > 0 {
            remarks.push(format!(
                "the snapshot lost events, {} of them with objects: the counts are too low, and a larger --buffer loses \
                 fewer",
                missing.node_events
            ));
        } else if !shown.is_complete {
            remarks.push("the end of the snapshot is missing: the counts may be too low".to_owned());
        }
        if !shown.graph.native_images().is_empty() {
            remarks.push(
                "a program that was compiled ahead of time sends no names of types: --symbols reads them from the .dbg that \
                 was published beside it"
                    .to_owned(),
            );
        }
        if shown.graph.types().iter().any(|of_type| of_type.raw_name.is_none()) {
            remarks.push(
                "types without a name were described to an earlier session: `dotnet-ipc heap PID` avoids this".to_owned(),
            );
        }
    }
    remarks
}
