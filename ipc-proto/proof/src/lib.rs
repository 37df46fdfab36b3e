//! A library that links only if no function of `ipc-proto` and `nettrace` can panic.
//!
//! The panic handler calls an undefined function. So an optimised build links only if the optimiser can remove every
//! panic from the functions that the library contains. The library contains all functions of the public API, because
//! exported tables in the modules contain their addresses. So the optimiser knows nothing about their arguments. A
//! function has no address if a type of its signature has no name; the table then contains a wrapper.
//!
//! The same build proves that the functions do not need `std` or `alloc`: `std` has its own panic handler, and `alloc`
//! requires an allocator. `../api.py` compares the tables with the documentation, so that no function is missing.
//!
//! The proof applies to release builds, which have no overflow checks: an overflow would not panic. Clippy's
//! `arithmetic_side_effects` ensures that no arithmetic overflows unnoticed.
//!
//! The proof does not cover `Debug`, derived implementations, and the features `alloc` and `arbitrary`.
#![no_std]

mod command;
mod exchange;
mod legacy;
mod nettrace;
mod plan;
mod port;
mod user_events;
mod wire;

unsafe extern "C" {
    fn ipc_proto_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: a linked library never calls this.
    unsafe { ipc_proto_can_panic() }
}

/// An address of a function.
#[repr(transparent)]
pub struct Address(*const ());

// SAFETY: the pointer is never dereferenced.
unsafe impl Sync for Address {}

/// The addresses of functions.
macro_rules! addresses {
    ($($function:expr),* $(,)?) => { [$(crate::Address($function as *const ())),*] };
}
pub(crate) use addresses;

/// Declares an exported table of the addresses of functions.
macro_rules! proves {
    ($table:ident: $($function:expr),* $(,)?) => {
        #[unsafe(no_mangle)]
        pub static $table: &[crate::Address] = &crate::addresses!($($function),*);
    };
}
pub(crate) use proves;

/// Declares an exported table of tables: the result of the generic function `$of` for each type.
macro_rules! proves_each {
    ($table:ident: $of:ident, $($ty:ty),* $(,)?) => {
        #[unsafe(no_mangle)]
        pub static $table: &[&[crate::Address]] = &[$(&$of::<$ty>()),*];
    };
}
pub(crate) use proves_each;

/// Takes all items of an iterator, so that the library contains the iterator's `next`.
pub(crate) fn each<T>(items: impl Iterator<Item = T>, visit: &mut dyn FnMut(T)) {
    for item in items {
        visit(item);
    }
}

/// A function that can panic. A build with this feature must fail, which shows that the proof detects a panic.
#[cfg(feature = "panic")]
#[unsafe(no_mangle)]
pub extern "C" fn control(code: ipc_proto::Code, table: &[u8; 4]) -> u8 {
    table[usize::from(code.id())]
}
/// A function that allocates. A build with this feature must fail, which shows that the proof detects an allocation.
#[cfg(feature = "alloc")]
proves!(ALLOC: ipc_proto::wire::Text::to_text_buf);
