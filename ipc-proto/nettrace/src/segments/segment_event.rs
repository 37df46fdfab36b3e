//! One event of a segment.
use ipc_proto::Guid;

use crate::catalog::{ThreadBuf, UNDESCRIBED};
use crate::join::LabelDigest;
use crate::parse::{Event, Labels};
use crate::segments::event_entry::{Capture, EventEntry, Origin};
use crate::segments::segment_view::SegmentView;

/// An event of a segment, whose parts are read from their places when they are requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentEvent<'a> {
    entry: &'a EventEntry,
    pub(crate) view: SegmentView<'a>,
}

impl<'a> SegmentEvent<'a> {
    /// Returns an event that is ready, by its number in the order of time.
    #[inline]
    pub(crate) fn ready(view: SegmentView<'a>, number: usize) -> Option<Self> {
        Some(Self { entry: view.batch.ready(number)?, view })
    }

    pub(crate) fn header(&self) -> Event<'a> {
        let batch = self.view.batch;
        let (origin, capture) = (self.origin(), self.capture());
        let [activity_id, related_activity_id] = self.activities();
        Event {
            metadata_id: match self.view.catalog.description(self.kind()) {
                Some(description) => description.id(),
                None => batch.undescribed_id(self.entry),
            },
            sequence: self.entry.sequence,
            capture_thread: capture.thread,
            processor: capture.processor,
            thread: origin.thread,
            stack_id: batch.stack_of(self.entry).0,
            timestamp: self.entry.timestamp,
            activity_id,
            related_activity_id,
            label_list: capture.label_list,
            sorted: self.entry.is_sorted(),
            payload: self.payload(),
            stack: self.own_stack(),
        }
    }

    #[inline]
    pub(crate) fn origin(&self) -> Origin {
        self.view.batch.origin_of(self.entry)
    }

    #[inline]
    pub(crate) fn capture(&self) -> Capture {
        self.view.batch.capture_of(self.entry)
    }

    /// Returns the operating system's id of the thread, or else its index.
    #[inline]
    pub(crate) fn thread_id(&self) -> u64 {
        let Origin { thread, known_thread, .. } = self.origin();
        let known = self.view.catalog.thread(known_thread);
        known.and_then(ThreadBuf::thread_id).unwrap_or(thread)
    }

    /// Returns the ids of the activity and of the one that started it.
    pub(crate) fn activities(&self) -> [Guid; 2] {
        self.view.batch.activities_of(self.entry)
    }

    #[inline]
    pub(crate) const fn timestamp(&self) -> u64 {
        self.entry.timestamp
    }

    #[inline]
    pub(crate) fn payload(&self) -> &'a [u8] {
        self.entry.payload.of(self.view.bytes)
    }

    #[inline]
    pub(crate) const fn kind(&self) -> u32 {
        if self.entry.is_described() { self.entry.kind } else { UNDESCRIBED }
    }

    pub(crate) fn label_digest(&self) -> Option<&'a LabelDigest> {
        self.view.batch.labels_of(self.entry)
    }

    pub(crate) fn labels(&self, digest: &LabelDigest) -> Labels<'a> {
        Labels::from_checked(digest.place.of(self.view.bytes))
    }

    pub(crate) fn known_thread(&self) -> Option<&'a ThreadBuf> {
        self.view.catalog.thread(self.origin().known_thread)
    }

    /// Returns the bytes of the stack.
    #[inline]
    pub(crate) fn stack(&self) -> &'a [u8] {
        match self.own_stack() {
            [] => self.view.batch.stack_of(self.entry).1.of(self.view.bytes),
            stack => stack,
        }
    }

    pub(crate) fn stack_number(&self) -> Option<u32> {
        self.view.batch.stack_number(self.entry)
    }

    /// Returns the stack of an event of V3.
    #[inline]
    fn own_stack(&self) -> &'a [u8] {
        if self.view.has_own_stacks { self.entry.own_stack(self.view.bytes) } else { &[] }
    }
}
