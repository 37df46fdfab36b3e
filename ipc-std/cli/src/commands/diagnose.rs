//! `diagnose`: what is wrong with a process, from one recording.
use core::ops::ControlFlow;
use std::io::{self, Write};

use nettrace_analysis::KnownProvider;
use serde::Serialize;

use crate::args::frame_args::NameArgs;
use crate::diagnosis::evidence::Evidence;
use crate::diagnosis::facts::Facts;
use crate::diagnosis::figures::Figures;
use crate::diagnosis::finding::{Finding, FindingRow, FindingTarget};
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
    names: NameArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

/// The diagnosis of a process as an object of the output.
#[derive(Debug, Serialize)]
struct DiagnosisRow<'a> {
    #[serde(flatten)]
    figures: &'a Figures,
    not_recorded: &'a [&'static str],
    left_out: u64,
    findings: Vec<FindingRow<'a>>,
}

/// The diagnosis of a process.
struct Diagnosis {
    target: FindingTarget,
    figures: Figures,
    findings: Vec<Finding>,
    /// The kinds of events that the recording lacks.
    not_recorded: Vec<&'static str>,
    /// The number of events that are not counted, because there was no room.
    left_out: u64,
}

/// The diagnoses of several processes as JSON, and all findings in one list.
#[derive(Serialize)]
struct ProcessDiagnoses<'a> {
    processes: &'a [DiagnosisRow<'a>],
    findings: Vec<&'a FindingRow<'a>>,
}

impl Diagnosis {
    fn row(&self) -> DiagnosisRow<'_> {
        let Self { target, figures, findings, not_recorded, left_out } = self;
        let left_out = *left_out;
        DiagnosisRow {
            figures,
            not_recorded,
            left_out,
            findings: findings.iter().map(|of| of.row(target)).collect(),
        }
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.analysis.part.check_no_threads("a diagnosis is that of the whole process")?;
    let input = args.analysis.input(&args.target, globals)?;
    let local = match input.target {
        // The figures of the system are those of the whole recording.
        TraceTarget::Process(target) if input.part.is_whole() => target.process_id(),
        TraceTarget::Process(_) | TraceTarget::File(_) => None,
    };
    let mut evidence = Evidence::new(&input.part.part(), &args.names.own_code(), input.is_live());
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
    args.names.symbols.name_native(evidence.names_mut())?;
    let evidence = evidence.finish(read.process_id.map(u64::from), read.last_point);
    let mut system = before.zip(after).map(<[_; 2]>::from);
    let processes = evidence.processes();
    let are_several = processes.len() > 1;
    let diagnoses = processes.into_iter().map(|(process_id, of)| {
        let facts = Facts::new(&evidence, process_id, of, system.take());
        let mut argument = input.target.argument();
        if let Some(id) = process_id.filter(|_| are_several) {
            argument.push_str(&format!(" --process {id}"));
        }
        Diagnosis {
            target: FindingTarget { argument, process_id, is_file: !input.is_live() },
            figures: Figures::new(&facts),
            findings: rules::findings(&facts),
            not_recorded: facts.not_recorded(),
            left_out: facts.left_out(),
        }
    });
    let diagnoses: Vec<_> = diagnoses.collect();
    if globals.json {
        let rows: Vec<_> = diagnoses.iter().map(Diagnosis::row).collect();
        match rows.as_slice() {
            [row] => json_to_stdout(row)?,
            rows => {
                let findings = rows.iter().flat_map(|row| &row.findings).collect();
                json_to_stdout(&ProcessDiagnoses { processes: rows, findings })?;
            }
        }
    } else {
        to_stdout(|out| {
            for (place, diagnosis) in (0..).zip(&diagnoses) {
                if place > 0 {
                    writeln!(out)?;
                }
                if let Some(id) = diagnosis.target.process_id.filter(|_| are_several) {
                    writeln!(out, "Process {id}")?;
                }
                diagnosis.write(evidence.has_events, out)?;
            }
            Ok(())
        })?;
    }
    read.result
}

impl Diagnosis {
    fn write(&self, has_events: bool, out: &mut dyn Write) -> io::Result<()> {
        let width = terminal_width().unwrap_or(100);
        let wrap = |text: &str, out: &mut dyn Write| {
            let text = printable(text);
            textwrap::wrap(&text, width).iter().try_for_each(|line| writeln!(out, "{line}"))
        };
        // A trace without events has no figures.
        if has_events {
            self.figures.write(out)?;
        }
        for finding in &self.findings {
            writeln!(out)?;
            wrap(&finding.text(), out)?;
            writeln!(out, "  next: {}", finding.next_command(&self.target))?;
        }
        if !self.not_recorded.is_empty() {
            let text = format!(
                "not seen, because the recording has no such events: {}",
                self.not_recorded.join(", ")
            );
            writeln!(out)?;
            wrap(&text, out)?;
            writeln!(out, "  next: dotnet-ipc trace PID --profile sick --duration 10s -o FILE")?;
        }
        if self.left_out > 0 {
            writeln!(out, "\nnot counted, because there was no room: {} events", self.left_out)?;
        }
        if self.findings.is_empty() {
            let seen =
                if self.not_recorded.is_empty() && self.left_out == 0 { "" } else { " in what was recorded" };
            writeln!(out, "\nNothing stands out{seen}.")?;
        }
        Ok(())
    }
}
