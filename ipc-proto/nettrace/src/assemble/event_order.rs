//! The orders in which events are returned.

/// The order in which an [`EventAssembler`](crate::EventAssembler) returns the events of bytes that arrive, and when.
///
/// | variant | events come | an event is returned | memory |
/// |---|---|---|---|
/// | [`Stream`](Self::Stream) | as in the stream | as soon as its bytes have arrived | no event waits |
/// | [`Time`](Self::Time) | by time | as soon as no older event can follow | copies of the events that wait: up to `limit` |
/// | [`Block`](Self::Block) | as in the stream | with some thousand others, or at the end of the bytes that have arrived | a buffer with the stacks and label lists up to the next sequence point |
/// | [`Segment`](Self::Segment) | by time | after the next sequence point, or when the bytes that have arrived end with a sorted event | a buffer with all bytes up to the next sequence point, and 36 bytes for each event: up to `limit` |
///
/// The first two are for live streams. The last two take less time, because nothing is copied, but return events later:
/// they are for traces that are complete, such as files. The order of the stream is that of time for each thread, but not
/// between threads. Events of the same time are always in the order of the stream.
///
/// If sorting would exceed `limit`, events are returned early: [`late`](crate::TraceSummary::late) counts those that
/// should have come before one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// The order of the stream, immediately.
    #[default]
    Stream,
    /// The order of time, as soon as it is certain.
    ///
    /// A sorted event does not wait if no other event does. If more memory were needed, all waiting events are returned
    /// first.
    Time {
        /// The most bytes of the events that wait; 2 GiB at most.
        limit: usize,
    },
    /// The order of the stream, block by block.
    Block,
    /// The order of time, segment by segment: mostly the events between two sequence points.
    ///
    /// The buffer has 4 MiB, or up to one and a half times the bytes of the largest segment, of `limit`, or of
    /// [`Limits::record`](crate::Limits::record). Its pages are used as far as bytes arrive. A change of an event's
    /// thread or processor takes 48 bytes more, one of its activities 80, and a stack 36 bytes besides its bytes in the
    /// buffer.
    ///
    /// Once the buffer has `limit` bytes, the events before the newest sorted event are returned, or else all. If stacks
    /// and label lists take more than half of it then, all are removed, and events that refer to them have none.
    Segment {
        /// The length in bytes from which on the buffer does not grow before events are returned.
        limit: usize,
    },
}

impl EventOrder {
    /// [`Time`](Self::Time) with a limit that is enough for the traces that runtimes were seen to write: 16 MiB.
    pub const BY_TIME: Self = Self::Time { limit: 16 << 20 };

    /// [`Segment`](Self::Segment) with a limit that is enough for the traces that runtimes were seen to write: 64 MiB.
    pub const BY_SEGMENT: Self = Self::Segment { limit: 64 << 20 };
}

/// The order in which an [`EventAssembler`](crate::EventAssembler) returns the events of a trace that is in memory as a
/// whole. There is nothing to wait for, so an order has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesOrder {
    /// The order of the stream, as [`EventOrder::Block`] has it.
    Stream,
    /// The order of time, as [`EventOrder::Segment`] has it.
    Time,
}
