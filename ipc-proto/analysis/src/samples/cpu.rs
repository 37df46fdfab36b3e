//! [`Clock::Cpu`](super::Clock::Cpu): samples of threads that run.
use super::seen_event::SeenEvent;
use super::waiting::WaitingStacks;
use super::weight::{Weight, Weights};

/// Returns the weight of a sample of a thread that runs.
pub(super) fn weight(event: &SeenEvent<'_>) -> Option<Weight> {
    event.sample().filter(|weight| weight.running > 0)
}

/// Removes samples whose innermost method waits, and returns their number.
pub(super) fn remove_waits(weights: &mut Weights, waiting: &WaitingStacks) -> u64 {
    let mut removed = 0_u64;
    weights.retain(|(_, stack), weight| {
        let waits = waiting.has(*stack);
        removed = removed.saturating_add(if waits { weight.count } else { 0 });
        !waits
    });
    removed
}
