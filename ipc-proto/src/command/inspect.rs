//! [`Message::inspect`]: visits the parts of a message, with names and values.
use super::table::{GenerateCoreDump3, Request};
use super::{Command, CommandInfo};
use crate::message::{check_magic, header_error, read_size};
use crate::wire::{Part, PartValue, Path, Reader, Visitor, WireError, WireErrorKind};
use crate::{Code, Decode, DecodeError, HResult, Message, ServerError};

impl Message<'_> {
    /// Passes every part of the message at the front of `bytes` to `visitor`, in order and without a gap: the header,
    /// the known fields of the payload, and the bytes after these fields as `rest`.
    ///
    /// `answer_to` is the command that an OK or Error answer belongs to. Without `answer_to`, the payload of an OK
    /// answer is one part named `payload`. The payload of a command that is not in the table is one part, too.
    ///
    /// A `reserved` other than 0 is not an error, because runtimes ignore it: [`PartValue::problem`] reports the value.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse), of [`request`](Self::request), and of decoding an answer. A truncated
    /// message fails with [`UnexpectedEnd`](crate::DecodeErrorKind::UnexpectedEnd) at the end of `bytes`. `visitor` has
    /// received the parts before an error; [`field_at`](Self::field_at) returns the field with the error.
    ///
    /// ```
    /// use ipc_proto::Message;
    ///
    /// let mut parts = Vec::new();
    /// Message::inspect(b"DOTNET_IPC_V1\0\x1c\0\x02\x01\0\0\x07\0\0\0\0\0\0\0", None, &mut |part| {
    ///     parts.push(format!("{} {}", part.offset, part.path));
    /// })?;
    /// assert_eq!(parts, ["0 magic", "14 size", "16 command_set", "17 command_id", "18 reserved", "20 session_id"]);
    /// # Ok::<(), ipc_proto::DecodeError>(())
    /// ```
    pub fn inspect(
        bytes: &[u8],
        answer_to: Option<Code>,
        mut visitor: &mut dyn FnMut(&Part<'_>),
    ) -> Result<(), DecodeError> {
        check_magic(bytes)?;
        let (size, code) =
            inspect_header(&mut Reader::new(bytes), &mut visitor).map_err(|e| match e.kind {
                WireErrorKind::UnexpectedEnd => DecodeError { offset: bytes.len(), ..e.into() },
                _ => header_error(e),
            })?;
        inspect_payload(bytes, size.into(), code, answer_to, &mut visitor)
    }
}

/// Inspects the payload of the message at the front of `bytes`. `size` and `code` come from the header of the message.
pub(super) fn inspect_payload(
    bytes: &[u8],
    size: usize,
    code: Code,
    answer_to: Option<Code>,
    visitor: &mut dyn Visitor,
) -> Result<(), DecodeError> {
    let field = |name| Path::Field(&Path::Root, name);
    let whole = bytes.get(..size);
    let payload = whole.unwrap_or(bytes).get(Message::HEADER_LEN..).unwrap_or_default();
    let mut r = Reader::at(payload, Message::HEADER_LEN);
    let mut last = field("rest");
    let inspected = match (code, answer_to.and_then(Request::inspectors), Request::inspectors(code)) {
        (Code::OK, Some([_, response]), _) => response(&mut r, &Path::Root, visitor),
        (Code::ERROR, ..) if answer_to == Some(GenerateCoreDump3::CODE) => {
            ServerError::inspect(&mut r, &Path::Root, visitor)
        }
        (Code::ERROR, ..) => HResult::inspect(&mut r, &field("hresult"), visitor),
        (_, _, Some([request, _])) => request(&mut r, &Path::Root, visitor),
        _ => {
            last = field("payload");
            r.show_rest(last, visitor)
        }
    };
    if whole.is_some() {
        return Ok(inspected.and_then(|()| r.show_rest(last, visitor))?);
    }
    let cut_off = WireError { kind: WireErrorKind::UnexpectedEnd, offset: bytes.len() };
    if inspected.is_ok() {
        visitor.failed(&last, cut_off);
    }
    Err(cut_off.into())
}

/// Inspects the header, and returns the size and the code of the message.
fn inspect_header(r: &mut Reader<'_>, visitor: &mut dyn Visitor) -> Result<(u16, Code), WireError> {
    let field = |name| Path::Field(&Path::Root, name);
    r.show(field("magic"), visitor, Reader::array::<14>, |_, magic| PartValue::Bytes(magic))?;
    let size = r.show(field("size"), visitor, read_size, u16::shown)?;
    let set = r.show(field("command_set"), visitor, u8::decode, u8::shown)?;
    let code = |id| Code(u16::from_be_bytes([set, id]));
    let id = r.show(field("command_id"), visitor, u8::decode, |id, _| {
        let name = match code(*id) {
            Code::OK => Some("OK"),
            Code::ERROR => Some("Error"),
            code => CommandInfo::find(code).map(|row| row.name),
        };
        PartValue::Number { number: (*id).into(), name }
    })?;
    r.show_reserved(field("reserved"), visitor)?;
    Ok((size, code(id)))
}
