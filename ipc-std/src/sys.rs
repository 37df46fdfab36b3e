//! Functions of the operating system that the standard library does not offer, with the same names on every system. The
//! functions of processes and of the names of sockets are in `ipc_discover::sys`.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::is_shortage;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub use windows::is_shortage;
#[cfg(windows)]
pub(crate) use windows::*;

/// Returns whether the error is a lack of descriptors or memory: unknown on a system without either.
#[cfg(not(any(unix, windows)))]
pub fn is_shortage(_: &std::io::Error) -> bool {
    false
}
