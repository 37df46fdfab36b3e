//! The order of time of the entries of a batch: runs that are in order, merged.
use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use ipc_proto::wire::{steps, to_usize};

use crate::segments::event_entry::EventEntry;

/// The runs of entries, each in the order of time, as they are noted while entries are added, and their merge.
///
/// The merge returns the events in the order in which [`EventAssembler`](crate::EventAssembler) returns them: an event
/// that is marked as sorted releases all events up to its time. If a writer wrongly marks an event, an older one
/// follows; such an event begins a run, before which the released events are merged.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// The index of the first entry of each run.
    starts: Vec<u32>,
    /// The releases that an older event followed.
    passed: Vec<PassedRelease>,
    /// The release by the newest sorted event since the last of `passed`.
    released: Option<Release>,
    /// The time of the last entry.
    last: Option<u64>,
    /// The number of entries.
    len: u32,
    heap: BinaryHeap<Remainder>,
    /// The indexes of the merged entries, in the order of time, if that is not the order of the stream.
    order: Vec<u32>,
    /// The number of merged entries.
    merged: usize,
}

/// The position of an entry in the order of time; of entries of the same time, the lower place is first.
#[derive(Debug, Clone, Copy)]
struct Position {
    timestamp: u64,
    place: u32,
}

impl Position {
    /// Returns a number that compares as the position, because one comparison takes less time than two.
    #[inline(always)]
    fn key(self) -> u128 {
        (u128::from(self.timestamp) << 64) | u128::from(self.place)
    }
}

/// A release of the entries before a position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Release(Position);

impl Release {
    /// The release of all entries.
    pub(crate) const ALL: Self = Self(Position { timestamp: u64::MAX, place: u32::MAX });
}

/// A release that takes effect before a run.
#[derive(Debug, Clone, Copy)]
struct PassedRelease {
    /// The number of runs before it.
    runs: usize,
    release: Release,
}

/// The rest of a run: the position of its first entry, and the place of its end. In a heap, the first position is the
/// greatest.
#[derive(Debug, Clone, Copy)]
struct Remainder {
    first: Position,
    end: u32,
}

impl Ord for Remainder {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        other.first.key().cmp(&self.first.key())
    }
}

