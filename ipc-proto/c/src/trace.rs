//! NetTrace: records of a stream, descriptions of events, and the values of their payloads.
use core::ffi::{c_char, c_void};
use core::fmt::Write;
use core::marker::PhantomData;
use core::ptr;

use nettrace::{
    BlockKind, End as ProtoEnd, Event as ProtoEvent, Fields, Item, Label as ProtoLabel, Labels, Limits,
    Metadata as ProtoMetadata, Parser as ProtoParser, Record as ProtoRecord, Str, Value, Version, clr,
};

use crate::command::Guid;
use crate::memory::{self, Output};
use crate::place::{Opaque, content, place, shared};
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// A parser of a NetTrace stream of version 3 (NetPerf), 4 or 6, in memory of the caller. Set it to zeros or initialise it
/// before another function receives it.
#[repr(C)]
pub struct Parser {
    /// The state.
    pub opaque: [u64; 64],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for Parser {
    type Content = ProtoParser;
    const TAG: u64 = 0x6470_6363_9a75_e701;
}

/// The window has no further whole record: release it, add at least one byte, up to `u.needed` in total, and continue.
pub const DIPC_RECORD_MORE: u32 = 0;
/// A block begins: `u.block`.
pub const DIPC_RECORD_BLOCK: u32 = 1;
/// The facts that the stream states about itself: `u.trace`.
pub const DIPC_RECORD_TRACE: u32 = 2;
/// The description of a kind of event: the payload of `u.event`, for `dipc_metadata_decode`.
pub const DIPC_RECORD_METADATA: u32 = 3;
/// An event: `u.event`.
pub const DIPC_RECORD_EVENT: u32 = 4;
/// A call stack, to which later events refer: `u.stack`.
pub const DIPC_RECORD_STACK: u32 = 5;
/// A point in time at which the sequence numbers of all threads are known: `u.sequence_point`. Stacks and lists of labels
/// from before are no longer referred to.
pub const DIPC_RECORD_SEQUENCE_POINT: u32 = 6;
/// The last sequence number of a thread: `u.thread`.
pub const DIPC_RECORD_THREAD_SEQUENCE: u32 = 7;
/// A thread starts: `u.thread_start`. Only in version 6.
pub const DIPC_RECORD_THREAD: u32 = 8;
/// A thread ends: `u.thread`. Only in version 6.
pub const DIPC_RECORD_REMOVE_THREAD: u32 = 9;
/// A block whose rest cannot be read; the parser continues after it: `u.end`.
pub const DIPC_RECORD_BAD_BLOCK: u32 = 10;
/// The end of the stream: `u.end`. It is returned again by each further call.
pub const DIPC_RECORD_END: u32 = 11;
/// A record of another kind, which the C interface does not describe.
pub const DIPC_RECORD_OTHER: u32 = 12;
/// A list of labels, to which later events refer: `u.label_list`. Only in version 6.
pub const DIPC_RECORD_LABEL_LIST: u32 = 13;

/// The header and the payload of an event, or of a record that describes events.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event<'w> {
    /// The number of the description of the event.
    pub metadata_id: u32,
    /// The number of the event among those of its capture thread.
    pub sequence: u32,
    /// The thread that wrote the event.
    pub capture_thread: u64,
    /// The thread that the event is about; in version 6 the index of a thread record.
    pub thread: u64,
    /// The processor, or `UINT32_MAX` if it is unknown.
    pub processor: u32,
    /// The number of the stack; 0 for none. Version 3 has the stack in the event instead: `stack`.
    pub stack_id: u32,
    /// The time, in ticks: see `dipc_trace`.
    pub timestamp: u64,
    /// The activity, or zeros.
    pub activity_id: Guid,
    /// The related activity, or zeros.
    pub related_activity_id: Guid,
    /// The number of a list of labels, in version 6 only.
    pub label_list: u32,
    /// Whether no later event of the stream has an earlier time.
    pub sorted: bool,
    /// The payload.
    pub payload: *const u8,
    /// The length of the payload.
    pub payload_len: usize,
    /// The addresses of the stack, innermost first, each as wide as a pointer of the process. Only in version 3.
    pub stack: *const u8,
    /// The number of bytes of the stack.
    pub stack_len: usize,
    /// The owner of the payload.
    pub owner: PhantomData<&'w ()>,
}

