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
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::recording::analysis_input::{AnalysisArgs, Needs};
use crate::run::failure::Failure;
use crate::run::globals::Globals;
use crate::text::columns::terminal_width;
use crate::text::printable::printable;

/// Show what is wrong with a process, from ten seconds of its events or from a trace
#[derive(Debug, clap::Args)]
#[command(mut_arg("thread", |arg| arg.hide(true)))]
#[command(after_help = include_str!("diagnose.txt"))]
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
