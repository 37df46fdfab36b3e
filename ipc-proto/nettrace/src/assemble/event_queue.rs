//! The queue of events that wait until no older event can follow: copies of the events, in limited memory.
use alloc::vec::Vec;
use core::ops::Range;

use ipc_proto::Guid;
use ipc_proto::wire::{Reader, steps, to_u32, to_usize};

use crate::assemble::context::References;
use crate::join::{Held, Order};
use crate::parse::Event;

/// An event that waits, in 40 bytes. What few events have is in the buffer of the queue, before the payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingEvent {
    thread: u64,
    /// The place of the event's bytes in the buffer: its rare parts, its payload, and V3's stack.
    start: u32,
    len: u32,
    metadata_id: u32,
    sequence: u32,
    stack_id: u32,
    pub(crate) references: References,
    rare: RareParts,
    sorted: bool,
}

const _: () = assert!(size_of::<WaitingEvent>() == 40);

/// The parts of an event that are in the buffer, in this order.
#[derive(Debug, Clone, Copy)]
struct RareParts(u8);

impl RareParts {
    /// The capture thread, if it is not the thread: 8 bytes.
    const CAPTURE_THREAD: u8 = 1;
    /// The processor, if it is known: 4 bytes.
    const PROCESSOR: u8 = 2;
    /// V6's label list: 4 bytes.
    const LABEL_LIST: u8 = 4;
    /// The ids of two activities: 32 bytes.
    const ACTIVITIES: u8 = 8;
    /// The length of V3's stack, which follows the payload: 4 bytes.
    const STACK: u8 = 16;

    /// The length of all parts in bytes.
    const MAX_LEN: usize = 52;

    #[inline]
    fn of(event: &Event<'_>) -> Self {
        let has_activities = event.activity_id != Guid::NIL || event.related_activity_id != Guid::NIL;
        let part = |has, part| if has { part } else { 0 };
        Self(
            part(event.capture_thread != event.thread, Self::CAPTURE_THREAD)
                | part(event.processor != Event::UNKNOWN_PROCESSOR, Self::PROCESSOR)
                | part(event.label_list != 0, Self::LABEL_LIST)
                | part(has_activities, Self::ACTIVITIES)
                | part(!event.stack.is_empty(), Self::STACK),
        )
    }

    #[inline]
    const fn has(self, part: u8) -> bool {
        self.0 & part != 0
    }

    /// Appends the parts that the event has.
    #[inline]
    fn append(self, event: &Event<'_>, bytes: &mut Vec<u8>) {
        if self.has(Self::CAPTURE_THREAD) {
            bytes.extend_from_slice(&event.capture_thread.to_le_bytes());
        }
        if self.has(Self::PROCESSOR) {
            bytes.extend_from_slice(&event.processor.to_le_bytes());
        }
        if self.has(Self::LABEL_LIST) {
            bytes.extend_from_slice(&event.label_list.to_le_bytes());
        }
        if self.has(Self::ACTIVITIES) {
            bytes.extend_from_slice(&event.activity_id.0);
            bytes.extend_from_slice(&event.related_activity_id.0);
        }
        if self.has(Self::STACK) {
            bytes.extend_from_slice(&to_u32(event.stack.len()).to_le_bytes());
        }
    }

    /// Reads the bytes of an event. `None` if there are too few, which the buffer never has.
    #[inline]
    fn read<'a>(self, r: &mut Reader<'a>, thread: u64) -> Option<Event<'a>> {
        let mut event =
            Event { thread, capture_thread: thread, processor: Event::UNKNOWN_PROCESSOR, ..Event::default() };
        let mut stack = 0;
        if self.has(Self::CAPTURE_THREAD) {
            event.capture_thread = r.read().ok()?;
        }
        if self.has(Self::PROCESSOR) {
            event.processor = r.read().ok()?;
        }
        if self.has(Self::LABEL_LIST) {
            event.label_list = r.read().ok()?;
        }
        if self.has(Self::ACTIVITIES) {
            (event.activity_id, event.related_activity_id) = (r.read().ok()?, r.read().ok()?);
        }
        if self.has(Self::STACK) {
            stack = to_usize(r.read().ok()?);
        }
        event.payload = r.bytes(r.rest().len().checked_sub(stack)?).ok()?;
        event.stack = r.rest();
        Some(event)
    }
}

