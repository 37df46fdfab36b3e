//! Framing: the 20-byte header, and the Error answer.
//!
//! ```text
//!  0                      14     16   17   18        20                    size
//! | "DOTNET_IPC_V1" NUL   | size | set | id | reserved | payload … |
//!   14 bytes                u16    u8    u8   u16, 0     size - 20 bytes
//! ```
//!
//! Section "Diagnostic IPC Message" of the specification. `size` counts the header too, so a payload has at most
//! 65,515 bytes. The specification writes codes as `0x0203`: that is set, then id, in wire order, not a little-endian
//! number. What follows a message on its connection (a NetTrace stream, the environment) is counted by no `size`.
use core::fmt;

use crate::wire::{Path, Reader, See, Text, Value, Writer};
use crate::{
    Command, CommandInfo, Decode, DecodeError, DecodeErrorKind, Encode, EncodeError, GenerateCoreDump3,
    HResult, Request,
};

/// What came of looking for a frame at the front of some bytes.
///
/// Needing more bytes is not an error; malformed bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<T> {
    /// The frame goes on behind the bytes given.
    Partial {
        /// Bytes needed from the front, in all, as far as is known yet.
        needed: usize,
    },
    /// A whole frame.
    Complete {
        /// The frame.
        value: T,
        /// How many bytes it took.
        used: usize,
    },
}

/// Command set and id, as the specification prints them: `0x0203` is set 2, id 3.
///
/// ```
/// use ipc_proto::Code;
/// assert_eq!((Code(0x0203).set(), Code(0x0203).id()), (2, 3));
/// assert_eq!(Code(0x0203).to_string(), "0x0203");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Code(pub u16);

impl Code {
    /// The answer to a command that succeeded.
    pub const OK: Self = Self(0xff00);
    /// The answer to a command that was refused.
    pub const ERROR: Self = Self(0xffff);

    /// The command set.
    #[must_use]
    pub const fn set(self) -> u8 {
        self.0.to_be_bytes()[0]
    }
    /// The command's id within its set.
    #[must_use]
    pub const fn id(self) -> u8 {
        self.0.to_be_bytes()[1]
    }
}
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The 20 bytes before a payload, the magic unchecked: a runtime looks at it only after the payload has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    magic: [u8; 14],
    pub(crate) size: u16,
    pub(crate) code: Code,
}

impl Header {
    /// Reads the header; refuses a size below its own.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let magic = r.array()?;
        let bad_size = r.error(DecodeErrorKind::BadSize);
        let size = r.read()?;
        let code = Code(u16::from_be_bytes(r.array()?));
        r.array::<2>()?; // reserved: nobody looks at it
        if usize::from(size) < Message::HEADER_LEN { Err(bad_size) } else { Ok(Self { magic, size, code }) }
    }

    /// Checks the magic.
    pub(crate) fn check_magic(&self) -> Result<(), DecodeError> {
        check_magic(&self.magic)
    }
}

/// Checks as much of the magic as `bytes` have.
fn check_magic(bytes: &[u8]) -> Result<(), DecodeError> {
    match Message::MAGIC.iter().zip(bytes).position(|(a, b)| a != b) {
        Some(offset) => Err(DecodeError { kind: DecodeErrorKind::BadMagic, offset }),
        None => Ok(()),
    }
}

