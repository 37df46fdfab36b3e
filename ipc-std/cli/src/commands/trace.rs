//! `trace`: records a process to a file.
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use ipc_proto::types::EventLevel;
use ipc_proto::wire::TextBuf;
use ipc_std::{Client, TraceSession};
use serde::Serialize;

use crate::args::until_event;
use crate::output::stdout::wrote;
use crate::process::connection_args::ConnectionArgs;
use crate::process::system_process;
use crate::process::target::TargetArgs;
use crate::recording::args::{RecordingArgs, SessionPlan};
use crate::recording::names_first::{CompiledNames, take_names};
use crate::recording::output::TraceOutput;
use crate::recording::progress::Progress;
use crate::recording::record::record;
use crate::recording::session::{self, LiveSession};
use crate::recording::session_failure;
use crate::recording::summary::{RecordingSummary, SummaryRow};
use crate::run::{Failure, Globals, failure};

/// Record the events of a process to a .nettrace file
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting the trace, and again when ending it [default: 10s, 2m]")))]
#[command(after_help = include_str!("trace.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// The file to write, or `-` for standard output [default: NAME_PID_yyyyMMdd_HHmmss.nettrace, in UTC]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    recording: RecordingArgs,
    /// End with this event; repeatable: with the first of them
    #[arg(long, value_name = "PROVIDER[/EVENT]", value_parser = OnlyArg::parse)]
    until: Vec<OnlyArg>,
    /// Take the names of methods at the start too, for stacks of a process that is killed
    #[arg(long)]
    names_first: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let plan = args.recording.plan()?;
    let plan = if args.names_first { plan.with_names(EventLevel::INFORMATIONAL)? } else { plan };
    plan.check_until(&args.until)?;
    let (client, wire_log) = args.connection.session_client(args.target.target())?;
    let path = args.output.clone().map_or_else(|| default_path(&client, globals), Ok)?;
    let output = TraceOutput::open(&path, &args.connection.wire_log.overwrite)?;
    output.wait_until(&args.until);

    let start = || -> Result<_, Failure> {
        // From here on, a signal removes the file, or stops the session.
        let live = session::start(client.clone(), &plan, Some(&output), globals)?;
        let asks = args.names_first && plan.can_ask_for_names(&live.session, globals);
        Ok((live, asks.then(|| CompiledNames::start(&client)).transpose()?))
    };
    let (live, compiled) = start().inspect_err(|_| output.abandon())?;
    let LiveSession { mut session, started, resumption, stopping, notes: _notes } = live;
    // The names are read after both sessions have started: a method that was compiled between would be in neither.
    let names = compiled.is_some().then(|| take_names(&client, globals));
    let progress = Progress::start(started, plan.duration, stopping);
    let recorded = record(&mut session, &output, names, |session| {
        if output.has_until() {
            session.stop();
        }
        let counts = output.counts();
        progress.update(counts.bytes, counts.events, counts.losses.lost);
    });
    drop(compiled);
    progress.finish();
    let is_complete = session_failure::is_complete(&session, &output) && recorded.is_ok();
    let summary = RecordingSummary::new(&output, started.elapsed());
    report(&summary, &session, &output, is_complete, &plan, globals)?;
    if let Some(warning) = summary.warning(plan.buffer_mb, plan.blocks(&session)) {
        globals.note(&warning);
    }
    let arrival = || until_event::check_arrival(&args.until, output.has_until(), output.is_closed());
    if output.is_closed() {
        // The exit status states that the event did not arrive, and not that the reader has closed the pipe.
        arrival()?;
    }
    resumption.check().and(recorded)?;
    session_failure::check_end(&session, plan.no_resume, args.target.target().process_id(), &output)?;
    session::report_end(&session, globals);
    wire_log.check()?;
    arrival()
}

/// The result as JSON.
#[derive(Serialize)]
struct TraceRow<'o> {
    #[serde(flatten)]
    summary: SummaryRow<'o>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffering: Option<&'static str>,
    session_id: u64,
    command: String,
}

/// Reports what the file contains.
fn report(
    summary: &RecordingSummary<'_>,
    session: &TraceSession,
    output: &TraceOutput,
    is_complete: bool,
    plan: &SessionPlan<'_>,
    globals: &Globals,
) -> Result<(), Failure> {
    let row = TraceRow {
        summary: summary.to_json(is_complete),
        buffering: plan.chosen_buffering(session),
        session_id: session.session_id(),
        command: failure::name_of(session.command()),
    };
    wrote(globals, output.path(), &summary.to_string(), &row)
}

/// Returns the name of the file without `-o`: as dotnet-trace names it, but with the time in UTC.
fn default_path(client: &Client, globals: &Globals) -> Result<PathBuf, Failure> {
    let (name, process_id) = match client.process_info() {
        Ok(info) => {
            let text = |text: &TextBuf| text.to_utf8().unwrap_or_default();
            let assembly = text(&info.managed_entrypoint_assembly_name);
            (program_name(&assembly, &text(&info.command_line)), info.process_id)
        }
        Err(e) => {
            let process = system_process::unreported(client, e, globals)?;
            (program_name("", &process.command_line), process.process_id.into())
        }
    };
    // For example, 2026-11-20T21:45:13Z.
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let time: String = time.chars().filter(|c| !"-:Z".contains(*c)).collect();
    Ok(format!("{name}_{process_id}_{}.nettrace", time.replace('T', "_")).into())
}

/// Returns the name of the program as a part of a file name.
fn program_name(assembly: &str, command_line: &str) -> String {
    let program = command_line.split_whitespace().next().unwrap_or_default();
    // A command line can have the separators of Unix or those of Windows.
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = Path::new(program).file_stem().unwrap_or_default().to_string_lossy();
    let name = if assembly.is_empty() { &*stem } else { assembly };
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = name.chars().take(64).map(|c| if is_plain(c) { c } else { '_' }).collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "trace".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs() {
        for (assembly, command_line, expected) in [
            ("App", "/usr/bin/dotnet App.dll", "App"),
            ("", "/opt/My App/run", "My"),
            ("", "/opt/app/Service.exe --fast", "Service"),
            ("", r"C:\app\Service.exe", "Service"),
            ("../../etc/passwd", "", "_.._etc_passwd"),
            ("a b\u{202e}c", "", "a_b_c"),
            ("-rf", "", "rf"),
            ("", "   ", "trace"),
        ] {
            assert_eq!(program_name(assembly, command_line), expected, "{assembly:?} {command_line:?}");
        }
    }
}
