use core::fmt;
use core::time::Duration;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use ipc_proto::{Code, CommandInfo, EncodeError, HResult, ProtocolError, Violation};

use crate::discover::{Denied, Why};
use crate::drive::is_closed;
use crate::{Credentials, DriveError};

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Connecting to the runtime.
    Connecting,
    /// Sending the command.
    Sending,
    /// Waiting for the first byte of the answer.
    AwaitingAnswer,
    /// Receiving the 20 bytes that an answer begins with.
    ReceivingHeader,
    /// Receiving the rest of the answer.
    ReceivingAnswer,
    /// Receiving what follows the answer.
    ReceivingContinuation,
    /// Reading a trace.
    ReadingTrace,
    /// Reading a trace to its end after it was asked to stop.
    StoppingTrace {
        /// Bytes that came after that: 0 tells a runtime that stands still from one that was not given enough time.
        drained: u64,
    },
    /// Waiting for a runtime to connect to its port again.
    AwaitingRuntime,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StoppingTrace { drained: 0 } => {
                "waiting for the end of the trace, of which nothing came since its stop"
            }
            Self::StoppingTrace { drained } => {
                return write!(
                    f,
                    "waiting for the end of the trace, of which {drained} bytes came since its stop"
                );
            }
            Self::Connecting => "connecting",
            Self::Sending => "sending the command",
            Self::AwaitingAnswer => "waiting for an answer",
            Self::ReceivingHeader => "receiving the header of the answer",
            Self::ReceivingAnswer => "receiving the answer",
            Self::ReceivingContinuation => "receiving what follows the answer",
            Self::ReadingTrace => "reading the trace",
            Self::AwaitingRuntime => "waiting for it to connect to its port",
        })
    }
}

/// Why a call failed, in one sentence, for whoever has to do something about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime of a process is not found, or is not to be asked.
    #[error(transparent)]
    Undiscovered(#[from] Why),
    /// There is nothing at the path.
    #[error("there is no socket at {}", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// The socket's owner is gone.
    #[error("nobody listens at {}: the runtime that made it is gone", path.display())]
    NoListener {
        /// The path.
        path: PathBuf,
    },
    /// We may not connect.
    #[error("no permission to connect to {}: {denied}", path.display())]
    Permission {
        /// The path.
        path: PathBuf,
        /// Whose it is and who we are.
        denied: Denied,
    },
    /// The path is too long for a socket's, and this system has no way around that.
    #[error("the path is longer than the {limit} bytes of a socket's: {}", path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// The longest that would do, in bytes.
        limit: usize,
    },
    /// Somebody else listens at the socket of a process. Nothing was sent to them.
    #[error(
        "somebody else listens at the socket of process {process_id}, {}: {peer}; nothing was sent to them",
        path.display()
    )]
    Impostor {
        /// The process.
        process_id: u32,
        /// The path.
        path: PathBuf,
        /// Who it is.
        peer: Credentials,
    },
    /// A deadline passed.
    #[error(
        "{peer}: timed out after {:.1} s while {phase} ({}{sent} bytes sent, {received} received)",
        after.as_secs_f64(),
        About(*command)
    )]
    Timeout {
        /// Who was spoken to.
        peer: String,
        /// What was being done.
        phase: Phase,
        /// What was asked, if it came to that.
        command: Option<Code>,
        /// How long was waited in all.
        after: Duration,
        /// Bytes sent on the connection.
        sent: u64,
        /// Bytes received on it.
        received: u64,
    },
    /// The peer went away in the middle.
    #[error("{peer} went away while {phase} ({}, {sent} bytes sent, {received} received)", CommandName(*command))]
    Gone {
        /// Who was spoken to.
        peer: String,
        /// What was being done.
        phase: Phase,
        /// What was asked.
        command: Code,
        /// Bytes sent on the connection.
        sent: u64,
        /// Bytes received on it.
        received: u64,
    },
    /// The runtime starts no session, though nothing is wrong with what was asked: mostly because it has 64 already, and
    /// no more at a time. Sessions that nobody stopped and whose tools are gone may be among them.
    #[error("{peer} starts no session: mostly because 64 are open already, stop one of them ({})", CommandName(*command))]
    TooManySessions {
        /// Who was spoken to.
        peer: String,
        /// What was asked.
        command: Code,
    },
    /// Somebody else gave it up.
    #[error("{peer}: the session was given up")]
    Cancelled {
        /// Who was spoken to.
        peer: String,
    },
    /// The runtime has left the port, or was never there.
    #[error("{peer} is not at the port (any more)")]
    Left {
        /// Who was to be spoken to.
        peer: String,
    },
    /// Somebody has the port already.
    #[error("somebody listens at {} already: end them, or take another path", path.display())]
    InUse {
        /// The port's path.
        path: PathBuf,
    },
    /// The port cannot be had, or fails.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// The port's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A command cannot be started.
    #[error("cannot start {}: {source}", program.to_string_lossy())]
    Spawn {
        /// The program.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The peer did not keep to the protocol.
    #[error("{peer} breaks the protocol in its answer to {}: {source}", CommandName(*command))]
    Protocol {
        /// Who was spoken to.
        peer: String,
        /// What was asked.
        command: Code,
        /// What is wrong.
        source: ProtocolError,
    },
    /// The runtime answered no.
    #[error("{peer} refuses {}: {}", CommandName(*command), Refusal(*command, *hresult, message.as_deref()))]
    Refused {
        /// Who was spoken to.
        peer: String,
        /// What was asked.
        command: Code,
        /// Its reason.
        hresult: HResult,
        /// Its reason in words, from the commands that give some.
        message: Option<String>,
    },
    /// What was to be sent has a value that runtimes refuse, and some die of; it was not sent.
    #[error("{} is not sent: {violation}", CommandName(*command))]
    Invalid {
        /// What was to be asked.
        command: Code,
        /// What is wrong with it.
        violation: Violation,
    },
    /// What was to be sent fits no message.
    #[error("the command cannot be sent: {0}")]
    Encode(#[from] EncodeError),
    /// The operating system failed.
    #[error("{peer}: {phase} failed: {source}")]
    Io {
        /// Who was spoken to.
        peer: String,
        /// What was being done.
        phase: Phase,
        /// How it failed.
        source: io::Error,
    },
}

/// Kinds of [`Error`]; the tool's exit status depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such process, socket or path.
    NotFound,
    /// A socket nobody listens at.
    NoListener,
    /// A socket that we may not open.
    Permission,
    /// A deadline passed.
    Timeout,
    /// The runtime answered no.
    Refused,
    /// The runtime does not know the command.
    Unsupported,
    /// The peer broke the protocol.
    Protocol,
    /// The runtime went away in the middle.
    Gone,
    /// A value that runtimes refuse; nothing was sent.
    Invalid,
    /// Somebody here gave it up.
    Cancelled,
    /// Local trouble.
    Io,
}

