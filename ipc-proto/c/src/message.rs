//! Messages: their frame, their parts, and the rules for requests.
use core::ffi::{c_char, c_void};
use core::fmt::{self, Write};
use core::ptr;

use ipc_proto::wire::{self, PartValue};
use ipc_proto::{Code, HResult, InvalidValue, Message as ProtoMessage, Parsed, RequestError};

use crate::memory;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// The length of the header of a message.
pub const DIPC_HEADER_LEN: usize = 20;
/// The length of the longest message.
pub const DIPC_MESSAGE_MAX_LEN: usize = 65535;
/// The code of the answer to a command that succeeded.
pub const DIPC_CODE_OK: u16 = 0xff00;
/// The code of the answer to a command that was refused.
pub const DIPC_CODE_ERROR: u16 = 0xffff;

const _: () = {
    assert!(DIPC_HEADER_LEN == ProtoMessage::HEADER_LEN && DIPC_MESSAGE_MAX_LEN == ProtoMessage::MAX_LEN);
    assert!(DIPC_CODE_OK == Code::OK.0 && DIPC_CODE_ERROR == Code::ERROR.0);
};

/// A message, in the bytes that it was parsed from.
#[repr(C)]
pub struct Message {
    /// The code of a command, or of an answer.
    pub code: u16,
    /// The bytes after the header.
    pub payload: *const u8,
    /// The number of bytes.
    pub payload_len: usize,
    /// The number of bytes of the whole message.
    pub len: usize,
}

/// The name of a part, with the names of the parts that contain it: `providers[0].filter.enable`. It is valid only during
/// the call of the function that receives the part.
pub struct Path {
    _private: [u8; 0],
}

/// An integer: `number`, sign-extended. `name` is the name of the value if it has one.
pub const DIPC_PART_NUMBER: u32 = 0;
/// A bool: `number` is 0 or 1.
pub const DIPC_PART_BOOL: u32 = 1;
/// A text: `text`, which can be null.
pub const DIPC_PART_TEXT: u32 = 2;
/// A GUID: 16 `bytes` in .NET's order.
pub const DIPC_PART_GUID: u32 = 3;
/// A result code: `number`. `name` is its name if it has one.
pub const DIPC_PART_HRESULT: u32 = 4;
/// A reserved number: `number`, which senders set to 0 and receivers ignore.
pub const DIPC_PART_RESERVED: u32 = 5;
/// Bytes of no other kind.
pub const DIPC_PART_BYTES: u32 = 6;

/// A part of a message: a field of the header or of the payload.
#[repr(C)]
pub struct Part<'p> {
    /// The name of the part; null in a part that `dipc_find` returns.
    pub path: *const Path,
    /// One of `DIPC_PART_*`.
    pub kind: u32,
    /// The offset of its bytes from the start of the message.
    pub offset: usize,
    /// The bytes of the part, inside the message. A text includes its NUL, but not its count, which is another part.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
    /// The value as a number, for the kinds that have one.
    pub number: u64,
    /// The value as a text, for `DIPC_PART_TEXT`.
    pub text: Text<'p>,
    /// The name of the value, or null.
    pub name: Text<'p>,
}

/// A function that receives the parts of a message, in order. It must return: no `longjmp`, no C++ exception.
pub type Visit = Option<unsafe extern "C" fn(context: *mut c_void, part: *const Part<'_>)>;

impl<'p> Part<'p> {
    fn new(part: &wire::Part<'p>) -> Self {
        let (kind, number, text, name) = match part.value {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it has at most 64 bits"
            )]
            PartValue::Number { number, name } => (DIPC_PART_NUMBER, number as u64, Text::NULL, name),
            PartValue::Bool(value) => (DIPC_PART_BOOL, value.into(), Text::NULL, None),
            PartValue::Text(text) => (DIPC_PART_TEXT, 0, Text::from(text), None),
            PartValue::Guid(_) => (DIPC_PART_GUID, 0, Text::NULL, None),
            PartValue::HResult(code) => (DIPC_PART_HRESULT, code.0.into(), Text::NULL, code.name()),
            PartValue::Reserved(number) => (DIPC_PART_RESERVED, number.into(), Text::NULL, None),
            _ => (DIPC_PART_BYTES, 0, Text::NULL, None),
        };
        Self {
            path: ptr::from_ref(&part.path).cast(),
            kind,
            offset: part.offset,
            bytes: part.bytes.as_ptr(),
            len: part.bytes.len(),
            number,
            text,
            name: Text::optional(name),
        }
    }
}

