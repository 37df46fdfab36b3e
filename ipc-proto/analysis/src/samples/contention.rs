//! [`Clock::Contention`](super::Clock::Contention) and [`Clock::Waits`](super::Clock::Waits): the time of waiting for
//! locks, and for other WaitHandles.
use alloc::vec::Vec;

use super::interval::{Interval, Taken};
use super::seen_event::SeenEvent;
use super::threads::ThreadNumber;
use crate::{Part, StackId};

/// The waits whose start or end the trace does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Waits {
    /// The waits that had not ended at the end of the recording, up to which they count.
    pub open: u64,
    /// The waits without an end, whose thread waited again later. Their time is not known.
    pub without_end: u64,
    /// The ends without a start. The time of the wait is not known.
    pub without_start: u64,
}

/// The state of a clock of waiting.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// The start of the wait of each thread, by its number.
    open: Vec<Option<(i64, StackId)>>,
    pub(super) waits: Waits,
}

impl Contention {
    /// Takes an event that starts or ends a wait.
    pub(super) fn event(&mut self, event: &mut SeenEvent<'_>, is_start: Option<bool>) -> Option<Taken> {
        let is_start = is_start?;
        let (thread, stack) = event.place()?;
        let time = event.event.nanoseconds();
        if thread.number() >= self.open.len() {
            self.open.resize(thread.number().saturating_add(1), None);
        }
        let open = self.open.get_mut(thread.number())?;
        let inside = u64::from(event.is_inside);
        if is_start {
            let is_lost = open.replace((time, stack)).is_some();
            let lost = if is_lost { inside } else { 0 };
            self.waits.without_end = self.waits.without_end.saturating_add(lost);
            return Some(Taken { count: inside, interval: None });
        }
        let Some((start, stack)) = open.take() else {
            self.waits.without_start = self.waits.without_start.saturating_add(inside);
            return None;
        };
        let interval = event.inside(Interval::between(thread, stack, start, time, false));
        // A wait that began before the part is counted here, any other wait is counted with its start.
        let count = u64::from(interval.is_some_and(|interval| start < interval.start));
        Some(Taken { count, interval })
    }

    /// Ends the waits that have not ended, at the end of the recording in nanoseconds.
    pub(super) fn open_waits(&mut self, end: i64, part: &Part) -> Vec<Taken> {
        let mut taken = Vec::new();
        for (thread, open) in (0..).zip(&mut self.open) {
            let Some((start, stack)) = open.take() else { continue };
            let Some((inside, end)) = part.overlap(start, end) else { continue };
            self.waits.open = self.waits.open.saturating_add(1);
            let interval = Interval::between(ThreadNumber(thread), stack, inside, end, false);
            taken.push(Taken { count: u64::from(start < inside), interval: Some(interval) });
        }
        taken
    }
}
