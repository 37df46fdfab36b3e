//! One event as it comes in the stream, or from the queue.
use crate::assemble::context::{References, StreamContext};
use crate::catalog::ThreadBuf;
use crate::join::LabelDigest;
use crate::parse::{Event, Labels};

/// An event, and what it refers to in its stream.
#[derive(Clone, Copy)]
pub(crate) struct StreamEvent<'a> {
    pub(crate) header: Event<'a>,
    pub(crate) context: &'a StreamContext,
    pub(crate) references: References,
}

impl<'a> StreamEvent<'a> {
    #[inline]
    pub(crate) fn label_digest(&self) -> Option<&'a LabelDigest> {
        self.context.label_digest(self.header.label_list)
    }

    pub(crate) fn labels(&self, digest: &LabelDigest) -> Labels<'a> {
        self.context.labels(digest)
    }

    #[inline]
    pub(crate) fn known_thread(&self) -> Option<&'a ThreadBuf> {
        self.context.catalog.thread(self.references.thread)
    }

    /// Returns the bytes of the stack.
    #[inline]
    pub(crate) fn stack(&self) -> &'a [u8] {
        match self.header.stack {
            [] => self.context.stack(self.header.stack_id),
            stack => stack,
        }
    }

    pub(crate) fn stack_number(&self) -> Option<u32> {
        if self.header.stack.is_empty() { self.context.stack_number(self.header.stack_id) } else { None }
    }
}
