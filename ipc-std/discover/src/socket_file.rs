//! `SocketFile`: what only one system has of a candidate.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{ProcessKey, SocketFile};
#[cfg(windows)]
pub(crate) use windows::SocketFile;
