//! What the operating system shows of a process whose runtime cannot report it.
use ipc_proto::plan::Explanation;
use ipc_std::{Client, Error, SystemProcess};

use crate::run::{Failure, Globals};

/// The source of a command line that no runtime reported.
pub(super) const SYSTEM: &str =
    if cfg!(any(target_os = "linux", target_os = "android")) { "/proc" } else { "system" };

/// Returns the process of a runtime that failed to report it because it is too long for a message, and notes that. Fails
/// with other errors, and if the system does not show the process.
pub(crate) fn unreported(client: &Client, e: Error, globals: &Globals) -> Result<SystemProcess, Failure> {
    let why = e.explanation().filter(|why| *why == Explanation::InfoTooLong);
    let (why, process) = why.zip(client.system_process()).ok_or(e)?;
    globals.note(&note(process.process_id, why));
    Ok(process)
}

/// Returns the note about a command line that the operating system shows.
pub(crate) fn note(process_id: u32, why: Explanation) -> String {
    format!(
        "the command line of process {process_id} is from {SYSTEM}, because its runtime does not report it: {why}"
    )
}

/// Returns a command line that the operating system shows, with the mark of its source.
pub(crate) fn marked(command_line: &str) -> String {
    format!("[{SYSTEM}] {command_line}")
}
