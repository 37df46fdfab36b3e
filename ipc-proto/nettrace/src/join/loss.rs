//! Lost events, counted by the gaps in the sequence numbers of threads.
use crate::join::backing::Backing;
use crate::join::id_map::{IdMap, Slot, StoreFull};
use crate::parse::{Event, Record, SequencePoint, ThreadSequence, Version};

/// Counts the events that a runtime did not record. The counter has a slot for each capture
/// thread, in memory of the caller or in a `Vec`, which grows with the number of threads.
///
/// The events of a thread are numbered; a missing number is a lost event. Losses after the last event of a thread are
/// counted at the next sequence point. Numbers wrap. A number that is 2^31 or more ahead is one that went back: not a
/// loss, but counted by [`went_back`](Self::went_back). In V4, the number 1 means a new thread with the id of an old
/// one. In V6, the numbers of a thread begin when it is declared; those of a thread that is not declared, or was
/// removed, show no loss before the first one. V3 does not number its events.
///
/// In V4 there are two counts. [`lost_after_start`](Self::lost_after_start) is the count of Microsoft's reader, which ignores all events before
/// the first number of a thread. [`lost_at_start`](Self::lost_at_start) is the number of the ignored events. Runtimes
/// number the events of a thread from 1 in each session, so the ignored events were lost too. For example, a session of
/// .NET 9 with a buffer that was too small lost 77,058 events by the first count, and 12,308 more at the starts of
/// three of its threads. The sum is exact for a stream that is complete from its first byte, unless a thread has the id
/// of an earlier one.
///
/// ```
/// use nettrace::{Event, LossCounter, Slot};
///
/// let mut slots = [Slot::default(); 8];
/// let mut loss = LossCounter::new(&mut slots);
/// let event = |sequence| Event { sequence, capture_thread: 7, ..Event::default() };
/// assert_eq!(loss.event(&event(u32::MAX)), 0);
/// assert_eq!(loss.event(&event(3)), 3);
/// assert_eq!(loss.lost_after_start(), 3);
/// ```
#[derive(Debug)]
pub struct LossCounter<B> {
    threads: IdMap<B>,
    version: Version,
    /// Whether the current sequence point flushes the threads.
    flush: bool,
    /// Events may have been skipped, so the first number of a thread shows no losses before it.
    resynced: bool,
    lost: u64,
    lost_at_start: u64,
    /// The lost events of threads of which no event followed.
    lost_at_end: u64,
    lossy_threads: u64,
    /// The time of the last sequence point.
    point_time: u64,
    loss_times: Option<(u64, u64)>,
    gaps: u64,
    went_back: u64,
    untracked: u64,
}

/// The lost events of a stream, by their positions.
///
/// The stream does not state why an event was lost: the buffer of the runtime was full, or the event had more than
/// 64 KiB, which no runtime records, whatever the size of the buffer. When a session stops, a few of the last events of
/// a thread can be missing, also if the runtime blocks instead of dropping events.
///
/// Events in bytes that cannot be read count as lost too: those of a bad block, if a later event of their thread can be
/// read. The end of a truncated trace does not count: how many events it had is unknown. V3 does not number events, so
/// none of its events counts as lost.
///
/// All numbers are lower bounds: an event that was lost after the last number of its thread shows in no record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// All lost events.
    pub lost: u64,
    /// The lost events before the first event of their thread; V4.
    pub at_start: u64,
    /// The lost events after the last event of their thread, as when the session stops.
    pub at_end: u64,
    /// The number of capture threads with losses after their first event.
    pub threads: u64,
    /// The times in ticks of the first and the last record that shows a loss: the event that follows it, or the
    /// sequence point.
    pub times: Option<(u64, u64)>,
}

/// The number of the last event of a thread, and its losses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counter {
    /// The number of the last event in the low half; in the high half, how many events were lost after it. One number,
    /// because one comparison takes less time than two.
    last_and_at_end: u64,
    lost: u64,
}

impl Counter {
    const fn new(last: u32, lost: u64) -> Self {
        Self { last_and_at_end: last as u64, lost }
    }

    const fn last(&self) -> u32 {
        (self.last_and_at_end & 0xffff_ffff) as u32
    }

    const fn at_end(&self) -> u32 {
        (self.last_and_at_end >> u32::BITS) as u32
    }

    const fn set(&mut self, last: u32, at_end: u32) {
        self.last_and_at_end = ((at_end as u64) << u32::BITS) | last as u64;
    }
}

impl<B: Backing<Slot = Slot<Counter>>> LossCounter<B> {
    /// Creates a counter for a stream.
    #[must_use]
    pub fn new(slots: B) -> Self {
        Self {
            threads: IdMap::new(slots),
            version: Version::V4,
            flush: false,
            resynced: false,
            lost: 0,
            lost_at_start: 0,
            lost_at_end: 0,
            lossy_threads: 0,
            point_time: 0,
            loss_times: None,
            gaps: 0,
            went_back: 0,
            untracked: 0,
        }
    }

