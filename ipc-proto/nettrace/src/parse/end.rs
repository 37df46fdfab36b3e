//! How a stream ended: complete, truncated (and where), or corrupt (and why).
use core::fmt;

use crate::error::DecodeErrorKind;
use crate::parse::block::BlockKind;

/// How a stream ended. The parser has returned all readable records before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The stream has its end mark. The parser ignores the bytes after it.
    Complete,
    /// The stream has no end mark: the process was killed, for example, or the file was truncated.
    Truncated {
        /// The length of the stream in bytes.
        offset: u64,
        /// The part of the structure that is incomplete.
        reason: Truncation,
    },
    /// The stream has bytes that are not NetTrace. If several blocks are bad, this is the first one; the parser has
    /// also returned the records of the later blocks.
    Corrupt {
        /// The offset of the bad block, or of the bytes that are not a block.
        offset: u64,
        /// The fault.
        reason: Corruption,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Truncated { offset, reason } => write!(f, "truncated at byte {offset}: {reason}"),
            Self::Corrupt { offset, reason } => write!(f, "corrupt at byte {offset}: {reason}"),
        }
    }
}

/// The part of the structure in which a stream without an end mark ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Truncation {
    /// In the header of the stream.
    Header,
    /// Between two blocks; only the end mark is missing.
    BetweenBlocks,
    /// In the header of a block.
    BlockHeader,
    /// In a block.
    Block {
        /// The kind of the block.
        kind: BlockKind,
        /// The received bytes of the block's body.
        have: u32,
        /// The length of the block's body.
        len: u32,
    },
    /// In an object of an unknown name.
    Object,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("in the header of the stream"),
            Self::BetweenBlocks => f.write_str("no end mark"),
            Self::BlockHeader => f.write_str("in the header of a block"),
            Self::Block { kind, have, len } => write!(f, "{have} of {len} bytes of a block ({kind:?})"),
            Self::Object => f.write_str("in an object of an unknown name"),
        }
    }
}

/// A fault of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Corruption {
    /// The stream does not start with a NetTrace header.
    NotNetTrace,
    /// An unsupported version, or one that contradicts the header.
    Version(u32),
    /// An object of a known name that requires a reader of at least this version.
    Minimum(u32),
    /// This byte is where a tag must be.
    Tag(u8),
    /// An object with a name that is too long, or a first object that is not `Trace`.
    Object,
    /// A block longer than [`Limits::block`](crate::Limits::block).
    TooLong {
        /// The length of the block.
        len: u32,
    },
    /// A block whose rest cannot be read. The parser continued after the block.
    Block(BadBlock),
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNetTrace => f.write_str("this is no NetTrace"),
            Self::Version(version @ 3..=6) => write!(f, "version {version} after the header of another"),
            Self::Version(version) => write!(f, "version {version}, of which 3 to 6 can be read"),
            Self::Minimum(version) => {
                write!(f, "an object that asks for a newer reader, of its version {version} at least")
            }
            Self::Tag(tag) => write!(f, "byte {tag:#04x} where a tag should be"),
            Self::Object => f.write_str("not an object that can stand here"),
            Self::TooLong { len } => write!(f, "a block of {len} bytes is more than the limit"),
            Self::Block(bad) => bad.fmt(f),
        }
    }
}

/// A block whose rest cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadBlock {
    /// The kind of the block.
    pub kind: BlockKind,
    /// The offset of the block's header in the stream.
    pub offset: u64,
    /// The offset of the bad record, or of its payload.
    pub at: u64,
    /// The fault of the record.
    pub error: DecodeErrorKind,
}

impl fmt::Display for BadBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of a block ({:?})", self.error, self.at, self.kind)
    }
}

impl From<BadBlock> for End {
    fn from(bad: BadBlock) -> Self {
        Self::Corrupt { offset: bad.offset, reason: Corruption::Block(bad) }
    }
}
