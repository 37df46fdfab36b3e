use super::{Event, Full, SequencePoint, Slot, Step, Table, ThreadSequence, Version};

/// Counts the events that a runtime dropped because its buffer was full, in slots that the caller owns, one for each
/// capture thread.
///
/// Events of a thread are numbered; a number left out is an event lost. Losses behind a thread's last event are seen at
/// the next sequence point. Numbers wrap. A number that is 2^31 or more ahead is one that went back, which is counted,
/// but not as a loss. Before V6, a thread's first number says nothing, and a 1 is a new thread that has got an old
/// one's id. V3 does not number its events.
///
/// ```
/// use ipc_proto::nettrace::{Event, Loss, Slot};
///
/// let mut slots = [Slot::default(); 8];
/// let mut loss = Loss::new(&mut slots);
/// let event = |sequence| Event { sequence, capture_thread: 7, ..Event::default() };
/// assert_eq!(loss.event(&event(u32::MAX)), 0);
/// assert_eq!(loss.event(&event(3)), 3);
/// assert_eq!(loss.lost(), 3);
/// ```
#[derive(Debug)]
pub struct Loss<'s> {
    threads: Table<'s, Counter>,
    version: Version,
    /// The sequence point that is being read flushes the threads.
    flush: bool,
    lost: u64,
    gaps: u64,
    went_back: u64,
    untracked: u64,
}

/// How far a thread has counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counter {
    last: u32,
    lost: u64,
}

impl<'s> Loss<'s> {
    /// Begins a stream.
    #[must_use]
    pub fn new(slots: &'s mut [Slot<Counter>]) -> Self {
        Self {
            threads: Table::new(slots),
            version: Version::V4,
            flush: false,
            lost: 0,
            gaps: 0,
            went_back: 0,
            untracked: 0,
        }
    }

    /// Looks at what comes next in the stream, and says how many events are found to be lost by it.
    #[inline]
    pub fn step(&mut self, step: &Step<'_>) -> u32 {
        match step {
            Step::Event(event) => self.event(event),
            other => self.other(other),
        }
    }

    /// The same for an event.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) -> u32 {
        let Event { capture_thread: thread, sequence, .. } = *event;
        if let Some(counter) = self.threads.get_mut(thread) {
            let expected = counter.last.wrapping_add(1);
            if sequence == expected {
                counter.last = expected;
                return 0;
            }
        }
        self.unexpected(thread, sequence)
    }

    #[cold]
    #[inline(never)]
    fn unexpected(&mut self, thread: u64, sequence: u32) -> u32 {
        if self.version == Version::V3 {
            return 0;
        }
        let v6 = self.version == Version::V6;
        match self.threads.get(thread) {
            Some(counter) if v6 || sequence != 1 => {
                self.gap(thread, sequence, sequence.wrapping_sub(counter.last).wrapping_sub(1))
            }
            // Another thread has got its id.
            Some(_) => self.gap(thread, sequence, 0),
            None => self.first(thread, sequence, sequence.wrapping_sub(1)),
        }
    }

    #[cold]
    #[inline(never)]
    fn other(&mut self, step: &Step<'_>) -> u32 {
        match step {
            Step::Trace(trace) => self.version = trace.version,
            Step::Block(_) if self.flush => {
                self.flush = false;
                self.threads.clear();
            }
            Step::SequencePoint(point) => self.flush = SequencePoint::flushes_threads(point),
            Step::ThreadSequence(row) => return self.row(row),
            Step::Thread(thread) => {
                let _ = self.set(thread.index, Counter::default());
            }
            Step::RemoveThread(row) => {
                let lost = self.row(row);
                self.threads.remove(row.thread);
                return lost;
            }
            _ => {}
        }
        0
    }

    /// How far a thread has counted by now.
    fn row(&mut self, row: &ThreadSequence) -> u32 {
        let ThreadSequence { thread, sequence } = *row;
        match self.threads.get(thread) {
            Some(counter) => self.gap(thread, sequence, sequence.wrapping_sub(counter.last)),
            None => self.first(thread, sequence, sequence),
        }
    }

    /// A thread not seen before, that has counted to `sequence`.
    fn first(&mut self, thread: u64, sequence: u32, from_zero: u32) -> u32 {
        match self.set(thread, Counter { last: sequence, lost: 0 }) {
            // Before V6, a thread's beginning may lie before the trace's.
            Ok(()) if self.version == Version::V6 => self.gap(thread, sequence, from_zero),
            _ => 0,
        }
    }

    fn set(&mut self, thread: u64, counter: Counter) -> Result<(), Full> {
        let result = self.threads.insert(thread, counter).map(|_| ());
        if result.is_err() {
            self.untracked = self.untracked.saturating_add(1);
        }
        result
    }

    /// A thread known has counted to `sequence`, which is `gap` more than it should be.
    fn gap(&mut self, thread: u64, sequence: u32, gap: u32) -> u32 {
        let lost = if gap >> 31 == 0 { gap } else { 0 };
        if lost != gap {
            self.went_back = self.went_back.saturating_add(1);
        }
        self.lost = self.lost.saturating_add(lost.into());
        self.gaps = self.gaps.saturating_add((lost != 0).into());
        if let Some(counter) = self.threads.get_mut(thread) {
            counter.last = sequence;
            counter.lost = counter.lost.saturating_add(lost.into());
        }
        lost
    }

    /// How many events were lost in all.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// In how many places.
    #[must_use]
    pub const fn gaps(&self) -> u64 {
        self.gaps
    }

    /// How often a thread's number went back. Two things of a runtime look like that: a sequence point that lists an id
    /// twice, of a thread that has ended and of the one that got it then; and, under load, a sequence point that is ahead
    /// of its events, which come behind it and have been counted as lost by then.
    #[must_use]
    pub const fn went_back(&self) -> u64 {
        self.went_back
    }

    /// How often an event or a sequence point told of a thread that there was no slot for. If that is not 0, more may be
    /// lost than is counted here.
    #[must_use]
    pub const fn untracked(&self) -> u64 {
        self.untracked
    }

    /// The capture threads known, and how many events of each were lost. One that has ended is no longer among them.
    pub fn threads(&self) -> impl Iterator<Item = (u64, u64)> {
        self.threads.iter().map(|(thread, counter)| (thread, counter.lost))
    }
}

