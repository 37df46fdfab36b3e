//! Framing: [`Message`], its header, and [`ServerError`], the payload of an Error answer.
use core::fmt;

use crate::wire::{Path, Reader, Text, Visitor, WireError, WireErrorKind, Writer};
use crate::{Code, Decode, DecodeError, DecodeErrorKind, Encode, EncodeError, HResult};

/// The result of parsing a frame at the front of some bytes.
///
/// Needing more bytes is not an error; malformed bytes are.
///
/// ```
/// use ipc_proto::{Message, Parsed};
///
/// let bytes = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0 and more";
/// assert_eq!(Message::parse(&bytes[..10])?, Parsed::Partial { needed: 20 });
/// let Parsed::Complete { value, used } = Message::parse(bytes)? else { unreachable!() };
/// assert_eq!((value.payload, &bytes[used..]), (&b""[..], &b" and more"[..]));
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<T> {
    /// The bytes are only the beginning of a frame.
    Partial {
        /// The length of the whole frame in bytes, as far as it is known yet.
        needed: usize,
    },
    /// A whole frame.
    Complete {
        /// The frame.
        value: T,
        /// The length of the frame in bytes.
        used: usize,
    },
}

impl<T> Parsed<T> {
    /// Converts a whole frame.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Parsed<U> {
        match self {
            Self::Complete { value, used } => Parsed::Complete { value: convert(value), used },
            Self::Partial { needed } => Parsed::Partial { needed },
        }
    }
}

/// The header, with an unchecked magic: a runtime checks the magic only after it has received the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    magic: [u8; 14],
    size: u16,
    pub(crate) code: Code,
}

impl Header {
    /// Decodes the header. Fails if the size is not [valid](read_size).
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let magic = r.array()?;
        let size = read_size(r).map_err(header_error)?;
        let code = Code(u16::from_be_bytes(r.array()?));
        r.array::<2>()?; // reserved: runtimes ignore these bytes
        Ok(Self { magic, size, code })
    }

    /// Returns the length of the message.
    pub(crate) fn message_len(&self) -> usize {
        usize::from(self.size)
    }

    /// Checks the magic.
    pub(crate) fn check_magic(&self) -> Result<(), DecodeError> {
        check_magic(&self.magic)
    }
}

/// Reads the size of a message. A size is valid if it is at least the length of the header.
pub(crate) fn read_size(r: &mut Reader<'_>) -> Result<u16, WireError> {
    let invalid = r.error(WireErrorKind::BadValue);
    let size: u16 = r.read()?;
    if usize::from(size) < Message::HEADER_LEN { Err(invalid) } else { Ok(size) }
}

/// Converts an error of the fields of a header. `BadValue` means a bad size: only the size has forbidden values.
pub(crate) fn header_error(e: WireError) -> DecodeError {
    match e.kind {
        WireErrorKind::BadValue => DecodeError { kind: DecodeErrorKind::BadSize, offset: e.offset },
        _ => e.into(),
    }
}

/// Checks the magic, or its first bytes if `bytes` is shorter than the magic.
pub(crate) fn check_magic(bytes: &[u8]) -> Result<(), DecodeError> {
    match Message::MAGIC.iter().zip(bytes).position(|(a, b)| a != b) {
        Some(offset) => Err(DecodeError { kind: DecodeErrorKind::BadMagic, offset }),
        None => Ok(()),
    }
}

/// A message: a code, and a payload whose layout depends on the code. [`Parsed`] has an example.
///
/// ```text
///  0                      14     16   17   18        20                    size
/// | "DOTNET_IPC_V1" NUL   | size | set | id | reserved | payload … |
///   14 bytes                u16    u8    u8   u16, 0     size - 20 bytes
/// ```
///
/// Section "Diagnostic IPC Message" of the specification. `size` includes the header, so a payload has at most 65,515
/// bytes. The specification writes codes as `0x0203`: set, then id, in wire order, not a little-endian number. Bytes
/// that follow a message on its connection (a NetTrace stream, the environment) do not count in `size`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Message<'a> {
    /// The code of a command, or of an answer.
    pub code: Code,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// The length of the header in bytes.
    pub const HEADER_LEN: usize = 20;
    /// The length of the longest message in bytes: the size field is a `u16`.
    pub const MAX_LEN: usize = 65_535;
    /// The first bytes of every message.
    pub const MAGIC: [u8; 14] = *b"DOTNET_IPC_V1\0";

    /// Parses a message at the front of `bytes`.
    ///
    /// A wrong magic is an error at its first wrong byte; a wrong size is an error once the header is complete.
    ///
    /// # Errors
    /// [`DecodeErrorKind::BadMagic`] or [`DecodeErrorKind::BadSize`].
    pub fn parse(bytes: &'a [u8]) -> Result<Parsed<Self>, DecodeError> {
        check_magic(bytes)?;
        let mut r = Reader::new(bytes);
        if bytes.len() < Self::HEADER_LEN {
            return Ok(Parsed::Partial { needed: Self::HEADER_LEN });
        }
        let header = Header::decode(&mut r)?;
        let used = header.message_len();
        Ok(match r.bytes(used.saturating_sub(Self::HEADER_LEN)) {
            Ok(payload) => Parsed::Complete { value: Self { code: header.code, payload }, used },
            Err(_) => Parsed::Partial { needed: used },
        })
    }

    /// Decodes the payload as a `T`. Bytes after the `T` are ignored.
    ///
    /// # Errors
    /// If the payload is malformed. Offsets count from the start of the message.
    pub fn decode<T: Decode<'a>>(&self) -> Result<T, DecodeError> {
        Ok(Reader::at(self.payload, Self::HEADER_LEN).read()?)
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({}, {} bytes of payload)", self.code, self.payload.len())
    }
}

/// Writes a whole message to the front of `buf` and returns its bytes.
///
/// # Errors
/// [`EncodeError::MessageTooLong`] if no message can contain the payload, else [`EncodeError::BufferTooSmall`] with the
/// required length of `buf`.
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
    w.patch_u16(size_at, size);
    Ok(w.finish()?)
}

/// Encodes a whole message into a `Vec`.
///
/// # Errors
/// [`EncodeError::MessageTooLong`] if no message can contain the payload.
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
/// Erratum: the specification's table gives an Error answer 28 bytes; it has 24.
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
    /// The reason as a code.
    pub hresult: HResult,
    /// The reason as text, after `GenerateCoreDump3` only. After other commands, bytes after the code are ignored.
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

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let hresult = r.read()?;
        let message = if r.rest().len() < Text::MIN_LEN { None } else { Some(r.read()?) };
        Ok(Self { hresult, message })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        HResult::inspect(r, &Path::Field(path, "hresult"), visitor)?;
        let message = Path::Field(path, "message");
        if r.rest().len() < Text::MIN_LEN { Ok(()) } else { Text::inspect(r, &message, visitor) }
    }
}
