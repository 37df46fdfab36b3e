//! The position of a block in the stream, its kind, and the range of its times.
use crate::parse::trace::Version;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// The facts that the stream states about itself.
    Trace,
    /// Events; V3: metadata records too.
    Event,
    /// Descriptions of events.
    Metadata,
    /// The sequence numbers of all threads at one time.
    SequencePoint,
    /// Call stacks.
    Stack,
    /// V6: threads that start.
    Thread,
    /// V6: threads that end.
    RemoveThread,
    /// V6: lists of labels.
    LabelList,
    /// V6: the end mark. Before V6 the end mark is not a block.
    EndOfStream,
    /// An unknown kind: in V6 its number, before V6 an object of an unknown name, with the number 0.
    Unknown(u8),
}

impl BlockKind {
    /// Returns the name of this kind in the format: `EventBlock` in V4 is `Event` in V6.
    ///
    /// ```
    /// use nettrace::{BlockKind, Version};
    ///
    /// assert_eq!(BlockKind::SequencePoint.name(Version::V4), "SPBlock");
    /// assert_eq!(BlockKind::SequencePoint.name(Version::V6), "SequencePoint");
    /// ```
    #[must_use]
    pub const fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Trace, _) => "Trace",
            (Self::Event, Version::V6) => "Event",
            (Self::Event, _) => "EventBlock",
            (Self::Metadata, Version::V6) => "Metadata",
            (Self::Metadata, _) => "MetadataBlock",
            (Self::SequencePoint, Version::V6) => "SequencePoint",
            (Self::SequencePoint, _) => "SPBlock",
            (Self::Stack, Version::V6) => "Stack",
            (Self::Stack, _) => "StackBlock",
            (Self::Thread, _) => "Thread",
            (Self::RemoveThread, _) => "RemoveThread",
            (Self::LabelList, _) => "LabelList",
            (Self::EndOfStream, _) => "EndOfStream",
            (Self::Unknown(_), _) => "unknown",
        }
    }

    /// Returns the kind with this number of V6.
    pub(crate) const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::EndOfStream,
            1 => Self::Trace,
            2 => Self::Event,
            3 => Self::Metadata,
            4 => Self::SequencePoint,
            5 => Self::Stack,
            6 => Self::Thread,
            7 => Self::RemoveThread,
            8 => Self::LabelList,
            other => Self::Unknown(other),
        }
    }

    /// Returns the kind of an object with this name.
    pub(crate) const fn from_name(name: &[u8]) -> Self {
        match name {
            b"Trace" => Self::Trace,
            b"EventBlock" => Self::Event,
            b"MetadataBlock" => Self::Metadata,
            b"StackBlock" => Self::Stack,
            b"SPBlock" => Self::SequencePoint,
            _ => Self::Unknown(0),
        }
    }
}

/// The smallest and the largest timestamp of an event block, as its header states them. The events of the block are not
/// sorted by time. V4 and V6.
///
/// A reader that seeks a time can skip a block whose range does not overlap with it: see
/// [`TimeFilter`](crate::TimeFilter), which knows which writers state correct ranges. The parser returns only ranges
/// that are possible: `first` is not after `last`, and `last` is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The smallest timestamp.
    pub first: u64,
    /// The largest timestamp.
    pub last: u64,
}

impl TimeRange {
    /// Returns the range; `None` if it is not possible.
    pub(crate) fn new(first: u64, last: u64) -> Option<Self> {
        (first <= last && last != 0).then_some(Self { first, last })
    }

    /// Returns whether the range contains a timestamp from `from` to `to`, both included.
    #[must_use]
    pub const fn overlaps(&self, from: u64, to: u64) -> bool {
        self.first <= to && from <= self.last
    }
}

/// The position of a block in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The kind of the block.
    pub kind: BlockKind,
    /// The offset of the block's header.
    pub offset: u64,
    /// The offset of the block's body.
    pub body: u64,
    /// The length of its body in bytes; 0 for an object of an unknown name, whose end is known only after it.
    pub len: u32,
}