/// Parses the message at the front of `bytes`, and stores its parts in `message`, which then points into `bytes`.
///
/// Returns `DIPC_STATUS_MORE` if the message is longer than `bytes`; `detail` is the number of bytes needed in total, as
/// far as it is known. A wrong magic is an error at its first wrong byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parse(
    bytes: *const u8,
    len: usize,
    message: *mut Message,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        let (value, used) = complete(bytes)?;
        let (payload, payload_len) = (value.payload.as_ptr(), value.payload.len());
        let parsed = Message { code: value.code.0, payload, payload_len, len: used };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(message, parsed) }?;
        Ok(0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Returns the message at the front of the bytes, and its length.
pub(crate) fn complete(bytes: &[u8]) -> Result<(ProtoMessage<'_>, usize), Failure> {
    match ProtoMessage::parse(bytes)? {
        Parsed::Complete { value, used } => Ok((value, used)),
        Parsed::Partial { needed } => Err(Failure { status: Status::More, detail: needed }),
    }
}

/// Passes every part of the message at the front of `bytes` to `visit`, with `context`: the header, the fields, and as
/// `rest` the bytes after the known fields, in order and without a gap.
///
/// `answer_to` is the code of the command that an answer belongs to, or 0. Without it the payload of an OK answer is one
/// part, `payload`; so is the payload of an unknown command.
///
/// Returns an error if the message is malformed or cut off; the parts before it have been visited then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_inspect(
    bytes: *const u8,
    len: usize,
    answer_to: u16,
    visit: Visit,
    context: *mut c_void,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        let Some(visit) = visit else { return Err(Status::NullPointer.into()) };
        inspect(bytes, answer_to, &mut |part| {
            // SAFETY: the caller vouches for the function and its context.
            unsafe { visit(context, &Part::new(part)) }
        })
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

fn inspect(bytes: &[u8], answer_to: u16, visitor: &mut dyn FnMut(&wire::Part<'_>)) -> Outcome {
    let command = (answer_to != 0).then_some(Code(answer_to));
    ProtoMessage::inspect(bytes, command, visitor)?;
    Ok(0)
}

/// Finds the part of a message that has the name `path`, for example `clr_product_version` or `providers[0].name`, and
/// stores it in `part`. `answer_to` is as in `dipc_inspect`. Of two parts with one name, the last is found: the count of
/// a text has a name of its own, `NAME.count`.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if the message has no such part, and an error if the message is malformed or cut off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_find(
    bytes: *const u8,
    len: usize,
    answer_to: u16,
    path: *const c_char,
    part: *mut Part<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        memory::check(path, 1)?;
        let mut found = Err(Status::NotFound.into());
        inspect(bytes, answer_to, &mut |candidate| {
            let mut expected = Expected(path);
            let same = write!(expected, "{}", candidate.path).is_ok();
            // SAFETY: what was compared had no NUL, so this is still in the string.
            if same && unsafe { expected.0.read() } == 0 {
                // SAFETY: the caller vouches for `part`, which then points into `bytes`.
                found =
                    unsafe { memory::store(part.cast(), Part { path: ptr::null(), ..Part::new(candidate) }) };
            }
        })?;
        found.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// The rest of a C string with which text is compared. Writing fails at the first difference.
struct Expected(*const c_char);

impl Write for Expected {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for byte in s.bytes() {
            // SAFETY: all bytes before were equal to bytes that are not 0, so this is still in the string.
            if byte == 0 || unsafe { self.0.cast::<u8>().read() } != byte {
                return Err(fmt::Error);
            }
            self.0 = self.0.wrapping_add(1);
        }
        Ok(())
    }
}

/// Writes the name of a part into `text`, as UTF-8 with a NUL at the end.
///
/// `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
/// and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_path_text(
    path: *const Path,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the path, which `Part::new` made.
    let outcome = unsafe { memory::reference(path.cast::<wire::Path<'_>>()) }.and_then(|path| {
        // SAFETY: the caller vouches for the buffer.
        unsafe { memory::store_text(text, size, path) }
    });
    // SAFETY: the caller vouches for `len`.
    unsafe { report(outcome, len) }
}

/// Writes the name of the field that an error is about into `text`, as UTF-8 with a NUL at the end: `providers[3].level`.
///
/// `bytes` begin with the message, `answer_to` is as in `dipc_inspect`, and `status` and `detail` are those of the error: of
/// a value that runtimes refuse, or of malformed bytes.
///
/// `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
/// and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`. It returns
/// `DIPC_STATUS_NOT_FOUND` for an error that is about no field of this message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_status_field(
    bytes: *const u8,
    len: usize,
    answer_to: u16,
    status: i32,
    detail: usize,
    text: *mut c_char,
    size: usize,
    text_len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        if status == Status::Violation as i32 {
            let place = violation(bytes).ok_or(Status::NotFound)?.place;
            // SAFETY: the caller vouches for the pointers.
            return unsafe { memory::store_text(text, size, place) };
        }
        if status < Status::UnexpectedEnd as i32 {
            return Err(Status::NotFound.into());
        }
        let command = (answer_to != 0).then_some(Code(answer_to));
        let field = ProtoMessage::field_at(bytes, command, detail).ok_or(Status::NotFound)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store_text(text, size, field) }
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, text_len) }
}

/// Returns the value of the request that runtimes refuse.
fn violation(bytes: &[u8]) -> Option<InvalidValue> {
    let Ok(Parsed::Complete { value, .. }) = ProtoMessage::parse(bytes) else { return None };
    value.request().ok()?.check().err()
}

/// Checks the request at the front of `bytes` as a runtime does before it carries out the command.
///
/// Returns `DIPC_STATUS_VIOLATION` for a value that runtimes refuse, with the number of the rule in `detail`, and another
/// error for malformed bytes; `dipc_status_field` names the field. `hresult`, which can be null, then receives the code with which a runtime refuses the
/// request. An unknown command breaks no rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_check(
    bytes: *const u8,
    len: usize,
    hresult: *mut u32,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        let checked = match ProtoMessage::parse(bytes) {
            Ok(Parsed::Partial { needed }) => return Err(Failure { status: Status::More, detail: needed }),
            Ok(Parsed::Complete { value, .. }) => value.request().map_err(RequestError::from),
            Err(error) => Err(error.into()),
        };
        let Err(error) = checked.and_then(|request| request.into_checked()) else { return Ok(0) };
        if !hresult.is_null() {
            // SAFETY: the caller vouches for the pointers.
            unsafe { memory::store(hresult, HResult::from(error).0) }?;
        }
        Err(match error {
            RequestError::Decode(error) => error.into(),
            RequestError::Violation { violation, .. } => violation.into(),
            _ => Status::MalformedBytes.into(),
        })
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
