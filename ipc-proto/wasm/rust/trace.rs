//! NetTrace: a reader that turns the records of a trace into rows.
use core::ops::ControlFlow;
use core::slice;

use nettrace::{Counter, End, Event, Limits, LossCounter, Pairs, Parser, Record, Slot, Trace};

use crate::memory;
use crate::output::Output;

/// Kinds of [`Row`]. The caller has the same list.
#[derive(Clone, Copy)]
#[repr(u32)]
enum RowKind {
    Event,
    /// The description of a kind of event: the bytes for `describe_metadata`.
    Metadata,
    /// A call stack: addresses, each as wide as a pointer. `id` is the number by which events refer to it.
    Stack,
    /// The facts that the stream states about itself: the bytes of its pairs, for `describe_trace`.
    Trace,
    /// Stacks and label lists end here. `id` is 1 if threads end too, 2 if descriptions do, 3 if both.
    SequencePoint,
    /// The thread `thread`: the bytes for `describe_thread`.
    Thread,
    /// The thread `thread` ended.
    RemoveThread,
    /// A list of labels: the bytes for `describe_labels`. `id` is the number by which events refer to it.
    LabelList,
    /// A block whose rest cannot be read; the next row is of a later block.
    BadBlock,
}

/// A record of a trace. `start` and `len` are the range of its bytes in the window.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Row {
    /// A `RowKind`.
    kind: u32,
    /// Of an event, the number of its description. `RowKind` states the meaning for other rows.
    id: u32,
    start: u32,
    len: u32,
    stack: u32,
    processor: u32,
    sequence: u32,
    label_list: u32,
    timestamp: u64,
    thread: u64,
    capture_thread: u64,
    /// The index in the list of activities, from 1 on; 0 if there are none.
    activities: u32,
    is_sorted: u32,
}

/// The number of the stack in an event of version 3. A row for the stack precedes that of the event.
const OWN_STACK: u32 = u32::MAX;

/// The number of capture threads whose losses are counted.
const THREADS: usize = 4096;

/// The result of a call of [`reader_read`].
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Report {
    /// The number of rows.
    rows: u32,
    /// The bytes at the front of the window that are read: the next window begins after them.
    used: u32,
    /// 0 if the table of rows is full, 1 if the window has no further complete record, 2 at the end.
    status: u32,
    /// The number of bytes for which the next window must have room.
    needed: u32,
    /// The version of the stream: 3, 4 or 6.
    version: u32,
    /// 0 if the stream has its end mark, 1 if it is truncated, 2 if it is corrupt.
    end: u32,
    /// The offset of the end in the stream.
    end_offset: u64,
    lost: u64,
    lost_at_start: u64,
    /// How often there was no room to count the losses of a thread.
    untracked: u64,
    /// The number of pairs of activities.
    activities: u32,
    padding: u32,
}

/// A reader of a trace. The slots of `loss` follow it in memory.
#[repr(C)]
pub struct Reader {
    report: Report,
    parser: Parser,
    loss: LossCounter<&'static mut [Slot<Counter>]>,
    pub(crate) trace: Option<Trace<'static>>,
    end: Option<End>,
}

/// Returns the size of a reader, with the memory after it that it uses.
#[unsafe(no_mangle)]
pub extern "C" fn reader_size() -> usize {
    THREADS.saturating_mul(size_of::<Slot<Counter>>()).saturating_add(size_of::<Reader>())
}

/// Initialises a reader, in memory that is aligned to 8 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reader_init(reader: *mut Reader) {
    let first = reader.wrapping_add(1).cast::<Slot<Counter>>();
    for index in 0..THREADS {
        // SAFETY: the caller has reserved [`reader_size`] bytes, so this many slots follow the reader.
        unsafe { first.wrapping_add(index).write(Slot::default()) };
    }
    // SAFETY: the slots were initialised, only the counter uses them, and they do not move while the counter exists.
    let slots = unsafe { slice::from_raw_parts_mut(first, THREADS) };
    let new = Reader {
        report: Report::default(),
        parser: Parser::new(Limits::default()),
        loss: LossCounter::new(slots),
        trace: None,
        end: None,
    };
    // SAFETY: the caller vouches for the address.
    unsafe { reader.write(new) };
}

/// Rows and activities, in memory of the caller.
struct Table<'t> {
    rows: slice::IterMut<'t, Row>,
    activities: slice::IterMut<'t, [u8; 32]>,
    /// The number of activities.
    count: u32,
    /// The pair of activities that was added last.
    last: [u8; 32],
}

impl Table<'_> {
    /// Adds a row. The caller must have checked with [`is_full`](Self::is_full) that there is room.
    #[inline(always)]
    fn push(&mut self, row: Row) {
        if let Some(space) = self.rows.next() {
            *space = row;
        }
    }

    /// Returns whether there is no room for an event with its stack.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.rows.len() < 2
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, base: usize) {
        let mut stack = event.stack_id;
        if !event.stack.is_empty() {
            stack = OWN_STACK;
            self.push(
                Row { kind: RowKind::Stack as u32, id: OWN_STACK, ..Row::default() }.of(event.stack, base),
            );
        }
        let has_activities = event.activity_id.0 != [0; 16] || event.related_activity_id.0 != [0; 16];
        let activities = if has_activities { self.activities(event) } else { 0 };
        let row = Row {
            kind: RowKind::Event as u32,
            id: event.metadata_id,
            stack,
            processor: event.processor,
            sequence: event.sequence,
            label_list: event.label_list,
            timestamp: event.timestamp,
            thread: event.thread,
            capture_thread: event.capture_thread,
            activities,
            is_sorted: event.sorted.into(),
            ..Row::default()
        };
        self.push(row.of(event.payload, base));
    }

    /// Adds the activities of an event unless they are those of the last one, and returns their index.
    fn activities(&mut self, event: &Event<'_>) -> u32 {
        let mut pair = [0; 32];
        pair.iter_mut()
            .zip(event.activity_id.0.iter().chain(&event.related_activity_id.0))
            .for_each(|(to, from)| *to = *from);
        if self.count == 0 || pair != self.last {
            let Some(space) = self.activities.next() else { return 0 };
            *space = pair;
            self.last = pair;
            self.count = self.count.saturating_add(1);
        }
        self.count
    }
}

