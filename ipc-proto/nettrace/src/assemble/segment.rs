//! The events of a segment, in the order of time.
use core::fmt;
use core::iter::FusedIterator;

use crate::assemble::trace_event::TraceEvent;
use crate::segments::{SegmentEvent, SegmentView};

/// Events of a [`WholeTrace`](crate::WholeTrace) that are ready together: mostly those up to a sequence point.
#[derive(Clone, Copy)]
pub struct Segment<'a>(pub(crate) SegmentView<'a>);

impl<'a> Segment<'a> {
    /// Returns the events in the order of time, and events of the same time in the order of the stream.
    #[inline]
    #[must_use]
    pub fn events(&self) -> SegmentEvents<'a> {
        SegmentEvents { view: self.0, next: 0, len: self.0.batch.ready_len() }
    }
}

impl fmt::Debug for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.events()).finish()
    }
}

/// The events of a [`Segment`].
#[derive(Debug, Clone)]
pub struct SegmentEvents<'a> {
    view: SegmentView<'a>,
    next: usize,
    len: usize,
}

impl<'a> Iterator for SegmentEvents<'a> {
    type Item = TraceEvent<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.len {
            return None;
        }
        let event = SegmentEvent::ready(self.view, self.next)?;
        self.next = self.next.wrapping_add(1);
        Some(TraceEvent::of_segment(event))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for SegmentEvents<'_> {}
impl FusedIterator for SegmentEvents<'_> {}