impl PartialOrd for Remainder {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Remainder {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Remainder {}

/// The state of [`Runs`] before a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunsMark {
    starts: usize,
    passed: usize,
    released: Option<Release>,
    last: Option<u64>,
    len: u32,
}

impl Runs {
    /// Notes the next entry.
    #[inline(always)]
    pub(crate) fn add(&mut self, timestamp: u64, is_sorted: bool) {
        if self.last.is_none_or(|last| timestamp < last) {
            self.begin(timestamp);
        }
        self.last = Some(timestamp);
        self.len = self.len.wrapping_add(1);
        if is_sorted && self.released.is_none_or(|Release(released)| released.timestamp <= timestamp) {
            self.released = Some(Release(Position { timestamp, place: self.len }));
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, timestamp: u64) {
        // Only the first entry of a run can be older than a release, because a release is never after the last entry.
        if let Some(release) = self.released.filter(|Release(released)| timestamp < released.timestamp) {
            self.passed.push(PassedRelease { runs: self.starts.len(), release });
            self.released = None;
        }
        self.starts.push(self.len);
    }

    pub(crate) fn mark(&self) -> RunsMark {
        let Self { released, last, len, .. } = *self;
        RunsMark { starts: self.starts.len(), passed: self.passed.len(), released, last, len }
    }

    /// Forgets the entries since the mark.
    pub(crate) fn undo(&mut self, mark: RunsMark) {
        self.starts.truncate(mark.starts);
        self.passed.truncate(mark.passed);
        (self.released, self.last, self.len) = (mark.released, mark.last, mark.len);
    }

    /// Returns the release by the newest sorted event.
    pub(crate) const fn released(&self) -> Option<Release> {
        self.released
    }

    /// Returns whether the last entry is a sorted event that releases the entries before it.
    pub(crate) fn ends_sorted(&self) -> bool {
        self.released.is_some_and(|Release(released)| released.place == self.len)
    }

    /// Merges the released entries.
    pub(crate) fn merge(&mut self, entries: &[EventEntry], release: Release) {
        self.order.clear();
        self.heap.clear();
        if self.starts.len() <= 1 {
            steps::count(entries.len().checked_ilog2().map_or(0, to_usize));
            let Release(Position { timestamp, place }) = release;
            let older = entries.partition_point(|entry| entry.timestamp < timestamp);
            let up_to = entries.partition_point(|entry| entry.timestamp <= timestamp);
            self.merged = up_to.min(older.max(to_usize(place)));
            return;
        }
        self.order.reserve(entries.len());
        let mut from = 0;
        let passed = core::mem::take(&mut self.passed);
        for PassedRelease { runs, release } in &passed {
            self.add_to_heap(entries, from..*runs);
            from = *runs;
            self.gallop(entries, *release);
        }
        self.passed = passed;
        self.add_to_heap(entries, from..self.starts.len());
        self.gallop(entries, release);
        self.merged = self.order.len();
    }

    fn add_to_heap(&mut self, entries: &[EventEntry], runs: Range<usize>) {
        steps::count(runs.len());
        let starts = self.starts.get(runs.start..).unwrap_or_default();
        let ends = starts.iter().skip(1).copied().chain([self.len]);
        self.heap.extend(starts.iter().zip(ends).take(runs.len()).filter_map(|(&place, end)| {
            let timestamp = entries.get(to_usize(place))?.timestamp;
            Some(Remainder { first: Position { timestamp, place }, end })
        }));
    }

    /// Merges the released entries of the runs in the heap. As long as the first run stays below the second, its entries
    /// follow each other without the heap.
    fn gallop(&mut self, entries: &[EventEntry], release: Release) {
        let Release(release) = release;
        loop {
            let below = |at: usize| self.heap.as_slice().get(at).map_or(u128::MAX, |run| run.first.key());
            let before = release.key().min(below(1)).min(below(2));
            steps::count(self.heap.len().checked_ilog2().map_or(0, to_usize));
            let Some(mut run) = self.heap.peek_mut() else { return };
            let Remainder { first: Position { place: mut next, .. }, end } = *run;
            let start = next;
            let rest = loop {
                let entry = entries.get(to_usize(next)).filter(|_| next < end);
                let Some(position) = entry.map(|entry| Position { timestamp: entry.timestamp, place: next })
                else {
                    break None;
                };
                if position.key() >= before {
                    break Some(position);
                }
                self.order.push(next);
                next = next.wrapping_add(1);
            };
            if next == start {
                return;
            }
            steps::count(to_usize(next.wrapping_sub(start)));
            match rest {
                Some(first) => run.first = first,
                None => {
                    PeekMut::pop(run);
                }
            }
        }
    }

    /// Returns the number of merged entries.
    #[inline]
    pub(crate) const fn merged(&self) -> usize {
        self.merged
    }

    /// Returns the index of a merged entry.
    #[inline]
    pub(crate) fn place(&self, number: usize) -> usize {
        if self.order.is_empty() {
            return number;
        }
        self.order.get(number).copied().map_or(usize::MAX, to_usize)
    }

    /// Returns whether the merged entries are in the order of time: no event was wrongly marked as sorted.
    pub(crate) fn is_sorted(&self) -> bool {
        self.passed.is_empty()
    }

    /// Removes the merged entries from `entries`. The others keep their order.
    pub(crate) fn remove_merged(&mut self, entries: &mut Vec<EventEntry>) {
        let len = core::mem::take(&mut self.merged);
        if len == entries.len() || self.order.is_empty() {
            entries.drain(..len);
        } else {
            let mut rest: Vec<_> = self.heap.drain().map(|run| (run.first.place, run.end)).collect();
            rest.sort_unstable();
            let mut to = 0_usize;
            for (next, end) in rest {
                let run = to_usize(next)..to_usize(end);
                let after = to.saturating_add(run.len());
                entries.copy_within(run, to);
                to = after;
            }
            entries.truncate(to);
        }
        steps::count(entries.len());
        self.clear();
        for entry in entries {
            // The events up to the release were merged, so the marks of the other events have no effect any more.
            self.add(entry.timestamp, false);
        }
    }

    fn clear(&mut self) {
        self.starts.clear();
        self.passed.clear();
        self.order.clear();
        (self.released, self.last, self.len) = (None, None, 0);
    }
}
