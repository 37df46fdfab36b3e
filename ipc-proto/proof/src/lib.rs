//! Links only if nothing in `ipc-proto` can panic.
//!
//! The panic handler calls a function that is defined nowhere. So an optimised build links only if the optimiser could
//! remove every panic from everything that is kept, and kept is every function of the public API: the tables in the
//! modules hold their addresses and are exported, so that the optimiser can assume nothing of the arguments. What has no
//! address, because a type of its signature has no name, stands in a function around it.
//!
//! That `ipc-proto` does not pull in `std` or `alloc` follows from the same build: `std` has a panic handler of its own,
//! and `alloc` wants an allocator. `../api.py` compares the tables with the documentation, so that no function is
//! forgotten.
//!
//! It is proved of code as it is released, without checks for overflow. What ipc-proto computes by itself never overflows
//! unsaid: Clippy's `arithmetic_side_effects` sees to that.
//!
//! Outside stand `Debug`, what the compiler derives, and the features `alloc` and `arbitrary`.
#![no_std]

mod command;
mod exchange;
mod legacy;
mod nettrace;
mod port;
mod user_events;
mod wire;

unsafe extern "C" {
    fn ipc_proto_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: nothing that links ever comes here.
    unsafe { ipc_proto_can_panic() }
}

/// Where a function begins.
#[repr(transparent)]
pub struct Address(*const ());

// SAFETY: it is never written through, nor read.
unsafe impl Sync for Address {}

/// An exported table of the addresses of functions.
macro_rules! proves {
    ($table:ident: $($function:expr),* $(,)?) => {
        #[unsafe(no_mangle)]
        pub static $table: &[crate::Address] = &[$(crate::Address($function as *const ())),*];
    };
}
pub(crate) use proves;

/// An exported table of what a generic function says of each type.
macro_rules! proves_each {
    ($table:ident: $of:ident, $($ty:ty),* $(,)?) => {
        #[unsafe(no_mangle)]
        pub static $table: &[&[crate::Address]] = &[$(&$of::<$ty>()),*];
    };
}
pub(crate) use proves_each;

/// Takes all that an iterator has to give.
pub(crate) fn each<T>(items: impl Iterator<Item = T>, see: &mut dyn FnMut(T)) {
    for item in items {
        see(item);
    }
}

/// The panic that the build must find.
#[cfg(feature = "panic")]
#[unsafe(no_mangle)]
pub extern "C" fn control(code: ipc_proto::Code, table: &[u8; 4]) -> u8 {
    table[usize::from(code.id())]
}
/// The allocation that the build must find.
#[cfg(feature = "alloc")]
proves!(ALLOC: ipc_proto::wire::Text::to_text_buf);
