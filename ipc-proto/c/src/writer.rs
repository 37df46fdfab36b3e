//! The writer of NetTrace streams.
use core::ptr;
use core::time::Duration;

use ipc_proto::Guid as ProtoGuid;
use nettrace::{
    CalendarTime, Event as ProtoEvent, Fields, Metadata as ProtoMetadata, Scalar,
    SequencePoint as ProtoPoint, Stack as ProtoStack, ThreadSequence, Trace as ProtoTrace, TraceBytes,
    TraceWriter, Version, WriteError,
};

use crate::memory;
use crate::place::{Opaque, content, place, take};
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;
use crate::trace::{Event, SequencePoint, Stack, Thread, Trace};

/// A writer of a NetTrace stream of version 4, the version of current runtimes, in memory of the caller. Set it to zeros or
/// initialise it before another function receives it.
///
/// Every function that writes a record takes it and stores in `out` the bytes that the caller must output then: mostly
/// none. An error leaves the record out.
///
/// ```c
/// status = dipc_writer_event(&writer, &event, &out);
/// if (status == DIPC_STATUS_OK) write_all(fd, out.data, out.len);
/// ```
///
/// A record that another one refers to is written before it.
#[repr(C)]
pub struct Writer {
    /// The state.
    pub opaque: [u64; 72],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for Writer {
    type Content = TraceWriter<'static>;
    const TAG: u64 = 0x6470_6363_9a75_e704;
}

/// Bytes to output, in the buffer of the writer. They are valid until the next function receives the writer. Those of
/// `dipc_writer_finish` are valid as long as the buffer.
#[repr(C)]
pub struct Output {
    /// The first byte.
    pub data: *const u8,
    /// The number of bytes.
    pub len: usize,
}

/// A bool of 4 bytes.
pub const DIPC_TYPE_BOOL: u32 = 3;
/// A signed integer of 1 byte.
pub const DIPC_TYPE_INT8: u32 = 5;
/// An unsigned integer of 1 byte.
pub const DIPC_TYPE_UINT8: u32 = 6;
/// A signed integer of 2 bytes.
pub const DIPC_TYPE_INT16: u32 = 7;
/// An unsigned integer of 2 bytes.
pub const DIPC_TYPE_UINT16: u32 = 8;
/// A signed integer of 4 bytes.
pub const DIPC_TYPE_INT32: u32 = 9;
/// An unsigned integer of 4 bytes.
pub const DIPC_TYPE_UINT32: u32 = 10;
/// A signed integer of 8 bytes.
pub const DIPC_TYPE_INT64: u32 = 11;
/// An unsigned integer of 8 bytes.
pub const DIPC_TYPE_UINT64: u32 = 12;
/// A float of 4 bytes.
pub const DIPC_TYPE_FLOAT: u32 = 13;
/// A float of 8 bytes.
pub const DIPC_TYPE_DOUBLE: u32 = 14;
/// A point in time: 8 bytes, units of 100 ns since 1601-01-01 UTC.
pub const DIPC_TYPE_TIME: u32 = 16;
/// A GUID.
pub const DIPC_TYPE_GUID: u32 = 17;
/// UTF-16 in little-endian byte order, with a NUL at the end.
pub const DIPC_TYPE_UTF16: u32 = 18;
/// The most fields of an event that `dipc_writer_describe` can describe.
pub const DIPC_MAX_FIELDS: usize = 32;

/// A field of the payload of an event.
#[repr(C)]
pub struct Field<'a> {
    /// The name, in UTF-8.
    pub name: Text<'a>,
    /// One of `DIPC_TYPE_*`.
    pub kind: u32,
}

