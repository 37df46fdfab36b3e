//! The operations of asynchronous methods that belong to requests in flight.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use nettrace::{Str, TraceEvent};

use crate::event::{number, text};
use crate::names::Names;
use crate::{StackId, Stacks};

/// The operations that have begun and not ended, of the activities of requests.
#[derive(Debug, Default)]
pub(super) struct Operations {
    /// The activity and the number of each operation, by its process and its task.
    tasks: BTreeMap<(Option<u64>, u64), (ActivityBytes, u64)>,
    /// The task and the stack of each operation, by the process, the activity, and the number of the operation.
    open: BTreeMap<(Option<u64>, ActivityBytes, u64), (u64, StackId)>,
    /// The number of operations so far.
    count: u64,
    /// The number of operations for which there was no room.
    dropped: u64,
}

type ActivityBytes = [u8; 16];

impl Operations {
    pub(super) const LIMIT: usize = 1 << 18;

    /// Takes TraceOperationBegin.
    pub(super) fn begin(
        &mut self,
        event: &TraceEvent<'_>,
        process: Option<u64>,
        activity: ActivityBytes,
        stacks: &mut Stacks,
        names: &mut Names,
    ) {
        // Other operations are tasks of the framework, such as Task.Delay, which can outlive the wait for them.
        let is_method = text(event, "OperationName").is_some_and(is_async_method);
        let Some(task) = number(event, "TaskID").filter(|_| is_method) else { return };
        if self.tasks.len() >= Self::LIMIT {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.count = self.count.saturating_add(1);
        if let Some((activity, number)) = self.tasks.insert((process, task), (activity, self.count)) {
            self.open.remove(&(process, activity, number));
        }
        let stack = stacks.of(event, names);
        self.open.insert((process, activity, self.count), (task, stack));
    }

    /// Takes TraceOperationEnd.
    pub(super) fn end(&mut self, event: &TraceEvent<'_>) {
        if self.tasks.is_empty() {
            return;
        }
        let process = event.process_id();
        let Some(task) = number(event, "TaskID") else { return };
        if let Some((activity, number)) = self.tasks.remove(&(process, task)) {
            self.open.remove(&(process, activity, number));
        }
    }

    /// Removes the operations of an activity that has ended.
    pub(super) fn end_activity(&mut self, process: Option<u64>, activity: ActivityBytes) {
        loop {
            let first = self.of(process, activity).next().map(|(key, (task, _))| (*key, *task));
            let Some((key, task)) = first else { return };
            self.open.remove(&key);
            self.tasks.remove(&(process, task));
        }
    }

    /// Returns the stacks in which the open operations of an activity began, in the order of time.
    pub(super) fn stacks(&self, process: Option<u64>, activity: ActivityBytes) -> Vec<StackId> {
        self.of(process, activity).map(|(_, (_, stack))| *stack).collect()
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn of(
        &self,
        process: Option<u64>,
        activity: ActivityBytes,
    ) -> impl Iterator<Item = (&(Option<u64>, ActivityBytes, u64), &(u64, StackId))> {
        self.open.range((process, activity, 0)..=(process, activity, u64::MAX))
    }
}

/// Returns whether an operation is that of an asynchronous method: `Async: <PayAsync>d__10`.
fn is_async_method(name: Str<'_>) -> bool {
    name.chars().take(7).eq("Async: ".chars())
}
