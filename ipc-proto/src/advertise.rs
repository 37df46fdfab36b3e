//! The advertise frame: who calls.
use crate::wire::{Path, Reader, See, Value, Writer};
use crate::{Decode, DecodeError, DecodeErrorKind, Encode, Guid, Parsed};

/// What a runtime says first on every connection that it makes to a monitor.
///
/// ```text
///  0              8                24           32      34
/// | "ADVR_V1" NUL | runtime_cookie | process_id | future |
///   8 bytes         Guid             u64          u16, 0
/// ```
///
/// It is no message: it has no header, and nobody answers it. The monitor may then send one command, which the runtime
/// serves as any other; then it connects and says this again. Section "Advertise Protocol" of the
/// specification.
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
    /// The runtime's identity, random at its start: the same as in [`ProcessInfo`](crate::types::ProcessInfo).
    pub runtime_cookie: Guid,
    /// The process, as it sees itself: in a container, not as its host does.
    pub process_id: u64,
    /// 0; nobody looks at it.
    pub future: u16,
}

impl Advertise {
    /// How long it is.
    pub const LEN: usize = 34;
    /// What it begins with.
    pub const MAGIC: [u8; 8] = *b"ADVR_V1\0";
    /// How long a runtime tries to send it before it drops the connection, and tries again with the next back-off, in
    /// milliseconds.
    pub const SEND_DEADLINE_MS: u32 = 100;

    /// Looks for a frame at the front of `bytes`.
    ///
    /// # Errors
    /// [`DecodeErrorKind::BadAdvertise`], as soon as a byte of the magic is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, DecodeError> {
        check_magic(bytes)?;
        Ok(match bytes.get(..Self::LEN) {
            Some(frame) => Parsed::Complete { value: Reader::new(frame).read()?, used: Self::LEN },
            None => Parsed::Partial { needed: Self::LEN },
        })
    }
}

/// Checks as much of the magic as `bytes` have.
fn check_magic(bytes: &[u8]) -> Result<(), DecodeError> {
    match Advertise::MAGIC.iter().zip(bytes).position(|(a, b)| a != b) {
        Some(offset) => Err(DecodeError { kind: DecodeErrorKind::BadAdvertise, offset }),
        None => Ok(()),
    }
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

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = r.offset();
        let magic = r.array::<8>()?;
        check_magic(&magic).map_err(|e| DecodeError { offset: e.offset.saturating_add(start), ..e })?;
        Ok(Self { runtime_cookie: r.read()?, process_id: r.read()?, future: r.read()? })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        let field = |name| Path::Field(path, name);
        let start = r.offset();
        check_magic(r.rest()).map_err(|e| DecodeError { offset: e.offset.saturating_add(start), ..e })?;
        r.show(field("magic"), see, Reader::array::<8>, |_, magic| Value::Bytes(magic))?;
        Guid::inspect(r, &field("runtime_cookie"), see)?;
        u64::inspect(r, &field("process_id"), see)?;
        u16::inspect(r, &field("future"), see)
    }
}
