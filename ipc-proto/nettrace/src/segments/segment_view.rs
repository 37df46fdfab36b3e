//! The records to which the events of a segment refer.
use core::fmt;

use crate::catalog::Catalog;
use crate::segments::batch::Batch;

/// The bytes of a segment, its batch, and the catalog of the trace.
#[derive(Clone, Copy)]
pub(crate) struct SegmentView<'a> {
    /// The bytes from the first one of the segment on.
    pub(crate) bytes: &'a [u8],
    pub(crate) batch: &'a Batch,
    pub(crate) catalog: &'a Catalog,
    /// Whether stacks follow the payloads: V3.
    pub(crate) has_own_stacks: bool,
}

impl fmt::Debug for SegmentView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentView").field("events", &self.batch.ready_len()).finish_non_exhaustive()
    }
}
