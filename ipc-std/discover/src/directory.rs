//! The directories in which runtimes make their sockets.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::directory;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use unix::or_tmp;
#[cfg(unix)]
pub(crate) use unix::{Directory, DirectoryEntry, FileIdentity, FileTime, identity, modified, unreadable};
#[cfg(windows)]
pub use windows::directory;
