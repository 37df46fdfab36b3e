//! [`Message::field_at`]: finds the field that contains a byte of a message.
use core::fmt;

use super::inspect::inspect_payload;
use crate::message::Header;
use crate::wire::{Part, Path, Reader, Visitor, WireError};
use crate::{Code, Message};

/// The field at an offset of a message, which displays as its path: `providers[3].name`. See [`Message::field_at`].
///
/// A `FieldAt` borrows the message, and decodes the message again each time that the path is displayed.
#[derive(Clone, Copy)]
pub struct FieldAt<'m> {
    bytes: &'m [u8],
    answer_to: Option<Code>,
    offset: usize,
}

impl Message<'_> {
    /// Returns the innermost field at an offset of the message at the front of `bytes`, `None` if no field is there.
    /// The offset of a [`DecodeError`](crate::DecodeError) gives the field that does not decode.
    ///
    /// `answer_to` is as in [`inspect`](Self::inspect). The bytes of the count of a list belong to `LIST.count`. The
    /// error of a count that is too large belongs to `LIST`.
    ///
    /// ```
    /// use ipc_proto::{Code, DecodeErrorKind, Message};
    ///
    /// // SetEnvironmentVariable: the name has two code units, and the value nine, of which one is there.
    /// let payload = [2, 0, 0, 0, b'A', 0, 0, 0, 9, 0, 0, 0, b'b', 0];
    /// let error = Message { code: Code(0x0403), payload: &payload }.request().unwrap_err();
    /// assert_eq!((error.kind, error.offset), (DecodeErrorKind::UnexpectedEnd, 32));
    ///
    /// let bytes = [b"DOTNET_IPC_V1\0\x22\0\x04\x03\0\0", &payload[..]].concat();
    /// let field = |offset| Message::field_at(&bytes, None, offset).map(|field| field.to_string());
    /// assert_eq!(field(error.offset).as_deref(), Some("value"));
    /// assert_eq!(field(24).as_deref(), Some("name"));
    /// assert_eq!(field(16).as_deref(), Some("command_set"));
    /// assert_eq!(field(1000), None);
    /// ```
    #[must_use]
    pub fn field_at(bytes: &[u8], answer_to: Option<Code>, offset: usize) -> Option<FieldAt<'_>> {
        let field = FieldAt { bytes, answer_to, offset };
        let mut exists = false;
        field.find(&mut |_| exists = true);
        exists.then_some(field)
    }
}

impl FieldAt<'_> {
    /// Passes the path of the field to `found`, if the offset is in a field.
    fn find(&self, found: &mut dyn FnMut(&Path<'_>)) {
        let Self { bytes, answer_to, offset } = *self;
        if offset > bytes.len() {
            return;
        }
        // A wrong magic is allowed: a server checks the magic last, so the error can be in any other field.
        if let Some((_, name)) = HEADER.iter().find(|(end, _)| offset < *end) {
            return found(&Path::Field(&Path::Root, name));
        }
        let Ok(header) = Header::decode(&mut Reader::new(bytes)) else { return };
        let size = header.message_len();
        if offset <= size {
            let mut search = Search { offset, found: Some(found) };
            // The search records the error.
            let _ = inspect_payload(bytes, size, header.code, answer_to, &mut search);
        }
    }
}

/// The fields of the header, each with the offset of its end.
const HEADER: [(usize, &str); 5] =
    [(14, "magic"), (16, "size"), (17, "command_set"), (18, "command_id"), (Message::HEADER_LEN, "reserved")];

impl fmt::Display for FieldAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = Ok(());
        self.find(&mut |path| written = path.fmt(f));
        written
    }
}
impl fmt::Debug for FieldAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A visitor that searches for the field at an offset.
struct Search<'f> {
    offset: usize,
    /// The function that receives the path; `None` after its call, because only the first match counts.
    found: Option<&'f mut dyn FnMut(&Path<'_>)>,
}

impl Visitor for Search<'_> {
    fn visit(&mut self, part: &Part<'_>) {
        let contains = self.offset.checked_sub(part.offset).is_some_and(|at| at < part.bytes.len());
        if let Some(found) = self.found.take_if(|_| contains) {
            found(&part.path);
        }
    }

    /// An offset after the last visited part belongs to the field that does not decode.
    fn failed(&mut self, path: &Path<'_>, _: WireError) {
        if let Some(found) = self.found.take() {
            found(path);
        }
    }
}
