//! Paths of sockets.
use std::io;
use std::path::{Path, PathBuf};

use ipc_proto::SocketName;

use super::process::disambiguation_key;

/// Returns the path of the socket in `directory` at which the runtime of a process listens.
pub fn endpoint(directory: &Path, process_id: u32) -> PathBuf {
    let name = SocketName { process_id, disambiguation_key: disambiguation_key(process_id) };
    directory.join(name.to_text().as_str())
}

/// Returns the process that made a socket, if the name proves it. A process in a container can have the same id as
/// another process here, but these two processes have different start times.
pub fn owner(endpoint: &Path) -> Option<u32> {
    let name: SocketName = endpoint.file_name()?.to_str()?.parse().ok()?;
    let key = disambiguation_key(name.process_id);
    (key != 0 && key == name.disambiguation_key).then_some(name.process_id)
}

/// Returns the absolute path of a port: a runtime that connects to it may have another working directory.
///
/// # Errors
/// As [`std::path::absolute`].
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

/// Returns the address of a port with this absolute path, as a runtime reads it; `None` if the path is not UTF-8.
pub fn port_address(path: &Path) -> Option<&str> {
    path.to_str()
}
