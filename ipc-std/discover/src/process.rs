//! What the operating system shows of the runtime of a process.
#[cfg(windows)]
use std::path::Path;

use ipc_proto::plan::Flavour;

#[cfg(unix)]
use crate::procfs;

/// Returns the kind of the runtime in the memory of a process. `None` for a single-file program, whose memory map does not
/// show the kind, and on systems without `/proc`.
#[cfg(unix)]
#[must_use]
pub fn flavour(process_id: u32) -> Option<Flavour> {
    procfs::flavour(process_id)
}
/// Returns `None`: Windows shows no memory map of another process.
#[cfg(windows)]
#[must_use]
pub const fn flavour(_: u32) -> Option<Flavour> {
    None
}

/// Returns whether a runtime in the process may be suspended at startup: `Some(false)` if the environment of the process
/// requests no suspension of any kind of runtime. `None` if it may request one, or is not visible.
#[cfg(unix)]
#[must_use]
pub fn may_be_suspended(process_id: u32) -> Option<bool> {
    procfs::suspended(process_id)
}
/// Returns `None`: Windows shows no environment of another process.
#[cfg(windows)]
#[must_use]
pub const fn may_be_suspended(_: u32) -> Option<bool> {
    None
}

/// Returns whether the process finds a file at this path. `None` for a relative path, and for a path with a link: the
/// link would be resolved with the root of this process.
#[cfg(unix)]
#[must_use]
pub fn has_file(process_id: u32, path: &str) -> Option<bool> {
    procfs::has_file(process_id, path)
}
/// Returns whether the process finds a file at this path. `None` for a relative path: on Windows all processes have the
/// same root, but not the same working directory.
#[cfg(windows)]
#[must_use]
pub fn has_file(_: u32, path: &str) -> Option<bool> {
    let path = Path::new(path);
    path.is_absolute().then(|| path.is_file())
}