    /// Prepares for a gap in the stream, as after [`Parser::skip_block`](crate::Parser::skip_block): the next number of
    /// each thread is not compared with the numbers before. Events that were lost within the gap, or next to it, are
    /// not counted.
    ///
    /// ```
    /// use nettrace::{Event, LossCounter, Slot};
    ///
    /// let mut slots = [Slot::default(); 8];
    /// let mut loss = LossCounter::new(&mut slots);
    /// let event = |sequence| Event { sequence, ..Event::default() };
    /// loss.event(&event(1));
    /// loss.resync();
    /// assert_eq!((loss.event(&event(50)), loss.event(&event(52))), (0, 1));
    /// assert_eq!((loss.lost_after_start(), loss.lost_at_start()), (1, 0));
    /// ```
    pub fn resync(&mut self) {
        self.threads.clear();
        self.resynced = true;
    }

    /// Counts the next record of the stream, and returns how many lost events it reveals.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) -> u32 {
        match record {
            Record::Event(event) => self.event(event),
            other => self.other(other),
        }
    }

    /// Counts the next event, and returns how many lost events it reveals.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) -> u32 {
        self.number(event.capture_thread, event.sequence, event.timestamp)
    }

    /// Counts the next `count` events of a thread, whose numbers count up from `first`. The first one has this `time`.
    #[cfg(feature = "alloc")]
    pub(crate) fn numbers(&mut self, thread: u64, first: u32, count: u32, time: u64) {
        // The number 0 does not add a thread of V4, but the number 1 after it does.
        for offset in 0..count.min(2) {
            self.number(thread, first.wrapping_add(offset), time);
        }
        if let Some(counter) = self.threads.get_mut(thread).filter(|_| count > 2) {
            counter.set(first.wrapping_add(count).wrapping_sub(1), 0);
        }
    }

    #[inline]
    fn number(&mut self, thread: u64, sequence: u32, time: u64) -> u32 {
        if let Some(counter) = self.threads.get_mut(thread) {
            if counter.last_and_at_end == u64::from(sequence.wrapping_sub(1)) {
                counter.last_and_at_end = sequence.into();
                return 0;
            }
        }
        self.unexpected(thread, sequence, time)
    }

    #[cold]
    #[inline(never)]
    fn unexpected(&mut self, thread: u64, sequence: u32, time: u64) -> u32 {
        if self.version == Version::V3 {
            return 0;
        }
        let v6 = self.version == Version::V6;
        let Some(counter) = self.threads.get(thread) else {
            self.first(thread, sequence, sequence.wrapping_sub(1), Some(time));
            return 0;
        };
        let (last, at_end) = (counter.last(), counter.at_end());
        let gap = sequence.wrapping_sub(last).wrapping_sub(1);
        if !v6 && sequence == 1 && gap != 0 {
            // 1 again: a new thread has the id of one that ended, so nothing is lost.
            return self.gap(thread, sequence, 0, None);
        }
        // The losses that the last sequence point showed were not at the end of the thread.
        self.lost_at_end = self.lost_at_end.saturating_sub(at_end.into());
        self.gap(thread, sequence, gap, Some(time))
    }

    #[cold]
    #[inline(never)]
    fn other(&mut self, record: &Record<'_>) -> u32 {
        match record {
            Record::Trace(trace) => self.version = trace.version,
            Record::Block(_) if core::mem::take(&mut self.flush) => self.threads.clear(),
            Record::SequencePoint(point) => {
                (self.flush, self.point_time) = (SequencePoint::flushes_threads(point), point.timestamp);
            }
            Record::ThreadSequence(row) => return self.row(row, Some(self.point_time)),
            // A thread that is declared twice continues its numbers.
            Record::Thread(thread) if self.threads.get(thread.index).is_none() => {
                let _ = self.set(thread.index, Counter::default());
            }
            Record::RemoveThread(row) if self.threads.get(row.thread).is_some() => {
                let lost = self.row(row, None);
                self.threads.remove(row.thread);
                return lost;
            }
            _ => {}
        }
        0
    }

    /// Counts the events of a thread up to a number that a sequence point states.
    fn row(&mut self, row: &ThreadSequence, time: Option<u64>) -> u32 {
        let ThreadSequence { thread, sequence } = *row;
        let Some(counter) = self.threads.get(thread) else {
            self.first(thread, sequence, sequence, time);
            return 0;
        };
        let at_end = counter.at_end();
        let lost = self.gap(thread, sequence, sequence.wrapping_sub(counter.last()), time);
        if let Some(counter) = self.threads.get_mut(thread) {
            counter.set(sequence, at_end.saturating_add(lost));
            self.lost_at_end = self.lost_at_end.saturating_add(lost.into());
        }
        lost
    }

    /// Adds a thread whose last number is `sequence`. `from_zero` is the number of its missing events if the first one
    /// is 1.
    fn first(&mut self, thread: u64, sequence: u32, from_zero: u32, time: Option<u64>) {
        // Microsoft's reader of V4 takes the number 0 for a thread without events, whose first event follows.
        if sequence == 0 && self.version == Version::V4 {
            return;
        }
        let is_set = self.set(thread, Counter::new(sequence, 0)).is_ok();
        // In V6, a thread without a declaration may have begun with any number.
        if is_set && !self.resynced && self.version != Version::V6 && from_zero >> 31 == 0 {
            self.lost_at_start = self.lost_at_start.saturating_add(from_zero.into());
            self.note_time(from_zero, time);
        }
    }

    /// Notes the time of a record that shows that events were lost.
    fn note_time(&mut self, lost: u32, time: Option<u64>) {
        if let Some(time) = time.filter(|_| lost > 0) {
            let (first, last) = self.loss_times.unwrap_or((time, time));
            self.loss_times = Some((first.min(time), last.max(time)));
        }
    }

    fn set(&mut self, thread: u64, counter: Counter) -> Result<(), StoreFull> {
        let result = self.threads.insert(thread, counter).map(|_| ());
        if result.is_err() {
            self.untracked = self.untracked.saturating_add(1);
        }
        result
    }

    /// Sets the last number of a known thread to `sequence`, which is `gap` more than expected.
    fn gap(&mut self, thread: u64, sequence: u32, gap: u32, time: Option<u64>) -> u32 {
        let lost = if gap >> 31 == 0 { gap } else { 0 };
        if lost != gap {
            self.went_back = self.went_back.saturating_add(1);
        }
        self.lost = self.lost.saturating_add(lost.into());
        self.gaps = self.gaps.saturating_add((lost != 0).into());
        self.note_time(lost, time);
        if let Some(counter) = self.threads.get_mut(thread) {
            let is_new = counter.lost == 0 && lost > 0;
            self.lossy_threads = self.lossy_threads.saturating_add(is_new.into());
            counter.set(sequence, 0);
            counter.lost = counter.lost.saturating_add(lost.into());
        }
        lost
    }

    /// Returns how many events were lost after the first number of their thread. Microsoft's reader counts only these.
    #[must_use]
    pub const fn lost_after_start(&self) -> u64 {
        self.lost
    }

    /// Returns how many events were lost before the first number of their thread, which [`lost_after_start`](Self::lost_after_start) does not
    /// count; V4. V6 states when a thread starts, so there it is 0.
    ///
    /// ```
    /// use nettrace::{Event, LossCounter, Slot};
    ///
    /// let mut slots = [Slot::default(); 8];
    /// let mut loss = LossCounter::new(&mut slots);
    /// for sequence in [501, 502, 504] {
    ///     loss.event(&Event { sequence, ..Event::default() });
    /// }
    /// assert_eq!((loss.lost_after_start(), loss.lost_at_start()), (1, 500));
    /// ```
    #[must_use]
    pub const fn lost_at_start(&self) -> u64 {
        self.lost_at_start
    }

    /// Returns all lost events, with those at the starts of threads.
    ///
    /// ```
    /// use nettrace::{Event, LossCounter, Slot};
    ///
    /// let mut slots = [Slot::default(); 8];
    /// let mut loss = LossCounter::new(&mut slots);
    /// for sequence in [3, 4, 9] {
    ///     loss.event(&Event { sequence, ..Event::default() });
    /// }
    /// let losses = loss.losses();
    /// assert_eq!((losses.lost, losses.at_start, losses.at_end), (6, 2, 0));
    /// ```
    #[must_use]
    pub const fn losses(&self) -> Losses {
        Losses {
            lost: self.lost.saturating_add(self.lost_at_start),
            at_start: self.lost_at_start,
            at_end: self.lost_at_end,
            threads: self.lossy_threads,
            times: self.loss_times,
        }
    }

    /// Returns the number of gaps in which events were lost.
    #[must_use]
    pub const fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Returns how often the number of a thread went back. Runtimes do this in two cases: a sequence point lists an id
    /// twice, for a thread that ended and for a new one with the same id; and, under load, a sequence point precedes
    /// events whose numbers it includes, so that the counter has already counted those events as lost.
    #[must_use]
    pub const fn went_back(&self) -> u64 {
        self.went_back
    }

    /// Returns how often there was no slot for the thread of an event or of a sequence point. If it is not 0, more
    /// events may be lost than [`lost_after_start`](Self::lost_after_start) states.
    #[must_use]
    pub const fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Returns the known capture threads, with the lost events of each. Threads that ended are not included.
    pub fn threads(&self) -> impl Iterator<Item = (u64, u64)> {
        self.threads.iter().map(|(thread, counter)| (thread, counter.lost))
    }
}

#[cfg(feature = "alloc")]
impl Default for LossCounter<alloc::vec::Vec<Slot<Counter>>> {
    fn default() -> Self {
        Self::new(alloc::vec::Vec::new())
    }
}
