//! What the operating system shows of the runtime of a process.
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use crate::procfs::{flavour, has_file, may_be_suspended};
#[cfg(windows)]
pub use windows::{flavour, has_file, may_be_suspended};
