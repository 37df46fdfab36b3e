//! Failures of commands: exit statuses, messages and their JSON.
use core::fmt;
use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind as UsageError;
use ipc_proto::{Code, CommandInfo, HResult};
use ipc_std::{Error, ErrorKind, Phase, is_shortage};
use serde::Serialize;

use super::globals::Globals;
use super::stderr::{json_to_stderr, to_stderr};
use crate::text::printable::printable;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    /// The protocol command that failed.
    command: Option<Code>,
    hresult: Option<HResult>,
    /// A step that may help.
    hint: Option<String>,
    /// Whether a later attempt can succeed: the system lacked descriptors, memory or threads, or the process accepted no
    /// connection.
    is_temporary: bool,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Io,
    Other,
    Usage,
    Danger,
    NotFound,
    NoListener,
    Permission,
    Timeout,
    Refused,
    Unsupported,
    Protocol,
    /// A trace of a version that cannot be read.
    UnsupportedVersion,
    Gone,
    Different,
    /// The thing that the user named, or the data to draw, does not exist.
    NothingFound,
}

impl Kind {
    /// Returns the name in JSON, and the exit status.
    const fn row(self) -> (&'static str, u8) {
        match self {
            Self::Io => ("io", 1),
            Self::Other => ("other", 1),
            Self::Usage => ("usage", 2),
            Self::Danger => ("danger", 2),
            Self::NotFound => ("not_found", 3),
            Self::NoListener => ("no_listener", 3),
            Self::Permission => ("permission", 3),
            Self::Timeout => ("timeout", 4),
            Self::Refused => ("refused", 5),
            Self::Unsupported => ("unsupported", 5),
            Self::Protocol => ("protocol", 6),
            Self::UnsupportedVersion => ("unsupported_version", 6),
            Self::Gone => ("gone", 7),
            Self::Different => ("different", 8),
            Self::NothingFound => ("nothing_found", 9),
        }
    }
}

impl From<ErrorKind> for Kind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::NoListener => Self::NoListener,
            ErrorKind::Permission => Self::Permission,
            ErrorKind::Timeout => Self::Timeout,
            ErrorKind::Refused => Self::Refused,
            ErrorKind::Unsupported => Self::Unsupported,
            ErrorKind::Protocol => Self::Protocol,
            // The arguments come from the command line.
            ErrorKind::Invalid => Self::Usage,
            ErrorKind::Gone => Self::Gone,
            ErrorKind::Io => Self::Io,
            _ => Self::Other,
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        let kind = e.kind().into();
        // The message of a runtime may have several lines.
        let failure = Self::new(kind, joined(&e.to_string()));
        let failure = match &e {
            // The messages of these errors already contain the advice.
            Error::InUse { .. } | Error::Spawn { .. } | Error::Left { .. } => failure.without_hint(),
            Error::Undiscovered(why) => failure
                .with_hint(format!("`dotnet-ipc find {}` shows each step of the search", why.process_id())),
            Error::Permission { denied, .. } => failure.with_hint(denied.advice()),
            Error::Listen { source, .. } if is_too_long(source) => failure.with_hint(SHORTER),
            _ => failure,
        };
        let is_temporary = match &e {
            Error::Io { source, .. } => is_shortage(source),
            Error::Timeout { phase: Phase::Connecting, .. } => true,
            _ => false,
        };
        let hint = e.hint().or(failure.hint);
        Self { command: e.command(), hresult: e.hresult(), hint, is_temporary, ..failure }
    }
}

/// Returns the advice for failures of this kind.
fn advice(kind: Kind) -> Option<String> {
    let advice = match kind {
        Kind::Usage => return Some(usage_hint()),
        Kind::Danger => "pass --force to send it anyway",
        Kind::NotFound => {
            "`dotnet-ipc ps --why` lists all processes and obstacles; --socket PATH reaches a socket that it does not find"
        }
        Kind::NoListener => "`dotnet-ipc clean` removes the sockets of processes that have ended",
        Kind::Timeout => {
            "if the process gets little processor time, writes a dump or is stopped, retry with a longer --timeout"
        }
        Kind::Protocol => {
            "check that this is the socket of a .NET runtime; --wire-log FILE records its messages"
        }
        Kind::Io => "check the path, free space and permissions",
        Kind::UnsupportedVersion => {
            "the program that recorded it may write version 4, or a newer dotnet-ipc may read it"
        }
        Kind::Gone => "check with `dotnet-ipc ps` whether the process still runs",
        // No advice fits all failures of these kinds. The message of `Permission` already contains its advice.
        Kind::Other
        | Kind::Refused
        | Kind::Unsupported
        | Kind::Different
        | Kind::NothingFound
        | Kind::Permission => return None,
    };
    Some(advice.to_owned())
}

/// The advice for a path that is too long.
const SHORTER: &str = "choose a shorter path: a name has at most 255 bytes, the path of a socket about 100";

