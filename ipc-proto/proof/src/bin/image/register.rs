//! Input and output of the image. Every value goes through one register, so that the compiler cannot know a value.
use ipc_proto::{Exchange, ProtocolError, Step};

/// The register for all input and output.
const REGISTER: *mut u32 = 0x4000_0000 as *mut u32;

/// Reads a number.
#[inline(never)]
pub fn number() -> u32 {
    // SAFETY: the register always exists.
    unsafe { REGISTER.read_volatile() }
}

/// Writes a number.
#[inline(never)]
pub fn write_number(number: u32) {
    // SAFETY: the register always exists.
    unsafe { REGISTER.write_volatile(number) }
}

/// Writes bytes.
#[inline(never)]
pub fn write_bytes(bytes: &[u8]) {
    bytes.iter().for_each(|byte| write_number(u32::from(*byte)));
}

/// Returns storage at an address that the register supplies.
pub fn storage<T>() -> &'static mut [T] {
    // SAFETY: the register supplies each part of its memory once, initialised.
    unsafe { core::slice::from_raw_parts_mut(number() as usize as *mut T, number() as usize) }
}

/// Returns a text at an address that the register supplies.
pub fn text() -> &'static str {
    // SAFETY: the register supplies only UTF-8.
    unsafe { core::str::from_utf8_unchecked(storage()) }
}

/// Drives an exchange to its end.
pub fn drive(exchange: &mut dyn Exchange) -> Result<(), ProtocolError> {
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
pub fn receive(space: &mut [u8]) -> usize {
    if number() == 0 {
        return 0;
    }
    space.iter_mut().for_each(|byte| *byte = number() as u8);
    space.len()
}
