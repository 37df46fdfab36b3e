//! The stack of a thread.
use nettrace_analysis::names::FrameId;

use crate::output::printable::printable_name;

/// The stack of a thread when it was sampled. `F` is an address, or the id of a named frame.
#[derive(Debug)]
pub(super) struct Stack<F> {
    pub(super) thread_id: u64,
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
    /// Returns the state of the thread in JSON.
    pub(super) const fn state(&self) -> &'static str {
        if self.is_managed { "managed" } else { "external" }
    }

    /// Returns the id and the name of the thread.
    pub(super) fn thread(&self) -> String {
        match &self.thread_name {
            Some(name) => format!("{} ({})", self.thread_id, printable_name(name)),
            None => self.thread_id.to_string(),
        }
    }
}
