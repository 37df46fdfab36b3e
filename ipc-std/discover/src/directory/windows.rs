//! The directory of pipes.
use std::path::{Path, PathBuf};

use crate::sys;

/// Returns the directory in which runtimes make their pipes: `\\.\pipe\`.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(sys::PREFIX).to_owned()
}
