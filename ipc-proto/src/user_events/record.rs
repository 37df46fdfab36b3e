use super::Extension;
use crate::nettrace::WriteError;
use crate::wire::{Reader, Writer};
use crate::{DecodeError, DecodeErrorKind, Encode};

/// An event in a tracepoint; see [the module](super) for its layout.
///
/// ```
/// use ipc_proto::user_events::{Extension, Record};
///
/// let record = Record { event_id: 0x0102, extension: Extension::EMPTY, payload: b"hi" };
/// let mut buf = [0; 64];
/// let bytes = record.encode(7, &mut buf)?;
/// assert_eq!(bytes, [7, 0, 0, 0, 1, 2, 1, 4, 0, 0, 0, 0, 0, 2, 0, b'h', b'i']);
/// assert_eq!(Record::decode_written(bytes)?, (7, record));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Record<'a> {
    /// The event's number at its provider: the low half of it, but none has more.
    pub event_id: u16,
    /// What is said of the event beside its payload.
    pub extension: Extension<'a>,
    /// What the event's metadata describes.
    pub payload: &'a [u8],
}

const HEADER_LEN: usize = 15;

impl<'a> Record<'a> {
    /// The version of the layout.
    pub const VERSION: u8 = 1;
    /// What lies in front of extension and payload, with the write index.
    pub const HEADER_LEN: usize = HEADER_LEN;

    /// Reads what a consumer is shown, from behind the kernel's common fields on. Bytes that follow are ignored: perf
    /// fills records up to a multiple of 8.
    ///
    /// # Errors
    /// [`DecodeErrorKind::UnknownVersion`]; [`DecodeErrorKind::UnexpectedEnd`] if it is cut off, or a part would lie
    /// beyond its end.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    /// Reads what a runtime writes, with the write index in front, and gives that too.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_written(bytes: &'a [u8]) -> Result<(u32, Self), DecodeError> {
        let mut r = Reader::new(bytes);
        Ok((r.read()?, Self::read(&mut r)?))
    }

    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let unknown = r.error(DecodeErrorKind::UnknownVersion);
        if r.read::<u8>()? != Self::VERSION {
            return Err(unknown);
        }
        let event_id = r.read()?;
        Ok(Self { event_id, extension: Extension::new(located(r)?), payload: located(r)? })
    }

    /// Writes it as a runtime does, for those who have one buffer; else see [`header`](Self::header).
    ///
    /// # Errors
    /// As [`header`](Self::header), and [`WriteError::BufferTooSmall`].
    pub fn encode<'b>(&self, write_index: u32, buf: &'b mut [u8]) -> Result<&'b [u8], WriteError> {
        let Self { event_id, extension, payload } = *self;
        let extension = extension.as_bytes();
        let mut w = Writer::new(buf);
        w.bytes(&Self::header(write_index, event_id, extension.len(), payload.len())?);
        w.bytes(extension);
        w.bytes(payload);
        finish(w)
    }

    /// What comes first in a `writev`, for those whose parts lie here and there: then comes the extension, then the
    /// payload, each in as many pieces as there are.
    ///
    /// # Errors
    /// [`WriteError::TooLong`] for more than 65,535 bytes of extension, or of payload. Runtimes do not write such
    /// events.
    ///
    /// ```
    /// use ipc_proto::user_events::Record;
    /// use std::io::{IoSlice, Write};
    ///
    /// let payload = [&b"in "[..], b"two pieces"];
    /// let header = Record::header(7, 258, 0, payload.concat().len())?;
    /// let mut user_events_data = Vec::new();
    /// user_events_data.write_vectored(&[&header, payload[0], payload[1]].map(|piece| IoSlice::new(piece)))?;
    /// assert_eq!(Record::decode_written(&user_events_data)?.1.payload, b"in two pieces");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn header(
        write_index: u32,
        event_id: u16,
        extension_len: usize,
        payload_len: usize,
    ) -> Result<[u8; HEADER_LEN], WriteError> {
        let fits = |len| u16::try_from(len).map_err(|_| WriteError::TooLong { len });
        let (extension_len, payload_len) = (fits(extension_len)?, fits(payload_len)?);
        let mut header = [0; HEADER_LEN];
        let mut w = Writer::new(&mut header);
        write_index.encode(&mut w);
        Self::VERSION.encode(&mut w);
        event_id.encode(&mut w);
        // Each relative to what follows it: the extension has the other location before it.
        for part in [4, extension_len, extension_len, payload_len] {
            part.encode(&mut w);
        }
        Ok(header)
    }
}

/// Takes a `__rel_loc`, and gives what it points to.
fn located<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let beyond = r.error(DecodeErrorKind::UnexpectedEnd);
    let (offset, len): (u16, u16) = (r.read()?, r.read()?);
    let rest = r.rest().get(offset.into()..).and_then(|rest| rest.get(..len.into()));
    rest.ok_or(beyond)
}

/// What was written, if it fitted.
pub(super) fn finish(w: Writer<'_>) -> Result<&[u8], WriteError> {
    let needed = w.len();
    w.finish().map(|bytes| &*bytes).map_err(|_| WriteError::BufferTooSmall { needed })
}