/// What a stream states about itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Trace {
    /// The version of the stream: 3, 4 or 6.
    pub version: u32,
    /// Bytes of an address in a stack: 4 or 8.
    pub pointer_size: u32,
    /// Ticks of timestamps per second.
    pub frequency: u64,
    /// The timestamp when the session started.
    pub sync_ticks: u64,
    /// When the session started, in nanoseconds since 1970-01-01 UTC; 0 if that time does not exist.
    pub start_unix_nanoseconds: u64,
    /// The id of the process, or 0.
    pub process_id: u32,
    /// The number of its processors, or 0.
    pub processors: u32,
}

/// A block of a stream.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Block {
    /// The name of its kind in the format.
    pub name: Text<'static>,
    /// The offset of its header in the stream.
    pub offset: u64,
    /// The length of its body.
    pub len: u32,
}

/// A call stack.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stack {
    /// The number by which events refer to it.
    pub id: u32,
    /// The addresses, innermost first, each as wide as a pointer of the process, little-endian, not aligned.
    pub bytes: *const u8,
    /// Their number of bytes.
    pub len: usize,
}

/// A point in time at which the sequence numbers of all threads are known.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SequencePoint {
    /// The time, in ticks.
    pub timestamp: u64,
    /// Whether the numbers of threads and descriptions begin anew, in version 6 only: 1 for threads, 2 for descriptions.
    pub flags: u32,
    /// The number of the `DIPC_RECORD_THREAD_SEQUENCE` that follow.
    pub threads: u32,
}

/// A thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Thread {
    /// Its id, in version 6 its index.
    pub thread: u64,
    /// The sequence number of its last event.
    pub sequence: u32,
}

/// A thread that starts. Its number can be used again after its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadStart<'w> {
    /// The number by which events refer to it.
    pub thread: u64,
    /// The operating system's id of the thread, or `UINT64_MAX` if it is unknown.
    pub thread_id: u64,
    /// The id of its process, or `UINT64_MAX` for that of the trace.
    pub process_id: u64,
    /// Its name; empty if it has none.
    pub name: Text<'w>,
}

/// A list of labels, for `dipc_labels`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LabelList {
    /// The number by which events refer to it.
    pub id: u32,
    /// The labels.
    pub bytes: *const u8,
    /// Their number of bytes.
    pub len: usize,
}

/// The stream has its end mark.
pub const DIPC_END_COMPLETE: u32 = 0;
/// The stream ends without its end mark: at `offset`.
pub const DIPC_END_TRUNCATED: u32 = 1;
/// The stream has bytes that are not NetTrace: at `offset`.
pub const DIPC_END_CORRUPT: u32 = 2;

/// The end of a stream. `dipc_parser_end_text` returns the sentence for it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct End {
    /// One of `DIPC_END_*`.
    pub kind: u32,
    /// The offset in the stream.
    pub offset: u64,
}

/// The content of a record; its kind says which field is valid.
#[repr(C)]
#[derive(Clone, Copy)]
pub union RecordContent<'w> {
    /// The number of bytes that the next window needs.
    pub needed: usize,
    /// An event, or a description.
    pub event: Event<'w>,
    /// The facts about the stream.
    pub trace: Trace,
    /// A block.
    pub block: Block,
    /// A stack.
    pub stack: Stack,
    /// A sequence point.
    pub sequence_point: SequencePoint,
    /// A thread.
    pub thread: Thread,
    /// A thread that starts.
    pub thread_start: ThreadStart<'w>,
    /// A list of labels.
    pub label_list: LabelList,
    /// The end.
    pub end: End,
}

/// A record of a stream. Its pointers point into the window.
#[repr(C)]
pub struct Record<'w> {
    /// One of `DIPC_RECORD_*`.
    pub kind: u32,
    /// The content.
    pub u: RecordContent<'w>,
}

impl<'w> From<ProtoEvent<'w>> for Event<'w> {
    #[inline]
    fn from(event: ProtoEvent<'w>) -> Self {
        Self {
            metadata_id: event.metadata_id,
            sequence: event.sequence,
            capture_thread: event.capture_thread,
            thread: event.thread,
            processor: event.processor,
            stack_id: event.stack_id,
            timestamp: event.timestamp,
            activity_id: Guid { bytes: event.activity_id.0 },
            related_activity_id: Guid { bytes: event.related_activity_id.0 },
            label_list: event.label_list,
            sorted: event.sorted,
            payload: event.payload.as_ptr(),
            payload_len: event.payload.len(),
            stack: event.stack.as_ptr(),
            stack_len: event.stack.len(),
            owner: PhantomData,
        }
    }
}
impl From<ProtoEnd> for End {
    fn from(end: ProtoEnd) -> Self {
        match end {
            ProtoEnd::Complete => Self { kind: DIPC_END_COMPLETE, offset: 0 },
            ProtoEnd::Truncated { offset, .. } => Self { kind: DIPC_END_TRUNCATED, offset },
            ProtoEnd::Corrupt { offset, .. } => Self { kind: DIPC_END_CORRUPT, offset },
        }
    }
}