/// One message: a code and the payload whose meaning it says.
///
/// ```
/// use ipc_proto::{Code, Message, Parsed};
///
/// let bytes = b"DOTNET_IPC_V1\0\x14\0\x04\x08\0\0 and what follows";
/// assert_eq!(Message::parse(&bytes[..19])?, Parsed::Partial { needed: 20 });
/// let message = Message { code: Code(0x0408), payload: &[] };
/// assert_eq!(Message::parse(bytes)?, Parsed::Complete { value: message, used: 20 });
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Message<'a> {
    /// What the payload means.
    pub code: Code,
    /// The bytes behind the header.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// The bytes before the payload.
    pub const HEADER_LEN: usize = 20;
    /// No message is longer: its size is a `u16`.
    pub const MAX_LEN: usize = 65_535;
    /// What every message begins with.
    pub const MAGIC: [u8; 14] = *b"DOTNET_IPC_V1\0";

    /// Looks for a message at the front of `bytes`.
    ///
    /// A wrong magic is an error as soon as it is seen, however little has come; a wrong size once the header is whole.
    ///
    /// # Errors
    /// [`DecodeErrorKind::BadMagic`] or [`DecodeErrorKind::BadSize`].
    pub fn parse(bytes: &'a [u8]) -> Result<Parsed<Self>, DecodeError> {
        check_magic(bytes)?;
        let mut r = Reader::new(bytes);
        if bytes.len() < Self::HEADER_LEN {
            return Ok(Parsed::Partial { needed: Self::HEADER_LEN });
        }
        let Header { size, code, .. } = Header::decode(&mut r)?;
        let used = usize::from(size);
        Ok(match r.bytes(used.saturating_sub(Self::HEADER_LEN)) {
            Ok(payload) => Parsed::Complete { value: Self { code, payload }, used },
            Err(_) => Parsed::Partial { needed: used },
        })
    }

    /// Reads the payload as the request that its code names.
    ///
    /// # Errors
    /// If the payload is malformed; offsets count from the start of the message.
    ///
    /// ```
    /// use ipc_proto::{Code, Message, Request, StopTracing};
    ///
    /// let message = Message { code: Code(0x0201), payload: &7u64.to_le_bytes() };
    /// assert_eq!(message.request()?, Request::StopTracing(StopTracing { session_id: 7 }));
    /// # Ok::<(), ipc_proto::DecodeError>(())
    /// ```
    pub fn request(&self) -> Result<Request<'a>, DecodeError> {
        Request::decode(*self)
    }

    /// Reads the payload as a `T`, and ignores what follows it.
    ///
    /// # Errors
    /// If the payload is malformed; offsets count from the start of the message.
    pub fn decode<T: Decode<'a>>(&self) -> Result<T, DecodeError> {
        Reader::at(self.payload, Self::HEADER_LEN).read()
    }

    /// Shows every part of the message at the front of `bytes`, in order and without a gap, with its name, place and
    /// value: header, fields, and as `rest` what follows the known fields. The payload of a command that is not in the
    /// table, and of an OK answer unless `answer_to` says to which command, is one part, `payload`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse) and [`request`](Self::request), and for an answer as decoding that; a message that is
    /// cut off is [`DecodeErrorKind::UnexpectedEnd`] at the end of `bytes`. What is good before the error has been
    /// shown.
    ///
    /// ```
    /// use ipc_proto::Message;
    ///
    /// let mut seen = Vec::new();
    /// Message::inspect(b"DOTNET_IPC_V1\0\x1c\0\x02\x01\0\0\x07\0\0\0\0\0\0\0", None, &mut |part| {
    ///     seen.push(format!("{} {}", part.offset, part.path));
    /// })?;
    /// assert_eq!(seen, ["0 magic", "14 size", "16 command_set", "17 command_id", "18 reserved", "20 session_id"]);
    /// # Ok::<(), ipc_proto::DecodeError>(())
    /// ```
    pub fn inspect(bytes: &[u8], answer_to: Option<Code>, see: &mut See<'_>) -> Result<(), DecodeError> {
        let cut_off = DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: bytes.len() };
        let field = |name| Path::Field(&Path::Root, name);
        check_magic(bytes)?;
        let mut r = Reader::new(bytes);
        let (size, code) = inspect_header(&mut r, see).map_err(|e| match e.kind {
            DecodeErrorKind::UnexpectedEnd => cut_off,
            _ => e,
        })?;
        let whole = bytes.get(..usize::from(size));
        let payload = whole.unwrap_or(bytes).get(Self::HEADER_LEN..).unwrap_or_default();
        let mut r = Reader::at(payload, Self::HEADER_LEN);
        let known = |code: Code| CommandInfo::find(code).is_some();
        let inspected = match (code, answer_to) {
            (Code::OK, Some(command)) if known(command) => Request::inspect_response(command, &mut r, see),
            (Code::ERROR, Some(GenerateCoreDump3::CODE)) => ServerError::inspect(&mut r, &Path::Root, see),
            (Code::ERROR, _) => HResult::inspect(&mut r, &field("hresult"), see),
            (code, _) if known(code) => Request::inspect(code, &mut r, see),
            _ => r.show_rest(field("payload"), see),
        };
        match whole {
            Some(_) => inspected.and_then(|()| r.show_rest(field("rest"), see)),
            None => Err(cut_off),
        }
    }
}

