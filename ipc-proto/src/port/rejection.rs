//! [`Rejection`]: the reason why a monitor dropped a connection.
use core::fmt;

use crate::{Advertise, ProtocolError};

/// Why a monitor dropped a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// The [`Advertise`] frame did not arrive before the deadline.
    TooLate {
        /// The number of bytes that arrived.
        received: usize,
    },
    /// The bytes are not an [`Advertise`] frame, or the peer closed the connection before the end of the frame.
    Protocol(ProtocolError),
    /// The peer sent data after the frame, before a command.
    Unsolicited,
    /// There were too many connections without a frame, or no free descriptor, and this connection was the oldest.
    Crowded,
}

impl Rejection {
    /// Returns whether the peer closed the connection without sending a byte. Such a connection is harmless: for
    /// example, another monitor has checked whether a process listens at the address.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        matches!(self, Self::Protocol(ProtocolError::Closed { received: 0 }))
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = Advertise::LEN;
        match self {
            Self::TooLate { received } => {
                write!(f, "sent {received} of the {len} bytes of its advertise frame before the deadline")
            }
            Self::Protocol(ProtocolError::Closed { received }) => {
                write!(f, "closed the connection after {received} of the {len} bytes of its advertise frame")
            }
            Self::Protocol(error) => write!(f, "is not a .NET runtime: {error}"),
            Self::Unsolicited => f.write_str("sent data before it received a command"),
            Self::Crowded => {
                f.write_str("was the oldest of too many connections that had not sent their advertise frame")
            }
        }
    }
}