/// Converts a record that is not an event.
#[cold]
fn other<'w>(record: ProtoRecord<'w>, version: Version) -> (u32, RecordContent<'w>) {
    match record {
        ProtoRecord::More { needed } => (DIPC_RECORD_MORE, RecordContent { needed }),
        ProtoRecord::Block(block) => {
            let name = Text::utf8(BlockKind::name(block.kind, version));
            let block = Block { name, offset: block.offset, len: block.len };
            (DIPC_RECORD_BLOCK, RecordContent { block })
        }
        ProtoRecord::Trace(trace) => {
            let start = trace.sync_time.to_unix().map(|time| time.as_nanos());
            let trace = Trace {
                version: trace.version.number(),
                pointer_size: trace.pointer_size,
                frequency: trace.frequency,
                sync_ticks: trace.sync_ticks,
                start_unix_nanoseconds: start.and_then(|time| time.try_into().ok()).unwrap_or_default(),
                process_id: trace.process_id.unwrap_or_default(),
                processors: trace.processors.unwrap_or_default(),
            };
            (DIPC_RECORD_TRACE, RecordContent { trace })
        }
        ProtoRecord::Metadata(record) => (DIPC_RECORD_METADATA, RecordContent { event: record.into() }),
        ProtoRecord::Event(event) => (DIPC_RECORD_EVENT, RecordContent { event: event.into() }),
        ProtoRecord::Stack(stack) => {
            let stack = Stack { id: stack.id, bytes: stack.bytes.as_ptr(), len: stack.bytes.len() };
            (DIPC_RECORD_STACK, RecordContent { stack })
        }
        ProtoRecord::SequencePoint(point) => {
            let sequence_point =
                SequencePoint { timestamp: point.timestamp, flags: point.flags, threads: point.threads };
            (DIPC_RECORD_SEQUENCE_POINT, RecordContent { sequence_point })
        }
        ProtoRecord::ThreadSequence(row) => {
            let thread = Thread { thread: row.thread, sequence: row.sequence };
            (DIPC_RECORD_THREAD_SEQUENCE, RecordContent { thread })
        }
        ProtoRecord::Thread(row) => {
            let thread_start = ThreadStart {
                thread: row.index,
                thread_id: row.thread_id().unwrap_or(u64::MAX),
                process_id: row.process_id().unwrap_or(u64::MAX),
                name: Text::of_trace(row.name()),
            };
            (DIPC_RECORD_THREAD, RecordContent { thread_start })
        }
        ProtoRecord::LabelList(list) => {
            let bytes = list.labels.as_bytes();
            let label_list = LabelList { id: list.id, bytes: bytes.as_ptr(), len: bytes.len() };
            (DIPC_RECORD_LABEL_LIST, RecordContent { label_list })
        }
        ProtoRecord::RemoveThread(row) => {
            let thread = Thread { thread: row.thread, sequence: row.sequence };
            (DIPC_RECORD_REMOVE_THREAD, RecordContent { thread })
        }
        ProtoRecord::BadBlock(bad) => {
            let end = ProtoEnd::from(bad).into();
            (DIPC_RECORD_BAD_BLOCK, RecordContent { end })
        }
        ProtoRecord::End(end) => (DIPC_RECORD_END, RecordContent { end: end.into() }),
        _ => (DIPC_RECORD_OTHER, RecordContent { needed: 0 }),
    }
}

/// Initialises a parser. The largest block and the largest record that it accepts are 16 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_init(parser: *mut Parser) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { place(parser, ProtoParser::new(Limits::default())) };
    // SAFETY: no number is stored.
    unsafe { report(outcome.map(|()| 0), ptr::null_mut()) }
}

/// Returns the size of a `dipc_parser` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_parser_size() -> usize {
    size_of::<Parser>()
}

