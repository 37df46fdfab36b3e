#![allow(unsafe_code, reason = "the system's functions take pointers")]
mod event;
mod flag;
mod hub;
mod listener;
mod operation;
mod poller;
mod socket;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};

use ipc_proto::PipeName;
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_BROKEN_PIPE, ERROR_NO_DATA, ERROR_OPERATION_ABORTED, ERROR_PIPE_NOT_CONNECTED,
    GetLastError, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::Pipes::WaitNamedPipeW;
use windows_sys::Win32::System::Threading::{
    GetProcessId, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForSingleObject,
};

pub(crate) use flag::Flag;
pub(crate) use hub::Hub;
pub(crate) use listener::Listener;
pub(crate) use poller::Poller;
pub(crate) use socket::Socket;

use event::Event;
use operation::Operation;

/// What stands before the name of every pipe of this machine.
pub(crate) const PREFIX: &str = r"\\.\pipe\";

/// Where somebody listens: the whole name, and a NUL.
#[derive(Debug)]
pub(crate) struct Address(Vec<u16>);

impl Address {
    /// The longest name.
    const MAX_LEN: usize = 256;

    /// Of a pipe's whole name, or of what stands behind `\\.\pipe\`.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let invalid = |what| io::Error::new(ErrorKind::InvalidInput, format!("{}: {what}", path.display()));
        let name: Vec<u16> = bare(path.as_os_str()).encode_wide().collect();
        if name.is_empty() || name.iter().any(|unit| matches!(*unit, 0 | 0x5c)) {
            return Err(invalid("not the name of a pipe"));
        }
        let whole: Vec<u16> = PREFIX.encode_utf16().chain(name).collect();
        if whole.len() > Self::MAX_LEN {
            return Err(invalid("too long for the name of a pipe"));
        }
        Ok(Self(whole.into_iter().chain([0]).collect()))
    }

    fn wide(&self) -> &[u16] {
        &self.0
    }
}

/// A pipe's name without what stands before every one.
fn bare(path: &OsStr) -> OsString {
    let wide: Vec<u16> = path.encode_wide().collect();
    let (prefix, name) = wide.split_at_checked(PREFIX.len()).unwrap_or((&[], &wide));
    let prefix = String::from_utf16_lossy(prefix);
    if prefix.eq_ignore_ascii_case(PREFIX) { OsString::from_wide(name) } else { path.to_owned() }
}

/// A directory that stays what it is while one looks: pipes are in none.
#[derive(Debug, Clone)]
pub(crate) enum Pinned {}

impl Pinned {
    pub(crate) const fn path(&self) -> PathBuf {
        match *self {}
    }
}

/// The longest path of a pipe.
pub(crate) const LONGEST_PATH: usize = Address::MAX_LEN;

/// Whether a path is too long for the system: it says that it is no name of a pipe.
pub(crate) const fn is_too_long(_: &io::Error) -> bool {
    false
}

fn last_error() -> u32 {
    // SAFETY: it asks for nothing.
    unsafe { GetLastError() }
}

/// The error of a function: what says that the peer is gone is of kind `BrokenPipe`.
fn error(code: u32) -> io::Error {
    match code {
        ERROR_BROKEN_PIPE | ERROR_NO_DATA | ERROR_PIPE_NOT_CONNECTED => ErrorKind::BrokenPipe.into(),
        code => io::Error::from_raw_os_error(code.cast_signed()),
    }
}

fn is_cancelled(e: &io::Error) -> bool {
    e.raw_os_error() == Some(ERROR_OPERATION_ABORTED.cast_signed())
}

/// Whether somebody has cancelled it, or the thread has ended that started it.
fn was_cancelled(operation: &Operation) -> bool {
    matches!(operation.result(), Some(Err(e)) if is_cancelled(&e))
}

/// Whether there is a process with this id, ours or not.
pub(crate) fn process_exists(process_id: u32) -> bool {
    // SAFETY: it takes numbers.
    let process =
        unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, process_id) };
    if process.is_null() {
        return last_error() == ERROR_ACCESS_DENIED;
    }
    // SAFETY: it was opened a moment ago, and has no other owner.
    let process = unsafe { OwnedHandle::from_raw_handle(process) };
    // SAFETY: the handle is open, and a process's.
    let (id, ended) = unsafe {
        let process = process.as_raw_handle();
        (GetProcessId(process), WaitForSingleObject(process, 0) == WAIT_OBJECT_0)
    };
    // The system takes an id that is a bit off for the one that it is near.
    id == process_id && !ended
}

/// Whether the process has ended.
pub(crate) fn process_has_ended(process_id: u32) -> bool {
    !process_exists(process_id)
}

/// Where the runtime in this process listens: the directory is what stands before the name.
pub(crate) fn endpoint(directory: &Path, process_id: u32) -> PathBuf {
    let mut path = directory.as_os_str().to_owned();
    path.push(PipeName { process_id }.to_text().as_str());
    path.into()
}

/// Whether there is a pipe; whether anybody accepts is another matter.
pub(crate) fn is_socket(path: &Path) -> bool {
    let Ok(address) = Address::new(path) else { return false };
    // The shortest time that is not the default one.
    const MILLISECOND: u32 = 1;
    // SAFETY: the name ends with a NUL.
    let accepts = unsafe { WaitNamedPipeW(address.wide().as_ptr(), MILLISECOND) } != 0;
    accepts || error(last_error()).kind() != ErrorKind::NotFound
}

/// The whole name of a port.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    Address::new(path)?;
    let mut whole = OsString::from(PREFIX);
    whole.push(bare(path.as_os_str()));
    Ok(whole.into())
}

/// What a runtime has to be told of a port with this whole name: what stands behind `\\.\pipe\`.
pub(crate) fn port_address(path: &Path) -> OsString {
    bare(path.as_os_str())
}

/// The pieces of a text between separators, which are ASCII.
pub(crate) fn split(text: &OsStr, separator: u8) -> Vec<OsString> {
    let wide: Vec<u16> = text.encode_wide().collect();
    wide.split(|unit| *unit == u16::from(separator)).map(OsString::from_wide).collect()
}
