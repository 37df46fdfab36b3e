//! The order of time of the entries of a batch: runs that are in order, merged.
use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec::Vec;
use core::cmp::Reverse;

use ipc_proto::wire::{steps, to_u32, to_usize};

use crate::whole::entry::Entry;

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
    heap: BinaryHeap<Reverse<Remainder>>,
    /// The indexes of the merged entries, in the order of time, if that is not the order of the stream.
    order: Vec<u32>,
    /// The number of merged entries.
    merged: usize,
}

/// A release of the events before a time, and of those of this time before a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    timestamp: u64,
    place: u32,
}

impl Release {
    /// The release of all events.
    pub(crate) const ALL: Self = Self { timestamp: u64::MAX, place: u32::MAX };
}

/// A release that takes effect before a run.
#[derive(Debug, Clone, Copy)]
struct PassedRelease {
    /// The number of runs before it.
    runs: usize,
    release: Release,
}

/// The rest of a run. Runs compare by their first entry: of equal times, the lower index is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Remainder {
    timestamp: u64,
    next: u32,
    end: u32,
}

/// The state of [`Runs`] before a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunsMark {
    starts: usize,
    passed: usize,
    released: Option<Release>,
    last: Option<u64>,
    len: u32,
}

impl Remainder {
    const fn position(self) -> Release {
        Release { timestamp: self.timestamp, place: self.next }
    }
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
        if is_sorted {
            self.released = self.released.max(Some(Release { timestamp, place: self.len }));
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, timestamp: u64) {
        // Only the first entry of a run can be older than a release, because a release is never after the last entry.
        if let Some(release) = self.released.filter(|release| timestamp < release.timestamp) {
            self.passed.push(PassedRelease { runs: self.starts.len(), release });
            self.released = None;
        }
        self.starts.push(self.len);
    }

    pub(crate) const fn mark(&self) -> RunsMark {
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

    /// Merges the released entries.
    pub(crate) fn merge(&mut self, entries: &[Entry], release: Release) {
        self.order.clear();
        self.heap.clear();
        if self.starts.len() <= 1 {
            steps::count(entries.len().checked_ilog2().map_or(0, to_usize));
            let older = entries.partition_point(|entry| entry.timestamp < release.timestamp);
            let up_to = entries.partition_point(|entry| entry.timestamp <= release.timestamp);
            self.merged = up_to.min(older.max(to_usize(release.place)));
            return;
        }
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

    fn add_to_heap(&mut self, entries: &[Entry], runs: core::ops::Range<usize>) {
        steps::count(runs.len());
        let starts = self.starts.get(runs.start..).unwrap_or_default();
        let ends = starts.iter().skip(1).copied().chain([self.len]);
        self.heap.extend(starts.iter().zip(ends).take(runs.len()).filter_map(|(&next, end)| {
            let timestamp = entries.get(to_usize(next))?.timestamp;
            Some(Reverse(Remainder { timestamp, next, end }))
        }));
    }

    /// Merges the released entries of the runs in the heap. As long as the first run stays below the second, its entries
    /// follow each other without the heap.
    fn gallop(&mut self, entries: &[Entry], release: Release) {
        loop {
            let below = self.heap.as_slice().get(1..).unwrap_or_default();
            let others = below.iter().take(2).map(|Reverse(run)| run.position());
            let before = others.fold(release, Release::min);
            steps::count(self.heap.len().checked_ilog2().map_or(0, to_usize));
            let Some(mut first) = self.heap.peek_mut() else { return };
            let Reverse(Remainder { next, end, .. }) = *first;
            let run = entries.get(to_usize(next)..to_usize(end)).unwrap_or_default();
            let is_before = |(entry, place): &(&Entry, u32)| {
                Release { timestamp: entry.timestamp, place: *place } < before
            };
            let len = run.iter().zip(next..).take_while(is_before).count();
            if len == 0 {
                return;
            }
            steps::count(len);
            let until = next.saturating_add(to_u32(len));
            self.order.extend(next..until);
            match run.get(len) {
                Some(entry) => *first = Reverse(Remainder { timestamp: entry.timestamp, next: until, end }),
                None => {
                    PeekMut::pop(first);
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
    pub(crate) const fn is_sorted(&self) -> bool {
        self.passed.is_empty()
    }

    /// Removes the merged entries from `entries`. The others keep their order.
    pub(crate) fn remove_merged(&mut self, entries: &mut Vec<Entry>) {
        let len = core::mem::take(&mut self.merged);
        if len == entries.len() || self.order.is_empty() {
            entries.drain(..len);
        } else {
            let mut rest: Vec<_> = self.heap.drain().map(|Reverse(run)| (run.next, run.end)).collect();
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