/// Stores the next record of the stream in `record`.
///
/// `window` is a piece of the stream: it begins where the last `dipc_parser_release` said, and the calls until the next
/// release have the same bytes, perhaps with more after them. For `DIPC_RECORD_MORE`, release the window:
///
/// ```c
/// size_t used = dipc_parser_release(&parser);
/// memmove(window, window + used, len -= used);
/// ssize_t n = read(fd, window + len, sizeof window - len);
/// if (n <= 0) dipc_parser_finish(&parser, window, len, &end); else len += n;
/// ```
///
/// A window must be able to hold `needed` bytes. Damaged streams are no errors of this function: the stream has an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_next(
    parser: *mut Parser,
    window: *const u8,
    len: usize,
    record: *mut Record<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { content(parser) }.and_then(|parser| -> Outcome {
        // SAFETY: as above.
        let window = unsafe { memory::slice(window, len) }?;
        // Nearly all records are events. They have a path of their own, on which they are copied once.
        if let Some(event) = parser.next_event(window) {
            let event = Record { kind: DIPC_RECORD_EVENT, u: RecordContent { event: event.into() } };
            // SAFETY: as above.
            return unsafe { memory::store::<Record<'_>>(record.cast(), event) }.map(|()| 0);
        }
        let (kind, u) = other(parser.next(window), parser.version());
        // SAFETY: as above.
        unsafe { memory::store::<Record<'_>>(record.cast(), Record { kind, u }) }.map(|()| 0)
    });
    // SAFETY: no number is stored.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Returns how many bytes at the front of the window the parser does not need any more: the next window begins after
/// them. 0 if `parser` is not initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_release(parser: *mut Parser) -> usize {
    // SAFETY: the caller vouches for the pointer.
    unsafe { content(parser) }.map_or(0, |parser| parser.release())
}

/// Makes the parser skip the rest of the block that began last. A reader that does not need its records is faster then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_skip_block(parser: *mut Parser) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(parser) }.map(|parser| parser.skip_block());
    // SAFETY: no number is stored.
    unsafe { report(outcome.map(|()| 0), ptr::null_mut()) }
}

/// Stores the end of a stream that has no bytes after `window` in `end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_finish(
    parser: *mut Parser,
    window: *const u8,
    len: usize,
    end: *mut End,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { content(parser) }.and_then(|parser| -> Outcome {
        // SAFETY: as above.
        let finished = parser.finish(unsafe { memory::slice(window, len) }?);
        // SAFETY: as above.
        unsafe { memory::store(end, finished.into()) }.map(|()| 0)
    });
    // SAFETY: no number is stored.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Writes the English sentence for the end of a stream that has no bytes after `window` into `text`, as UTF-8 with a NUL at
/// the end.
///
/// `written` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
/// and a NUL, `written` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_end_text(
    parser: *mut Parser,
    window: *const u8,
    len: usize,
    text: *mut c_char,
    size: usize,
    written: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { content(parser) }.and_then(|parser| -> Outcome {
        // SAFETY: as above.
        let end = parser.finish(unsafe { memory::slice(window, len) }?);
        // SAFETY: as above.
        let mut out = Output::new(unsafe { memory::slice_mut(text.cast(), size) }?);
        let _ = write!(out, "{end}"); // an output never fails
        out.finish()
    });
    // SAFETY: as above.
    unsafe { report(outcome, written) }
}

/// The description of a kind of event. Its texts point into the record that it was decoded from; so does the description
/// of the fields.
#[repr(C)]
pub struct Metadata<'a> {
    /// The number by which events refer to the description.
    pub id: u32,
    /// The event's number at its provider.
    pub event_id: u32,
    /// The provider of the event.
    pub provider: Text<'a>,
    /// The event's name; empty for events of the runtime: see `dipc_metadata_decode_runtime`.
    pub name: Text<'a>,
    /// The provider's keywords that enable this event.
    pub keywords: u64,
    /// The payload's version.
    pub version: u32,
    /// The level, from 1, critical, to 5, verbose; 0 is always on.
    pub level: u32,
    /// The opcode: 1 is start, 2 is stop; -1 if the record states none.
    pub opcode: i32,
    /// The first error in the description of the fields, or `DIPC_STATUS_OK`. The fields before it are valid.
    pub problem: Status,
    /// The fields of a payload, for `dipc_metadata_values`.
    pub fields: FieldList,
}

