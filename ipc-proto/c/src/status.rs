//! The result of every function.
use core::fmt;

use ipc_proto::plan::FallbackError;
use ipc_proto::wire::{BufferTooSmall, WireError};
use ipc_proto::{Code, DecodeError, DecodeErrorKind, EncodeError, HResult, ProtocolError, Violation};

/// Declares the statuses. Those that are errors in bytes have the names of their kinds: those of messages and of records of
/// a trace, of messages alone, and of records alone.
macro_rules! statuses {
    (
        $detail:ident
        $($(#[$meta:meta])* $name:ident = $value:literal, $sentence:expr;)*
        [both] $($(#[$both_meta:meta])* $both:ident = $both_value:literal;)*
        [message] $($(#[$message_meta:meta])* $message:ident = $message_value:literal;)*
        [record] $($(#[$record_meta:meta])* $record:ident = $record_value:literal;)*
    ) => {
        /// The result of a function. Values from 64 on are errors in received bytes.
        ///
        /// Some results have a number: functions with a parameter `detail` store it there, unless `detail` is null.
        #[repr(i32)]
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(test, derive(Debug))]
        pub enum Status {
            $($(#[$meta])* $name = $value,)*
            $($(#[$both_meta])* $both = $both_value,)*
            $($(#[$message_meta])* $message = $message_value,)*
            $($(#[$record_meta])* $record = $record_value,)*
        }

        impl From<DecodeErrorKind> for Status {
            fn from(kind: DecodeErrorKind) -> Self {
                match kind {
                    $(DecodeErrorKind::$both => Self::$both,)*
                    $(DecodeErrorKind::$message => Self::$message,)*
                    _ => Self::MalformedBytes,
                }
            }
        }
        impl From<nettrace::DecodeErrorKind> for Status {
            fn from(kind: nettrace::DecodeErrorKind) -> Self {
                match kind {
                    $(nettrace::DecodeErrorKind::$both => Self::$both,)*
                    $(nettrace::DecodeErrorKind::$record => Self::$record,)*
                    _ => Self::MalformedBytes,
                }
            }
        }

        /// Writes the sentence of a status.
        pub(crate) fn sentence(status: i32, $detail: usize, out: &mut dyn fmt::Write) -> fmt::Result {
            match status {
                $($value => write!(out, "{}", $sentence),)*
                $($both_value => {
                    write!(out, "{}", DecodeError { kind: DecodeErrorKind::$both, offset: $detail })
                })*
                $($message_value => {
                    write!(out, "{}", DecodeError { kind: DecodeErrorKind::$message, offset: $detail })
                })*
                $($record_value => {
                    let kind = nettrace::DecodeErrorKind::$record;
                    write!(out, "{}", nettrace::DecodeError { kind, offset: $detail })
                })*
                _ => out.write_str("an unknown status"),
            }
        }
    };
}
statuses! {
    detail
    /// The function succeeded.
    Ok = 0, "success";
    /// More bytes are needed; `detail` is the number of bytes needed in total, as far as it is known. Not an error.
    More = 1, "more bytes are needed";
    /// There is no such part, command, name or entry.
    NotFound = 2, "not found";
    /// A buffer is too small; `detail` is the required size in its elements.
    BufferTooSmall = 4, EncodeError::BufferTooSmall { needed: detail };
    /// The message would be longer than 65,535 bytes; `detail` is the length that it would have.
    MessageTooLong = 5, EncodeError::MessageTooLong { len: detail };
    /// A value of the request has a valid layout, but runtimes refuse it; `detail` is the number of the rule.
    /// `dipc_status_field` names the value.
    Violation = 6, Rule(detail);
    /// The peer closed the connection before its message was complete; `detail` is the number of its bytes that arrived.
    Closed = 7, ProtocolError::Closed { received: detail };
    /// A message arrived that is not an answer; `detail` is its code.
    Unexpected = 8, ProtocolError::Unexpected(Code(u16::try_from(detail).unwrap_or(u16::MAX)));
    /// The peer announces more bytes than the caller allows; `detail` is their number.
    LimitExceeded = 9, "more bytes are announced than the limit allows";
    /// A part of the reply was sent already, so that it cannot be replaced.
    AlreadySending = 10, EncodeError::AlreadySending;
    /// The server does not have the command; `detail` is the HRESULT with which it is refused.
    Refused = 11, "the server does not have the command";
    /// The deadline of a plan passed; `detail` is 1 if a connection was open, 0 if the runtime accepted none.
    TimedOut = 12, FallbackError::TimedOut { connected: detail != 0 };
    /// Misuse: a pointer is null that must not be.
    NullPointer = 32, "misuse: a null pointer";
    /// Misuse: a pointer is not aligned for its type.
    Misaligned = 33, "misuse: a pointer that is not aligned";
    /// Misuse: a length is larger than any object of C.
    InvalidLength = 34, "misuse: a length larger than any object";
    /// Misuse: the object is not initialised, or is of another kind than the function expects.
    WrongKind = 35, "misuse: an object that is not initialised, or of another kind";
    /// Misuse: an argument has no meaning: a form of text that does not exist, or invalid UTF-8.
    InvalidArgument = 36, "misuse: an invalid argument";
    /// Misuse: more bytes were reported than the step had lent, for example the -1 of a system call as an unsigned number;
    /// `detail` is the number of lent bytes. The exchange has failed; one that was over before keeps its result.
    Overrun = 37, "misuse: more bytes than were lent";
    /// A fault of the library itself, which only the functions of `dotnet_ipc_analysis.h` can find: please report it.
    Fault = 38, "a fault of the library";
    /// The bytes are malformed in a way that has no status of its own.
    MalformedBytes = 127, "malformed bytes";
    [both]
    /// A field extends past the end of the region that contains it. For errors in bytes, `detail` is the offset, and
    /// `dipc_status_field` names the field.
    UnexpectedEnd = 64;
    /// A size field is smaller than its structure.
    BadSize = 67;
    /// The last unit of a string is not NUL.
    Unterminated = 68;
    /// A count is too large for the remaining bytes.
    CountTooLarge = 69;
    /// The message is longer than the buffer for it.
    TooLong = 71;
    [message]
    /// The first bytes are not those of a message.
    BadMagic = 65;
    /// The first bytes are not those of an advertise frame.
    BadAdvertise = 66;
    /// Bytes follow where none are allowed.
    TrailingBytes = 70;
    /// A field has a value that its type does not allow.
    BadValue = 80;
    [record]
    /// A variable-length integer has more bytes or more bits than its type.
    BadVarint = 72;
    /// A type code or a kind is not documented, or not allowed in this place.
    UnknownType = 73;
    /// Objects and arrays are nested deeper than any writer does.
    TooDeep = 74;
    /// A payload has more values than its bytes can contain.
    TooManyItems = 75;
    /// The version of a layout is not documented.
    UnknownVersion = 76;
    /// The bytes have several meanings, and the input does not state which one applies.
    Ambiguous = 77;
    /// A description belongs to another event than the one it was sent with.
    OtherEvent = 78;
    /// Fields are described in a second way although the first one must be empty then.
    DescribedTwice = 79;
}

/// The rule with this number, which displays as its sentence.
struct Rule(usize);

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Violation::ALL.get(self.0) {
            Some(violation) => violation.fmt(f),
            None => f.write_str("a value that runtimes refuse"),
        }
    }
}

/// A status that is not `Ok`, with its number.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) detail: usize,
}

/// The result of a function, with the number that it stores in `detail`.
pub(crate) type Outcome = Result<usize, Failure>;

/// What a function does: nothing that can fail, or something whose result has a number or none.
pub(crate) trait Reported {
    /// Returns the number, or 0 for none.
    fn outcome(self) -> Outcome;
}

impl Reported for () {
    fn outcome(self) -> Outcome {
        Ok(0)
    }
}
impl Reported for Result<(), Failure> {
    fn outcome(self) -> Outcome {
        self.map(|()| 0)
    }
}
impl Reported for Outcome {
    fn outcome(self) -> Outcome {
        self
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, detail: 0 }
    }
}
impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self { status: error.kind.into(), detail: error.offset }
    }
}
impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        DecodeError::from(error).into()
    }
}
impl From<nettrace::DecodeError> for Failure {
    fn from(error: nettrace::DecodeError) -> Self {
        Self { status: error.kind.into(), detail: error.offset }
    }
}
impl From<BufferTooSmall> for Failure {
    fn from(error: BufferTooSmall) -> Self {
        Self { status: Status::BufferTooSmall, detail: error.needed }
    }
}
impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::BufferTooSmall { needed } => Self { status: Status::BufferTooSmall, detail: needed },
            EncodeError::MessageTooLong { len } => Self { status: Status::MessageTooLong, detail: len },
            EncodeError::AlreadySending => Status::AlreadySending.into(),
            _ => Status::InvalidArgument.into(),
        }
    }
}
impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        let (status, detail) = match error {
            ProtocolError::Decode(error) => return error.into(),
            ProtocolError::Closed { received } => (Status::Closed, received),
            ProtocolError::BufferTooSmall { needed } => (Status::BufferTooSmall, needed),
            ProtocolError::Unexpected(code) => (Status::Unexpected, usize::from(code.0)),
            ProtocolError::TooLong { len, .. } => {
                (Status::LimitExceeded, usize::try_from(len).unwrap_or(usize::MAX))
            }
            ProtocolError::Overrun { lent, .. } => (Status::Overrun, lent),
            _ => (Status::MalformedBytes, 0),
        };
        Self { status, detail }
    }
}
impl From<HResult> for Failure {
    fn from(hresult: HResult) -> Self {
        Self { status: Status::Refused, detail: usize::try_from(hresult.0).unwrap_or(usize::MAX) }
    }
}
impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        let rule = Violation::ALL.iter().position(|rule| *rule == violation);
        Self { status: Status::Violation, detail: rule.unwrap_or(usize::MAX) }
    }
}

/// Stores the number of an outcome, and returns its status.
///
/// # Safety
/// `detail` is null, or can be written to.
pub(crate) unsafe fn report(outcome: Outcome, detail: *mut usize) -> Status {
    let (status, number) = match outcome {
        Ok(number) => (Status::Ok, number),
        Err(failure) => (failure.status, failure.detail),
    };
    if !detail.is_null() && detail.is_aligned() {
        // SAFETY: the caller vouches for `detail`.
        unsafe { detail.write(number) };
    }
    status
}
