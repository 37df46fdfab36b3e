//! Why a command failed: its exit status, its sentence, and its JSON.
use core::fmt;
use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind as UsageError;
use ipc_proto::{Code, CommandInfo, HResult};
use ipc_std::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::output::{Output, json_to_stderr, printable, to_stderr};

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    /// The command that was refused or answered badly.
    command: Option<Code>,
    hresult: Option<HResult>,
    /// What to do next.
    hint: Option<String>,
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
    Gone,
    Different,
}

impl Kind {
    /// Its name in JSON, and the exit status.
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
            Self::Gone => ("gone", 7),
            Self::Different => ("different", 8),
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
            // Whoever gave the arguments can give better ones.
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
        // A runtime's own words may have several lines.
        let failure = Self::new(kind, joined(&e.to_string()));
        let failure = match &e {
            // What these say is all that can be said.
            Error::InUse { .. } | Error::Spawn { .. } | Error::Left { .. } => failure.without_hint(),
            Error::Undiscovered(why) => failure
                .with_hint(format!("`dotnet-ipc find {}` shows each step of the search", why.process_id())),
            Error::Permission { denied, .. } => failure.with_hint(denied.advice()),
            _ => failure,
        };
        Self { command: e.command(), hresult: e.hresult(), hint: e.hint().or(failure.hint), ..failure }
    }
}

/// What to do about a failure of this kind.
const fn advice(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Usage => Some("--help shows what there is"),
        Kind::Danger => Some("--force sends it all the same"),
        Kind::NotFound => {
            Some("`dotnet-ipc ps --why` lists all there is, --socket PATH reaches what it does not see")
        }
        Kind::NoListener => Some("`dotnet-ipc clean` removes what is left of runtimes that are gone"),
        // What says that, says who to be.
        Kind::Permission => None,
        Kind::Timeout => {
            Some("if it is only busy, with a dump or in a debugger, try again with a longer --timeout")
        }
        Kind::Protocol => Some("is it the socket of a .NET runtime? --wire-log FILE keeps what it sent"),
        Kind::Io => Some("see that the path is right, that there is room, and that you may"),
        Kind::Gone => Some("see with `dotnet-ipc ps` whether the program still runs"),
        _ => None,
    }
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let hint = advice(kind).map(str::to_owned);
        Self { kind, message: message.into(), command: None, hresult: None, hint }
    }

    /// Local trouble: what could not be done, and why.
    pub(crate) fn io(what: impl fmt::Display, e: &io::Error) -> Self {
        Self::new(Kind::Io, format!("{what}: {e}"))
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// With more to know before the hint.
    pub(crate) fn with_more(self, more: &str) -> Self {
        let hint = self.hint.map(|hint| format!("{more}{hint}"));
        Self { hint: hint.or_else(|| Some(more.trim_end_matches("; ").to_owned())), ..self }
    }

    pub(crate) fn without_hint(self) -> Self {
        Self { hint: None, ..self }
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// As the tool writes it in JSON.
    pub(crate) fn to_json(&self) -> Value {
        let command = self.command.map(name_of);
        let hresult = self.hresult.map(|hresult| hresult.to_string());
        let hresult_name = self.hresult.and_then(HResult::name);
        json!({
            "error": self.message, "kind": self.kind.row().0, "command": command,
            "hresult": hresult, "hresult_name": hresult_name, "hint": self.hint,
        })
    }

    /// Tells it on standard error, and the shell by the exit status.
    pub(crate) fn report(&self, output: &Output) -> ExitCode {
        if output.json {
            json_to_stderr(&self.to_json())
        } else {
            to_stderr(&format!("error: {self}"))
        }
        ExitCode::from(self.kind.row().1)
    }
}

/// What went wrong, and what to do about it, in a line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.message))?;
        // Some messages hold their advice already.
        match self.hint.as_ref().filter(|hint| !self.message.contains(*hint)) {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// A command's name in the table of commands, or else its code.
pub(crate) fn name_of(code: Code) -> String {
    CommandInfo::find(code).map_or_else(|| code.to_string(), |row| row.name.to_owned())
}

/// Tells that the command line cannot be understood, or shows the help or version that it asks for.
pub(crate) fn report_usage(e: &clap::Error) -> ExitCode {
    let whole_help = e.kind() == UsageError::DisplayHelpOnMissingArgumentOrSubcommand;
    if whole_help || !e.use_stderr() {
        // Whoever closed the output has seen enough of the help.
        let _ = e.print();
        return ExitCode::from(if whole_help { Kind::Usage.row().1 } else { 0 });
    }
    // The command line could not be parsed, so this is looked for as it stands.
    Failure::new(Kind::Usage, one_line(&e.to_string()))
        .report(&Output { json: std::env::args_os().any(|arg| arg == "--json") })
}

/// Lines as one.
fn joined(lines: &str) -> String {
    lines.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// What clap says in several paragraphs, up to the usage or the advice that ends it.
fn one_line(rendered: &str) -> String {
    let last =
        |paragraph: &&str| paragraph.starts_with("Usage:") || paragraph.starts_with("For more information");
    let paragraphs = rendered.split("\n\n").take_while(|paragraph| !last(paragraph));
    let line = paragraphs.map(joined).collect::<Vec<_>>().join("; ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