impl Error {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Undiscovered(why) => why.kind(),
            Self::NoSuchPath { .. } | Self::Impostor { .. } | Self::PathTooLong { .. } => ErrorKind::NotFound,
            Self::NoListener { .. } => ErrorKind::NoListener,
            Self::Permission { .. } => ErrorKind::Permission,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Gone { .. } | Self::Left { .. } => ErrorKind::Gone,
            Self::Protocol { .. } => ErrorKind::Protocol,
            Self::Refused { hresult: HResult::UNKNOWN_COMMAND, .. } => ErrorKind::Unsupported,
            Self::Refused { .. } | Self::TooManySessions { .. } => ErrorKind::Refused,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Encode(_)
            | Self::Io { .. }
            | Self::InUse { .. }
            | Self::Listen { .. }
            | Self::Spawn { .. } => ErrorKind::Io,
        }
    }

    /// What was asked, if it came to that.
    #[must_use]
    pub const fn command(&self) -> Option<Code> {
        match self {
            Self::Gone { command, .. }
            | Self::Protocol { command, .. }
            | Self::Refused { command, .. }
            | Self::TooManySessions { command, .. }
            | Self::Invalid { command, .. } => Some(*command),
            Self::Timeout { command, .. } => *command,
            _ => None,
        }
    }

    /// The reason of a refusal.
    #[must_use]
    pub const fn hresult(&self) -> Option<HResult> {
        match self {
            Self::Refused { hresult, .. } => Some(*hresult),
            Self::TooManySessions { .. } => Some(HResult::FAIL),
            _ => None,
        }
    }

    /// What to make of a refusal, in words.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { command, hresult, .. } => hint(*command, *hresult),
            _ => None,
        }
    }
}

/// What to make of a refusal: for an unknown command, which version knows it.
fn hint(command: Code, hresult: HResult) -> Option<String> {
    let row = CommandInfo::find(command);
    match (hresult, row) {
        (HResult::UNKNOWN_COMMAND, Some(row)) if row.since <= 5 => Some(format!(
            "the runtime is older than .NET {}; .NET Core 3 knows tracing, dumps and profilers, nothing else",
            row.since
        )),
        (HResult::UNKNOWN_COMMAND, Some(row)) => {
            Some(format!("the runtime is older than .NET {}", row.since))
        }
        _ => hresult.hint().map(str::to_owned),
    }
}

/// Paths of which something is in none.
pub(crate) struct Paths<'a>(pub(crate) &'a [PathBuf]);
impl fmt::Display for Paths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, path) in self.0.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { " or " }, path.display())?;
        }
        Ok(())
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

struct About(Option<Code>);
impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |command| write!(f, "{}, ", CommandName(command)))
    }
}

struct Refusal<'a>(Code, HResult, Option<&'a str>);
impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(command, hresult, message) = *self;
        match (message, hint(command, hresult)) {
            (Some(message), _) => write!(f, "{message} ({hresult:?})"),
            (None, Some(hint)) => write!(f, "{hint} ({hresult:?})"),
            (None, None) => write!(f, "{hresult:?}"),
        }
    }
}

/// Who is spoken to, about what, and how far it has come: what turns a failed step into an [`Error`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) peer: &'a str,
    pub(crate) command: Code,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) waited: Duration,
}

impl Context<'_> {
    /// From a failed exchange; `receiving` is what was being done if it was not sending.
    pub(crate) fn drive(self, error: DriveError, receiving: Phase) -> Error {
        match error {
            DriveError::Send(e) => self.io(e, Phase::Sending),
            DriveError::Receive(e) => self.io(e, receiving),
            DriveError::Protocol(e) => self.protocol(e, receiving),
        }
    }

    pub(crate) fn protocol(self, source: ProtocolError, phase: Phase) -> Error {
        let Self { command, sent, received, .. } = self;
        let peer = self.peer.to_owned();
        match source {
            ProtocolError::Closed { .. } => Error::Gone { peer, phase, command, sent, received },
            source => Error::Protocol { peer, command, source },
        }
    }

    pub(crate) fn io(self, source: io::Error, phase: Phase) -> Error {
        let Self { command, sent, received, waited: after, .. } = self;
        let peer = self.peer.to_owned();
        match source.kind() {
            io::ErrorKind::TimedOut => {
                Error::Timeout { peer, phase, command: Some(command), after, sent, received }
            }
            _ if is_closed(&source) => Error::Gone { peer, phase, command, sent, received },
            _ => Error::Io { peer, phase, source },
        }
    }
}
