//! Labels of events.
use core::ffi::c_void;

use nettrace::{Label as ProtoLabel, Labels};

use crate::command::Guid;
use crate::memory;
use crate::status::{Outcome, Status, report};
use crate::text::Text;

/// The activity of the event: `guid`.
pub const DIPC_LABEL_ACTIVITY_ID: u32 = 1;
/// The activity that started the one of the event: `guid`.
pub const DIPC_LABEL_RELATED_ACTIVITY_ID: u32 = 2;
/// The trace id of W3C, in the order in which it is written: `guid`.
pub const DIPC_LABEL_TRACE_ID: u32 = 3;
/// The span id of W3C: `number`.
pub const DIPC_LABEL_SPAN_ID: u32 = 4;
/// A `name` and a `text`.
pub const DIPC_LABEL_TEXT: u32 = 5;
/// A `name` and a signed `number`, to be converted to `int64_t`.
pub const DIPC_LABEL_NUMBER: u32 = 6;
/// The opcode: `number`. This and the following kinds replace what the description of the event states.
pub const DIPC_LABEL_OPCODE: u32 = 7;
/// The keywords: `number`.
pub const DIPC_LABEL_KEYWORDS: u32 = 8;
/// The level: `number`.
pub const DIPC_LABEL_LEVEL: u32 = 9;
/// The version of the payload: `number`.
pub const DIPC_LABEL_VERSION: u32 = 10;

/// A property of an event.
#[repr(C)]
pub struct Label<'a> {
    /// One of `DIPC_LABEL_*`.
    pub kind: u32,
    /// The name, for the kinds that have one.
    pub name: Text<'a>,
    /// The value as a number.
    pub number: u64,
    /// The value as a text.
    pub text: Text<'a>,
    /// 16 bytes.
    pub guid: Guid,
}

impl<'a> From<ProtoLabel<'a>> for Label<'a> {
    fn from(label: ProtoLabel<'a>) -> Self {
        let (mut name, mut text, mut guid) = (Text::NULL, Text::NULL, [0; 16]);
        let (kind, number) = match label {
            ProtoLabel::ActivityId(id) => {
                guid = id.0;
                (DIPC_LABEL_ACTIVITY_ID, 0)
            }
            ProtoLabel::RelatedActivityId(id) => {
                guid = id.0;
                (DIPC_LABEL_RELATED_ACTIVITY_ID, 0)
            }
            ProtoLabel::TraceId(id) => {
                guid = id;
                (DIPC_LABEL_TRACE_ID, 0)
            }
            ProtoLabel::SpanId(id) => (DIPC_LABEL_SPAN_ID, id),
            ProtoLabel::Text(key, value) => {
                (name, text) = (Text::of_trace(key), Text::of_trace(value));
                (DIPC_LABEL_TEXT, 0)
            }
            ProtoLabel::Number(key, number) => {
                name = Text::of_trace(key);
                (DIPC_LABEL_NUMBER, number as u64)
            }
            ProtoLabel::Opcode(opcode) => (DIPC_LABEL_OPCODE, opcode.into()),
            ProtoLabel::Keywords(keywords) => (DIPC_LABEL_KEYWORDS, keywords),
            ProtoLabel::Level(level) => (DIPC_LABEL_LEVEL, level.into()),
            ProtoLabel::Version(version) => (DIPC_LABEL_VERSION, version.into()),
        };
        Self { kind, name, number, text, guid: Guid { bytes: guid } }
    }
}

/// A function that receives the labels of a list, in order. It must return: no `longjmp`, no C++ exception.
pub type VisitLabel = Option<unsafe extern "C" fn(context: *mut c_void, label: *const Label<'_>)>;

/// Passes the labels of a `dipc_label_list` to `visit`, with `context`. To keep a list longer than the window, copy its
/// bytes first.
///
/// Returns an error, and visits none, if the bytes are not a whole list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_labels(
    bytes: *const u8,
    len: usize,
    visit: VisitLabel,
    context: *mut c_void,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        let Some(visit) = visit else { return Err(Status::NullPointer.into()) };
        for label in Labels::from_bytes(bytes)? {
            // SAFETY: the caller vouches for the function and its context.
            unsafe { visit(context, &label.into()) };
        }
        Ok(0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