impl Row {
    /// Sets the range of the row's bytes in the window.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "addresses and lengths have 32 bits here")]
    fn of(self, bytes: &[u8], base: usize) -> Self {
        let start = (bytes.as_ptr() as usize).wrapping_sub(base) as u32;
        Self { start, len: bytes.len() as u32, ..self }
    }
}

/// Reads records from a window of the stream into rows, up to `capacity`, and activities into as many pairs of GUIDs.
///
/// The report is at the address of the reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reader_read(
    reader: *mut Reader,
    window: *const u8,
    len: usize,
    rows: *mut Row,
    activities: *mut [u8; 32],
    capacity: usize,
) {
    // SAFETY: the caller vouches for the address, and has initialised the reader.
    let reader = unsafe { &mut *reader };
    // SAFETY: the caller vouches for the address.
    let window = unsafe { memory::bytes(window, len) };
    // SAFETY: the caller vouches for the address.
    let rows = unsafe { memory::space(rows, capacity) };
    // SAFETY: the caller vouches for the address.
    let activities = unsafe { memory::space(activities, capacity) };
    let table = Table { rows: rows.iter_mut(), activities: activities.iter_mut(), count: 0, last: [0; 32] };
    reader.read(window, table, capacity);
}

/// Ends the stream after this window, which has no further complete record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reader_finish(reader: *mut Reader, window: *const u8, len: usize) {
    // SAFETY: the caller vouches for the address, and has initialised the reader.
    let reader = unsafe { &mut *reader };
    // SAFETY: the caller vouches for the address.
    let window = unsafe { memory::bytes(window, len) };
    let end = reader.parser.finish(window);
    reader.ends(end);
}

/// Writes the sentence that describes the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reader_end_text(reader: *const Reader, output: *mut Output) {
    // SAFETY: the caller vouches for the address, and has initialised the reader.
    let reader = unsafe { &*reader };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    if let Some(end) = reader.end {
        output.write(&end);
    }
}

impl Reader {
    #[allow(clippy::cast_possible_truncation, reason = "lengths have 32 bits here")]
    fn read(&mut self, window: &[u8], mut table: Table<'_>, capacity: usize) {
        self.report.status = 0;
        let base = window.as_ptr() as usize;
        while !table.is_full() {
            let Self { parser, loss, .. } = self;
            let flow = parser.try_for_each_event(window, |event| {
                loss.event(event);
                table.event(event, base);
                if table.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if flow.is_break() {
                break;
            }
            if let Some(status) = self.other(window, &mut table, base) {
                self.report.status = status;
                break;
            }
        }
        let report = &mut self.report;
        report.activities = table.count;
        report.rows = capacity.saturating_sub(table.rows.len()) as u32;
        report.used = self.parser.release() as u32;
        report.version = self.parser.version().number();
        report.lost = self.loss.lost_after_start();
        report.lost_at_start = self.loss.lost_at_start();
        report.untracked = self.loss.untracked();
    }

    /// Reads a record that is not an event. Returns a status if there is none.
    #[cold]
    #[inline(never)]
    #[allow(clippy::cast_possible_truncation, reason = "lengths have 32 bits here")]
    fn other(&mut self, window: &[u8], table: &mut Table<'_>, base: usize) -> Option<u32> {
        let record = self.parser.next(window);
        self.loss.record(&record);
        let row = |kind: RowKind, id| Row { kind: kind as u32, id, ..Row::default() };
        match record {
            Record::Metadata(record) => table.push(row(RowKind::Metadata, 0).of(record.payload, base)),
            Record::Stack(stack) => table.push(row(RowKind::Stack, stack.id).of(stack.bytes, base)),
            Record::Trace(trace) => {
                table.push(row(RowKind::Trace, 0).of(trace.pairs.as_bytes(), base));
                self.trace = Some(Trace { pairs: Pairs::default(), ..trace });
            }
            Record::SequencePoint(point) => table.push(row(RowKind::SequencePoint, point.flags & 3)),
            Record::Thread(thread) => table.push(
                Row { thread: thread.index, ..row(RowKind::Thread, 0) }.of(thread.entries.as_bytes(), base),
            ),
            Record::RemoveThread(thread) => {
                table.push(Row { thread: thread.thread, ..row(RowKind::RemoveThread, 0) });
            }
            Record::LabelList(list) => {
                table.push(row(RowKind::LabelList, list.id).of(list.labels.as_bytes(), base));
            }
            Record::BadBlock(_) => table.push(row(RowKind::BadBlock, 0)),
            Record::More { needed } => {
                self.report.needed = needed as u32;
                return Some(1);
            }
            Record::End(end) => {
                self.ends(end);
                return Some(2);
            }
            Record::Event(event) => table.event(&event, base),
            Record::Block(_) | Record::TimeRange(_) | Record::ThreadSequence(_) => {}
        }
        None
    }

    fn ends(&mut self, end: End) {
        self.end = Some(end);
        self.report.status = 2;
        (self.report.end, self.report.end_offset) = match end {
            End::Complete => (0, 0),
            End::Truncated { offset, .. } => (1, offset),
            End::Corrupt { offset, .. } => (2, offset),
        };
    }
}
