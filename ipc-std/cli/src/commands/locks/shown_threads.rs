//! The names of threads of a process or of a trace.
use nettrace_analysis::locks::LockThread;

use crate::process::system_threads;
use crate::process::trace_target::TraceTarget;

/// The names of threads.
pub(super) struct ShownThreads {
    /// The process that this system shows by the ids of the trace, if there is one.
    process_id: Option<u32>,
}

impl ShownThreads {
    pub(super) fn new(target: TraceTarget<'_>, process_id_in_trace: Option<u32>) -> Self {
        let process_id = match target {
            TraceTarget::Process(target) => target.process_id(),
            TraceTarget::File(_) => None,
        };
        Self { process_id: process_id.filter(|id| Some(*id) == process_id_in_trace) }
    }

    /// Returns the name of a thread: that of the system, or else its purpose in the runtime.
    pub(super) fn name(&self, thread: &LockThread) -> Option<String> {
        let name = self
            .process_id
            .and_then(|process_id| system_threads::own_name(process_id, thread.id, thread.roles));
        name.or_else(|| Some(thread.name.to_owned()).filter(|name| !name.is_empty()))
    }
}
