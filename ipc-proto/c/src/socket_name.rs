//! The name of the socket at which a runtime listens by default.
use core::ffi::c_char;

use ipc_proto::SocketName;

use crate::memory::{self, Utf8Buffer};
use crate::status::{Outcome, Status, report};

/// Writes the name of a runtime's default socket into `text`, as UTF-8 with a NUL at the end:
/// `dotnet-diagnostic-42-8311-socket`. The socket is in the runtime's `$TMPDIR`, or in `/tmp`. 64 bytes are enough.
///
/// `start_time` distinguishes a process from an earlier one with its id: on Linux it is field 22 of `/proc/PID/stat`, on
/// macOS, FreeBSD and NetBSD the start time in seconds; 0 if it is not known.
///
/// `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
/// and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_socket_name(
    process_id: u32,
    start_time: u64,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the buffer.
    let outcome = unsafe { memory::slice_mut(text.cast(), size) }.and_then(|buf| -> Outcome {
        let mut out = Utf8Buffer::new(buf);
        let name = SocketName { process_id, disambiguation_key: start_time }.to_text();
        name.as_str().chars().for_each(|c| out.push(c));
        out.finish()
    });
    // SAFETY: the caller vouches for `len`.
    unsafe { report(outcome, len) }
}

/// Longer than every name.
const LONGER: usize = 80;

/// Stores the process id and the start time in the name of a runtime's default socket, for a client that searches the
/// folder of sockets. `name` is the name of a file, without its folder.
///
/// Returns `DIPC_STATUS_NOT_FOUND` for any other name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_socket_name_parse(
    name: *const c_char,
    process_id: *mut u32,
    start_time: *mut u64,
) -> Status {
    let outcome = memory::check(name, 1).and_then(|()| -> Outcome {
        let mut len = 0_usize;
        // SAFETY: the bytes before are not NUL, so this is still in the text.
        while len < LONGER && unsafe { name.wrapping_add(len).read() } != 0 {
            len = len.saturating_add(1);
        }
        // SAFETY: these bytes were read above.
        let text = unsafe { memory::slice(name.cast(), len) }?;
        let text = core::str::from_utf8(text).map_err(|_| Status::NotFound)?;
        let name: SocketName = text.parse().map_err(|_| Status::NotFound)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(process_id, name.process_id) }?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(start_time, name.disambiguation_key) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, core::ptr::null_mut()) }
}