/// A [`Loss`] that owns its slots, as many as there are threads.
///
/// ```
/// use ipc_proto::nettrace::{Event, LossBuf, Step};
///
/// let mut loss = LossBuf::default();
/// for thread in 0..1000 {
///     for sequence in [7, 8, 10] {
///         let event = Event { sequence, capture_thread: thread, ..Event::default() };
///         loss.step(&Step::Event(event));
///     }
/// }
/// assert_eq!(loss.get().lost(), 1000);
/// ```
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct LossBuf {
    /// A power of two.
    slots: alloc::vec::Vec<Slot<Counter>>,
    /// All but the slots.
    loss: Loss<'static>,
}

#[cfg(feature = "alloc")]
impl LossBuf {
    /// As [`Loss::step`].
    #[inline]
    pub fn step(&mut self, step: &Step<'_>) -> u32 {
        self.with(|loss| loss.step(step))
    }

    /// As [`Loss::event`].
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) -> u32 {
        self.with(|loss| loss.event(event))
    }

    #[inline]
    fn with(&mut self, count: impl FnOnce(&mut Loss<'_>) -> u32) -> u32 {
        let mut loss = self.loss.lend(&mut self.slots);
        let lost = count(&mut loss);
        let full = loss.threads.is_full();
        self.loss = loss.lend(&mut []);
        if full {
            self.grow();
        }
        lost
    }

    /// What was counted so far. Its [`threads`](Loss::threads) are not there.
    #[must_use]
    pub const fn get(&self) -> &Loss<'static> {
        &self.loss
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = alloc::vec![Slot::default(); self.slots.len().saturating_mul(2).max(16)];
        let mut threads = Table::new(&mut slots);
        for (thread, counter) in self.loss.threads.lend(&mut self.slots).iter() {
            // There is room for all of them.
            let _ = threads.insert(thread, *counter);
        }
        self.loss.threads = threads.lend(&mut []);
        self.slots = slots;
    }
}

#[cfg(feature = "alloc")]
impl Default for LossBuf {
    fn default() -> Self {
        let mut loss = Self { slots: alloc::vec::Vec::new(), loss: Loss::new(&mut []) };
        loss.grow();
        loss
    }
}

#[cfg(feature = "alloc")]
impl Loss<'_> {
    /// The same over the slots that it had; its own do not matter.
    const fn lend<'t>(&self, slots: &'t mut [Slot<Counter>]) -> Loss<'t> {
        let Self { ref threads, version, flush, lost, gaps, went_back, untracked } = *self;
        Loss { threads: threads.lend(slots), version, flush, lost, gaps, went_back, untracked }
    }
}
