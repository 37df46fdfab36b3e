//! NetTrace: the records of a stream.
use core::ffi::c_char;
use core::marker::PhantomData;
use core::ptr;

use nettrace::{
    BlockKind, End as ProtoEnd, Event as ProtoEvent, Limits, Parser as ProtoParser, Record as ProtoRecord,
};

use crate::command::Guid;
use crate::memory;
use crate::place::{Opaque, content, place, with};
use crate::status::{Outcome, Status, report};
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
    /// The number of the stack, which can be an empty one; 0 for none. Version 3 has the stack in the event instead: `stack`.
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
    /// The number by which events refer to the stack.
    pub id: u32,
    /// The addresses, innermost first, each as wide as a pointer of the process, little-endian, not aligned.
    pub bytes: *const u8,
    /// The number of bytes.
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
    /// The id of the thread, in version 6 its index.
    pub thread: u64,
    /// The sequence number of its last event.
    pub sequence: u32,
}

/// A thread that starts. Its number can be used again after its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadStart<'w> {
    /// The number by which events refer to the thread.
    pub thread: u64,
    /// The operating system's id of the thread, or `UINT64_MAX` if it is unknown.
    pub thread_id: u64,
    /// The id of its process, or `UINT64_MAX` for that of the trace.
    pub process_id: u64,
    /// The name of the thread; empty if it has none.
    pub name: Text<'w>,
}

/// A list of labels, for `dipc_labels`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LabelList {
    /// The number by which events refer to the list.
    pub id: u32,
    /// The labels.
    pub bytes: *const u8,
    /// The number of bytes.
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

/// The content of a record; its kind states which field is valid.
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

/// Stores a record that is not an event.
///
/// # Safety
/// `at` points to space for a record.
#[inline(never)]
unsafe fn store_other<'w>(at: *mut Record<'w>, parser: &ProtoParser, record: ProtoRecord<'w>) {
    // Each kind is stored by itself, so that nothing is copied that it does not have.
    // SAFETY: the caller vouches for the pointer.
    let store = |kind, u| unsafe { at.write(Record { kind, u }) };
    match record {
        ProtoRecord::More { needed } => store(DIPC_RECORD_MORE, RecordContent { needed }),
        ProtoRecord::Block(block) => {
            let name = Text::utf8(BlockKind::name(block.kind, parser.version()));
            let block = Block { name, offset: block.offset, len: block.len };
            store(DIPC_RECORD_BLOCK, RecordContent { block })
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
            store(DIPC_RECORD_TRACE, RecordContent { trace })
        }
        ProtoRecord::Metadata(record) => store(DIPC_RECORD_METADATA, RecordContent { event: record.into() }),
        ProtoRecord::Stack(stack) => {
            let stack = Stack { id: stack.id, bytes: stack.bytes.as_ptr(), len: stack.bytes.len() };
            store(DIPC_RECORD_STACK, RecordContent { stack })
        }
        ProtoRecord::SequencePoint(point) => {
            let sequence_point =
                SequencePoint { timestamp: point.timestamp, flags: point.flags, threads: point.threads };
            store(DIPC_RECORD_SEQUENCE_POINT, RecordContent { sequence_point })
        }
        ProtoRecord::ThreadSequence(row) => {
            let thread = Thread { thread: row.thread, sequence: row.sequence };
            store(DIPC_RECORD_THREAD_SEQUENCE, RecordContent { thread })
        }
        ProtoRecord::Thread(row) => {
            let thread_start = ThreadStart {
                thread: row.index,
                thread_id: row.thread_id().unwrap_or(u64::MAX),
                process_id: row.process_id().unwrap_or(u64::MAX),
                name: Text::of_trace(row.name()),
            };
            store(DIPC_RECORD_THREAD, RecordContent { thread_start })
        }
        ProtoRecord::LabelList(list) => {
            let bytes = list.labels.as_bytes();
            let label_list = LabelList { id: list.id, bytes: bytes.as_ptr(), len: bytes.len() };
            store(DIPC_RECORD_LABEL_LIST, RecordContent { label_list })
        }
        ProtoRecord::RemoveThread(row) => {
            let thread = Thread { thread: row.thread, sequence: row.sequence };
            store(DIPC_RECORD_REMOVE_THREAD, RecordContent { thread })
        }
        ProtoRecord::BadBlock(bad) => {
            let end = ProtoEnd::from(bad).into();
            store(DIPC_RECORD_BAD_BLOCK, RecordContent { end })
        }
        ProtoRecord::End(end) => store(DIPC_RECORD_END, RecordContent { end: end.into() }),
        _ => store(DIPC_RECORD_OTHER, RecordContent { needed: 0 }),
    }
}

/// Initialises a parser. The largest block and the largest record that it accepts are 16 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_init(parser: *mut Parser) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { place(parser, ProtoParser::new(Limits::default())) };
    // SAFETY: `detail` is null.
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
/// A window must be able to hold `needed` bytes. Damaged streams are not errors of this function: the stream has an
/// end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_next(
    parser: *mut Parser,
    window: *const u8,
    len: usize,
    record: *mut Record<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { content(parser) }.and_then(|parser| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let window = unsafe { memory::slice(window, len) }?;
        memory::check(record, 1)?;
        match parser.next(window) {
            // Nearly all records are events. They have a path of their own, on which they are copied once.
            ProtoRecord::Event(event) => {
                let event = Record { kind: DIPC_RECORD_EVENT, u: RecordContent { event: event.into() } };
                // SAFETY: the pointer was checked; the caller vouches for the rest.
                unsafe { record.cast::<Record<'_>>().write(event) };
            }
            // SAFETY: the pointer was checked.
            other => unsafe { store_other(record.cast(), parser, other) },
        }
        Ok(0)
    });
    // SAFETY: `detail` is null.
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
    unsafe { with(parser, ptr::null_mut(), |parser| parser.skip_block()) }
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
        // SAFETY: the caller vouches for the pointers.
        let finished = parser.finish(unsafe { memory::slice(window, len) }?);
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(end, finished.into()) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
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
        // SAFETY: the caller vouches for the pointers.
        let end = parser.finish(unsafe { memory::slice(window, len) }?);
        // SAFETY: the caller vouches for the buffer.
        unsafe { memory::store_text(text, size, end) }
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, written) }
}
