//! Batches of events, as columns of the caller.
use core::ops::ControlFlow;
use core::ptr;

use nettrace::{Event as ProtoEvent, Parser as ProtoParser};

use crate::command::Guid;
use crate::memory;
use crate::place::content;
use crate::status::{Failure, Outcome, Status, report};
use crate::trace::Parser;

/// Defines the columns. Each has an expression that reads its value from an event in a window.
macro_rules! columns {
    (
        $event:ident, $window:ident;
        [common] $($(#[$meta:meta])* $name:ident: $of:ty = $value:expr;)*
        [other] $($(#[$other_meta:meta])* $other:ident: $other_of:ty = $other_value:expr;)*
    ) => {
        /// The columns of a batch of events. Each is an array with room for all events of the batch, or null if the
        /// program does not need it. A structure of zeros has no columns.
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct EventColumns {
            $($(#[$meta])* pub $name: *mut $of,)*
            $($(#[$other_meta])* pub $other: *mut $other_of,)*
        }

        impl EventColumns {
            /// Checks the pointers of columns with so many rows.
            fn check(&self, rows: usize) -> Result<&Self, Failure> {
                $(check(self.$name, rows)?;)*
                $(check(self.$other, rows)?;)*
                Ok(self)
            }

            /// Returns whether there is a column that most programs do not need.
            fn has_others(&self) -> bool {
                $(!self.$other.is_null())||*
            }

            /// Stores an event as a row.
            ///
            /// # Safety
            /// The columns have this row.
            #[inline(always)]
            unsafe fn store(&self, row: usize, $event: &ProtoEvent<'_>, $window: &[u8]) {
                // SAFETY: the caller vouches for the row.
                $(unsafe { store(self.$name, row, $value) };)*
            }

            /// Stores the other parts of an event in its row.
            ///
            /// # Safety
            /// The columns have this row.
            #[inline(always)]
            unsafe fn store_others(&self, row: usize, $event: &ProtoEvent<'_>, $window: &[u8]) {
                // SAFETY: the caller vouches for the row.
                $(unsafe { store(self.$other, row, $other_value) };)*
            }
        }
    };
}

columns! {
    event, window;
    [common]
    /// The number of the description of the event.
    metadata_id: u32 = event.metadata_id;
    /// The time, in ticks: see `dipc_trace`.
    timestamp: u64 = event.timestamp;
    /// The thread that the event is about; in version 6 the index of a thread record.
    thread: u64 = event.thread;
    /// The number of the stack, which can be an empty one; 0 for none.
    stack_id: u32 = event.stack_id;
    /// The offset of the payload in the window; 0 if it is empty.
    payload_offset: usize = offset(event.payload, window);
    /// The length of the payload.
    payload_len: usize = event.payload.len();
    [other]
    /// The thread that wrote the event.
    capture_thread: u64 = event.capture_thread;
    /// The number of the event among those of its capture thread.
    sequence: u32 = event.sequence;
    /// The processor, or `UINT32_MAX` if it is unknown.
    processor: u32 = event.processor;
    /// The number of a list of labels, in version 6 only.
    label_list: u32 = event.label_list;
    /// Whether no later event of the stream has an earlier time.
    sorted: bool = event.sorted;
    /// The activity, or zeros.
    activity_id: Guid = Guid { bytes: event.activity_id.0 };
    /// The related activity, or zeros.
    related_activity_id: Guid = Guid { bytes: event.related_activity_id.0 };
    /// The offset in the window of the addresses of the stack, in version 3 only; 0 if there are none.
    stack_offset: usize = offset(event.stack, window);
    /// The number of bytes of these addresses.
    stack_len: usize = event.stack.len();
}

/// Checks the pointer of a column with so many rows.
fn check<T>(column: *mut T, rows: usize) -> Result<(), Failure> {
    if column.is_null() { Ok(()) } else { memory::check(column, rows) }
}

/// Stores a value in a row, if the program needs the column.
///
/// # Safety
/// The column has this row.
#[inline(always)]
unsafe fn store<T>(column: *mut T, row: usize, value: T) {
    if !column.is_null() {
        // SAFETY: the caller vouches for the row.
        unsafe { column.wrapping_add(row).write(value) };
    }
}

/// Returns the offset of a part of the window; 0 if the part is empty.
#[inline(always)]
fn offset(part: &[u8], window: &[u8]) -> usize {
    if part.is_empty() { 0 } else { part.as_ptr().addr().wrapping_sub(window.as_ptr().addr()) }
}

/// Stores as many of the next events of the stream as `columns` have `room` for, and their number in `count`.
///
/// It stops before the first record that is not an event, which `dipc_parser_next` then returns, and does not return an
/// event if there is no room. It needs a fraction of the time of one call for each event. `window` is that of
/// `dipc_parser_next`; offsets are valid until the next `dipc_parser_release`.
///
/// ```c
/// uint64_t times[1024];
/// dipc_event_columns columns = {0};
/// columns.timestamp = times;
/// do {
///     while (dipc_parser_next_events(&parser, window, len, &columns, 1024, &count) == DIPC_STATUS_OK && count > 0)
///         add(times, count);
///     dipc_parser_next(&parser, window, len, &record);
/// } while (handle(&record));
/// ```
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_parser_next_events(
    parser: *mut Parser,
    window: *const u8,
    len: usize,
    columns: *const EventColumns,
    room: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { content(parser) }.and_then(|parser| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let columns = unsafe { memory::reference(columns) }?;
        // SAFETY: the caller vouches for the pointers.
        let window = unsafe { memory::slice(window, len) }?;
        memory::check(count, 1)?;
        // A program also calls the function before each of many stacks, so it returns early then.
        let stored = if !parser.is_before_event(window) {
            0
        } else if columns.check(room)?.has_others() {
            // SAFETY: the columns were checked.
            unsafe { store_events::<true>(parser, window, *columns, room) }
        } else {
            // SAFETY: the columns were checked.
            unsafe { store_events::<false>(parser, window, *columns, room) }
        };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(count, stored) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Stores the next events in the columns, and returns their number. Without `OTHERS`, the other parts of an event are never
/// in memory, which takes a fifth less time.
///
/// # Safety
/// The columns have so many rows.
#[inline(never)]
unsafe fn store_events<const OTHERS: bool>(
    parser: &mut ProtoParser,
    window: &[u8],
    columns: EventColumns,
    rows: usize,
) -> usize {
    let mut row = 0_usize;
    if rows == 0 {
        return row;
    }
    let _ = parser.try_for_each_event(window, |event| {
        // SAFETY: the caller vouches for the columns.
        unsafe { columns.store(row, event, window) };
        if OTHERS {
            // SAFETY: the caller vouches for the columns.
            unsafe { columns.store_others(row, event, window) };
        }
        row = row.wrapping_add(1);
        // Without room, the parser must not read another event.
        if row < rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    row
}
