//! A bare-metal image with the parts of `ipc-proto` that its features select, to measure the size of each.
//!
//! The image has no static memory: a register returns the address of its storage. All input and output uses registers,
//! so that the compiler knows no value. Like the library, it links only if no function can panic.
#![no_std]
#![no_main]
#![allow(dead_code, reason = "each part, selected by a feature, uses other functions of this file")]

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
#[cfg(feature = "server")]
mod server;
#[cfg(any(feature = "client", feature = "server", feature = "plan", feature = "fallback"))]
mod values;
#[cfg(any(feature = "plan", feature = "fallback"))]
mod wishes;
#[cfg(feature = "writing")]
mod writing;

/// The register for all input and output.
const REGISTER: *mut u32 = 0x4000_0000 as *mut u32;

unsafe extern "C" {
    fn ipc_proto_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: a linked image never calls this.
    unsafe { ipc_proto_can_panic() }
}

/// Reads a number.
#[inline(never)]
fn number() -> u32 {
    // SAFETY: the register always exists.
    unsafe { REGISTER.read_volatile() }
}

/// Writes a number.
#[inline(never)]
fn write_number(number: u32) {
    // SAFETY: the register always exists.
    unsafe { REGISTER.write_volatile(number) }
}

/// Writes bytes.
#[inline(never)]
fn write_bytes(bytes: &[u8]) {
    bytes.iter().for_each(|byte| write_number(u32::from(*byte)));
}

/// Returns storage at an address that the register supplies.
fn storage<T>() -> &'static mut [T] {
    // SAFETY: the register supplies each part of its memory once, initialised.
    unsafe { core::slice::from_raw_parts_mut(number() as usize as *mut T, number() as usize) }
}

/// Returns a text at an address that the register supplies.
fn text() -> &'static str {
    // SAFETY: the register supplies only UTF-8.
    unsafe { core::str::from_utf8_unchecked(storage()) }
}

/// The entry point of the image.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    loop {
        match number() {
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
            other => write_number(other),
        }
    }
}

/// Drives an exchange to its end.
fn drive(exchange: &mut dyn ipc_proto::Exchange) -> Result<(), ipc_proto::ProtocolError> {
    use ipc_proto::Step;
    loop {
        let n = match exchange.step() {
            Step::Send(bytes) => {
                write_bytes(bytes);
                bytes.len()
            }
            Step::Receive(space) => receive(space),
            Step::Done => return Ok(()),
        };
        exchange.advance(n)?;
    }
}

/// Fills the space. Returns 0 at the end of the connection.
fn receive(space: &mut [u8]) -> usize {
    if number() == 0 {
        return 0;
    }
    space.iter_mut().for_each(|byte| *byte = number() as u8);
    space.len()
}
