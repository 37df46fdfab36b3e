use crate::steps;

/// Sorts events by time, in slots that the caller owns.
///
/// The stream has the events thread by thread, so an event waits until it is certain that no older one follows: after an
/// event that is [`sorted`](super::Event::sorted), and at a sequence point. An item is the event itself if the stream
/// stays in memory, or else the places of its parts. Events of the same time keep their order.
///
/// ```
/// use ipc_proto::nettrace::{Held, Order};
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
/// If [`push`](Self::push) has no room, release and pop all events, and push again. No event is lost, but a later one may
/// be older than one that was popped. [`late`](Self::late) counts those, and those that are late because a writer marked
/// an event as sorted that was not.
#[derive(Debug)]
pub struct Order<'s, T> {
    slots: &'s mut [Held<T>],
    /// The number of filled slots, popped ones included. They are runs in the order of time: the events of a thread, or
    /// some of them.
    filled: usize,
    /// The number of slots that are not popped.
    held: usize,
    /// The number of runs that are not popped to their end. Their first slots that are not popped are a heap.
    runs: usize,
    /// The last run is not popped to its end, so that it may grow.
    growing: bool,
    released: Option<u64>,
    newest: u64,
    late: u64,
}

/// Room for one event in an [`Order`].
#[derive(Debug, Clone, Copy)]
pub struct Held<T> {
    timestamp: u64,
    item: Option<T>,
    /// Whether a run begins here.
    begins: bool,
    /// An entry of the heap of runs, unrelated to the event here.
    run: Run,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { timestamp: 0, item: None, begins: false, run: Run::default() }
    }
}

/// The first event of a run that is not popped. Of equal times, the lower place is first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    timestamp: u64,
    place: usize,
}

impl<'s, T> Order<'s, T> {
    /// Creates an empty order. Previous events in `slots` are overwritten.
    #[must_use]
    pub const fn new(slots: &'s mut [Held<T>]) -> Self {
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

    /// Returns how many events were popped after a younger one.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Adds an event.
    ///
    /// # Errors
    /// Returns the event if there is no room.
    #[inline]
    pub fn push(&mut self, timestamp: u64, item: T) -> Result<(), T> {
        if self.held == 0 {
            (self.filled, self.runs, self.growing) = (0, 0, false);
        } else if self.filled >= self.slots.len() {
            self.compact();
        }
        let grows = self.growing
            && self.slots.get(self.filled.wrapping_sub(1)).is_some_and(|last| last.timestamp <= timestamp);
        let place = self.filled;
        let Some(slot) = self.slots.get_mut(place) else { return Err(item) };
        (slot.timestamp, slot.item, slot.begins) = (timestamp, Some(item), !grows);
        self.filled = self.filled.wrapping_add(1);
        self.held = self.held.wrapping_add(1);
        self.growing = true;
        if !grows {
            self.add_run(Run { timestamp, place });
        }
        Ok(())
    }

    /// Releases events up to `timestamp`: no older one follows.
    #[inline]
    pub fn release(&mut self, timestamp: u64) {
        self.released = self.released.max(Some(timestamp));
    }

    /// Releases all events: no older one follows, or there is no room to wait for it.
    pub fn release_all(&mut self) {
        self.released = Some(u64::MAX);
    }

    /// Removes the oldest event, if it is released. The release ends when there is none.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let released = self.released?;
        let first = self.slots.first().map(|slot| slot.run);
        let Some(Run { timestamp, place }) = first.filter(|run| self.held > 0 && run.timestamp <= released)
        else {
            self.released = None;
            return None;
        };
        let item = self.slots.get_mut(place)?.item.take();
        self.held = self.held.wrapping_sub(1);
        let next = place.wrapping_add(1);
        match self.slots.get(next).filter(|slot| next < self.filled && !slot.begins) {
            Some(slot) => {
                let run = Run { timestamp: slot.timestamp, place: next };
                self.sink(run);
            }
            None => {
                if next == self.filled {
                    self.growing = false;
                }
                self.runs = self.runs.wrapping_sub(1);
                if let Some(last) = self.slots.get(self.runs) {
                    let run = last.run;
                    self.sink(run);
                }
            }
        }
        self.late = self.late.wrapping_add((timestamp < self.newest).into());
        self.newest = self.newest.max(timestamp);
        item
    }

    /// Replaces the root of the heap by `run`, and moves it down to its place.
    #[inline]
    fn sink(&mut self, run: Run) {
        let mut at = 0usize;
        // No heap is deeper.
        for _ in 0..usize::BITS {
            steps::count(1);
            let left = at.wrapping_mul(2).wrapping_add(1);
            let right = left.wrapping_add(1);
            let Some(mut child) = self.run(left) else { break };
            let mut place = left;
            if let Some(other) = self.run(right) {
                if other < child {
                    (child, place) = (other, right);
                }
            }
            if run <= child {
                break;
            }
            self.set_run(at, child);
            at = place;
        }
        self.set_run(at, run);
    }

