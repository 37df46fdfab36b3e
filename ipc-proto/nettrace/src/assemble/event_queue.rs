//! The queue of events that wait until no older event can follow: copies of the events, in limited memory.
use alloc::vec::Vec;

use ipc_proto::Guid;
use ipc_proto::wire::{steps, to_u32, to_usize};

use crate::assemble::context::References;
use crate::join::order::{Held, Order};
use crate::parse::event::Event;

/// An event that waits, in half the memory of an [`Event`]: its activities, its payload and its stack are in the buffer
/// of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingEvent {
    capture_thread: u64,
    thread: u64,
    /// The offset of the event's bytes in the buffer.
    start: usize,
    payload: u32,
    stack: u32,
    metadata_id: u32,
    sequence: u32,
    processor: u32,
    stack_id: u32,
    label_list: u32,
    sorted: bool,
    /// Whether the ids of two activities precede the payload.
    has_activities: bool,
    pub(crate) references: References,
}

/// The length of two activity ids in bytes.
const ACTIVITIES: u32 = 32;

impl WaitingEvent {
    /// Returns the number of the event's bytes in the buffer.
    #[inline]
    fn len(&self) -> usize {
        let activities = if self.has_activities { ACTIVITIES } else { 0 };
        let [payload, stack, activities] = [self.payload, self.stack, activities].map(to_usize);
        payload.saturating_add(stack).saturating_add(activities)
    }
}

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
        let WaitingEvent { capture_thread, thread, metadata_id, sequence, .. } = *waiting;
        let WaitingEvent { processor, stack_id, label_list, sorted, .. } = *waiting;
        let bytes = self.bytes.get(waiting.start..).unwrap_or_default();
        let (activities, bytes) =
            if waiting.has_activities { split(bytes, ACTIVITIES) } else { (&[][..], bytes) };
        let [activity_id, related_activity_id] = guids(activities);
        let (payload, bytes) = split(bytes, waiting.payload);
        let (stack, _) = split(bytes, waiting.stack);
        Some(Event {
            metadata_id,
            sequence,
            capture_thread,
            processor,
            thread,
            stack_id,
            timestamp,
            activity_id,
            related_activity_id,
            label_list,
            sorted,
            payload,
            stack,
        })
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
        let Event { metadata_id, sequence, capture_thread, processor, thread, stack_id, .. } = *event;
        let Event { timestamp, activity_id, related_activity_id, label_list, sorted, .. } = *event;
        let has_activities = activity_id != Guid::NIL || related_activity_id != Guid::NIL;
        let activities = if has_activities { to_usize(ACTIVITIES) } else { 0 };
        let len = event.payload.len().saturating_add(event.stack.len()).saturating_add(activities);
        if self.is_empty() {
            // The next events reuse the front of the buffer, which is in the processor's cache. The pages after it are
            // touched only if more events wait at a time.
            self.bytes.clear();
        }
        let has_room = self.has_bytes(len) && self.has_slot();
        let waiting = WaitingEvent {
            capture_thread,
            thread,
            start: self.bytes.len(),
            payload: to_u32(event.payload.len()),
            stack: to_u32(event.stack.len()),
            metadata_id,
            sequence,
            processor,
            stack_id,
            label_list,
            sorted,
            has_activities,
            references,
        };
        steps::count(len);
        if has_activities {
            self.bytes.extend_from_slice(&activity_id.0);
            self.bytes.extend_from_slice(&related_activity_id.0);
        }
        self.bytes.extend_from_slice(event.payload);
        if !event.stack.is_empty() {
            self.bytes.extend_from_slice(event.stack);
        }
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
        let len = self.order.popped(place).map_or(0, |(_, oldest)| oldest.len());
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
            let len = event.len();
            steps::count(len.saturating_add(1));
            self.bytes.copy_within(event.start..event.start.saturating_add(len), end);
            event.start = end;
            end = end.saturating_add(len);
        }
        self.bytes.truncate(end);
    }
}

/// Returns the ids of two activities; nil ids if `bytes` is empty.
#[inline]
fn guids(bytes: &[u8]) -> [Guid; 2] {
    let (first, second) = bytes.split_at_checked(16).unwrap_or_default();
    [first, second].map(|id| id.first_chunk().map_or(Guid::NIL, |id| Guid(*id)))
}

#[inline]
fn split(bytes: &[u8], at: u32) -> (&[u8], &[u8]) {
    bytes.split_at_checked(to_usize(at)).unwrap_or_default()
}
