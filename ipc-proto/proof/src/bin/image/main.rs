//! A bare-metal image with the parts of `ipc-proto` that its features select, to measure the size of each.
//!
//! The image has no static memory: a register returns the address of its storage. Like the library of this package, the
//! image links only if no function can panic.
#![no_std]
#![no_main]
#![allow(dead_code, reason = "each part, selected by a feature, uses other functions of `register`")]

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "codec")]
mod codec;
#[cfg(any(feature = "ports", feature = "server"))]
mod connecting;
#[cfg(feature = "fallback")]
mod fallback;
#[cfg(feature = "findings")]
mod findings;
#[cfg(feature = "joining")]
mod joining;
#[cfg(feature = "plan")]
mod plan;
#[cfg(feature = "ports")]
mod ports;
#[cfg(feature = "framing")]
mod reading;
mod register;
#[cfg(feature = "server")]
mod server;
#[cfg(any(feature = "client", feature = "server", feature = "plan", feature = "fallback"))]
mod values;
#[cfg(any(feature = "plan", feature = "fallback"))]
mod wishes;
#[cfg(feature = "writing")]
mod writing;

unsafe extern "C" {
    fn ipc_proto_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: a linked image never calls this.
    unsafe { ipc_proto_can_panic() }
}

/// The entry point of the image.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    loop {
        match register::number() {
            #[cfg(feature = "codec")]
            0 => codec::run(),
            #[cfg(feature = "client")]
            1 => client::run(),
            #[cfg(feature = "server")]
            2 => server::run(),
            #[cfg(feature = "framing")]
            3 => reading::run(),
            #[cfg(feature = "joining")]
            6 => joining::run(),
            #[cfg(feature = "writing")]
            4 => writing::run(),
            #[cfg(feature = "ports")]
            5 => ports::run(),
            #[cfg(feature = "findings")]
            7 => findings::run(),
            #[cfg(feature = "plan")]
            8 => plan::run(),
            #[cfg(feature = "fallback")]
            9 => fallback::run(),
            other => register::write_number(other),
        }
    }
}
