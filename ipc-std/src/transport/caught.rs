//! `caught`: a panic of the caller's transport as an error.
use core::panic::AssertUnwindSafe;
use std::io;
use std::panic::catch_unwind;

/// Calls code of the caller. A panic becomes an error: on a thread of its own, it would leave others waiting.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        io::Error::other(format!("the transport panicked: {text}"))
    })
}