/// Shows the header, and reads size and code.
fn inspect_header(r: &mut Reader<'_>, see: &mut See<'_>) -> Result<(u16, Code), DecodeError> {
    let field = |name| Path::Field(&Path::Root, name);
    r.show(field("magic"), see, Reader::array::<14>, |_, magic| Value::Bytes(magic))?;
    let bad_size = r.error(DecodeErrorKind::BadSize);
    let size = |r: &mut Reader<'_>| match r.read()? {
        size if usize::from(size) < Message::HEADER_LEN => Err(bad_size),
        size => Ok(size),
    };
    let size = r.show(field("size"), see, size, u16::shown)?;
    let set = r.show(field("command_set"), see, u8::decode, u8::shown)?;
    let code = |id| Code(u16::from_be_bytes([set, id]));
    let id = r.show(field("command_id"), see, u8::decode, |id, _| {
        let name = match code(*id) {
            Code::OK => Some("OK"),
            Code::ERROR => Some("Error"),
            code => CommandInfo::find(code).map(|row| row.name),
        };
        Value::Number { number: (*id).into(), name }
    })?;
    u16::inspect(r, &field("reserved"), see)?;
    Ok((size, code(id)))
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({}, {} bytes of payload)", self.code, self.payload.len())
    }
}

/// Writes a whole message to the front of `buf`.
///
/// # Errors
/// [`EncodeError::MessageTooLong`] if no message can hold the payload, else [`EncodeError::BufferTooSmall`] with what
/// `buf` would have to hold.
///
/// ```
/// use ipc_proto::{Code, StopTracing, encode};
///
/// let mut buf = [0; 64];
/// let message = encode(Code(0x0201), &StopTracing { session_id: 7 }, &mut buf)?;
/// assert_eq!(message, b"DOTNET_IPC_V1\0\x1c\0\x02\x01\0\0\x07\0\0\0\0\0\0\0");
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
pub fn encode<'b>(
    code: Code,
    payload: &(impl Encode + ?Sized),
    buf: &'b mut [u8],
) -> Result<&'b mut [u8], EncodeError> {
    let mut w = Writer::new(buf);
    w.bytes(&Message::MAGIC);
    let size_at = w.len();
    0u16.encode(&mut w);
    w.bytes(&code.0.to_be_bytes());
    0u16.encode(&mut w);
    payload.encode(&mut w);
    let len = w.len();
    let size = u16::try_from(len).map_err(|_| EncodeError::MessageTooLong { len })?;
    w.patch(size_at, &size.to_le_bytes());
    w.finish()
}

/// A whole message in a `Vec`.
///
/// # Errors
/// [`EncodeError::MessageTooLong`] if no message can hold the payload.
#[cfg(feature = "alloc")]
pub fn encode_to_vec(
    code: Code,
    payload: &(impl Encode + ?Sized),
) -> Result<alloc::vec::Vec<u8>, EncodeError> {
    let len = Message::HEADER_LEN.saturating_add(payload.encoded_len());
    let mut buf = alloc::vec![0; len.min(Message::MAX_LEN)];
    encode(code, payload, &mut buf)?;
    Ok(buf)
}

/// The payload of an Error answer.
///
/// ```text
///  20        24
/// | hresult | message …
///   u32       Text, from GenerateCoreDump3 only
/// ```
///
/// Erratum: the specification's table gives such an answer 28 bytes; it has 24.
///
/// ```
/// use ipc_proto::{HResult, ServerError, wire::decode};
///
/// let error: ServerError<'_> = decode(&[0x05, 0x40, 0x00, 0x80, 2, 0, 0, 0, b'x', 0, 0, 0])?;
/// assert_eq!(error.hresult, HResult::FAIL);
/// assert_eq!(error.message.map(|m| m == "x"), Some(true));
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct ServerError<'a> {
    /// Why, as a code.
    pub hresult: HResult,
    /// Why, in words, from the one command that sends some; elsewhere what follows the code is not looked at.
    pub message: Option<Text<'a>>,
}

impl From<HResult> for ServerError<'_> {
    fn from(hresult: HResult) -> Self {
        Self { hresult, message: None }
    }
}
impl Encode for ServerError<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.hresult.encode(w);
        if let Some(message) = self.message {
            message.encode(w);
        }
    }
}
impl<'a> Decode<'a> for ServerError<'a> {
    const MIN_LEN: usize = HResult::MIN_LEN;

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let hresult = r.read()?;
        let message = if r.rest().len() < Text::MIN_LEN { None } else { Some(r.read()?) };
        Ok(Self { hresult, message })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        HResult::inspect(r, &Path::Field(path, "hresult"), see)?;
        let message = Path::Field(path, "message");
        if r.rest().len() < Text::MIN_LEN { Ok(()) } else { Text::inspect(r, &message, see) }
    }
}