/// The description of a kind of event, for a writer. The values of a payload follow each other without gaps, in
/// little-endian byte order.
#[repr(C)]
pub struct Description<'a> {
    /// The number by which events refer to the description; not 0.
    pub id: u32,
    /// The event's number at its provider.
    pub event_id: u32,
    /// The provider of the event, in UTF-8.
    pub provider: Text<'a>,
    /// The event's name, in UTF-8.
    pub name: Text<'a>,
    /// The provider's keywords that enable this event.
    pub keywords: u64,
    /// The payload's version.
    pub version: u32,
    /// The level, from 1, critical, to 5, verbose; 0 is always on.
    pub level: u32,
    /// The fields of a payload.
    pub fields: *const Field<'a>,
    /// The number of fields, at most `DIPC_MAX_FIELDS`.
    pub field_count: usize,
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::BufferTooSmall { needed } => Self { status: Status::BufferTooSmall, detail: needed },
            WriteError::TooLong { len } => Self { status: Status::MessageTooLong, detail: len },
            _ => Status::InvalidArgument.into(),
        }
    }
}

/// Writes a record, and stores the bytes to output.
///
/// # Safety
/// `writer` points to a writer that nothing else uses, and `out` to space for an output.
unsafe fn write(
    writer: *mut Writer,
    out: *mut Output,
    record: impl FnOnce(&mut TraceWriter<'static>) -> Result<Output, Failure>,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(writer) }.and_then(|writer| -> Outcome {
        memory::check(out, 1)?;
        let bytes = record(writer)?;
        // SAFETY: the caller vouches for `out`.
        unsafe { memory::store(out, bytes) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

fn output(bytes: TraceBytes<'_>) -> Output {
    Output { data: bytes.as_ptr(), len: bytes.len() }
}

/// Starts a stream, which states `trace` first; the version in it is ignored. The writer uses the buffer until it is
/// finished. A record of `n` bytes needs a buffer of `2 * n + 400` bytes at most; 4 KiB are enough for small events.
///
/// Returns `DIPC_STATUS_INVALID_ARGUMENT` for a frequency of 0 and a pointer size other than 4 and 8, and
/// `DIPC_STATUS_BUFFER_TOO_SMALL` if there is no room for any record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_init(
    writer: *mut Writer,
    trace: *const Trace,
    buf: *mut u8,
    size: usize,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::reference(trace) }.and_then(|trace| -> Outcome {
        let start = Duration::from_nanos(trace.start_unix_nanoseconds);
        let first = ProtoTrace {
            sync_time: CalendarTime::from_unix(start).unwrap_or_default(),
            sync_ticks: trace.sync_ticks,
            frequency: trace.frequency,
            pointer_size: trace.pointer_size,
            process_id: Some(trace.process_id),
            processors: Some(trace.processors),
            ..ProtoTrace::new(Version::V4)
        };
        if first.check().is_err() {
            return Err(Status::InvalidArgument.into());
        }
        // SAFETY: the caller vouches for the pointers.
        let new = TraceWriter::new(&first, unsafe { memory::slice_mut(buf, size) }?)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { place(writer, new) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Returns the size of a `dipc_writer` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_writer_size() -> usize {
    size_of::<Writer>()
}

/// Writes the description of a kind of event.
///
/// Returns `DIPC_STATUS_INVALID_ARGUMENT` for a text that is not UTF-8, an unknown type, and too many fields.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_describe(
    writer: *mut Writer,
    description: *const Description<'_>,
    out: *mut Output,
) -> Status {
    let record = |writer: &mut TraceWriter<'static>| {
        // SAFETY: the caller vouches for the pointer.
        let given = unsafe { memory::reference(description) }?;
        // SAFETY: the caller vouches for the pointer.
        let fields = unsafe { memory::slice(given.fields, given.field_count) }?;
        let mut pairs = [("", Scalar::Int32); DIPC_MAX_FIELDS];
        let pairs = pairs.get_mut(..fields.len()).ok_or(Status::InvalidArgument)?;
        for (pair, field) in pairs.iter_mut().zip(fields) {
            // SAFETY: the caller vouches for the pointer.
            *pair = (unsafe { field.name.str() }?, scalar(field.kind)?);
        }
        // The names of 32 fields with 30 characters each.
        let mut space = [0; 1280];
        // SAFETY: the caller vouches for the pointer.
        let provider = unsafe { given.provider.str() }?;
        // SAFETY: the caller vouches for the pointer.
        let name = unsafe { given.name.str() }?;
        let mut metadata = ProtoMetadata::new(given.id, provider, given.event_id, name);
        (metadata.keywords, metadata.version, metadata.level) = (given.keywords, given.version, given.level);
        metadata.fields = Fields::build(pairs, &mut space)?;
        Ok(output(writer.describe(&metadata)?))
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { write(writer, out, record) }
}

fn scalar(kind: u32) -> Result<Scalar, Failure> {
    let number = match kind {
        DIPC_TYPE_BOOL | DIPC_TYPE_INT8..=DIPC_TYPE_DOUBLE | DIPC_TYPE_TIME..=DIPC_TYPE_UTF16 => kind,
        _ => return Err(Status::InvalidArgument.into()),
    };
    u8::try_from(number).ok().and_then(Scalar::from_number).ok_or(Status::InvalidArgument.into())
}

/// Writes a stack. Numbers of stacks begin again after a sequence point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_stack(
    writer: *mut Writer,
    stack: *const Stack,
    out: *mut Output,
) -> Status {
    let record = |writer: &mut TraceWriter<'static>| {
        // SAFETY: the caller vouches for the pointer.
        let stack = unsafe { memory::reference(stack) }?;
        // SAFETY: the caller vouches for the pointer.
        let bytes = unsafe { memory::slice(stack.bytes, stack.len) }?;
        Ok(output(writer.stack(&ProtoStack { id: stack.id, bytes })?))
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { write(writer, out, record) }
}

/// Writes an event, without its `stack`: it refers to one by `stack_id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_event(
    writer: *mut Writer,
    event: *const Event<'_>,
    out: *mut Output,
) -> Status {
    let record = |writer: &mut TraceWriter<'static>| {
        // SAFETY: the caller vouches for the pointer.
        let event = unsafe { memory::reference(event) }?;
        // SAFETY: the caller vouches for the pointer.
        let payload = unsafe { memory::slice(event.payload, event.payload_len) }?;
        Ok(output(writer.event(&ProtoEvent {
            metadata_id: event.metadata_id,
            sequence: event.sequence,
            capture_thread: event.capture_thread,
            processor: event.processor,
            thread: event.thread,
            stack_id: event.stack_id,
            timestamp: event.timestamp,
            activity_id: ProtoGuid(event.activity_id.bytes),
            related_activity_id: ProtoGuid(event.related_activity_id.bytes),
            label_list: 0,
            sorted: event.sorted,
            payload,
            stack: &[],
        })?))
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { write(writer, out, record) }
}

/// Writes a sequence point after all records before it. The sequences of its threads follow; the writer counts them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_sequence_point(
    writer: *mut Writer,
    point: *const SequencePoint,
    out: *mut Output,
) -> Status {
    let record = |writer: &mut TraceWriter<'static>| {
        // SAFETY: the caller vouches for the pointer.
        let point = unsafe { memory::reference(point) }?;
        Ok(output(writer.sequence_point(&ProtoPoint {
            timestamp: point.timestamp,
            flags: point.flags,
            threads: 0,
        })?))
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { write(writer, out, record) }
}

/// Writes the number of a thread's last event before the sequence point.
///
/// Returns `DIPC_STATUS_INVALID_ARGUMENT` if the record before it is of another kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_thread_sequence(
    writer: *mut Writer,
    thread: *const Thread,
    out: *mut Output,
) -> Status {
    let record = |writer: &mut TraceWriter<'static>| {
        // SAFETY: the caller vouches for the pointer.
        let row = unsafe { memory::reference(thread) }?;
        let row = ThreadSequence { thread: row.thread, sequence: row.sequence };
        Ok(output(writer.thread_sequence(&row)?))
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { write(writer, out, record) }
}

/// Ends the unfinished blocks, so that their bytes are output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_flush(writer: *mut Writer, out: *mut Output) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { write(writer, out, |writer| Ok(output(writer.flush()))) }
}

/// Ends the stream: as `dipc_writer_flush`, with the end mark. No record can follow: the writer is as if set to zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_writer_finish(writer: *mut Writer, out: *mut Output) -> Status {
    let outcome = memory::check(out, 1).and_then(|()| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let content = unsafe { take(writer) }?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(out, output(content.finish())) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}
