//! An image for bare metal with the parts of `ipc-proto` that the features name, to measure what each costs.
//!
//! It has no static memory: its storage lies where a register says, and all that it reads and writes goes through
//! registers, so that nothing is known when it is compiled. It too links only if nothing can panic.
#![no_std]
#![no_main]
#![allow(
    dead_code,
    reason = "an image has the parts that its features name, and each needs something else of this"
)]

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "codec")]
mod codec;
#[cfg(feature = "findings")]
mod findings;
#[cfg(feature = "joining")]
mod joining;
#[cfg(feature = "ports")]
mod ports;
#[cfg(feature = "reading")]
mod reading;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "writing")]
mod writing;

/// The whole of the outside world.
const REGISTER: *mut u32 = 0x4000_0000 as *mut u32;

unsafe extern "C" {
    fn ipc_proto_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: nothing that links ever comes here.
    unsafe { ipc_proto_can_panic() }
}

/// A number from outside.
#[inline(never)]
fn number() -> u32 {
    // SAFETY: the register is always there.
    unsafe { REGISTER.read_volatile() }
}

/// A number to the outside.
#[inline(never)]
fn tell(number: u32) {
    // SAFETY: the register is always there.
    unsafe { REGISTER.write_volatile(number) }
}

/// Bytes to the outside.
#[inline(never)]
fn put(bytes: &[u8]) {
    bytes.iter().for_each(|byte| tell(u32::from(*byte)));
}

/// Storage of the caller's, somewhere.
fn storage<T>() -> &'static mut [T] {
    // SAFETY: the outside gives each part of its memory once, filled.
    unsafe { core::slice::from_raw_parts_mut(number() as usize as *mut T, number() as usize) }
}

/// A text that lies somewhere.
fn text() -> &'static str {
    // SAFETY: the outside keeps texts only.
    unsafe { core::str::from_utf8_unchecked(storage()) }
}

/// The image begins here.
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
            #[cfg(feature = "reading")]
            3 => reading::run(),
            #[cfg(feature = "joining")]
            6 => joining::run(),
            #[cfg(feature = "writing")]
            4 => writing::run(),
            #[cfg(feature = "ports")]
            5 => ports::run(),
            #[cfg(feature = "findings")]
            7 => findings::run(),
            other => tell(other),
        }
    }
}

/// Moves the bytes of an exchange.
fn drive(exchange: &mut dyn ipc_proto::Exchange) -> Result<(), ipc_proto::ProtocolError> {
    use ipc_proto::Step;
    loop {
        let n = match exchange.step() {
            Step::Send(bytes) => {
                put(bytes);
                bytes.len()
            }
            Step::Receive(space) => receive(space),
            Step::Done => return Ok(()),
        };
        exchange.advance(n)?;
    }
}

/// Fills the space; none of it at the end of the connection.
fn receive(space: &mut [u8]) -> usize {
    if number() == 0 {
        return 0;
    }
    space.iter_mut().for_each(|byte| *byte = number() as u8);
    space.len()
}
