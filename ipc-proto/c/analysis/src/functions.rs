//! The functions.
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::reading::Reading;
use super::rows::{CLOCKS, Collection, Counter, Function, HeapType, Summary};
use super::tables::Tables;
use crate::memory;
use crate::status::{Failure, Status};
use crate::text::Text;

/// The analysis of one trace, in memory of the library.
pub struct Analysis {
    tag: u64,
    /// Until the trace ends.
    reading: Option<Box<Reading>>,
    /// Since the trace has ended.
    tables: Option<Box<Tables>>,
}

impl Analysis {
    const TAG: u64 = 0x4449_5043_414e_414c;

    /// Returns the analysis at a pointer.
    ///
    /// # Safety
    /// `at` points to an analysis that nothing else uses during `'a`, or to other initialised memory of its size.
    unsafe fn of<'a>(at: *mut Self) -> Result<&'a mut Self, Failure> {
        memory::check(at, 1)?;
        // SAFETY: the caller vouches for the memory at `at`.
        let tag = unsafe { &raw const (*at).tag };
        // SAFETY: it is initialised, perhaps as something else.
        if unsafe { tag.read() } != Self::TAG {
            return Err(Status::WrongKind.into());
        }
        // SAFETY: the tag shows that this is an analysis; the caller vouches for the rest.
        Ok(unsafe { &mut *at })
    }

    /// Returns the tables of a finished analysis.
    ///
    /// # Safety
    /// As [`of`](Self::of).
    unsafe fn tables<'a>(at: *mut Self) -> Result<&'a mut Tables, Failure> {
        // SAFETY: the caller vouches for the pointer.
        let analysis = unsafe { Self::of(at) }?;
        analysis.tables.as_deref_mut().ok_or_else(|| Status::WrongKind.into())
    }
}

/// Runs a function, and makes a status of a panic.
fn guarded(run: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => failure.status,
        Err(payload) => {
            // Its destructor could panic.
            core::mem::forget(payload);
            Status::Fault
        }
    }
}

/// Stores a row of a table.
///
/// # Safety
/// `at` as in [`Analysis::of`]; `row` points to space for a row.
unsafe fn store_row<'a, T>(
    at: *mut Analysis,
    row: *mut T,
    get: impl FnOnce(&'a mut Tables) -> Result<T, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the pointers.
        let found = get(unsafe { Analysis::tables(at) }?)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(row, found) }
    })
}

/// Creates an analysis, and stores it in `analysis`. `clock` is one of `DIPC_CLOCK_*`: what functions weigh. Pass it the
/// bytes of a trace by `dipc_analysis_feed`, and free it by `dipc_analysis_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_new(analysis: *mut *mut Analysis, clock: u32) -> Status {
    guarded(|| {
        let clock = usize::try_from(clock).ok().and_then(|place| CLOCKS.get(place));
        let clock = clock.ok_or(Status::InvalidArgument)?.clone();
        memory::check(analysis, 1)?;
        let new = Analysis { tag: Analysis::TAG, reading: Some(Box::new(Reading::new(clock))), tables: None };
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(analysis, Box::into_raw(Box::new(new))) }
    })
}

/// Passes the next `len` bytes of a trace to the analysis, which keeps no pointer to them. They can be cut anywhere.
///
/// Returns `DIPC_STATUS_WRONG_KIND` after `dipc_analysis_finish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_feed(analysis: *mut Analysis, bytes: *const u8, len: usize) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the pointers.
        let analysis = unsafe { Analysis::of(analysis) }?;
        let reading = analysis.reading.as_mut().ok_or(Status::WrongKind)?;
        // SAFETY: the caller vouches for the pointers.
        reading.feed(unsafe { memory::slice(bytes, len) }?);
        Ok(())
    })
}

/// Ends the trace, and stores what was found in `summary`. The functions below return the tables from then on, until
/// `dipc_analysis_free`. A second call stores the same summary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_finish(analysis: *mut Analysis, summary: *mut Summary) -> Status {
    guarded(|| {
        memory::check(summary, 1)?;
        // SAFETY: the caller vouches for the pointers.
        let analysis = unsafe { Analysis::of(analysis) }?;
        if let Some(mut reading) = analysis.reading.take() {
            reading.finish();
            analysis.tables = Some(Box::new(Tables::new(*reading)));
        }
        let found = analysis.tables.as_ref().ok_or(Status::WrongKind)?.summary;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(summary, found) }
    })
}

/// Frees an analysis, with all texts of its tables. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_free(analysis: *mut Analysis) -> Status {
    guarded(|| {
        if analysis.is_null() {
            return Ok(());
        }
        // SAFETY: the caller vouches for the pointer.
        let freed = unsafe { Analysis::of(analysis) }?;
        freed.tag = 0;
        // SAFETY: `dipc_analysis_new` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(freed) });
        Ok(())
    })
}

/// Stores function `i` of an order, one of `DIPC_ORDER_*`, in `function`: the hottest one is 0.
///
/// Frames that only start threads and continue asynchronous methods are one function, `[threads and async]`, as in
/// `dotnet-ipc report`. Returns `DIPC_STATUS_NOT_FOUND` after the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_function(
    analysis: *mut Analysis,
    order: u32,
    i: usize,
    function: *mut Function<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        store_row(analysis, function, |tables| {
            let order = usize::try_from(order).ok().and_then(|order| tables.orders.get(order));
            let entry = order.ok_or(Status::InvalidArgument)?.get(i).ok_or(Status::NotFound)?;
            Ok(tables.function(entry))
        })
    }
}

/// Stores the stacks of the trace in `lines`, each on a line with its weight, the root first, as flame graph tools read
/// them: `main;parse;read 42`. The weight is in the unit of the clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_folded(analysis: *mut Analysis, lines: *mut Text<'_>) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { store_row(analysis, lines, |tables| Ok(Text::utf8(tables.folded()))) }
}

/// Stores the name of the code at an address in `name`: `module!?` or `?!?` if its method is not known. For each address
/// of a `dipc_stack`, this names the stack. `process_id` is 0, or for a trace of several processes that of the
/// event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_name(
    analysis: *mut Analysis,
    process_id: u64,
    address: u64,
    name: *mut Text<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { store_row(analysis, name, |tables| Ok(tables.name(process_id, address))) }
}

/// Stores garbage collection `i` in `collection`; those of a process come in the order of their start.
///
/// Returns `DIPC_STATUS_NOT_FOUND` after the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_collection(
    analysis: *mut Analysis,
    i: usize,
    collection: *mut Collection<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { store_row(analysis, collection, |tables| tables.collection(i)) }
}

/// Stores sample `i` of the counters in `counter`, in the order of time.
///
/// Returns `DIPC_STATUS_NOT_FOUND` after the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_counter(
    analysis: *mut Analysis,
    i: usize,
    counter: *mut Counter<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { store_row(analysis, counter, |tables| tables.counter(i)) }
}

/// Stores type `i` of the heap snapshots in `row`: process by process, the type with the most bytes first.
///
/// Returns `DIPC_STATUS_NOT_FOUND` after the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_analysis_heap_type(
    analysis: *mut Analysis,
    i: usize,
    row: *mut HeapType<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { store_row(analysis, row, |tables| tables.heap_type(i)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(guarded(|| std::panic::resume_unwind(Box::new(()))), Status::Fault);
    }
}
