//! Processes: whether they exist, their command lines, and which one is at the other end of a pipe.
use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};

use windows_sys::Wdk::System::Threading::{NtQueryInformationProcess, ProcessCommandLineInformation};
use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, UNICODE_STRING, WAIT_OBJECT_0};
use windows_sys::Win32::System::Pipes::{
    GetNamedPipeClientProcessId, GetNamedPipeInfo, GetNamedPipeServerProcessId, PIPE_SERVER_END,
};
use windows_sys::Win32::System::Threading::{
    GetProcessId, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForSingleObject,
};

use crate::sys::Credentials;

/// Opens a process.
fn open(process_id: u32) -> io::Result<OwnedHandle> {
    // SAFETY: the function takes only numbers.
    let process =
        unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, process_id) };
    if process.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is new and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(process) })
}

/// Returns the command line with which a process was started, if the system shows it.
pub fn command_line(process_id: u32) -> Option<String> {
    /// A `UNICODE_STRING` with its text, which has at most 32,767 units.
    #[repr(C)]
    struct CommandLine {
        string: UNICODE_STRING,
        text: [u16; 1 << 15],
    }
    let process = open(process_id).ok()?;
    let string = UNICODE_STRING { Length: 0, MaximumLength: 0, Buffer: core::ptr::null_mut() };
    let mut info = Box::new(CommandLine { string, text: [0; 1 << 15] });
    let (place, size) = (&raw mut *info, u32::try_from(size_of::<CommandLine>()).ok()?);
    let mut written = 0;
    // SAFETY: the handle is open, and the system writes at most `size` bytes to `info`.
    let status = unsafe {
        NtQueryInformationProcess(
            process.as_raw_handle(),
            ProcessCommandLineInformation,
            place.cast(),
            size,
            &raw mut written,
        )
    };
    // The text follows `string`, which states the length of the text in bytes.
    let text = info.text.get(..usize::from(info.string.Length / 2)).filter(|_| status >= 0)?;
    Some(String::from_utf16_lossy(text))
}

/// Returns whether there is a process with this id, of any user.
pub fn process_exists(process_id: u32) -> bool {
    let process = match open(process_id) {
        Ok(process) => process,
        Err(e) => return e.raw_os_error() == Some(ERROR_ACCESS_DENIED as i32),
    };
    // SAFETY: the handle is open and refers to a process.
    let (id, ended) = unsafe {
        let process = process.as_raw_handle();
        (GetProcessId(process), WaitForSingleObject(process, 0) == WAIT_OBJECT_0)
    };
    // The system rounds an id down to a multiple of 4, so `open` may have opened another process.
    id == process_id && !ended
}

/// Returns whether the process has ended.
pub fn process_has_ended(process_id: u32) -> bool {
    !process_exists(process_id)
}

/// Returns the process at the other end of a pipe, if the system reports it: for a client, the process that listens.
pub fn credentials(pipe: BorrowedHandle<'_>) -> Option<Credentials> {
    let (pipe, mut flags, mut process_id) = (pipe.as_raw_handle(), 0, 0);
    let null = core::ptr::null_mut();
    // SAFETY: the handle is open, and each function writes one number.
    let is_known = unsafe {
        GetNamedPipeInfo(pipe, &mut flags, null, null, null) != 0
            && match flags & PIPE_SERVER_END {
                0 => GetNamedPipeServerProcessId(pipe, &mut process_id) != 0,
                _ => GetNamedPipeClientProcessId(pipe, &mut process_id) != 0,
            }
    };
    is_known.then_some(Credentials { process_id })
}
