//! One error a layer, each wrapping the one below; no owned strings, sentences are their `Display`.
use core::fmt;

use crate::{Code, HResult, Violation};

/// Bytes that are not what they should be, and where.
///
/// ```
/// use ipc_proto::{DecodeErrorKind, Message};
///
/// let error = Message::parse(b"DOTNET_IPC_V2\0").unwrap_err();
/// assert_eq!((error.kind, error.offset), (DecodeErrorKind::BadMagic, 12));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// What is wrong.
    pub kind: DecodeErrorKind,
    /// Byte offset from the start of what was being decoded.
    pub offset: usize,
}

/// What is wrong with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A field runs past the end of the region that holds it.
    UnexpectedEnd,
    /// The first bytes are not `DOTNET_IPC_V1` and a NUL.
    BadMagic,
    /// The first bytes of what a runtime says when it connects are not `ADVR_V1` and a NUL.
    BadAdvertise,
    /// A size field is below the size of what it belongs to, as a header's below 20.
    BadSize,
    /// A string's last unit is not NUL.
    Unterminated,
    /// A count promises more elements than the bytes left can hold.
    CountTooLarge,
    /// Bytes follow where none may.
    TrailingBytes,
    /// The message is longer than the buffer that was to receive it.
    TooLong,
    /// A variable-length integer has more bytes or more bits than its type.
    BadVarint,
    /// A type code or a kind that no document knows, or one that may not stand there.
    UnknownType,
    /// Objects and arrays in one another, deeper than anyone writes.
    TooDeep,
    /// A payload of more values than its bytes can account for.
    TooManyItems,
    /// A version of a layout that no document knows.
    UnknownVersion,
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnexpectedEnd => "a field runs past the end",
            Self::BadMagic => "not the magic DOTNET_IPC_V1",
            Self::BadAdvertise => "not the magic ADVR_V1",
            Self::BadSize => "a size field too small for what it counts",
            Self::Unterminated => "a string without its final NUL",
            Self::CountTooLarge => "a count larger than what follows can hold",
            Self::TooLong => "a message longer than the buffer for it",
            Self::TrailingBytes => "bytes where none may follow",
            Self::BadVarint => "a variable-length integer too large for its type",
            Self::UnknownType => "a type that is not known, or may not stand here",
            Self::TooDeep => "objects and arrays nested too deep",
            Self::TooManyItems => "more values than the bytes can account for",
            Self::UnknownVersion => "a version of the layout that is not known",
        })
    }
}
impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.kind, self.offset)
    }
}
impl core::error::Error for DecodeError {}

/// A value that does not fit where it should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer must have at least this length.
    BufferTooSmall {
        /// Bytes needed in all.
        needed: usize,
    },
    /// A message holds at most 65,535 bytes with its header; its size field is a `u16`.
    MessageTooLong {
        /// Bytes that the message would have.
        len: usize,
    },
    /// The answer belongs to another command than the one received.
    WrongCommand {
        /// The code of the request.
        request: Code,
        /// The code of the command whose answer was given.
        answer: Code,
    },
    /// Another answer is on its way already.
    AlreadySending,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall { needed } => {
                write!(f, "the buffer is too small: {needed} bytes are needed")
            }
            Self::MessageTooLong { len } => {
                write!(f, "the message would have {len} bytes, and no message can have more than 65535")
            }
            Self::WrongCommand { request, answer } => {
                write!(f, "an answer to command {answer} for a request of command {request}")
            }
            Self::AlreadySending => f.write_str("another answer is on its way already"),
        }
    }
}
impl core::error::Error for EncodeError {}

/// Why a runtime refuses a request, before it has thought about it.
///
/// ```
/// use ipc_proto::{HResult, RequestError, Violation};
/// assert_eq!(HResult::from(RequestError::from(Violation::DumpType)), HResult::FAIL);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The bytes are no request.
    Decode(DecodeError),
    /// They are one, with a value that runtimes refuse.
    Violation(Violation),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(e) => e.fmt(f),
            Self::Violation(e) => e.fmt(f),
        }
    }
}
impl core::error::Error for RequestError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Decode(e) => Some(e),
            Self::Violation(e) => Some(e),
        }
    }
}
impl From<DecodeError> for RequestError {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}
impl From<Violation> for RequestError {
    fn from(e: Violation) -> Self {
        Self::Violation(e)
    }
}
impl From<RequestError> for HResult {
    fn from(e: RequestError) -> Self {
        match e {
            RequestError::Decode(e) => e.into(),
            RequestError::Violation(e) => e.hresult(),
        }
    }
}

/// Why an exchange ended without its answer.
///
/// A refusal is not among them: that is an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The peer sent bytes that do not decode; offsets count from the start of its message.
    Decode(DecodeError),
    /// The peer closed before its message was complete.
    Closed {
        /// Bytes of it that had come.
        received: usize,
    },
    /// The peer's message does not fit the buffer. Not fatal to a [`Call`](crate::Call): see
    /// [`Call::into_buffer`](crate::Call::into_buffer).
    BufferTooSmall {
        /// Bytes needed in all.
        needed: usize,
    },
    /// A message arrived that is no answer.
    Unexpected(Code),
    /// A continuation announces more bytes than the caller allows.
    TooLong {
        /// Bytes announced.
        len: u64,
        /// Bytes allowed.
        limit: u64,
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
            Self::Unexpected(code) => write!(f, "a message with code {code} where an answer was due"),
            Self::TooLong { len, limit } => {
                write!(f, "{len} bytes were announced, and the limit is {limit}")
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
