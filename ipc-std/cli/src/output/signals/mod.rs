//! Signals that end the tool.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{handle, obey};
#[cfg(windows)]
pub(crate) use windows::{handle, obey};
