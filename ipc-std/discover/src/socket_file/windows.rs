//! `SocketFile`: the rules for the pipe of a candidate on Windows.
use std::path::Path;

use crate::error::Reason;
use crate::sys::Pinned;
use crate::target::Target;

/// A pipe has no file, and no properties beside its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketFile;

impl SocketFile {
    pub(crate) const fn objection(self, _: &Path, _: Option<Target>) -> Option<Reason> {
        None
    }

    pub(crate) const fn pinned(self) -> Option<Pinned> {
        None
    }

    /// A pipe disappears with its listener.
    pub(crate) const fn is_dead(_: &Path) -> bool {
        false
    }

    pub(crate) fn without_listener(self, path: &Path) -> Reason {
        Reason::NoListener { path: path.to_owned() }
    }
}