/// Returns whether the error is about the length of a path.
fn is_too_long(e: &io::Error) -> bool {
    #[cfg(unix)]
    let code = rustix::io::Errno::NAMETOOLONG.raw_os_error();
    // ERROR_FILENAME_EXCED_RANGE.
    #[cfg(windows)]
    let code = 206;
    e.raw_os_error() == Some(code)
}

/// Names the help of the command on the command line, which is its first argument that is not an option.
fn usage_hint() -> String {
    let mut args = std::env::args_os().skip(1).filter_map(|arg| arg.into_string().ok());
    let command = args.find(|arg| !arg.starts_with('-')).filter(|arg| arg.chars().all(is_command_letter));
    match command {
        Some(command) => format!("run `dotnet-ipc {command} --help` for usage"),
        None => "run `dotnet-ipc --help` for usage".to_owned(),
    }
}

const fn is_command_letter(c: char) -> bool {
    c.is_ascii_lowercase() || c == '-'
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            command: None,
            hresult: None,
            hint: advice(kind),
            is_temporary: false,
        }
    }

    /// Returns the failure for a wrong command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Returns what failed, without the hint.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns an I/O failure: the action that failed, and the reason.
    pub(crate) fn io(action: impl fmt::Display, e: &io::Error) -> Self {
        let failure = Self::new(Kind::Io, format!("{action}: {e}"));
        let failure = Self { is_temporary: is_shortage(e), ..failure };
        if is_too_long(e) { failure.with_hint(SHORTER) } else { failure }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds a remark before the hint.
    pub(crate) fn with_more(self, more: &str) -> Self {
        let hint = self.hint.map(|hint| format!("{more}{hint}"));
        Self { hint: hint.or_else(|| Some(more.trim_end_matches("; ").to_owned())), ..self }
    }

    pub(crate) fn without_hint(self) -> Self {
        Self { hint: None, ..self }
    }

    /// Returns whether a later attempt can succeed.
    pub(crate) const fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn to_json(&self) -> FailureRow<'_> {
        FailureRow {
            error: &self.message,
            kind: self.kind.row().0,
            command: self.command.map(name_of),
            hresult: self.hresult.map(|hresult| hresult.to_string()),
            hresult_name: self.hresult.and_then(HResult::name),
            hint: self.hint.as_deref(),
        }
    }

    /// Writes the failure to standard error, and returns the exit status.
    pub(crate) fn report(&self, globals: &Globals) -> ExitCode {
        if globals.json {
            json_to_stderr(&self.to_json())
        } else {
            to_stderr(&format!("error: {self}"))
        }
        self.exit_code()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind.row().1)
    }
}

/// A failure as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct FailureRow<'f> {
    error: &'f str,
    kind: &'static str,
    command: Option<String>,
    hresult: Option<String>,
    hresult_name: Option<&'static str>,
    hint: Option<&'f str>,
}

/// The message and the hint, in one line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.message))?;
        // Some messages contain the hint already.
        match self.hint.as_ref().filter(|hint| !self.message.contains(*hint)) {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Returns a protocol command's name, or else its code.
pub(crate) fn name_of(code: Code) -> String {
    CommandInfo::find(code).map_or_else(|| code.to_string(), |row| row.name.to_owned())
}

/// Reports a command line that cannot be parsed, or shows the help or version that it requests.
pub(crate) fn report_usage(e: &clap::Error) -> ExitCode {
    // Clap returns no options with an error, so that --json is searched for.
    let json = std::env::args_os().any(|arg| arg == "--json");
    let globals = Globals { json, no_hints: true, map: false, cli: clap::Command::default };
    let missing_command = e.kind() == UsageError::DisplayHelpOnMissingArgumentOrSubcommand;
    if missing_command || !e.use_stderr() {
        return match e.print() {
            // If the reader closed the pipe, it wants no more.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Failure::io("cannot write to standard output", &e).report(&globals)
            }
            _ if missing_command => ExitCode::from(Kind::Usage.row().1),
            _ => ExitCode::SUCCESS,
        };
    }
    let failure = Failure::usage(one_line(&e.to_string()));
    let failure = match e.kind() {
        UsageError::InvalidSubcommand => failure.with_hint("run `dotnet-ipc --help` for usage"),
        _ => failure,
    };
    failure.report(&globals)
}

/// Joins lines into one.
fn joined(lines: &str) -> String {
    lines.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Joins the paragraphs of a clap error up to the usage or the advice at its end.
fn one_line(rendered: &str) -> String {
    let last =
        |paragraph: &&str| paragraph.starts_with("Usage:") || paragraph.starts_with("For more information");
    let paragraphs = rendered.split("\n\n").take_while(|paragraph| !last(paragraph));
    let line = paragraphs.map(joined).collect::<Vec<_>>().join("; ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
