//! Errors of decoding ([`DecodeError`]), encoding ([`EncodeError`]) and exchanges ([`ProtocolError`]).
use core::fmt;

use crate::wire::{BufferTooSmall, WireError, WireErrorKind};
use crate::{Code, HResult};

/// An error in the bytes of a message, and its offset. It converts into the [`HResult`] with which a server refuses the
/// message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// The kind of error.
    pub kind: DecodeErrorKind,
    /// The byte offset from the start of the decoded input.
    pub offset: usize,
}

/// A kind of error in the bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A field extends past the end of the bytes that contain it.
    UnexpectedEnd,
    /// The first bytes are not `DOTNET_IPC_V1` and a NUL.
    BadMagic,
    /// The first bytes of an advertise frame are not `ADVR_V1` and a NUL.
    BadAdvertise,
    /// The size of the message is less than 20.
    BadSize,
    /// The last unit of a string is not NUL.
    Unterminated,
    /// A count is too large for the remaining bytes.
    CountTooLarge,
    /// Bytes follow a value that must be the last one.
    TrailingBytes,
    /// The message is longer than the buffer for it.
    TooLong,
    /// A field has a value that its type does not allow.
    BadValue,
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnexpectedEnd => return WireErrorKind::UnexpectedEnd.fmt(f),
            Self::Unterminated => return WireErrorKind::Unterminated.fmt(f),
            Self::CountTooLarge => return WireErrorKind::CountTooLarge.fmt(f),
            Self::TrailingBytes => return WireErrorKind::TrailingBytes.fmt(f),
            Self::BadValue => return WireErrorKind::BadValue.fmt(f),
            Self::BadMagic => "not the magic DOTNET_IPC_V1",
            Self::BadAdvertise => "not the magic ADVR_V1",
            Self::BadSize => "a size field too small for its structure",
            Self::TooLong => "a message longer than the buffer for it",
        })
    }
}
impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.kind, self.offset)
    }
}
impl core::error::Error for DecodeError {}
impl From<WireError> for DecodeError {
    fn from(e: WireError) -> Self {
        let kind = match e.kind {
            WireErrorKind::UnexpectedEnd => DecodeErrorKind::UnexpectedEnd,
            WireErrorKind::Unterminated => DecodeErrorKind::Unterminated,
            WireErrorKind::CountTooLarge => DecodeErrorKind::CountTooLarge,
            WireErrorKind::TrailingBytes => DecodeErrorKind::TrailingBytes,
            WireErrorKind::BadValue => DecodeErrorKind::BadValue,
        };
        Self { kind, offset: e.offset }
    }
}

/// Returns the code with which a runtime refuses malformed bytes: [`UNKNOWN_MAGIC`](HResult::UNKNOWN_MAGIC) for
/// [`BadMagic`](DecodeErrorKind::BadMagic), and [`BAD_ENCODING`](HResult::BAD_ENCODING) for every other kind.
///
/// ```
/// use ipc_proto::{HResult, Message};
///
/// let error = Message::parse(b"GET / HTTP/1.1\r\nHost: ").unwrap_err();
/// assert_eq!(HResult::from(error), HResult::UNKNOWN_MAGIC);
/// ```
impl From<DecodeError> for HResult {
    fn from(e: DecodeError) -> Self {
        match e.kind {
            DecodeErrorKind::BadMagic => Self::UNKNOWN_MAGIC,
            _ => Self::BAD_ENCODING,
        }
    }
}

/// An error of encoding a value, or of setting the answer of a [`Reply`](crate::Reply).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too small for the encoded value.
    BufferTooSmall {
        /// The required length.
        needed: usize,
    },
    /// The message would be too long: its size field is a `u16`, so a message has at most 65,535 bytes with its header.
    MessageTooLong {
        /// The length that the message would have.
        len: usize,
    },
    /// The answer does not belong to the command of the request.
    WrongCommand {
        /// The code of the request.
        request: Code,
        /// The code of the command that the answer belongs to.
        answer: Code,
    },
    /// A part of another answer has been sent already.
    AlreadySending,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall { needed } => BufferTooSmall { needed: *needed }.fmt(f),
            Self::MessageTooLong { len } => {
                write!(f, "the message would have {len} bytes, and no message can have more than 65535")
            }
            Self::WrongCommand { request, answer } => {
                write!(f, "an answer to command {answer} for a request of command {request}")
            }
            Self::AlreadySending => f.write_str("another answer is being sent already"),
        }
    }
}
impl core::error::Error for EncodeError {}
impl From<BufferTooSmall> for EncodeError {
    fn from(e: BufferTooSmall) -> Self {
        Self::BufferTooSmall { needed: e.needed }
    }
}

/// The reason why an exchange ended without its answer.
///
/// A refusal by the runtime is not such an error, but an [`Answer`](crate::Answer).
///
/// ```
/// use ipc_proto::{Exchange, ProtocolError, ReceiveAdvertise};
///
/// let mut receive = ReceiveAdvertise::new();
/// assert_eq!(receive.advance(0), Err(ProtocolError::Closed { received: 0 })); // 0: the peer closed
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The peer sent bytes that do not decode; the offset counts from the start of the peer's message.
    Decode(DecodeError),
    /// The peer closed the connection before the message was complete.
    Closed {
        /// The number of bytes of the message that had arrived.
        received: usize,
    },
    /// The peer's message is longer than the buffer: use [`SuspendedCall`](crate::SuspendedCall) with a larger buffer.
    BufferTooSmall {
        /// The required length.
        needed: usize,
    },
    /// A message arrived that is neither an OK answer nor an Error answer.
    Unexpected(Code),
    /// A continuation announces more bytes than the caller allows.
    TooLong {
        /// The announced number of bytes.
        len: u64,
        /// The allowed number of bytes.
        limit: u64,
    },
    /// The caller of [`Exchange::advance`](crate::Exchange::advance) reported more bytes than the step had lent. This
    /// is a fault of the caller, not of the peer: for example, the caller passed a negative result as a large number.
    Overrun {
        /// The reported number of bytes.
        advanced: usize,
        /// The number of bytes that were lent; 0 if the exchange was over.
        lent: usize,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(e) => e.fmt(f),
            Self::Closed { received: 0 } => f.write_str("the peer closed the connection without an answer"),
            Self::Closed { received } => {
                write!(
                    f,
                    "the peer closed the connection in the middle of its message, after {received} bytes"
                )
            }
            Self::BufferTooSmall { needed } => {
                write!(f, "the peer's message needs a buffer of {needed} bytes")
            }
            Self::Unexpected(code) => write!(f, "a message with code {code} instead of an answer"),
            Self::TooLong { len, limit } => {
                write!(f, "{len} bytes are announced, the limit is {limit}")
            }
            Self::Overrun { advanced, lent } => {
                write!(f, "{advanced} bytes are reported, and {lent} were lent")
            }
        }
    }
}
impl core::error::Error for ProtocolError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Decode(e) => Some(e),
            _ => None,
        }
    }
}
impl From<DecodeError> for ProtocolError {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}
impl From<WireError> for ProtocolError {
    fn from(e: WireError) -> Self {
        Self::Decode(e.into())
    }
}
