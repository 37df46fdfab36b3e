use core::fmt;

use super::BlockKind;
use crate::DecodeErrorKind;

/// How a stream ended. Whatever was good before was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With its end mark. What follows that is not looked at.
    Complete,
    /// Without: the process was killed, say, or the file cut.
    Truncated {
        /// How many bytes there are.
        offset: u64,
        /// Where in the structure that is.
        reason: Truncation,
    },
    /// With bytes that are no NetTrace. Of several bad blocks, this is the first; what follows it was delivered too.
    Corrupt {
        /// Of the bad block, or of the bytes that are no block.
        offset: u64,
        /// What is wrong.
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

/// Where a stream without an end mark ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Truncation {
    /// In what every stream begins with.
    Header,
    /// Between two blocks; only the end mark is missing.
    BetweenBlocks,
    /// In the header of a block.
    BlockHeader,
    /// In a block.
    Block {
        /// Its kind.
        kind: BlockKind,
        /// Bytes of its body that came.
        have: u32,
        /// Bytes that it has.
        len: u32,
    },
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("in the header of the stream"),
            Self::BetweenBlocks => f.write_str("no end mark"),
            Self::BlockHeader => f.write_str("in the header of a block"),
            Self::Block { kind, have, len } => write!(f, "{have} of {len} bytes of a block ({kind:?})"),
        }
    }
}

/// What is wrong with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Corruption {
    /// It does not begin as a stream does.
    NotNetTrace,
    /// A version of the stream that cannot be read here, or not behind the header that it has.
    Version(u32),
    /// An object that only readers of this version and later ones can read, by its own word.
    Minimum(u32),
    /// This byte stands where a tag should.
    Tag(u8),
    /// An object whose name is too long, or one before the first that should be it.
    Object,
    /// A block longer than [`Limits::block`](super::Limits::block).
    TooLong {
        /// Its length.
        len: u32,
    },
    /// A block whose rest cannot be read. Reading went on behind it.
    Block(BadBlock),
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNetTrace => f.write_str("this is no NetTrace"),
            Self::Version(version @ 3..=6) => write!(f, "version {version} behind the header of another"),
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

/// A block that cannot be read from some point on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadBlock {
    /// Its kind.
    pub kind: BlockKind,
    /// Where it begins in the stream, with its header.
    pub offset: u64,
    /// How far it was read: to the record that is none, or to its payload.
    pub at: u64,
    /// What is wrong with that.
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
