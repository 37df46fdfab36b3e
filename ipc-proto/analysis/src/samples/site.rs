//! The thread and the stack of an event.
use alloc::string::String;

use nettrace::TraceEvent;

use super::interval::Interval;
use super::threads::{ThreadNumber, Threads};
use crate::names::Names;
use crate::{Part, StackId, Stacks};

/// The thread and the stack of an event. They are stored once for all clocks, and only if a clock needs them.
pub(super) struct Site<'a> {
    pub(super) event: &'a TraceEvent<'a>,
    pub(super) part: &'a Part,
    pub(super) names: &'a mut Names,
    pub(super) stacks: &'a mut Stacks,
    pub(super) threads: &'a mut Threads,
    /// The memory for a label, which is used again for each event.
    pub(super) label: &'a mut String,
    /// The number of events for which there was no room.
    pub(super) dropped: &'a mut u64,
    pub(super) place: Option<(ThreadNumber, StackId)>,
}

impl Site<'_> {
    /// Returns the thread and the stack; `None` if there is no room.
    pub(super) fn place(&mut self) -> Option<(ThreadNumber, StackId)> {
        if self.place.is_none() {
            match self.threads.of(self.event) {
                Some(thread) => self.place = Some((thread, self.stacks.of(self.event, self.names))),
                None => self.drop_event(),
            }
        }
        self.place
    }

    pub(super) const fn drop_event(&mut self) {
        *self.dropped = self.dropped.saturating_add(1);
    }

    /// Adds a label as the innermost frame of a stack.
    pub(super) fn labelled(&mut self, stack: StackId, write: impl FnOnce(&mut String)) -> StackId {
        self.label.clear();
        write(self.label);
        let address = self.names.label(self.label);
        self.stacks.call(stack, address)
    }

    /// Returns the part of an interval that is in the part of the trace.
    pub(super) fn inside(&self, interval: Interval) -> Option<Interval> {
        let Interval { thread, stack, start, weight, .. } = interval;
        let end = start.saturating_add_unsigned(weight.total());
        let (start, end) = self.part.overlap(start, end)?;
        Some(Interval::between(thread, stack, start, end, weight.running > 0))
    }
}
