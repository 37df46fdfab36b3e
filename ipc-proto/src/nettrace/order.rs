/// Puts events into the order of time, in slots that the caller owns.
///
/// The stream has them thread by thread, so some are held until it is certain that nothing older follows: behind an
/// event that says that it is [`sorted`](super::Event::sorted), and at a sequence point. What is held is up to the
/// caller: the event itself if the stream stays in memory, else where its parts are. Events of the same time stay as
/// they came.
///
/// ```
/// use ipc_proto::nettrace::{Held, Order};
///
/// let mut slots = [Held::default(); 8];
/// let mut order = Order::new(&mut slots);
/// for (timestamp, name) in [(2, "b"), (4, "d"), (1, "a"), (3, "c")] {
///     order.push(timestamp, name).unwrap();
/// }
/// order.release(2); // a sorted event of time 2 has come
/// assert_eq!((order.pop(), order.pop(), order.pop()), (Some("a"), Some("b"), None));
/// order.release_all(); // a sequence point, or the end, whichever it is
/// assert_eq!((order.pop(), order.pop(), order.pop()), (Some("c"), Some("d"), None));
/// ```
///
/// When [`push`](Self::push) finds no room, release what there is, pop it, and push again: nothing is lost, but an event
/// that comes then may be older than one that has gone. How many were is in [`late`](Self::late), which counts those
/// too that are late because a writer's `sorted` was not true.
#[derive(Debug)]
pub struct Order<'s, T> {
    slots: &'s mut [Held<T>],
    /// Slots filled, popped ones among them. Each run of slots in the order of time is a thread's, or part of it.
    filled: usize,
    /// Slots not popped.
    held: usize,
    /// Runs that are not popped to their end; their first slots not popped are a heap.
    runs: usize,
    /// The last run is not popped to its end: it may grow.
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
    /// A run begins here.
    begins: bool,
    /// An entry of the heap of runs, which has nothing to do with the event here.
    run: Run,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { timestamp: 0, item: None, begins: false, run: Run::default() }
    }
}

/// The first event not popped of a run. The place decides between equal times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    timestamp: u64,
    place: usize,
}

impl<'s, T> Order<'s, T> {
    /// Holds nothing; what `slots` held is forgotten.
    #[must_use]
    pub const fn new(slots: &'s mut [Held<T>]) -> Self {
        Self { slots, filled: 0, held: 0, runs: 0, growing: false, released: None, newest: 0, late: 0 }
    }

    /// How many events are held.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.held
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// How many events were popped behind a younger one.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Holds an event.
    ///
    /// # Errors
    /// Hands it back if there is no room.
    #[inline]
    pub fn push(&mut self, timestamp: u64, item: T) -> Result<(), T> {
        if self.held == 0 {
            (self.filled, self.runs, self.growing) = (0, 0, false);
        } else if self.filled >= self.slots.len() {
            self.close_up();
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

    /// Nothing older than `timestamp` follows: what is not younger may be popped.
    #[inline]
    pub fn release(&mut self, timestamp: u64) {
        self.released = self.released.max(Some(timestamp));
    }

    /// Nothing older than what is held follows, or there is no room for it: everything may be popped.
    pub fn release_all(&mut self) {
        self.released = Some(u64::MAX);
    }

    /// The oldest event, if it is released. Once there is none, the release is used up.
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

    /// Puts `run` where the heap's root is, or, if it is not the least, further down.
    #[inline]
    fn sink(&mut self, run: Run) {
        let mut at = 0usize;
        // The heap's depth is at most that of all slots.
        for _ in 0..usize::BITS {
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
            let parent = at.wrapping_sub(1) >> 1;
            match self.run(parent) {
                Some(above) if run < above => self.set_run(at, above),
                _ => break,
            }
            at = parent;
        }
        self.set_run(at, run);
    }

    /// An entry of the heap, if it goes so far.
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

    /// Moves what is held to the front, if that makes room for a quarter: else it would be done too often.
    #[cold]
    #[inline(never)]
    fn close_up(&mut self) {
        if self.held > self.slots.len().wrapping_sub(self.slots.len() >> 2) {
            return;
        }
        let before = self.filled;
        // Something is held, and the last of it ends its run.
        (self.filled, self.runs, self.growing) = (0, 0, true);
        let mut begins = true;
        for from in 0..before {
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
    /// All but the slots.
    order: Order<'static, T>,
}

#[cfg(feature = "alloc")]
impl<T> OrderBuf<T> {
    /// As [`Order::push`].
    ///
    /// # Errors
    /// Hands it back if there is no room: [`grow`](Self::grow) makes some.
    #[inline]
    pub fn push(&mut self, timestamp: u64, item: T) -> Result<(), T> {
        self.with(|order| order.push(timestamp, item))
    }

    /// Makes room for `more` events.
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

    /// What is held, as it came.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().take(self.order.filled).filter_map(|slot| slot.item.as_mut())
    }

    /// How many events there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// What was counted so far.
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
    /// The same over the slots that it had; its own do not matter.
    const fn lend<'t>(&self, slots: &'t mut [Held<T>]) -> Order<'t, T> {
        let Self { filled, held, runs, growing, released, newest, late, .. } = *self;
        Order { slots, filled, held, runs, growing, released, newest, late }
    }
}
