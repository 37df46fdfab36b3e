//! The allocator of the tool, which ends it with a sentence if there is no memory.
//!
//! The standard library would abort: with a core dump, a temporary file, and a terminal that shows another screen. Stable
//! Rust has no other place to handle that.
#![allow(
    unsafe_code,
    reason = "an allocator is an unsafe trait; each function passes its arguments to that of the system"
)]
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::alloc::System;
use std::io::{self, Write};
use std::thread;

use super::{changed_terminal, temporary_file};

/// The allocator of the system.
#[derive(Debug)]
pub(crate) struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Whether errors are written as JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Makes the error an object of JSON.
pub(crate) fn write_errors_as_json(is_json: bool) {
    IS_JSON.store(is_json, Ordering::Relaxed);
}

// SAFETY: each function passes its arguments to the allocator of the system, and returns what that returns.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees what the system requires.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(pointer, layout, len) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the pointer unless it is null.
fn checked(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        end();
    }
    pointer
}

/// Ends the tool without memory.
#[cold]
fn end() -> ! {
    const TEXT: &str =
        "error: there is not enough memory; check the limit of `ulimit -v` or of the container\n";
    const JSON: &str = "{\"error\":\"there is not enough memory\",\"kind\":\"other\",\"command\":null,\"hresult\":null,\
                        \"hresult_name\":null,\"hint\":\"check the limit of `ulimit -v` or of the container\"}\n";
    /// How long another thread waits while the first one writes the sentence, which can wait for a lock of that thread.
    const PATIENCE: Duration = Duration::from_secs(2);
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    if IS_ENDING.swap(true, Ordering::SeqCst) {
        // The first thread can also be this one, if its last step needs memory. A flag of the thread would tell, but on
        // some systems needs memory itself.
        thread::sleep(PATIENCE);
        exit()
    }
    changed_terminal::restore();
    let text = if IS_JSON.load(Ordering::Relaxed) { JSON } else { TEXT };
    let _ = io::stderr().write_all(text.as_bytes());
    // Unusual paths need memory, for which there is one attempt.
    temporary_file::try_remove();
    exit()
}

/// Ends the tool with the exit status of other failures, without calling functions that could need memory.
#[cfg(unix)]
fn exit() -> ! {
    signal_hook::low_level::exit(1)
}

#[cfg(windows)]
fn exit() -> ! {
    std::process::exit(1)
}
