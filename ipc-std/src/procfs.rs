//! What `/proc` tells of a process; nothing where there is none, or where we may not look.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ipc_proto::plan::Flavour;

/// A variable of the environment that the process was started with: `None` if that cannot be read, `Some(None)` if it
/// has no such variable.
pub(crate) fn variable(process_id: u32, name: &str) -> Option<Option<PathBuf>> {
    let environ = std::fs::read(format!("/proc/{process_id}/environ")).ok()?;
    let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
    let value = environ.split(|byte| *byte == 0).find_map(value);
    Some(value.map(|value| PathBuf::from(OsStr::from_bytes(&value))))
}

/// What kind of runtime is loaded. A program in a single file, of whatever kind, does not show.
pub(crate) fn flavour(process_id: u32) -> Option<Flavour> {
    let maps = std::fs::read(format!("/proc/{process_id}/maps")).ok()?;
    let maps = String::from_utf8_lossy(&maps);
    if maps.contains("/libmonosgen") {
        Some(Flavour::Mono)
    } else if maps.contains("/libcoreclr.so") {
        Some(Flavour::CoreClr)
    } else {
        None
    }
}

/// Whether the runtime may wait at its start: `Some(false)` if nothing in its environment asks it to.
pub(crate) fn suspended(process_id: u32) -> Option<bool> {
    let asks = |name: &str| Some(variable(process_id, name)?.is_some());
    for prefix in ["DOTNET_", "COMPlus_"] {
        for name in ["DiagnosticPorts", "DefaultDiagnosticPortSuspend"] {
            if asks(&format!("{prefix}{name}"))? {
                return None;
            }
        }
    }
    Some(false)
}

/// Whether the process finds a file at this path; `None` for a path that is not absolute, or that a link on the way could
/// lead somewhere else: it would be followed from our root, not from the target's.
pub(crate) fn has_file(process_id: u32, path: &str) -> Option<bool> {
    let below = Path::new(path).strip_prefix("/").ok()?;
    let root = PathBuf::from(format!("/proc/{process_id}/root"));
    root.read_link().ok()?;
    let mut path = root;
    for component in below.components() {
        path.push(component);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => return None,
            Ok(_) => {}
            Err(_) => return Some(false),
        }
    }
    Some(path.is_file())
}
