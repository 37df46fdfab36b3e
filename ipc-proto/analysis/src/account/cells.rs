//! The sums of an account, by measure, thread, window of time and stack.
use alloc::collections::BTreeMap;

use nettrace::TraceEvent;

use super::windows::Windows;
use crate::samples::{Clock, Interval, ThreadNumber};
use crate::{RuntimeEvent, StackId};

/// What an account adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Measure {
    /// Samples of threads.
    Samples,
    /// Nanoseconds of waiting for locks, with the number of the lock as the label.
    Contention,
    /// Nanoseconds of waiting on WaitHandles, also of idle threads.
    Waits,
    /// Allocated bytes; those of large objects have the label [`Account::LARGE`](super::Account::LARGE).
    Allocations,
    /// Exceptions, with the type as the label.
    Exceptions,
    /// Triggered collections.
    Triggers,
    /// Started threads.
    ThreadStarts,
    /// Methods that are compiled.
    Compilations,
    /// Requests that the program sends.
    Sent,
}

impl Measure {
    /// Returns the measure of an event that counts 1.
    pub(super) fn of_event(event: &TraceEvent<'_>, of_runtime: Option<RuntimeEvent>) -> Option<Self> {
        match of_runtime {
            Some(RuntimeEvent::ExceptionThrown) => Some(Self::Exceptions),
            Some(RuntimeEvent::GCTriggered) => Some(Self::Triggers),
            Some(RuntimeEvent::ThreadCreating) => Some(Self::ThreadStarts),
            Some(RuntimeEvent::MethodJittingStarted) => Some(Self::Compilations),
            Some(_) => None,
            None => {
                let description = event.description()?;
                let is_sent = description.event_id() == 1 && description.provider() == "System.Net.Http";
                is_sent.then_some(Self::Sent)
            }
        }
    }

    pub(super) fn of(clock: &Clock) -> Self {
        match clock {
            Clock::Contention => Self::Contention,
            Clock::Waits => Self::Waits,
            Clock::Allocations => Self::Allocations,
            _ => Self::Samples,
        }
    }
}

/// The place of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellKey {
    pub(super) measure: Measure,
    pub(super) thread: ThreadNumber,
    pub(super) window: u16,
    pub(super) label: u32,
    pub(super) stack: StackId,
}

/// A sum over a window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) running: u64,
    pub(super) waiting: u64,
    pub(super) count: u64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// Whether the sum is one of AllocationTicks, which count for processes without sampled allocations.
    pub(super) is_tick: bool,
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.running = self.running.saturating_add(other.running);
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// The sums of an account.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) windows: Windows,
    pub(super) sums: BTreeMap<CellKey, Cell>,
    pub(super) dropped: u64,
}

impl Cells {
    /// How many sums are stored at most.
    pub(super) const LIMIT: usize = 1 << 20;

    /// Adds what a clock counts from `start` to `end`, a part to each window.
    pub(super) fn add(&mut self, measure: Measure, label: u32, interval: &Interval, end: i64) {
        let Interval { thread, stack, start, weight, is_tick } = *interval;
        self.window(start);
        let last = self.window(end);
        let first = self.windows.of(start).unwrap_or(last);
        for window in first..=last {
            let key = CellKey { measure, thread, window, label, stack };
            let from = start.max(if window == first { start } else { self.windows.start(window) });
            let to = if window == last { end } else { self.windows.start(window.saturating_add(1)) };
            let inside = u64::try_from(to.saturating_sub(from)).unwrap_or_default();
            let [running, waiting] = match first == last {
                true => [weight.running, weight.waiting],
                false => [0, inside],
            };
            let count = u64::from(window == first);
            self.add_cell(key, &Cell { running, waiting, count, first: from, last: to, is_tick });
        }
    }

    /// Returns the sums of a measure.
    pub(super) fn of(&self, measure: Measure) -> impl Iterator<Item = (&CellKey, &Cell)> {
        let thread = ThreadNumber::of(0);
        let first = CellKey { measure, thread, window: 0, label: 0, stack: StackId::EMPTY };
        self.sums.range(first..).take_while(move |(key, _)| key.measure == measure)
    }

    /// Returns the window of a time, after it has made room for it.
    fn window(&mut self, time: i64) -> u16 {
        loop {
            match self.windows.of(time) {
                Some(window) => return window,
                None => self.double(),
            }
        }
    }

    fn add_cell(&mut self, mut key: CellKey, cell: &Cell) {
        if let Some(sum) = self.sums.get_mut(&key) {
            return sum.add(cell);
        }
        // Longer windows have fewer sums.
        if self.sums.len() >= Self::LIMIT && key.window > 0 && self.windows.length() < u64::MAX / 4 {
            self.double();
            key.window /= 2;
        }
        if self.sums.len() >= Self::LIMIT {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.sums.entry(key).and_modify(|sum| sum.add(cell)).or_insert(*cell);
    }

    fn double(&mut self) {
        self.windows.double();
        for (key, cell) in core::mem::take(&mut self.sums) {
            let key = CellKey { window: key.window / 2, ..key };
            self.sums.entry(key).and_modify(|sum| sum.add(&cell)).or_insert(cell);
        }
    }
}
