//! The WebAssembly module of the npm package `dotnet-ipc`, which README.md describes. The TypeScript in `src` is its only
//! user.
//!
//! The module allocates nothing. All memory after its own data, from `__heap_base` on, belongs to the caller, who passes
//! addresses and lengths. Two forms carry results:
//!
//! * [`trace::Row`], a table of fixed width for the records of a trace: one call fills thousands of rows;
//! * [`output::Item`], a list of named values for everything else, which the caller turns into objects.
//!
//! The module has no imports. The panic handler calls an imported function, so an import is a proof that a panic is
//! reachable.
#![no_std]
#![allow(
    clippy::missing_safety_doc,
    reason = "the caller vouches for every address: it points to memory after `__heap_base`, as long as the \
              documentation says, which no other argument overlaps"
)]

#[cfg(feature = "fields")]
pub mod contents;
mod memory;
#[cfg(feature = "messages")]
pub mod message;
#[cfg_attr(not(feature = "fields"), allow(dead_code, reason = "the reader of records returns one text"))]
pub mod output;
pub mod trace;

unsafe extern "C" {
    fn dotnet_ipc_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: a module without imports never calls this.
    unsafe { dotnet_ipc_can_panic() }
}

/// A function that can panic. A module with it has an import.
#[cfg(feature = "panic")]
#[unsafe(no_mangle)]
pub extern "C" fn control(index: usize) -> u8 {
    [1, 2, 3][index]
}
