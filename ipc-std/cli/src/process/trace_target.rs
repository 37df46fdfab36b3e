//! The target of a command that reads either a trace or a process.
use core::fmt;
use std::path::{Path, PathBuf};

use super::target::{Target, word};
use crate::args::socket_path;
use crate::input::source;
use crate::run::{Failure, Kind};

/// The trace or the process that a command reads.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceTargetArgs {
    /// A process ID, or a trace; `-` for standard input
    #[arg(value_name = "PID|FILE", required_unless_present_any = ["name", "socket"], conflicts_with_all = ["name", "socket"])]
    target: Option<PathBuf>,
    /// Name of the process, or its unique beginning, instead of a process ID
    #[arg(long, value_name = "NAME", conflicts_with = "socket")]
    name: Option<String>,
    /// Path of the runtime's diagnostic socket, instead of a process ID
    #[arg(long, value_name = "PATH", value_parser = socket_path::parser())]
    socket: Option<PathBuf>,
    /// Read PID|FILE as a file even if it is a number
    #[arg(long, conflicts_with_all = ["name", "socket"])]
    file: bool,
}

/// The trace or the process that a command reads. `Display` returns its name for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TraceTarget<'a> {
    /// The path of a trace; `-` is standard input.
    File(&'a Path),
    /// A process to record.
    Process(Target<'a>),
}

impl TraceTargetArgs {
    /// Returns the target: a number is a process ID without `--file`, and anything else a file.
    ///
    /// Fails for a file if `is_about_sessions`: the command line then has options that apply only to a process.
    pub(crate) fn target(&self, is_about_sessions: bool) -> Result<TraceTarget<'_>, Failure> {
        let process = |process_id| {
            TraceTarget::Process(Target::new(self.socket.as_deref(), self.name.as_deref(), process_id))
        };
        let Some(target) = self.target.as_deref() else { return Ok(process(0)) };
        if let Some(id) = target.to_str().filter(|_| !self.file).map(process_id).transpose()?.flatten() {
            return Ok(process(id));
        }
        if is_about_sessions {
            return Err(options_do_not_apply(target).with_hint("use them with a process ID or --socket"));
        }
        Ok(TraceTarget::File(target))
    }
}

impl TraceTarget<'_> {
    /// Returns the target as the argument of another command.
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::File(path) => word(&path.to_string_lossy()),
            Self::Process(target) => target.argument(),
        }
    }
}

/// Returns the process ID in an operand; `None` if the operand is not a number, and so names a file.
pub(crate) fn process_id(operand: &str) -> Result<Option<u32>, Failure> {
    if operand.is_empty() || !operand.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let not_found = |_| Failure::new(Kind::NotFound, format!("there is no process {operand}"));
    operand.parse().map(Some).map_err(not_found)
}

/// Returns the failure for a file together with options that apply only to a process.
pub(crate) fn options_do_not_apply(file: &Path) -> Failure {
    Failure::usage(format!("{} is a file, so options for sessions do not apply", file.display()))
}

impl fmt::Display for TraceTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => source::name(path).fmt(f),
            Self::Process(Target::ProcessId(process_id)) => write!(f, "process {process_id}"),
            Self::Process(Target::Name(name)) => write!(f, "process {name}"),
            Self::Process(Target::Socket(path)) => path.display().fmt(f),
        }
    }
}
