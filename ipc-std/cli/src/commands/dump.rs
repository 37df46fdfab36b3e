//! `dump`: requests a memory dump of a process.
use core::fmt;
use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use clap::ValueEnum;
use indicatif::{DecimalBytes, ProgressBar, ProgressState, ProgressStyle};
use ipc_proto::plan::LostFeature;
use ipc_proto::types::{DumpFlags, DumpType};
use ipc_std::{DumpConfig, ErrorKind};
use serde::Serialize;

use crate::output::stdout::done;
use crate::process::connection_args::ConnectionArgs;
use crate::process::target::TargetArgs;
use crate::run::failure::name_of;
use crate::run::{Failure, Globals};
use crate::terminal::narrow_terminal;
use crate::text::printable::printable;

/// Write a memory dump of a process
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION [default: 10m]")))]
#[command(override_usage = "dotnet-ipc dump [OPTIONS] -o <FILE> <PID|--name <NAME>|--socket <PATH>>")]
#[command(after_help = include_str!("dump.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// File to write, in the file system of the target
    #[arg(short, long, value_name = "FILE")]
    output: String,
    /// Contents of the dump
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value = "full")]
    dump_type: Type,
    /// Write a crash report as well, FILE.crashreport.json
    #[arg(long)]
    crash_report: bool,
    /// Let the dump writer log to the console of the target
    #[arg(long)]
    diag: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Type {
    /// Threads, modules and stacks
    Mini,
    /// Threads, modules, stacks and the managed heap
    Heap,
    /// Like mini, without personal data
    Triage,
    /// All memory
    Full,
}

impl Type {
    const fn row(self) -> (DumpType, &'static str) {
        match self {
            Self::Mini => (DumpType::NORMAL, "mini"),
            Self::Heap => (DumpType::WITH_HEAP, "heap"),
            Self::Triage => (DumpType::TRIAGE, "triage"),
            Self::Full => (DumpType::FULL, "full"),
        }
    }
}

const REFUSED: &str = "the target writes the file: check that the directory exists and is writable for the target, and \
                       that createdump is beside its runtime";

/// The result as JSON.
#[derive(Serialize)]
struct WrittenDump<'d> {
    file: &'d str,
    #[serde(rename = "type")]
    dump_type: &'static str,
    bytes: Option<u64>,
    command: &'d str,
    lost: Vec<String>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let path = absolute(&args.output)?;
    if !is_template(&path) {
        args.connection.wire_log.overwrite.check(Path::new(&path))?;
    }
    let (dump_type, type_name) = args.dump_type.row();
    let flag = |wanted, DumpFlags(flag)| if wanted { flag } else { 0 };
    let flags = DumpFlags(
        flag(args.crash_report, DumpFlags::CRASH_REPORT_ENABLED)
            | flag(args.diag, DumpFlags::LOGGING_ENABLED),
    );
    let end = Instant::now().checked_add(args.connection.timeout.timeouts().dump);
    let (client, wire_log) = args.connection.client(args.target.target())?;
    let client = client.with_deadline(end);
    let progress = progress(&path);
    let outcome = client.write_dump(&DumpConfig { path: path.as_str().into(), dump_type, flags });
    progress.finish_and_clear();
    let outcome = outcome.map_err(|e| {
        let refused = e.kind() == ErrorKind::Refused;
        let failure = Failure::from(e);
        if refused { failure.with_hint(REFUSED) } else { failure }
    })?;
    // `DumpMessage` is not a loss here: only a refusal has a message, and this dump succeeded.
    let lost = outcome.lost_features.iter().filter(|feature| *feature != LostFeature::DumpMessage);
    let lost: Vec<String> = lost.map(|feature| feature.to_string()).collect();
    if !globals.json {
        lost.iter().for_each(|feature| globals.note(feature));
    }
    let path = path_here(path, args.target.target().process_id());
    let bytes = fs::metadata(&path).ok().map(|file| file.len());
    if bytes.is_none() && !is_template(&path) {
        globals.note("the file does not exist here: the target has another file system, or did not write it");
    }
    let size = bytes.map(|bytes| format!("{}, ", DecimalBytes(bytes))).unwrap_or_default();
    let command = name_of(outcome.command);
    let sentence = format!("Wrote {type_name} dump: {} ({size}{command})", printable(&path));
    let object = WrittenDump { file: &path, dump_type: type_name, bytes, command: &command, lost };
    done(globals, &sentence, &object)?;
    wire_log.check()
}

/// Returns the path by which the tool reaches the file that the target wrote. A target in a container has another file
/// system, which Linux shows as the root of the process.
fn path_here(path: String, process_id: Option<u32>) -> String {
    let Some(process_id) = process_id.filter(|_| !Path::new(&path).exists()) else { return path };
    let through = format!("/proc/{process_id}/root{path}");
    if Path::new(&through).exists() { through } else { path }
}

/// Whether the dump writer replaces a part of the path.
fn is_template(path: &str) -> bool {
    path.contains('%')
}

/// Shows the elapsed time and the size of the file, if standard error is a terminal.
fn progress(path: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, narrow_terminal::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} Writing the dump: {elapsed}{size}") {
        let path = path.to_owned();
        bar.set_style(style.with_key("size", move |_: &ProgressState, out: &mut dyn fmt::Write| {
            if let Ok(file) = fs::metadata(&path) {
                // An error only leaves the size out of the line.
                let _ = write!(out, ", {}", DecimalBytes(file.len()));
            }
        }));
    }
    narrow_terminal::draw_steadily(&bar);
    bar
}

/// Returns the absolute path, because the target has a current directory of its own.
fn absolute(file: &str) -> Result<String, Failure> {
    if file.is_empty() || file == "-" {
        let message = format!("{file:?} is not a file name: the target writes the dump, not this command");
        return Err(Failure::usage(message));
    }
    if file.starts_with('/') {
        return Ok(file.to_owned());
    }
    let directory = env::current_dir().map_err(|e| Failure::io("there is no current directory", &e))?;
    let path = directory.join(file).into_os_string().into_string();
    path.map_err(|path| Failure::usage(format!("{} is not UTF-8", path.to_string_lossy())))
}
