//! The threads of a process, as Linux shows them.
use std::fs;

use nettrace_analysis::samples::ThreadRoles;

/// The thread of the runtime that serves its diagnostics; it exists before the program starts.
pub(super) const DIAGNOSTICS: &str = ".NET EventPipe";
/// The thread that runs finalizers. A runtime starts it just before its program.
const FINALIZER: &str = ".NET Finalizer";

/// Returns the ids of the threads of a process. Systems without a Linux `/proc` return none.
pub(crate) fn ids(process_id: u32) -> Vec<u64> {
    let tasks = fs::read_dir(format!("/proc/{process_id}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the name that the operating system has for a thread. Linux stores 15 bytes of it.
pub(crate) fn name(process_id: u32, thread_id: u64) -> Option<String> {
    let name = fs::read(format!("/proc/{process_id}/task/{thread_id}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// Returns the name that the operating system has for a thread, unless the thread only has it from its creator: see
/// [`ThreadRoles`].
pub(crate) fn own_name(process_id: u32, thread_id: u64, roles: ThreadRoles) -> Option<String> {
    name(process_id, thread_id).filter(|name| roles.has_name(name))
}

/// Returns whether the threads of a process show that its runtime is suspended: it serves its diagnostics, but has no
/// finalizer yet.
///
/// This matters for .NET 11, whose sessions have a stream while the runtime is suspended; older streams are empty.
/// Runtimes whose threads have no names, such as NativeAOT 9, are never suspended by this rule.
pub(crate) fn show_suspension(process_id: u32) -> bool {
    let names: Vec<_> = ids(process_id).into_iter().filter_map(|id| name(process_id, id)).collect();
    let has = |wanted| names.iter().any(|name| name == wanted);
    has(DIAGNOSTICS) && !has(FINALIZER)
}