/// The description of the fields of a payload.
#[repr(C)]
pub struct FieldList {
    /// The state.
    pub opaque: [u64; 8],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for FieldList {
    type Content = Fields<'static>;
    const TAG: u64 = 0x6470_6363_9a75_e702;
}

/// Decodes a description: the payload of a `DIPC_RECORD_METADATA` of a stream of this `version`, which the `dipc_trace`
/// states. To keep the description longer than the window, copy the record first.
///
/// Returns an error for a malformed record; a later error is in `problem`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_metadata_decode(
    version: u32,
    record: *const u8,
    len: usize,
    metadata: *mut Metadata<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { decode(version, record, len, metadata, detail, |metadata| metadata) }
}

/// Decodes a description, and adds the name and the fields that it lacks if its event is one of the runtime's. The width of
/// an address in the trace, `pointer_size`, is 4 or 8. This function has a table of 28 KB.
///
/// Otherwise it does what `dipc_metadata_decode` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_metadata_decode_runtime(
    version: u32,
    pointer_size: u32,
    record: *const u8,
    len: usize,
    metadata: *mut Metadata<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        decode(version, record, len, metadata, detail, |metadata| clr::describe(metadata, pointer_size))
    }
}

/// Decodes a description.
///
/// # Safety
/// As the functions above.
unsafe fn decode(
    version: u32,
    record: *const u8,
    len: usize,
    metadata: *mut Metadata<'_>,
    detail: *mut usize,
    describe: impl FnOnce(ProtoMetadata<'static>) -> ProtoMetadata<'static>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(record, len) }.and_then(|record| -> Outcome {
        let version = match version {
            3 => Version::V3,
            4 => Version::V4,
            6 => Version::V6,
            _ => return Err(Status::InvalidArgument.into()),
        };
        let decoded = describe(ProtoMetadata::decode(version, record)?);
        let mut fields = FieldList { opaque: [0; 8] };
        // SAFETY: it is a local variable.
        unsafe { place(&raw mut fields, decoded.fields) }?;
        let decoded = Metadata {
            id: decoded.id,
            event_id: decoded.event_id,
            provider: Text::of_trace(decoded.provider),
            name: Text::of_trace(decoded.name),
            keywords: decoded.keywords,
            version: decoded.version,
            level: decoded.level,
            opcode: decoded.opcode.map_or(-1, i32::from),
            problem: decoded.problem.map_or(Status::Ok, |problem| problem.kind.into()),
            fields,
        };
        // SAFETY: as above.
        unsafe { memory::store::<Metadata<'_>>(metadata.cast(), decoded) }.map(|()| 0)
    });
    // SAFETY: as above.
    unsafe { report(outcome, detail) }
}

/// A bool: `number` is 0 or 1.
pub const DIPC_VALUE_BOOL: u32 = 0;
/// A signed integer: `number`, to be converted to `int64_t`.
pub const DIPC_VALUE_INT: u32 = 1;
/// An unsigned integer: `number`.
pub const DIPC_VALUE_UINT: u32 = 2;
/// A float of 32 or 64 bits: `real`.
pub const DIPC_VALUE_REAL: u32 = 3;
/// A text, or an array of characters: `text`.
pub const DIPC_VALUE_TEXT: u32 = 4;
/// A GUID: `guid`.
pub const DIPC_VALUE_GUID: u32 = 5;
/// A point in time: `number` is the count of 100 ns since 1601-01-01 UTC.
pub const DIPC_VALUE_TIME: u32 = 6;
/// An array of bytes: `bytes`.
pub const DIPC_VALUE_BYTES: u32 = 7;
/// The 16 bytes of a .NET `Decimal`: `guid`.
pub const DIPC_VALUE_DECIMAL: u32 = 8;
/// A code unit of UTF-16 or UTF-8: `number`.
pub const DIPC_VALUE_CODE_UNIT: u32 = 9;
/// An object begins; its fields follow.
pub const DIPC_VALUE_BEGIN_OBJECT: u32 = 10;
/// The innermost object ends.
pub const DIPC_VALUE_END_OBJECT: u32 = 11;
/// An array begins; its elements follow.
pub const DIPC_VALUE_BEGIN_ARRAY: u32 = 12;
/// The innermost array ends.
pub const DIPC_VALUE_END_ARRAY: u32 = 13;

/// A value of a payload.
#[repr(C)]
pub struct FieldValue<'a> {
    /// One of `DIPC_VALUE_*`.
    pub kind: u32,
    /// The name of the field; empty for an element of an array.
    pub name: Text<'a>,
    /// The value as a number.
    pub number: u64,
    /// The value as a number with a fraction.
    pub real: f64,
    /// The value as a text.
    pub text: Text<'a>,
    /// 16 bytes.
    pub guid: Guid,
    /// The bytes of an array.
    pub bytes: *const u8,
    /// Their number.
    pub len: usize,
}

