use alloc::vec::Vec;
use core::ops::Range;

use super::context::References;
use super::{Event, Held, OrderBuf};
use crate::steps;

/// An event whose payload and stack are places in a buffer.
#[derive(Debug)]
pub(super) struct LocatedEvent {
    /// The event without payload and stack.
    pub(super) header: Event<'static>,
    pub(super) payload: Range<usize>,
    pub(super) stack: Range<usize>,
    pub(super) references: References,
}

impl Default for LocatedEvent {
    fn default() -> Self {
        Self { header: Event::default(), payload: 0..0, stack: 0..0, references: References::NONE }
    }
}

/// Events that wait for older ones, with copies of their payloads, in a limited amount of memory.
#[derive(Debug)]
pub(super) struct EventQueue {
    order: OrderBuf<LocatedEvent>,
    /// The payloads, and V3's stacks. Those of popped events stay until their room is needed.
    bytes: Vec<u8>,
    /// Bytes of events that were not popped.
    used: usize,
    limit: usize,
    /// An event without room until all others are popped.
    next: Option<LocatedEvent>,
}

impl EventQueue {
    /// Creates an empty queue, which takes up to `limit` bytes of memory, and one event more.
    pub(super) fn new(limit: usize) -> Self {
        Self { order: OrderBuf::default(), bytes: Vec::new(), used: 0, limit, next: None }
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns how many events were popped after a younger one.
    pub(super) const fn late(&self) -> u64 {
        self.order.get().late()
    }

    /// Returns the bytes that the places of events are in.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds an event. If there is no room for it, all others are released, and it follows them.
    #[inline]
    pub(super) fn push(&mut self, event: &Event<'_>, references: References) {
        let fits = self.make_room(event.payload.len().saturating_add(event.stack.len()));
        let payload = self.copy(event.payload);
        let stack = self.copy(event.stack);
        let event = LocatedEvent { header: event.without_payload(), payload, stack, references };
        if fits {
            self.insert(event);
        } else {
            self.postpone(event);
        }
    }

    /// Releases all events: no older one follows.
    pub(super) fn release_all(&mut self) {
        self.order.release_all();
    }

    /// Removes the oldest event, if it is released.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<LocatedEvent> {
        let oldest = match self.order.pop() {
            Some(oldest) => oldest,
            None => {
                let next = self.next.take()?;
                self.insert(next);
                self.order.pop()?
            }
        };
        self.used = self.used.saturating_sub(oldest.payload.len()).saturating_sub(oldest.stack.len());
        Some(oldest)
    }

    #[inline]
    fn insert(&mut self, event: LocatedEvent) {
        let Event { timestamp, sorted, .. } = event.header;
        let mut result = self.order.push(timestamp, event);
        if let Err(event) = result {
            let slot = size_of::<Held<LocatedEvent>>();
            let more = self.left().min(self.increment()).checked_div(slot).unwrap_or_default();
            self.order.grow(if self.order.capacity() == 0 { more.max(1) } else { more });
            result = self.order.push(timestamp, event);
        }
        match result {
            Err(event) => self.postpone(event),
            Ok(()) if sorted => self.order.release(timestamp),
            Ok(()) => {}
        }
    }

    fn postpone(&mut self, event: LocatedEvent) {
        self.order.release_all();
        self.next = Some(event);
    }

    /// Returns by how many bytes a buffer grows: enough to grow rarely, little enough for two buffers to share the limit.
    fn increment(&self) -> usize {
        (256 << 10).min(self.limit / 8)
    }

    /// Returns how many bytes of memory may still be taken.
    fn left(&self) -> usize {
        let slots = self.order.capacity().saturating_mul(size_of::<Held<LocatedEvent>>());
        self.limit.saturating_sub(slots).saturating_sub(self.bytes.capacity())
    }

    /// Makes room for `n` bytes; returns false if that exceeds the limit.
    #[inline]
    fn make_room(&mut self, n: usize) -> bool {
        self.bytes.capacity().saturating_sub(self.bytes.len()) >= n || self.grow(n)
    }

    #[cold]
    fn grow(&mut self, n: usize) -> bool {
        // Compacting for less than a quarter of the buffer would happen too often.
        if self.used < self.bytes.len().saturating_sub(self.bytes.len() / 4) {
            self.compact();
            if self.bytes.capacity().saturating_sub(self.bytes.len()) >= n {
                return true;
            }
        }
        let more = n.max(self.increment());
        let fits = more <= self.left();
        self.bytes.reserve_exact(if fits { more } else { n });
        fits
    }

    /// Moves the bytes of waiting events to the front of the buffer.
    fn compact(&mut self) {
        let mut end = 0_usize;
        for event in self.order.iter_mut() {
            let from = event.payload.start..event.stack.end;
            let moved = |place: &Range<usize>| {
                let start = place.start.wrapping_sub(from.start).wrapping_add(end);
                start..start.wrapping_add(place.len())
            };
            (event.payload, event.stack) = (moved(&event.payload), moved(&event.stack));
            let len = from.len();
            steps::count(len.saturating_add(1));
            self.bytes.copy_within(from, end);
            end = end.saturating_add(len);
        }
        self.bytes.truncate(end);
    }

    #[inline]
    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        steps::count(bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.used = self.used.saturating_add(bytes.len());
        start..self.bytes.len()
    }
}
