//! `CallContext`: the state of a call, from which its errors are made.
use core::time::Duration;
use std::io;

use ipc_proto::plan::FallbackError;
use ipc_proto::{Answer, Code, ProtocolError, ServerError, Session};

use super::error::Error;
use super::phase::Phase;
use crate::drive::{DriveError, is_closed, is_not_ready};

/// The state of a call, from which a failed step becomes an [`Error`]. For clients that drive the exchanges of
/// `ipc_proto` over a transport of another kind, as `ipc-async` does.
///
/// ```
/// use core::time::Duration;
/// use ipc_std::ipc_proto::{Command, ResumeRuntime};
/// use ipc_std::{CallContext, Phase};
///
/// let command = ResumeRuntime::CODE;
/// let context = CallContext { peer: "the router", command, sent: 20, received: 0, waited: Duration::from_secs(10) };
/// let error = context.io(std::io::ErrorKind::TimedOut.into(), Phase::AwaitingAnswer);
/// assert!(error.to_string().starts_with("the router: timed out after 10.0 s while waiting for the response"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// The name of the peer.
    pub peer: &'a str,
    /// The command.
    pub command: Code,
    /// Bytes sent on the connection.
    pub sent: u64,
    /// Bytes received on the connection.
    pub received: u64,
    /// The time since the call began.
    pub waited: Duration,
}

impl CallContext<'_> {
    /// Returns the error of a failed exchange. `receiving` is the phase of an exchange that failed while it received.
    #[must_use]
    pub fn drive(self, error: DriveError, receiving: Phase) -> Error {
        match error {
            DriveError::Send(e) => self.io(e, Phase::Sending),
            DriveError::Receive(e) => self.io(e, receiving),
            DriveError::Protocol(e) => self.protocol(e, receiving),
        }
    }

    /// Returns the error of an exchange that ended without its answer.
    #[must_use]
    pub fn protocol(self, source: ProtocolError, phase: Phase) -> Error {
        let Self { command, sent, received, .. } = self;
        let peer = self.peer.to_owned();
        match source {
            ProtocolError::Closed { .. } => Error::Gone { peer, phase, command, sent, received },
            // The stream violates the contract of `Read` or `Write`, so this is not an error of the peer.
            ProtocolError::Overrun { .. } => Error::Io { peer, phase, source: io::Error::other(source) },
            source => Error::Protocol { peer, command, source, first: Vec::new() },
        }
    }

    /// Returns the error of a plan that ended without an answer.
    #[must_use]
    pub fn fallback(self, error: FallbackError, phase: Phase) -> Error {
        match error {
            FallbackError::Encode(e) => e.into(),
            FallbackError::Protocol(e) => self.protocol(e, phase),
            _ => self.io(io::ErrorKind::TimedOut.into(), phase),
        }
    }

    /// Returns the error of a command that the peer refused.
    #[must_use]
    pub fn refused(self, refusal: &ServerError<'_>) -> Error {
        let message =
            refusal.message.map(|message| message.to_string()).filter(|message| !message.is_empty());
        Error::Refused {
            peer: self.peer.to_owned(),
            command: self.command,
            hresult: refusal.hresult,
            message,
        }
    }

    /// Returns the error of the answer to a Stop; `None` if the runtime has stopped the session.
    #[must_use]
    pub fn stop_answer(self, session: &Session) -> Option<Error> {
        match session.stop_answer() {
            Some(Ok(Answer::Ok(_))) => None,
            Some(Ok(Answer::Refused(error))) => Some(self.refused(&error)),
            Some(Err(e)) => Some(self.protocol(e, Phase::AwaitingAnswer)),
            None => Some(self.io(io::ErrorKind::TimedOut.into(), Phase::AwaitingAnswer)),
        }
    }

    /// Returns the error of a transport.
    #[must_use]
    pub fn io(self, source: io::Error, phase: Phase) -> Error {
        let Self { command, sent, received, waited: after, .. } = self;
        let peer = self.peer.to_owned();
        if is_not_ready(&source) {
            Error::Timeout { peer, phase, command: Some(command), after, sent, received }
        } else if is_closed(&source) {
            Error::Gone { peer, phase, command, sent, received }
        } else {
            Error::Io { peer, phase, source }
        }
    }
}
