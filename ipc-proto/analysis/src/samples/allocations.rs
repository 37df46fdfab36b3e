//! [`Clock::Allocations`](super::Clock::Allocations) and
//! [`Clock::AllocatedTypes`](super::Clock::AllocatedTypes): allocated bytes.
use super::allocation_row::AllocationRow;
use super::interval::Weight;
use super::interval::{Interval, Taken};
use super::seen_event::SeenEvent;
use crate::RuntimeEvent;
use crate::event::push_text;

/// The frame of an allocated object whose type the trace does not name.
pub const UNKNOWN_TYPE: &str = "?";

/// The state of the clock of allocated bytes.
#[derive(Debug)]
pub(super) struct Allocations {
    /// Whether the type of the object is the innermost frame.
    has_types: bool,
    /// The fraction of a byte that allocations weigh beside whole bytes.
    fraction: f64,
    /// The number of events that do not state what they weigh.
    pub(super) unknown: u64,
}

impl Allocations {
    pub(super) const fn new(has_types: bool) -> Self {
        // So that the sum is rounded, not cut off.
        Self { has_types, fraction: 0.5, unknown: 0 }
    }

    /// Takes an event. The events are counted with the weights.
    pub(super) fn event(&mut self, event: &mut SeenEvent<'_>) -> Option<Taken> {
        let (row, is_tick) = match event.kind.of_runtime? {
            RuntimeEvent::GCAllocationTick => (AllocationRow::of_tick(event.event), true),
            RuntimeEvent::AllocationSampled => (AllocationRow::of_sampled(event.event), false),
            _ => return None,
        };
        let (thread, mut stack) = event.place()?;
        let Some(mut amount) = row.amount else {
            self.unknown = self.unknown.saturating_add(1);
            return None;
        };
        self.fraction += row.fraction;
        if self.fraction >= 1.0 {
            self.fraction -= 1.0;
            amount = amount.saturating_add(1);
        }
        if self.has_types {
            stack = event.labelled(stack, |label| {
                push_text(label, row.type_name);
                // NativeAOT has no names of types, and sends "NULL".
                if label.is_empty() || label == "NULL" {
                    label.clear();
                    label.push_str(UNKNOWN_TYPE);
                }
            });
        }
        let interval = Interval::at(thread, stack, event.event.nanoseconds(), Weight::new(amount, true));
        Some(Taken { count: 0, interval: Some(Interval { is_tick, ..interval }) })
    }
}
