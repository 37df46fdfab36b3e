//! The advertise frame, with which a runtime introduces itself to a monitor.
use crate::wire::{PartValue, Path, Reader, Visitor, WireError, WireErrorKind, Writer};
use crate::{Decode, DecodeError, DecodeErrorKind, Encode, Guid, Parsed};

/// The frame that a runtime sends first on every connection to a monitor.
///
/// ```text
///  0              8                24           32      34
/// | "ADVR_V1" NUL | runtime_cookie | process_id | future |
///   8 bytes         Guid             u64          u16, 0
/// ```
///
/// The frame is not a message: it has no header and no response. After the frame, the monitor can send one command.
/// After that command, the runtime connects again with a new frame. Section "Advertise Protocol" of the specification.
///
/// ```
/// use ipc_proto::{Advertise, Guid, Parsed};
///
/// let bytes = b"ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0\0";
/// let advertise = Advertise { runtime_cookie: Guid(*b"a runtime's name"), process_id: 4242, future: 0 };
/// assert_eq!(Advertise::parse(bytes)?, Parsed::Complete { value: advertise, used: 34 });
/// assert_eq!(Advertise::parse(&bytes[..33])?, Parsed::Partial { needed: 34 });
/// assert!(Advertise::parse(b"GET / HTTP/1.1").is_err());
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Advertise {
    /// The runtime's identity, which is random for each process. The `runtime_cookie` of a
    /// [`ProcessInfo`](crate::types::ProcessInfo) has the same value.
    pub runtime_cookie: Guid,
    /// The process id in the runtime's own PID namespace: in a container, it differs from the id on the host.
    pub process_id: u64,
    /// Always 0. Monitors ignore the field.
    pub future: u16,
}

impl Advertise {
    /// The length of the frame in bytes.
    pub const LEN: usize = 34;
    /// The first bytes of the frame.
    pub const MAGIC: [u8; 8] = *b"ADVR_V1\0";
    /// The time limit for sending the frame, in milliseconds. A runtime that exceeds the limit drops the connection,
    /// and connects again after the next back-off.
    pub const SEND_DEADLINE_MS: u32 = 100;

    /// Parses the frame at the front of `bytes`.
    ///
    /// # Errors
    /// [`DecodeErrorKind::BadAdvertise`], as soon as a byte of the magic is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, DecodeError> {
        if let Some(offset) = wrong_magic(bytes) {
            return Err(DecodeError { kind: DecodeErrorKind::BadAdvertise, offset });
        }
        Ok(match bytes.get(..Self::LEN) {
            Some(frame) => Parsed::Complete { value: Reader::new(frame).read()?, used: Self::LEN },
            None => Parsed::Partial { needed: Self::LEN },
        })
    }
}

/// Returns the offset of the first byte that differs from the magic.
fn wrong_magic(bytes: &[u8]) -> Option<usize> {
    Advertise::MAGIC.iter().zip(bytes).position(|(a, b)| a != b)
}

/// Checks the magic at the front of the remaining bytes.
fn check_magic(r: &Reader<'_>) -> Result<(), WireError> {
    wrong_magic(r.rest()).map_or(Ok(()), |at| {
        Err(WireError { kind: WireErrorKind::BadValue, offset: r.offset().saturating_add(at) })
    })
}

impl Encode for Advertise {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(&Self::MAGIC);
        self.runtime_cookie.encode(w);
        self.process_id.encode(w);
        self.future.encode(w);
    }
}

impl<'a> Decode<'a> for Advertise {
    const MIN_LEN: usize = Self::LEN;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        check_magic(r)?;
        r.array::<8>()?;
        Ok(Self { runtime_cookie: r.read()?, process_id: r.read()?, future: r.read()? })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        let field = |name| Path::Field(path, name);
        check_magic(r).inspect_err(|error| visitor.failed(&field("magic"), *error))?;
        r.show(field("magic"), visitor, Reader::array::<8>, |_, magic| PartValue::Bytes(magic))?;
        Guid::inspect(r, &field("runtime_cookie"), visitor)?;
        u64::inspect(r, &field("process_id"), visitor)?;
        r.show_reserved(field("future"), visitor)
    }
}
