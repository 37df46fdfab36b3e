//! [`Clock::Events`](super::Clock::Events) and [`Clock::AllEvents`](super::Clock::AllEvents): any events.
use nettrace::EventSelector;

use super::seen_event::SeenEvent;
use super::weight::Weight;

/// The weight of an event that counts once.
pub(super) const ONE: Weight = Weight::new(1, true);

/// Returns the weight of an event of a provider.
pub(super) fn weight(event: &SeenEvent<'_>, provider: &str, event_id: Option<u32>) -> Option<Weight> {
    let selector = EventSelector { provider, event_id, event_name: None };
    selector.keeps(&event.event.metadata()?).then_some(ONE)
}
