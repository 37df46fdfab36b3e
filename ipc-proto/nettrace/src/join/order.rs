//! `Order`, which sorts events by time, and `Held`, its slot for a waiting event.
use ipc_proto::wire::steps;

use crate::join::backing::Backing;

/// Sorts events by time, in slots of the caller or in a `Vec`, which grows.
///
/// The stream has the events thread by thread, so an event waits until it is certain that no older one follows: after
/// an event that is [`sorted`](crate::Event::sorted), and at a sequence point. An item is the event itself if the
/// stream stays in memory, or else the ranges of its parts. Events of the same time keep their order.
///
/// ```
/// use nettrace::{Held, Order};
///
/// let mut slots = [Held::default(); 8];
/// let mut order = Order::new(&mut slots);
/// for (timestamp, name) in [(2, "b"), (4, "d"), (1, "a"), (3, "c")] {
///     order.push(timestamp, name).unwrap();
/// }
/// order.release(2); // after a sorted event of time 2
/// assert_eq!((order.pop(), order.pop(), order.pop()), (Some("a"), Some("b"), None));
/// order.release_all(); // at a sequence point, and at the end
/// assert_eq!((order.pop(), order.pop(), order.pop()), (Some("c"), Some("d"), None));
/// ```
///
/// If [`push`](Self::push) has no room, release and pop all events, and push again. No event is lost, but a later one
/// may be older than one that was popped. [`late`](Self::late) counts such events. It also counts events that are late
/// because a writer wrongly marked an event as sorted.
#[derive(Debug)]
pub struct Order<B> {
    slots: B,
    /// The number of filled slots, popped ones included. The slots form runs, each in the order of time: mostly the
    /// events of one thread, or some of them.
    filled: usize,
    /// The number of slots that are not popped.
    held: usize,
    /// The number of runs that are not popped to their end. The first waiting event of each such run is in a heap.
    runs: usize,
    /// Whether the last run is not popped to its end, so that it may grow.
    growing: bool,
    released: Option<u64>,
    newest: u64,
    late: u64,
}

/// Room for one event in an [`Order`].
///
/// The slots contain two lists that share nothing but their memory:
///
/// ```text
/// slot          0    1    2    3    4
/// event time    2    4    1    3    5
/// begins        yes       yes            the runs 2 4 and 1 3 5, each in the order of time
/// run           2    0                   a heap of runs, by their first slots: that of time 1 first, then that of time 2
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Held<T> {
    timestamp: u64,
    item: Option<T>,
    /// Whether the event was popped.
    is_popped: bool,
    /// Whether the event is the first of a run.
    begins: bool,
    /// An entry of the heap of runs, which only shares the memory of the slot with the event.
    run: Run,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { timestamp: 0, item: None, is_popped: false, begins: false, run: Run::default() }
    }
}

/// The first event of a run that is not popped. Of equal times, the lower slot is first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    timestamp: u64,
    place: usize,
}

impl<T, B: Backing<Slot = Held<T>>> Order<B> {
    /// Creates an empty order.
    #[must_use]
    pub const fn new(slots: B) -> Self {
        Self { slots, filled: 0, held: 0, runs: 0, growing: false, released: None, newest: 0, late: 0 }
    }

