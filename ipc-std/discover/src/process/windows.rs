//! Windows shows no memory map and no environment of another process.
use std::path::Path;

use ipc_proto::plan::Flavour;

/// Returns `None`: the kind of the runtime is unknown.
#[must_use]
pub const fn flavour(_: u32) -> Option<Flavour> {
    None
}

/// Returns `None`: whether the runtime may be suspended at startup is unknown.
#[must_use]
pub const fn may_be_suspended(_: u32) -> Option<bool> {
    None
}

/// Returns whether the process finds a file at this path. `None` for a relative path: all processes have the same root,
/// but not the same working directory.
#[must_use]
pub fn has_file(_: u32, path: &str) -> Option<bool> {
    let path = Path::new(path);
    path.is_absolute().then(|| path.is_file())
}
