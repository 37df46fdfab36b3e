//! What the events of a segment refer to.
use core::fmt;

use crate::whole::batch::Batch;
use crate::whole::catalog::Catalog;

/// The bytes of a segment, its batch, and the catalog of the trace.
#[derive(Clone, Copy)]
pub(crate) struct SegmentView<'t, 'a> {
    /// The bytes of the trace from the first one of the segment on.
    pub(crate) bytes: &'a [u8],
    pub(crate) batch: &'t Batch,
    pub(crate) catalog: &'t Catalog<'a>,
    /// Whether stacks follow the payloads: V3.
    pub(crate) has_own_stacks: bool,
}

impl fmt::Debug for SegmentView<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentView").field("events", &self.batch.ready_len()).finish_non_exhaustive()
    }
}
