//! `diagnose`: what is wrong with a process, from one recording.
use core::ops::ControlFlow;
use std::io::{self, Write};

use nettrace_analysis::KnownProvider;
use serde_json::Value;

use crate::args::frame_args::OwnArgs;
use crate::diagnosis::evidence::Evidence;
use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, FindingTarget};
use crate::diagnosis::rules;
use crate::diagnosis::system_figures::SystemFigures;
use crate::output::columns::terminal_width;
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::printable::printable;
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::recording::analysis_input::{AnalysisArgs, Needs};

/// Show what is wrong with a process, from ten seconds of its events or from a trace
#[derive(Debug, clap::Args)]
#[command(mut_arg("thread", |arg| arg.hide(true)))]
#[command(after_help = "\
A number is a process ID, anything else a file; --file makes a number a file. A
process is recorded for --duration or until Ctrl-C, as by `trace --profile
sick`: samples of all threads, collections, allocations, exceptions, locks,
compiled methods, HTTP requests and the counters of System.Runtime.

The figures come first, then the findings, the worst first: each with its
evidence, the method of the program that causes it, if the events know it, and
the command that shows more. A finding is only what was measured. A healthy
program has none, and the exit status is 0 either way.

A file has the events of its recording only: `trace --profile sick` and
`monitor --trace FILE --profile sick -- COMMAND` record all that is needed. The
figures of the system (cores, threads, descriptors) exist only for a process of
this machine; cores also by the counter of .NET. What is not known is null.

--from and --to diagnose a part of the trace or of the recording: T is a time
since its start (90s, 00:01:30, 1.5), or a date such as 2026-11-20T21:45:13Z.

With --json, the result is one object: the figures \"process_id\", \"seconds\",
\"processors\", \"cores\", \"samples\", \"running_samples\", \"collections\",
\"full_collections\", \"induced_collections\", \"gc_paused_percent\",
\"longest_pause_ms\", \"heap_before_mb\", \"heap_after_mb\",
\"allocated_mb_per_second\", \"exceptions_per_second\", \"lock_waits\",
\"threads_waiting_for_locks\", \"longest_lock_wait_ms\", \"thread_pool_threads\",
\"thread_pool_queue\", \"timers\", \"threads\", \"descriptors\", \"descriptor_limit\",
\"sockets\", \"compiled_methods\", \"compilation_ms\", \"requests_in_flight\",
\"finished_requests_per_second\", \"outgoing_requests\", \"new_connections\", and
\"findings\": {\"kind\", \"severity\", \"evidence\", \"method\", \"next\"}. The severity is
\"high\", \"medium\" or \"info\".

Examples:
  dotnet-ipc diagnose 4242
  dotnet-ipc diagnose --name Shop --json | jq .findings
  dotnet-ipc trace 4242 --profile sick --duration 30s -o shop.nettrace
  dotnet-ipc diagnose shop.nettrace")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    #[command(flatten)]
    own: OwnArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.analysis.part.check_no_threads("a diagnosis is that of the whole process")?;
    let input = args.analysis.input(&args.target, globals)?;
    let local = match input.target {
        // The figures of the system are those of the whole recording.
        TraceTarget::Process(target) if input.part.is_whole() => target.process_id(),
        TraceTarget::Process(_) | TraceTarget::File(_) => None,
    };
    let mut evidence = Evidence::new(input.part.part(), args.own.code());
    // The rundown after the recording would count as work of the program.
    let (mut before, mut after) = (None, None);
    let read = input.read(Needs::of_diagnosis(), false, globals, |event| {
        if let Some(process_id) = local {
            let is_rundown = event
                .metadata()
                .is_some_and(|metadata| KnownProvider::of(metadata.provider) == Some(KnownProvider::Rundown));
            if before.is_none() {
                before = Some(SystemFigures::of(process_id));
            } else if is_rundown && after.is_none() {
                after = Some(SystemFigures::of(process_id));
            }
        }
        evidence.event(event);
        ControlFlow::Continue(())
    })?;
    evidence.finish();
    let facts = Facts::new(evidence, before.zip(after).map(<[_; 2]>::from));
    let findings = rules::findings(&facts);
    let target = FindingTarget {
        argument: input.target.argument(),
        process_id: read.process_id,
        is_file: !input.is_live(),
    };
    if globals.json {
        let mut object = facts.to_json();
        if let Some(object) = object.as_object_mut() {
            let findings = findings.iter().map(|finding| finding.to_json(&target)).collect::<Value>();
            object.insert("findings".to_owned(), findings);
        }
        json_to_stdout(&object)?;
    } else {
        to_stdout(|out| write(&facts, &findings, &target, out))?;
    }
    read.result
}

fn write(facts: &Facts, findings: &[Finding], target: &FindingTarget, out: &mut dyn Write) -> io::Result<()> {
    let width = terminal_width().unwrap_or(100);
    facts.write_figures(out)?;
    if findings.is_empty() {
        return writeln!(out, "\nNothing stands out.");
    }
    for finding in findings {
        writeln!(out)?;
        let text = finding.text();
        textwrap::wrap(&printable(&text), width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "  next: {}", finding.next_command(target))?;
    }
    Ok(())
}
