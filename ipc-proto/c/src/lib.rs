//! The C interface of [`ipc_proto`]. `include/dotnet_ipc.h` is generated from it, comments included; README.md is the
//! introduction.
//!
//! All functions follow one scheme: they check the pointers, turn them into slices and references, and call `ipc_proto`.
//! Nothing here knows the protocol.
//!
//! The panic handler calls an undefined function. So the library links only if the optimiser can remove every panic. The
//! tests in `tests` have the handler of std.
//!
//! The package in `analysis` is made of this source too: its feature adds a module, and std.
#![cfg_attr(not(any(test, feature = "analysis")), no_std)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the header states the rules for pointers once, for all functions"
)]

pub mod advertise;
#[cfg(feature = "analysis")]
#[path = "../analysis/src/lib.rs"]
pub mod analysis;
pub mod call;
pub mod columns;
pub mod command;
pub mod config;
pub mod connect;
pub mod environment;
pub mod exchange;
pub mod facts;
pub mod fallback;
pub mod fields;
pub mod hresult;
pub mod label;
mod memory;
pub mod message;
pub mod monitor;
pub mod payload;
mod place;
pub mod request;
pub mod response;
pub mod serve;
pub mod session;
pub mod socket_name;
pub mod status;
pub mod status_text;
#[cfg(test)]
mod tests;
pub mod text;
pub mod trace;
pub mod writer;

/// The version of the interface: the major version in the upper 16 bits, the minor version in the lower ones. A program
/// that was compiled with this header works with a library of the same major version and of this or a later minor
/// version.
pub const DIPC_VERSION: u32 = 0x0000_0001;

/// Returns the `DIPC_VERSION` of the library.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_version() -> u32 {
    DIPC_VERSION
}

#[cfg(not(any(test, feature = "analysis")))]
unsafe extern "C" {
    fn dotnet_ipc_can_panic() -> !;
}

#[cfg(not(any(test, feature = "analysis")))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: a linked library never calls this.
    unsafe { dotnet_ipc_can_panic() }
}

/// A function that can panic. A build with it must fail.
#[cfg(feature = "panic")]
#[unsafe(no_mangle)]
pub extern "C" fn dipc_control(index: usize) -> u8 {
    [1, 2, 3][index]
}
