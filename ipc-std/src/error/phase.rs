//! What a call was doing when it failed.
use core::fmt;

use ipc_proto::{Message, SessionPhase, SessionTimeout};

/// The part of a call in which it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Connecting to the runtime.
    Connecting,
    /// Sending the command.
    Sending,
    /// Waiting for the first byte of the response.
    AwaitingAnswer,
    /// Receiving the 20 bytes that every response begins with.
    ReceivingHeader,
    /// Receiving the remaining bytes of the response.
    ReceivingAnswer,
    /// Receiving the data that follows the response.
    ReceivingContinuation,
    /// Reading a trace.
    ReadingTrace,
    /// Reading a trace to its end after it was stopped.
    StoppingTrace {
        /// Bytes received since the stop. With 0 the runtime has stalled, otherwise it needed more time.
        drained: u64,
    },
    /// Waiting for a runtime to connect to the port of a monitor again.
    AwaitingRuntime,
}

impl Phase {
    /// Returns the phase in which a Stop did not end in time. `connecting` is the phase of waiting for a connection.
    pub(crate) const fn of_stop(timeout: &SessionTimeout, connecting: Self) -> Self {
        match timeout.phase {
            SessionPhase::Connecting => connecting,
            SessionPhase::Sending => Self::Sending,
            SessionPhase::EndOfStream => Self::StoppingTrace { drained: timeout.drained },
        }
    }

    /// Returns the phase of an answer of which `received` bytes have arrived.
    #[must_use]
    pub const fn of_answer(received: u64) -> Self {
        const HEADER: u64 = Message::HEADER_LEN as u64;
        match received {
            0 => Self::AwaitingAnswer,
            1..HEADER => Self::ReceivingHeader,
            _ => Self::ReceivingAnswer,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StoppingTrace { drained } => {
                return write!(f, "reading the end of the trace, {drained} bytes after its stop");
            }
            Self::Connecting => "connecting",
            Self::Sending => "sending the command",
            Self::AwaitingAnswer => "waiting for the response",
            Self::ReceivingHeader => "receiving the header of the response",
            Self::ReceivingAnswer => "receiving the response",
            Self::ReceivingContinuation => "receiving the data that follows the response",
            Self::ReadingTrace => "reading the trace",
            Self::AwaitingRuntime => "waiting for the runtime to connect to the port",
        })
    }
}
