//! The error of every call: its variants, their sentences and kinds.
use core::fmt;
use core::time::Duration;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use ipc_discover::{Denied, ErrorKind, Reason, SearchError};
use ipc_proto::plan::{self, Explanation};
use ipc_proto::{
    Code, CommandInfo, DecodeErrorKind, EncodeError, FieldPath, HResult, InvalidValue, ProtocolError,
    Violation,
};

use super::phase::Phase;

/// The reason why a call failed, as one sentence that names the peer and what to do.
///
/// ```
/// use ipc_std::{Client, Error, ErrorKind};
///
/// let error = Client::at("/tmp/no-such-socket").process_info().unwrap_err();
/// assert!(matches!(&error, Error::NoSuchPath { .. }));
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime of a process was not found or cannot be used.
    #[error(transparent)]
    Undiscovered(#[from] SearchError),
    /// There is no socket at the path.
    #[error("there is no socket at {}", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// No process listens at the socket.
    #[error("no process listens at {}: the runtime that made the socket has ended", path.display())]
    NoListener {
        /// The path.
        path: PathBuf,
    },
    /// The operating system denied access to the socket.
    #[error("no permission to connect to {}: {denied}", path.display())]
    Permission {
        /// The path.
        path: PathBuf,
        /// The reason.
        denied: Denied,
    },
    /// The path is too long for a socket, and this system has no shorter path to the socket.
    #[error("the path is longer than the {limit} bytes that a socket can have: {}", path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// The longest possible path, in bytes.
        limit: usize,
    },
    /// Another process than the expected one listens at the socket. Nothing was sent to that process.
    #[error("{peer} cannot be used: {reason}")]
    Impostor {
        /// The name of the process that is expected to listen.
        peer: String,
        /// [`Reason::Impostor`] or [`Reason::Inherited`].
        reason: Box<Reason>,
    },
    /// A deadline passed.
    #[error(
        "{peer}: timed out after {:.1} s while {phase} ({}{sent} bytes sent, {received} received)",
        after.as_secs_f64(),
        CommandPrefix(*command)
    )]
    Timeout {
        /// The name of the peer.
        peer: String,
        /// The phase of the call.
        phase: Phase,
        /// The command, unless the deadline passed before it was chosen.
        command: Option<Code>,
        /// The time since the call began.
        after: Duration,
        /// Bytes sent on the connection.
        sent: u64,
        /// Bytes received on the connection.
        received: u64,
    },
    /// The peer closed the connection before the command was finished.
    #[error("{peer} went away while {phase} ({}, {sent} bytes sent, {received} received)", CommandName(*command))]
    Gone {
        /// The name of the peer.
        peer: String,
        /// The phase of the call.
        phase: Phase,
        /// The command.
        command: Code,
        /// Bytes sent on the connection.
        sent: u64,
        /// Bytes received on the connection.
        received: u64,
    },
    /// Another thread cancelled the session.
    #[error("{peer}: the session was cancelled")]
    Cancelled {
        /// The name of the peer.
        peer: String,
    },
    /// The runtime has left the port, or never connected to it.
    #[error("{peer} is not connected to the port")]
    Left {
        /// The name of the peer.
        peer: String,
    },
    /// Another process listens at the port's path.
    #[error("{} is in use: stop the process that listens there or choose another path", path.display())]
    InUse {
        /// The port's path.
        path: PathBuf,
    },
    /// Listening at a port failed.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// The port's path.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}", program.to_string_lossy())]
    Spawn {
        /// The program.
        program: OsString,
        /// The operating system's error.
        source: io::Error,
    },
    /// The peer violated the protocol.
    #[error("{peer} violates the protocol in its response to {}: {source}{}", CommandName(*command), Quote(first))]
    Protocol {
        /// The name of the peer.
        peer: String,
        /// The command.
        command: Code,
        /// The violation.
        source: ProtocolError,
        /// The first bytes of an answer that does not begin as a message does; otherwise empty. A shell that greets
        /// its user is known by them.
        first: Vec<u8>,
    },
    /// The runtime refused the command.
    #[error("{peer} refuses {}: {}", CommandName(*command), Refusal(*command, *hresult, message.as_deref()))]
    Refused {
        /// The name of the peer.
        peer: String,
        /// The command.
        command: Code,
        /// The reason as a code.
        hresult: HResult,
        /// The reason as text, which only some commands return.
        message: Option<String>,
    },
    /// The command has a value that runtimes refuse, or that ends the process of some runtimes. The command was not
    /// sent.
    #[error("{} is not sent: {place}: {violation}", CommandName(*command))]
    Invalid {
        /// The command.
        command: Code,
        /// The rule that the value breaks.
        violation: Violation,
        /// The path of the value in the command: for example `providers[3].level`.
        place: FieldPath,
    },
    /// The session of counters cannot be planned. Nothing was sent.
    #[cfg(feature = "counters")]
    #[error("{0}")]
    CounterPlan(#[from] nettrace_analysis::counters::PlanError),
    /// The command does not fit a message.
    #[error("the command cannot be sent: {0}")]
    Encode(#[from] EncodeError),
    /// The operating system returned an error.
    #[error("{peer}: {phase} failed: {source}")]
    Io {
        /// The name of the peer.
        peer: String,
        /// The phase of the call.
        phase: Phase,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Error {
    /// Returns the error of a command with a value that runtimes refuse, or that ends the process of some runtimes.
    #[must_use]
    pub fn invalid(command: Code, value: InvalidValue) -> Self {
        let InvalidValue { violation, place } = value;
        Self::Invalid { command, violation, place }
    }

    /// Adds the first bytes of the answer to the error of a peer that does not answer with a message.
    #[must_use]
    pub fn quoting(mut self, answer: &[u8]) -> Self {
        if let Self::Protocol { source: ProtocolError::Decode(e), first, .. } = &mut self {
            if e.kind == DecodeErrorKind::BadMagic {
                first.extend_from_slice(answer);
            }
        }
        self
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Undiscovered(e) => e.kind(),
            Self::NoSuchPath { .. } | Self::Impostor { .. } | Self::PathTooLong { .. } => ErrorKind::NotFound,
            Self::NoListener { .. } => ErrorKind::NoListener,
            Self::Permission { .. } => ErrorKind::Permission,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Gone { .. } | Self::Left { .. } => ErrorKind::Gone,
            Self::Protocol { .. } => ErrorKind::Protocol,
            Self::Refused { hresult: HResult::UNKNOWN_COMMAND, .. } => ErrorKind::Unsupported,
            Self::Refused { .. } => ErrorKind::Refused,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::Invalid { .. } => ErrorKind::Invalid,
            #[cfg(feature = "counters")]
            Self::CounterPlan(_) => ErrorKind::Invalid,
            Self::Encode(_)
            | Self::Io { .. }
            | Self::InUse { .. }
            | Self::Listen { .. }
            | Self::Spawn { .. } => ErrorKind::Io,
        }
    }

    /// Returns the command, unless the call failed before a command was chosen.
    #[must_use]
    pub const fn command(&self) -> Option<Code> {
        match self {
            Self::Gone { command, .. }
            | Self::Protocol { command, .. }
            | Self::Refused { command, .. }
            | Self::Invalid { command, .. } => Some(*command),
            Self::Timeout { command, .. } => *command,
            _ => None,
        }
    }

    /// Returns the code with which the runtime refused the command.
    #[must_use]
    pub const fn hresult(&self) -> Option<HResult> {
        match self {
            Self::Refused { hresult, .. } => Some(*hresult),
            _ => None,
        }
    }

    /// Returns an explanation of a refusal: see [`plan::explain`].
    #[must_use]
    pub fn explanation(&self) -> Option<Explanation> {
        match self {
            Self::Refused { command, hresult, .. } => plan::explain(*command, *hresult),
            _ => None,
        }
    }

    /// Returns the sentence of the [`explanation`](Self::explanation).
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.explanation().map(|explanation| explanation.to_string())
    }
}

struct CommandName(Code);
impl fmt::Display for CommandName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CommandInfo::find(self.0) {
            Some(row) => f.write_str(row.name),
            None => write!(f, "command {}", self.0),
        }
    }
}

/// The name of the command and a comma; nothing without a command.
struct CommandPrefix(Option<Code>);
impl fmt::Display for CommandPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |command| write!(f, "{}, ", CommandName(command)))
    }
}

/// A colon and the bytes as text; nothing without bytes.
struct Quote<'a>(&'a [u8]);
impl fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": \"{}\"", self.0.escape_ascii()) }
    }
}

struct Refusal<'a>(Code, HResult, Option<&'a str>);
impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(command, hresult, message) = *self;
        match (message, plan::explain(command, hresult)) {
            (Some(message), _) => write!(f, "{message} ({hresult:?})"),
            (None, Some(hint)) => write!(f, "{hint} ({hresult:?})"),
            (None, None) => write!(f, "{hresult:?}"),
        }
    }
}