impl<'a> From<Item<'a>> for FieldValue<'a> {
    fn from(item: Item<'a>) -> Self {
        let mut field = FieldValue {
            kind: 0,
            name: Text::of_trace(Str::EMPTY),
            number: 0,
            real: 0.0,
            text: Text::NULL,
            guid: Guid { bytes: [0; 16] },
            bytes: ptr::null(),
            len: 0,
        };
        let (kind, name) = match item {
            Item::Value { name, value } => (field.set(value), name),
            Item::BeginObject { name } => (DIPC_VALUE_BEGIN_OBJECT, name),
            Item::EndObject => (DIPC_VALUE_END_OBJECT, Str::EMPTY),
            Item::BeginArray { name } => (DIPC_VALUE_BEGIN_ARRAY, name),
            Item::EndArray => (DIPC_VALUE_END_ARRAY, Str::EMPTY),
        };
        (field.kind, field.name) = (kind, Text::of_trace(name));
        field
    }
}

impl<'a> FieldValue<'a> {
    /// Sets the value, and returns its kind.
    fn set(&mut self, value: Value<'a>) -> u32 {
        let (kind, number) = match value {
            Value::Boolean(value) => (DIPC_VALUE_BOOL, value.into()),
            Value::CodeUnit(unit) => (DIPC_VALUE_CODE_UNIT, unit.into()),
            Value::Int(number) => (DIPC_VALUE_INT, number as u64),
            Value::UInt(number) => (DIPC_VALUE_UINT, number),
            Value::DateTime(time) => (DIPC_VALUE_TIME, time.0),
            Value::Single(number) => {
                self.real = number.into();
                (DIPC_VALUE_REAL, 0)
            }
            Value::Double(number) => {
                self.real = number;
                (DIPC_VALUE_REAL, 0)
            }
            Value::Text(text) => {
                self.text = Text::of_trace(text);
                (DIPC_VALUE_TEXT, 0)
            }
            Value::Guid(guid) => {
                self.guid.bytes = guid.0;
                (DIPC_VALUE_GUID, 0)
            }
            Value::Decimal(bytes) => {
                self.guid.bytes = bytes;
                (DIPC_VALUE_DECIMAL, 0)
            }
            Value::Bytes(bytes) => {
                (self.bytes, self.len) = (bytes.as_ptr(), bytes.len());
                (DIPC_VALUE_BYTES, 0)
            }
            _ => (DIPC_VALUE_BYTES, 0),
        };
        self.number = number;
        kind
    }
}

/// A function that receives the values of a payload, in order, and returns whether it wants the next one. It must return:
/// no `longjmp`, no C++ exception.
pub type VisitValue =
    Option<unsafe extern "C" fn(context: *mut c_void, value: *const FieldValue<'_>) -> bool>;

/// Passes the values of a payload to `visit`, with `context`, by the description of its event. Each begin of an object or
/// array has its end, unless `visit` returns false.
///
/// Returns an error if the payload does not fit its description, which occurs in valid traces too: the values before it
/// have been visited then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_metadata_values(
    metadata: *const Metadata<'_>,
    payload: *const u8,
    len: usize,
    visit: VisitValue,
    context: *mut c_void,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers, and for the record that the description was decoded from.
    let outcome = unsafe { memory::reference(metadata) }.and_then(|metadata| {
        // SAFETY: it is a reference.
        unsafe { shared(&raw const metadata.fields) }
    });
    let outcome = outcome.and_then(|fields| -> Outcome {
        let Some(visit) = visit else { return Err(Status::NullPointer.into()) };
        // SAFETY: as above.
        let mut values = fields.values(unsafe { memory::slice(payload, len) }?);
        for item in values.by_ref() {
            // SAFETY: the caller vouches for the function and its context.
            if !unsafe { visit(context, &item.into()) } {
                return Ok(0);
            }
        }
        match values.error() {
            Some(error) => Err(Failure::from(error)),
            None => Ok(0),
        }
    });
    // SAFETY: as above.
    unsafe { report(outcome, detail) }
}

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
    // SAFETY: as above.
    unsafe { report(outcome, detail) }
}
