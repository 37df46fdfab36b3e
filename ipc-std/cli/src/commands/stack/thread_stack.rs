//! The stack of a thread.
use nettrace_analysis::account::ThreadState;
use nettrace_analysis::names::{FrameId, Names};
use nettrace_analysis::samples::ThreadRoles;

use crate::text::printable::printable_name;

/// The stack of a thread when it was sampled. `F` is an address, or the id of a named frame.
#[derive(Debug)]
pub(super) struct Stack<F> {
    pub(super) thread_id: u64,
    /// The name that the operating system has for the thread.
    pub(super) thread_name: Option<String>,
    pub(super) is_managed: bool,
    /// The frames, the innermost first.
    pub(super) frames: Vec<F>,
}

impl Stack<u64> {
    pub(super) fn map(self, name: impl FnMut(u64) -> FrameId) -> Stack<FrameId> {
        let Self { thread_id, thread_name, is_managed, frames } = self;
        Stack { thread_id, thread_name, is_managed, frames: frames.into_iter().map(name).collect() }
    }
}

impl Stack<FrameId> {
    /// Returns what the thread does.
    pub(super) fn state(&self, names: &Names) -> ThreadState {
        ThreadState::of_stack(&self.frames, names, self.is_managed).0
    }

    /// Returns whether the thread runs managed code: one that waits there does not.
    pub(super) fn runs(&self, names: &Names) -> bool {
        self.state(names) == ThreadState::Runs
    }

    /// Returns the id and the name of the thread.
    pub(super) fn thread(&self, names: &Names) -> String {
        match self.own_name(names) {
            Some(name) => format!("{} ({})", self.thread_id, printable_name(name)),
            None => self.thread_id.to_string(),
        }
    }

    /// Returns the name of the thread, unless the thread only has it from its creator: see [`ThreadRoles`].
    pub(super) fn own_name(&self, names: &Names) -> Option<&str> {
        let mut roles = ThreadRoles::default();
        self.frames.iter().for_each(|frame| roles.add(names.text(*frame)));
        self.thread_name.as_deref().filter(|name| roles.has_name(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_creators() {
        let mut names = Names::default();
        for line in [
            "100 10 [System.Private.CoreLib] System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()",
            "200 10 [Shop] Shop.Heartbeat.Beat()",
        ] {
            assert!(names.perf_map_line(0, line));
        }
        for (thread_name, ips, own) in [
            (".NET TP Worker", &[0x208, 0x108][..], true),
            (".NET TP Worker", &[0x208], false),
            ("Heartbeat", &[0x208], true),
            (".NET Finalizer", &[], true),
        ] {
            let thread_name = Some(thread_name.to_owned());
            let stack = Stack { thread_id: 1, thread_name, is_managed: true, frames: ips.to_vec() };
            let stack = stack.map(|ip| {
                let address = names.address(0, ip);
                names.frame(address)
            });
            assert_eq!(stack.own_name(&names).is_some(), own, "{stack:?}");
        }
    }
}
