//! One event in a tracepoint, as it is written and as it is read.
use ipc_proto::Encode;
use ipc_proto::wire::{Reader, Writer};

use crate::error::{DecodeError, DecodeErrorKind};
use crate::user_events::extension::Extension;
use crate::user_events::inline_metadata::finish;
use crate::write::WriteError;

/// An event in a tracepoint. See [the module](super) for its layout.
///
/// ```
/// use nettrace::user_events::{Extension, TracepointRecord};
///
/// let record = TracepointRecord { event_id: 0x0102, extension: Extension::EMPTY, payload: b"hi" };
/// let mut buf = [0; 64];
/// let bytes = record.encode(7, &mut buf)?;
/// assert_eq!(bytes, [7, 0, 0, 0, 1, 2, 1, 4, 0, 0, 0, 0, 0, 2, 0, b'h', b'i']);
/// // The kernel removes the write index.
/// assert_eq!(TracepointRecord::decode(&bytes[4..])?, record);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TracepointRecord<'a> {
    /// The id of the event at its provider. The record has the low 16 bits of the id, and no id is larger.
    pub event_id: u16,
    /// The information about the event apart from its payload.
    pub extension: Extension<'a>,
    /// The fields that the metadata of the event describes.
    pub payload: &'a [u8],
}

const HEADER_LEN: usize = 15;

impl<'a> TracepointRecord<'a> {
    /// The version of the layout.
    pub const VERSION: u8 = 1;
    /// The length of the fields before extension and payload, including the write index.
    pub const HEADER_LEN: usize = HEADER_LEN;

    /// Decodes the record that a consumer reads, after the kernel's common fields. Bytes after the record are ignored:
    /// perf pads records to a multiple of 8.
    ///
    /// # Errors
    /// [`DecodeErrorKind::UnknownVersion`]; [`DecodeErrorKind::UnexpectedEnd`] if the record is cut off, or a part
    /// extends past the end of the record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let unknown = DecodeError::at(r, DecodeErrorKind::UnknownVersion);
        if r.read::<u8>()? != Self::VERSION {
            return Err(unknown);
        }
        let event_id = r.read()?;
        Ok(Self { event_id, extension: Extension::new(located(r)?), payload: located(r)? })
    }

    /// Encodes the record into one buffer, as a runtime writes it. See [`header`](Self::header) for several buffers.
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

    /// Returns the first piece for a `writev`. The extension and the payload follow, each in any number of pieces.
    ///
    /// # Errors
    /// [`WriteError::TooLong`] for more than 65,535 bytes of extension, or of payload. Runtimes do not write such
    /// events.
    ///
    /// ```
    /// use nettrace::user_events::TracepointRecord;
    /// use std::io::{IoSlice, Write};
    ///
    /// let payload = [&b"in "[..], b"two pieces"];
    /// let header = TracepointRecord::header(7, 258, 0, payload.concat().len())?;
    /// let mut user_events_data = Vec::new();
    /// user_events_data.write_vectored(&[&header, payload[0], payload[1]].map(|piece| IoSlice::new(piece)))?;
    /// assert_eq!(TracepointRecord::decode(&user_events_data[4..])?.payload, b"in two pieces");
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
        // Two fields, each a u16 offset and a u16 length. An offset counts from the end of its field: the extension
        // starts after the second field, which has 4 bytes, and the payload after the extension.
        for part in [4, extension_len, extension_len, payload_len] {
            part.encode(&mut w);
        }
        Ok(header)
    }
}

/// Reads a `__rel_loc`, and returns the bytes that it points to.
fn located<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let beyond = DecodeError::at(r, DecodeErrorKind::UnexpectedEnd);
    let (offset, len): (u16, u16) = (r.read()?, r.read()?);
    let rest = r.rest().get(offset.into()..).and_then(|rest| rest.get(..len.into()));
    rest.ok_or(beyond)
}
