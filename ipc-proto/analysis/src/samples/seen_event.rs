//! An event with what all clocks need to know of it.
use nettrace::TraceEvent;

use super::weight::Weight;
use crate::event::event_fields::{is_named, number};
use crate::event::event_kinds::EventKind;
use crate::{KnownProvider, RuntimeEvent};

/// An event with what all clocks need to know of it.
pub(super) struct SeenEvent<'a> {
    pub(super) event: &'a TraceEvent<'a>,
    pub(super) kind: EventKind,
    /// Whether the event is in the part of the trace that is weighed.
    pub(super) is_inside: bool,
}

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
}
