//! Names of pipes.
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ipc_proto::PipeName;
use windows_sys::Win32::System::Pipes::WaitNamedPipeW;

/// The prefix of the name of every pipe of this machine.
pub const PREFIX: &str = r"\\.\pipe\";

/// The address of a pipe: its whole name and a NUL.
#[derive(Debug)]
pub struct Address(Vec<u16>);

impl Address {
    /// The longest name, in UTF-16 units.
    const MAX_LEN: usize = 256;

    /// Takes the whole name of a pipe, or the part after `\\.\pipe\`.
    ///
    /// # Errors
    /// If it is not the name of a pipe, or too long for one.
    pub fn new(path: &Path) -> io::Result<Self> {
        let invalid =
            |reason| io::Error::new(ErrorKind::InvalidInput, format!("{}: {reason}", path.display()));
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

    /// Returns the name with the NUL at its end.
    pub fn wide(&self) -> &[u16] {
        &self.0
    }
}

/// Returns the name of a pipe without the prefix of all pipes.
fn bare(path: &OsStr) -> OsString {
    let wide: Vec<u16> = path.encode_wide().collect();
    let (prefix, name) = wide.split_at_checked(PREFIX.len()).unwrap_or((&[], &wide));
    let prefix = String::from_utf16_lossy(prefix);
    if prefix.eq_ignore_ascii_case(PREFIX) { OsString::from_wide(name) } else { path.to_owned() }
}

/// On Unix, a file below an open directory. Pipes have no directories, so this type has no values.
#[derive(Debug, Clone)]
pub enum Pinned {}

impl Pinned {
    /// Returns the path; there is none.
    pub const fn path(&self) -> PathBuf {
        match *self {}
    }
}

/// The longest path of a pipe, in UTF-16 units.
pub const LONGEST_PATH: usize = Address::MAX_LEN;

/// Returns whether the error means that a path is too long: Windows reports an invalid name instead.
pub const fn is_too_long(_: &io::Error) -> bool {
    false
}

/// Returns `false`: no error proves that a pipe has no listener, because a pipe does not outlive its listener.
pub const fn is_refused(_: &Path, _: &io::Error) -> bool {
    false
}

/// Returns the path of the pipe at which the runtime of a process listens; `directory` is the prefix of the path.
pub fn endpoint(directory: &Path, process_id: u32) -> PathBuf {
    let mut path = directory.as_os_str().to_owned();
    path.push(PipeName { process_id }.to_text().as_str());
    path.into()
}

/// Returns whether there is a pipe at `path`, busy or not.
pub fn is_socket(path: &Path) -> bool {
    let Ok(address) = Address::new(path) else { return false };
    // The shortest timeout: 0 would mean the default timeout of the pipe.
    const MILLISECOND: u32 = 1;
    // SAFETY: the name ends with a NUL.
    let accepts = unsafe { WaitNamedPipeW(address.wide().as_ptr(), MILLISECOND) } != 0;
    accepts || io::Error::last_os_error().kind() != ErrorKind::NotFound
}

/// Returns the whole name of a port.
///
/// # Errors
/// As [`Address::new`].
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    Address::new(path)?;
    let mut whole = OsString::from(PREFIX);
    whole.push(bare(path.as_os_str()));
    Ok(whole.into())
}

/// Returns the address of a port with this whole name, as a runtime reads it: the part after `\\.\pipe\`. `None` if the
/// name is not Unicode.
pub fn port_address(path: &Path) -> Option<&str> {
    path.to_str().map(|whole| whole.strip_prefix(PREFIX).unwrap_or(whole))
}
