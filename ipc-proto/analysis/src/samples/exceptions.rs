//! [`Clock::Exceptions`](super::Clock::Exceptions): thrown exceptions.
use super::events::ONE;
use super::seen_event::SeenEvent;
use super::weight::Weight;
use crate::RuntimeEvent;

/// Returns the weight of an exception.
pub(super) fn weight(event: &SeenEvent<'_>) -> Option<Weight> {
    event.is(RuntimeEvent::ExceptionThrown).then_some(ONE)
}