impl WaitingEvent {
    /// Returns the range of the event's bytes in the buffer.
    #[inline]
    fn range(&self) -> Range<usize> {
        let start = to_usize(self.start);
        start..start.saturating_add(to_usize(self.len))
    }
}

/// The most bytes of the buffer, so that 32 bits hold an offset in it.
const MOST_BYTES: usize = 1 << 31;

/// Events that wait for older ones, with copies of their payloads, in a limited amount of memory.
#[derive(Debug)]
pub(crate) struct EventQueue {
    order: Order<Vec<Held<WaitingEvent>>>,
    /// The activities, the payloads, and V3's stacks. The bytes of popped events stay until their room is needed.
    bytes: Vec<u8>,
    /// Bytes of events that were not popped.
    used: usize,
    limit: usize,
    /// An event for which there is room only after all others are popped.
    next: Option<(u64, WaitingEvent)>,
    /// Whether events were released because of the limit.
    exceeded_limit: bool,
}

impl EventQueue {
    /// Creates an empty queue, which takes up to `limit` bytes of memory, and one event more.
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(MOST_BYTES);
        Self { order: Order::default(), bytes: Vec::new(), used: 0, limit, next: None, exceeded_limit: false }
    }

    /// Returns how many events were popped after a younger event.
    pub(crate) const fn late(&self) -> u64 {
        self.order.late()
    }

    /// Returns an event that was popped, if no event was pushed since.
    #[inline]
    pub(crate) fn event(&self, place: usize) -> Option<Event<'_>> {
        let (timestamp, waiting) = self.order.popped(place)?;
        let WaitingEvent { thread, metadata_id, sequence, stack_id, sorted, rare, .. } = *waiting;
        let event = rare.read(&mut Reader::new(self.bytes.get(waiting.range())?), thread)?;
        Some(Event { metadata_id, sequence, stack_id, timestamp, sorted, ..event })
    }

    /// Returns whether no event waits.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.order.is_empty() && self.next.is_none()
    }

    /// Returns whether [`pop`](Self::pop) may return an event.
    #[inline]
    pub(crate) const fn is_released(&self) -> bool {
        self.order.is_released()
    }

    /// Returns the references of an event that was popped, if no event was pushed since.
    #[inline]
    pub(crate) fn references(&self, place: usize) -> Option<References> {
        self.order.popped(place).map(|(_, waiting)| waiting.references)
    }

    /// Adds an event. If there is no room for it, all other events are released, and this one follows them.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event<'_>, references: References) {
        let Event { metadata_id, sequence, thread, stack_id, timestamp, sorted, .. } = *event;
        if self.is_empty() {
            // The next events reuse the front of the buffer, which is in the processor's cache. The pages after it are
            // touched only if more events wait at a time.
            self.bytes.clear();
        }
        let rare = RareParts::of(event);
        let most = RareParts::MAX_LEN.saturating_add(event.payload.len()).saturating_add(event.stack.len());
        let has_room = self.has_bytes(most) && self.has_slot();
        let start = self.bytes.len();
        rare.append(event, &mut self.bytes);
        self.bytes.extend_from_slice(event.payload);
        if rare.has(RareParts::STACK) {
            self.bytes.extend_from_slice(event.stack);
        }
        let len = self.bytes.len().saturating_sub(start);
        steps::count(len);
        let waiting = WaitingEvent {
            thread,
            start: to_u32(start),
            len: to_u32(len),
            metadata_id,
            sequence,
            stack_id,
            references,
            rare,
            sorted,
        };
        self.used = self.used.saturating_add(len);
        if has_room {
            self.insert(timestamp, waiting);
        } else {
            self.release_early();
            self.next = Some((timestamp, waiting));
        }
    }

    /// Returns whether a sorted event can be returned immediately, because no event waits. If so, counts it as returned.
    #[inline]
    pub(crate) fn pass(&mut self, timestamp: u64) -> bool {
        let is_empty = self.is_empty();
        if is_empty {
            self.order.pass(timestamp);
        }
        is_empty
    }

    /// Releases all events: no older one follows.
    pub(crate) fn release_all(&mut self) {
        self.order.release_all();
    }

    /// Releases all events because of the limit, although older ones may follow.
    #[cold]
    pub(crate) fn release_early(&mut self) {
        self.exceeded_limit = true;
        self.order.release_all();
    }

    pub(crate) const fn exceeded_limit(&self) -> bool {
        self.exceeded_limit
    }

    /// Removes the oldest event, if it is released, and returns its index.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<usize> {
        let place = match self.order.pop_place() {
            Some(place) => place,
            None if self.next.is_none() => return None,
            None => self.pop_next()?,
        };
        let len = self.order.popped(place).map_or(0, |(_, oldest)| to_usize(oldest.len));
        self.used = self.used.saturating_sub(len);
        Some(place)
    }

    /// Removes the event that had no room (`next`), and returns its index.
    #[cold]
    #[inline(never)]
    fn pop_next(&mut self) -> Option<usize> {
        let (timestamp, next) = self.next.take()?;
        if self.has_slot() {
            self.insert(timestamp, next);
        }
        self.order.pop_place()
    }

    #[inline(always)]
    fn insert(&mut self, timestamp: u64, event: WaitingEvent) {
        let sorted = event.sorted;
        // The push cannot fail: the caller has made room for the event.
        let _ = self.order.push(timestamp, event);
        if sorted {
            self.order.release(timestamp);
        }
    }

    /// Returns by how many bytes a buffer of `capacity` bytes grows. With a smaller number it would grow too often;
    /// with a larger one the first of the two buffers would take all of the limit.
    fn increment(&self, capacity: usize) -> usize {
        (256 << 10).max(capacity / 2).min(self.limit / 8)
    }

    /// Returns how many bytes of memory may still be taken.
    fn left(&self) -> usize {
        let slots = self.order.capacity().saturating_mul(size_of::<Held<WaitingEvent>>());
        self.limit.saturating_sub(slots).saturating_sub(self.bytes.capacity())
    }

    /// Makes room for an event; returns false if that exceeds the limit.
    #[inline]
    fn has_slot(&mut self) -> bool {
        self.order.has_room() || self.grow_order()
    }

    #[cold]
    #[inline(never)]
    fn grow_order(&mut self) -> bool {
        let slot = size_of::<Held<WaitingEvent>>();
        let increment = self.increment(self.order.capacity().saturating_mul(slot));
        let more = self.left().min(increment).checked_div(slot).unwrap_or_default();
        self.order.reserve(if self.order.capacity() == 0 { more.max(1) } else { more });
        self.order.has_room()
    }

    /// Makes room for `n` bytes; returns false if that exceeds the limit.
    #[inline]
    fn has_bytes(&mut self, n: usize) -> bool {
        self.bytes.capacity().saturating_sub(self.bytes.len()) >= n || self.grow(n)
    }

    #[cold]
    fn grow(&mut self, n: usize) -> bool {
        // Compact only if that frees more than a quarter of the buffer: for less, the bytes would move too often.
        if self.used < self.bytes.len().saturating_sub(self.bytes.len() / 4) {
            self.compact();
            if self.bytes.capacity().saturating_sub(self.bytes.len()) >= n {
                return true;
            }
        }
        let more = n.max(self.increment(self.bytes.capacity()));
        let fits = more <= self.left();
        self.bytes.reserve_exact(if fits { more } else { n });
        fits
    }

    /// Moves the bytes of waiting events to the front of the buffer.
    fn compact(&mut self) {
        let mut end = 0_usize;
        for event in self.order.iter_mut() {
            let bytes = event.range();
            steps::count(bytes.len().saturating_add(1));
            event.start = to_u32(end);
            end = end.saturating_add(bytes.len());
            self.bytes.copy_within(bytes, to_usize(event.start));
        }
        self.bytes.truncate(end);
    }
}