    /// Returns how many events wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.held
    }

    /// Returns whether no event waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Returns how many events were popped after a younger event.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Adds an event.
    ///
    /// # Errors
    /// Returns the event if there is no room. A `Vec` grows instead.
    #[inline]
    pub fn push(&mut self, timestamp: u64, item: T) -> Result<(), T> {
        if !self.has_room() && !self.slots.grow() {
            return Err(item);
        }
        let slots = self.slots.slots_mut();
        let grows = self.growing
            && slots.get(self.filled.wrapping_sub(1)).is_some_and(|last| last.timestamp <= timestamp);
        let place = self.filled;
        let Some(slot) = slots.get_mut(place) else { return Err(item) };
        (slot.timestamp, slot.item) = (timestamp, Some(item));
        (slot.is_popped, slot.begins) = (false, !grows);
        self.filled = self.filled.wrapping_add(1);
        self.held = self.held.wrapping_add(1);
        self.growing = true;
        if !grows {
            self.add_run(Run { timestamp, place });
        }
        Ok(())
    }

    /// Returns whether there is room for another event without growth.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        if self.held == 0 {
            (self.filled, self.runs, self.growing) = (0, 0, false);
        } else if self.filled >= self.slots.slots().len() {
            self.compact();
        }
        self.filled < self.slots.slots().len()
    }

    /// Releases events up to `timestamp`: no older one follows.
    #[inline]
    pub fn release(&mut self, timestamp: u64) {
        self.released = self.released.max(Some(timestamp));
    }

    /// Releases all events: no older one follows, or there is no room to wait for an older one.
    pub fn release_all(&mut self) {
        self.release(u64::MAX);
    }

    /// Removes the oldest event, if it is released. If no released event is left, the release ends.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let place = self.pop_place()?;
        self.slots.slots_mut().get_mut(place)?.item.take()
    }

    /// Returns the waiting events in the order in which they were added.
    pub fn iter_mut<'o>(&'o mut self) -> impl Iterator<Item = &'o mut T>
    where
        T: 'o,
    {
        let filled = self.slots.slots_mut().iter_mut().take(self.filled);
        filled.filter(|slot| !slot.is_popped).filter_map(|slot| slot.item.as_mut())
    }

    /// Returns the slot of the oldest event, if it is released. The event stays there until the next one is added.
    #[inline]
    pub(crate) fn pop_place(&mut self) -> Option<usize> {
        let slots = self.slots.slots_mut();
        let released = self.released?;
        let first = slots.first().map(|slot| slot.run);
        let Some(Run { timestamp, place }) = first.filter(|run| self.held > 0 && run.timestamp <= released)
        else {
            self.released = None;
            return None;
        };
        slots.get_mut(place)?.is_popped = true;
        self.held = self.held.wrapping_sub(1);
        let next = place.wrapping_add(1);
        match slots.get(next).filter(|slot| next < self.filled && !slot.begins) {
            Some(slot) => {
                let run = Run { timestamp: slot.timestamp, place: next };
                sink(slots, self.runs, run);
            }
            None => {
                if next == self.filled {
                    self.growing = false;
                }
                self.runs = self.runs.wrapping_sub(1);
                if let Some(last) = slots.get(self.runs) {
                    let run = last.run;
                    sink(slots, self.runs, run);
                }
            }
        }
        self.pass(timestamp);
        Some(place)
    }

    /// Counts an event that is returned now.
    #[inline]
    pub(crate) fn pass(&mut self, timestamp: u64) {
        self.late = self.late.wrapping_add((timestamp < self.newest).into());
        self.newest = self.newest.max(timestamp);
    }

    fn add_run(&mut self, run: Run) {
        let slots = self.slots.slots_mut();
        let mut at = self.runs;
        self.runs = self.runs.wrapping_add(1);
        while at > 0 {
            steps::count(1);
            let parent = at.wrapping_sub(1) >> 1;
            match heap_run(slots, self.runs, parent) {
                Some(above) if run < above => set_run(slots, at, above),
                _ => break,
            }
            at = parent;
        }
        set_run(slots, at, run);
    }

    /// Moves waiting events to the front, if that frees at least a quarter of the slots. If fewer slots were enough,
    /// the events would move too often.
    #[cold]
    #[inline(never)]
    fn compact(&mut self) {
        let len = self.slots.slots().len();
        if self.held > len.wrapping_sub(len >> 2) {
            return;
        }
        let before = self.filled;
        // An event waits (`held` is not 0), so the last run after the move is not popped to its end.
        (self.filled, self.runs, self.growing) = (0, 0, true);
        let mut begins = true;
        for from in 0..before {
            steps::count(1);
            let slots = self.slots.slots_mut();
            let Some(slot) = slots.get_mut(from) else { break };
            begins |= slot.begins;
            let (timestamp, place) = (slot.timestamp, self.filled);
            if slot.is_popped {
                continue;
            }
            let item = slot.item.take();
            let Some(to) = slots.get_mut(place) else { break };
            (to.timestamp, to.item) = (timestamp, item);
            (to.is_popped, to.begins) = (false, begins);
            self.filled = self.filled.wrapping_add(1);
            if begins {
                self.add_run(Run { timestamp, place });
            }
            begins = false;
        }
    }
}

/// Replaces the root of the heap, which has `runs` entries, by `run`, and moves `run` down until the heap is in order.
#[inline]
fn sink<T>(slots: &mut [Held<T>], runs: usize, run: Run) {
    let mut at = 0usize;
    // A heap has fewer levels than `usize` has bits, so a `break` always ends the loop.
    for _ in 0..usize::BITS {
        steps::count(1);
        let left = at.wrapping_mul(2).wrapping_add(1);
        let right = left.wrapping_add(1);
        let Some(mut child) = heap_run(slots, runs, left) else { break };
        let mut place = left;
        if let Some(other) = heap_run(slots, runs, right) {
            if other < child {
                (child, place) = (other, right);
            }
        }
        if run <= child {
            break;
        }
        set_run(slots, at, child);
        at = place;
    }
    set_run(slots, at, run);
}

/// Returns the entry `at` of the heap, which has `runs` entries.
#[inline]
fn heap_run<T>(slots: &[Held<T>], runs: usize, at: usize) -> Option<Run> {
    slots.get(at).filter(|_| at < runs).map(|slot| slot.run)
}

/// Sets the entry `at` of the heap.
#[inline]
fn set_run<T>(slots: &mut [Held<T>], at: usize, run: Run) {
    if let Some(slot) = slots.get_mut(at) {
        slot.run = run;
    }
}

#[cfg(feature = "alloc")]
impl<T> Order<alloc::vec::Vec<Held<T>>> {
    /// Adds room for `more` events.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.slots.reserve_exact(more);
        self.slots.extend(core::iter::repeat_with(Held::default).take(more));
    }

    /// Returns an event with its time, if no event was added since it was popped.
    #[inline]
    pub(crate) fn popped(&self, place: usize) -> Option<(u64, &T)> {
        let Held { timestamp, item, .. } = self.slots.get(place)?;
        Some((*timestamp, item.as_ref()?))
    }

    /// Returns whether [`pop_place`](Self::pop_place) may return an event.
    #[inline]
    pub(crate) const fn is_released(&self) -> bool {
        self.released.is_some()
    }

    /// Returns the number of slots.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }
}

#[cfg(feature = "alloc")]
impl<T> Default for Order<alloc::vec::Vec<Held<T>>> {
    fn default() -> Self {
        Self::new(alloc::vec::Vec::new())
    }
}
