//! The memory that the caller lends to a rewrite, and the slots in it for metadata records and activity ids.
use ipc_proto::Guid;

use crate::join::Slot;
use crate::parse::Label;
use crate::rewrite::command_line::CommandLine;
use crate::rewrite::thread_state::ThreadState;

/// The memory of a [`Rewrite`](crate::Rewrite), which belongs to the caller.
#[derive(Debug)]
pub struct RewriteSpace<'s> {
    /// The buffer of a [`TraceWriter`](crate::TraceWriter). [`TraceWriter::BUFFER`](crate::TraceWriter::BUFFER) is
    /// enough for traces of runtimes with up to 20,000 threads; its documentation states the bytes for each further
    /// thread. Traces of other writers may contain records as long as the [`Limits`](crate::Limits) of the parser
    /// allow.
    pub buffer: &'s mut [u8],
    /// Slots for metadata records: one for each.
    pub metadata: &'s mut [Slot<MetadataState>],
    /// Slots for threads: one for each. The slot of a V6 thread that has ended becomes free, except in a conversion to
    /// V4 while losses of the thread are not reported yet.
    pub threads: &'s mut [Slot<ThreadState>],
    /// From V4 to V6: one slot for each remembered pair of activity ids. From V6 to V4: one slot for each list of
    /// labels between two sequence points. Otherwise empty.
    pub labels: &'s mut [Slot<Activities>],
}

/// The state of a metadata record.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetadataState {
    pub(super) keep: bool,
    /// Whether the events name code, so that they are kept at any time.
    pub(super) names_code: bool,
    pub(super) command_line: CommandLine,
}

/// The activity ids of events, which V6 has in lists of labels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activities {
    pub(super) activity_id: Guid,
    pub(super) related_activity_id: Guid,
    /// V6: the id of the label list.
    pub(super) id: u32,
}

impl Activities {
    pub(super) fn labels(self) -> impl Iterator<Item = Label<'static>> + Clone {
        let Self { activity_id, related_activity_id, .. } = self;
        let activity = (activity_id != Guid::NIL).then_some(Label::ActivityId(activity_id));
        let related =
            (related_activity_id != Guid::NIL).then_some(Label::RelatedActivityId(related_activity_id));
        activity.into_iter().chain(related)
    }
}

/// Returns a hash of a GUID: most different GUIDs have different hashes.
pub(super) fn fold(Guid(bytes): Guid) -> u64 {
    let mut hash = 0u64;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
