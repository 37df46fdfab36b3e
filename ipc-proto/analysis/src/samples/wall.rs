//! [`Clock::Wall`](super::Clock::Wall): all samples of threads.
use super::seen_event::SeenEvent;
use super::waiting::WaitingStacks;
use super::weight::{Weight, Weights};

/// Returns the weight of a sample.
pub(super) fn weight(event: &SeenEvent<'_>) -> Option<Weight> {
    event.sample()
}

/// Makes the samples whose innermost method waits those of a waiting thread.
pub(super) fn separate_waits(weights: &mut Weights, waiting: &WaitingStacks) {
    for ((_, stack), weight) in weights.iter_mut().filter(|(_, weight)| weight.running > 0) {
        if waiting.has(*stack) {
            weight.waiting = weight.waiting.saturating_add(weight.running);
            weight.running = 0;
        }
    }
}
