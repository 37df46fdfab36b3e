//! An event with what the clocks need to know of it.
use alloc::string::String;

use nettrace::TraceEvent;

use super::interval::Interval;
use super::interval::Weight;
use super::threads::{ThreadNumber, Threads};
use crate::event::{EventKind, is_named, number};
use crate::names::Names;
use crate::{KnownProvider, Part, RuntimeEvent, StackId, Stacks};

/// An event with what the clocks need to know of it. Its thread and its stack are stored once for all clocks, and only
/// if a clock needs them.
pub(super) struct SeenEvent<'a> {
    pub(super) event: &'a TraceEvent<'a>,
    pub(super) kind: EventKind,
    /// Whether the event is in the part of the trace that is weighed.
    pub(super) is_inside: bool,
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

/// The time in nanoseconds for which a sample of the processor stands: `collect-linux` takes 1,000 a second.
pub(super) const PROCESSOR_SAMPLE: u64 = 1_000_000;

impl SeenEvent<'_> {
    pub(super) fn is(&self, event: RuntimeEvent) -> bool {
        self.kind.of_runtime == Some(event)
    }

    /// Returns what a sample of a thread weighs; `None` for other events.
    pub(super) fn sample(&self) -> Option<Weight> {
        /// The kind of a sample in managed code.
        const MANAGED: u32 = 2;
        match self.kind.provider? {
            KnownProvider::SampleProfiler if self.is(RuntimeEvent::ThreadSample) => {
                let kind = self.event.payload().first_chunk().map(|kind| u32::from_le_bytes(*kind));
                Some(Weight::new(1, kind == Some(MANAGED)))
            }
            KnownProvider::UniversalEvents if is_named(self.event, "cpu") => {
                Some(Weight::new(number(self.event, "Value").unwrap_or(1), true))
            }
            _ => None,
        }
    }

    /// Returns the start of the time that a switch of threads (V6) ends, in which the thread was off the processor.
    pub(super) fn switch(&self) -> Option<i64> {
        let is_switch =
            self.kind.provider == Some(KnownProvider::UniversalEvents) && is_named(self.event, "cswitch");
        let ticks = number(self.event, "Value").filter(|_| is_switch)?;
        Some(self.event.clock().nanoseconds(self.event.timestamp().saturating_sub(ticks)))
    }

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
