//! The sentence for the result of a function.
use core::ffi::c_char;

use crate::memory::{self, Utf8Buffer};
use crate::status::{Status, report, sentence};

/// Writes the English sentence for a status and its `detail` into `text`, as UTF-8 with a NUL at the end. For a
/// `DIPC_STATUS_VIOLATION` the sentence names the rule.
///
/// `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
/// and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_status_text(
    status: i32,
    detail: usize,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice_mut(text.cast(), size) }.and_then(|buf| {
        let mut out = Utf8Buffer::new(buf);
        let _ = sentence(status, detail, &mut out); // an output never fails
        out.finish()
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, len) }
}
