use super::Version;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// What the stream says of itself.
    Trace,
    /// Events; V3: metadata records too.
    Event,
    /// Descriptions of events.
    Metadata,
    /// Where all threads stood at some time.
    SequencePoint,
    /// Call stacks.
    Stack,
    /// V6: threads that begin.
    Thread,
    /// V6: threads that have ended.
    RemoveThread,
    /// V6: lists of labels.
    LabelList,
    /// V6: the end mark. Before V6 it is no block.
    EndOfStream,
    /// V6: a kind not known here, by its number. Before: an object of an unknown name, and the number is 0.
    Unknown(u8),
}

impl BlockKind {
    /// What the format calls it: `EventBlock` is V6's `Event`.
    ///
    /// ```
    /// use ipc_proto::nettrace::{BlockKind, Version};
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

    /// V6's number.
    pub(super) const fn from_number(number: u8) -> Self {
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

    /// The name of an object.
    pub(super) const fn from_name(name: &[u8]) -> Self {
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

/// Where a block lies in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What it holds.
    pub kind: BlockKind,
    /// Offset of its header.
    pub offset: u64,
    /// Offset of its body.
    pub body: u64,
    /// Bytes of its body.
    pub len: u32,
}