    fn add_run(&mut self, run: Run) {
        let mut at = self.runs;
        self.runs = self.runs.wrapping_add(1);
        while at > 0 {
            steps::count(1);
            let parent = at.wrapping_sub(1) >> 1;
            match self.run(parent) {
                Some(above) if run < above => self.set_run(at, above),
                _ => break,
            }
            at = parent;
        }
        self.set_run(at, run);
    }

    /// Returns an entry of the heap.
    #[inline]
    fn run(&self, at: usize) -> Option<Run> {
        self.slots.get(at).filter(|_| at < self.runs).map(|slot| slot.run)
    }

    #[inline]
    fn set_run(&mut self, at: usize, run: Run) {
        if let Some(slot) = self.slots.get_mut(at) {
            slot.run = run;
        }
    }

    /// Moves waiting events to the front, if that frees a quarter of the slots; for less it would happen too often.
    #[cold]
    #[inline(never)]
    fn compact(&mut self) {
        if self.held > self.slots.len().wrapping_sub(self.slots.len() >> 2) {
            return;
        }
        let before = self.filled;
        // An event waits, and the last one ends its run.
        (self.filled, self.runs, self.growing) = (0, 0, true);
        let mut begins = true;
        for from in 0..before {
            steps::count(1);
            let Some(slot) = self.slots.get_mut(from) else { break };
            begins |= slot.begins;
            let (timestamp, place) = (slot.timestamp, self.filled);
            let Some(item) = slot.item.take() else { continue };
            let Some(to) = self.slots.get_mut(place) else { break };
            (to.timestamp, to.item, to.begins) = (timestamp, Some(item), begins);
            self.filled = self.filled.wrapping_add(1);
            if begins {
                self.add_run(Run { timestamp, place });
            }
            begins = false;
        }
    }
}

/// An [`Order`] that owns its slots.
///
/// ```
/// use ipc_proto::nettrace::OrderBuf;
///
/// let mut order = OrderBuf::default();
/// for timestamp in (0..1000).rev() {
///     if order.push(timestamp, timestamp).is_err() {
///         order.grow(64);
///         order.push(timestamp, timestamp).unwrap();
///     }
/// }
/// order.release(1);
/// assert_eq!((order.pop(), order.pop(), order.pop()), (Some(0), Some(1), None));
/// assert_eq!(order.get().len(), 998);
/// ```
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct OrderBuf<T: 'static> {
    slots: alloc::vec::Vec<Held<T>>,
    /// The order without its slots.
    order: Order<'static, T>,
}

#[cfg(feature = "alloc")]
impl<T> OrderBuf<T> {
    /// As [`Order::push`].
    ///
    /// # Errors
    /// Returns the event if there is no room: [`grow`](Self::grow) makes some.
    #[inline]
    pub fn push(&mut self, timestamp: u64, item: T) -> Result<(), T> {
        self.with(|order| order.push(timestamp, item))
    }

    /// Adds room for `more` events.
    pub fn grow(&mut self, more: usize) {
        self.slots.reserve_exact(more);
        self.slots.extend(core::iter::repeat_with(Held::default).take(more));
    }

    /// As [`Order::release`].
    #[inline]
    pub fn release(&mut self, timestamp: u64) {
        self.order.release(timestamp);
    }

    /// As [`Order::release_all`].
    pub fn release_all(&mut self) {
        self.order.release_all();
    }

    /// As [`Order::pop`].
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.with(|order| order.pop())
    }

    /// Returns the waiting events in the order in which they were added.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().take(self.order.filled).filter_map(|slot| slot.item.as_mut())
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Returns the numbers of waiting and of late events.
    #[must_use]
    pub const fn get(&self) -> &Order<'static, T> {
        &self.order
    }

    #[inline]
    fn with<U>(&mut self, f: impl FnOnce(&mut Order<'_, T>) -> U) -> U {
        let mut order = self.order.lend(&mut self.slots);
        let result = f(&mut order);
        self.order = order.lend(&mut []);
        result
    }
}

#[cfg(feature = "alloc")]
impl<T> Default for OrderBuf<T> {
    fn default() -> Self {
        Self { slots: alloc::vec::Vec::new(), order: Order::new(&mut []) }
    }
}

#[cfg(feature = "alloc")]
impl<T> Order<'_, T> {
    /// Returns this order over its slots, which it does not own.
    const fn lend<'t>(&self, slots: &'t mut [Held<T>]) -> Order<'t, T> {
        let Self { filled, held, runs, growing, released, newest, late, .. } = *self;
        Order { slots, filled, held, runs, growing, released, newest, late }
    }
}
