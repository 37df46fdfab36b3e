//! Headers of streams, blocks and objects.
use ipc_proto::wire::{Reader, low_u8, to_u32, to_u64};

use crate::parse::block::{Block, BlockKind};
use crate::parse::end::{Corruption, End};
use crate::parse::event::BlobReader;
use crate::parse::parser::parser::{Body, Parser, Record, State};
use crate::parse::parser::stop::Stop;
use crate::parse::parser::tags::{Tags, TypeObject, expect_tags, tag};
use crate::parse::trace::{Trace, Version};

const MAGIC: &[u8; 8] = b"Nettrace";
const SERIALIZATION: &[u8; 24] = b"\x14\0\0\0!FastSerialization.1";

impl Parser {
    pub(super) fn stream_header(&mut self, rest: &[u8]) -> Result<(), Stop> {
        let (version, used) = if rest.first() != MAGIC.first() {
            expect(rest, 0, SERIALIZATION)?;
            (Version::V3, SERIALIZATION.len())
        } else {
            expect(rest, 0, MAGIC)?;
            let mut r = Reader::at(rest.get(MAGIC.len()..).unwrap_or_default(), MAGIC.len());
            let object = r.rest();
            match r.read::<u32>() {
                Err(_) => return Err(Stop::More(12)),
                Ok(0) => {
                    let (Ok(major), Ok(minor)) = (r.read::<u32>(), r.read::<u32>()) else {
                        return Err(Stop::More(20));
                    };
                    if major != 6 {
                        return Err(Stop::Fatal(12, Corruption::Version(major)));
                    }
                    self.minor = minor;
                    (Version::V6, r.offset())
                }
                Ok(_) => {
                    expect(object, MAGIC.len(), SERIALIZATION)?;
                    (Version::V4, 32)
                }
            }
        };
        self.version = version;
        self.state = State::First;
        self.take(used);
        Ok(())
    }

    /// Parses the header of a block of V6.
    pub(super) fn block_header<'w>(&mut self, rest: &'w [u8]) -> Result<Record<'w>, Stop> {
        let Some(bytes) = rest.first_chunk::<4>() else {
            return Err(Stop::More(4));
        };
        let [low, middle, high, kind] = *bytes;
        let len = u32::from_le_bytes([low, middle, high, 0]);
        let kind = BlockKind::from_number(kind);
        if matches!(self.state, State::First) && kind != BlockKind::Trace {
            return Err(Stop::Fatal(0, Corruption::Object));
        }
        self.begin(kind, 4, len)
    }

    /// Parses the header of an object of V3 or V4, up to its body, or the end mark.
    pub(super) fn object_header<'w>(&mut self, rest: &'w [u8]) -> Result<Option<Record<'w>>, Stop> {
        let begin = self.begin_tag();
        let first = matches!(self.state, State::First);
        match rest.first() {
            None => return Err(Stop::More(1)),
            Some(&tag::NULL_REFERENCE) => {
                self.take(1);
                self.end(End::Complete);
                return Ok(None);
            }
            Some(_) => expect_tags(rest, 0, &[begin, begin, tag::NULL_REFERENCE])?,
        }
        let TypeObject { version, minimum, name, len: type_len } =
            TypeObject::parse(rest.get(3..).unwrap_or_default()).map_err(|stop| stop.after(3))?;
        let kind = BlockKind::from_name(name);
        // In V1 and V2, the object `Trace` has another name: such a stream fails below with its version.
        if first && kind != BlockKind::Trace && (version > 2 || self.version != Version::V3) {
            return Err(Stop::Fatal(0, Corruption::Object));
        }
        let supported = match kind {
            BlockKind::Trace => self.version.number(),
            // The parser uses nothing of an unknown object, so it accepts any version of the object.
            BlockKind::Unknown(_) => u32::MAX,
            _ => 2,
        };
        if minimum > supported {
            return Err(Stop::Fatal(7, Corruption::Minimum(minimum)));
        }
        if first && version < self.version.number() {
            return Err(Stop::Fatal(3, Corruption::Version(version)));
        }
        let header = type_len.wrapping_add(3);
        if kind == BlockKind::Trace {
            return self.begin(kind, header, to_u32(Trace::OBJECT_LEN)).map(Some);
        }
        if let BlockKind::Unknown(_) = kind {
            let offset = self.offset();
            self.take(header);
            self.block = Block { kind, offset, body: self.offset(), len: 0 };
            self.tail = Tags::new(self.offset(), self.limits.block);
            self.state = State::Tail;
            return Ok(Some(Record::Block(self.block)));
        }
        let mut r = Reader::at(rest.get(header..).unwrap_or_default(), header);
        let Ok(len) = r.read::<u32>() else {
            return Err(Stop::More(r.offset().wrapping_add(4)));
        };
        // A body begins at a multiple of 4 bytes in the stream, so padding can precede it.
        let at = low_u8(self.offset().wrapping_add(to_u64(r.offset())));
        let body = r.offset().wrapping_add(usize::from(at.wrapping_neg() & 3));
        if rest.len() < body {
            return Err(Stop::More(body));
        }
        self.begin(kind, body, len).map(Some)
    }

    /// Starts a block after its header of `header` bytes.
    fn begin<'w>(&mut self, kind: BlockKind, header: usize, len: u32) -> Result<Record<'w>, Stop> {
        if len > self.limits.block {
            return Err(Stop::Fatal(0, Corruption::TooLong { len }));
        }
        let offset = self.offset();
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(header)?.checked_add(len));
        let end = end.ok_or(Stop::Fatal(0, Corruption::TooLong { len }))?;
        self.take(header);
        self.block = Block { kind, offset, body: self.offset(), len };
        self.end = end;
        self.state = State::Body;
        self.body = match kind {
            BlockKind::Trace => Body::Trace,
            BlockKind::Event if self.version == Version::V3 => {
                self.blobs = BlobReader::new(self.version, false);
                Body::Mixed
            }
            BlockKind::Metadata if self.version == Version::V6 => Body::RowsHeader,
            BlockKind::Event | BlockKind::Metadata => Body::Header { metadata: kind == BlockKind::Metadata },
            BlockKind::Stack => Body::StacksHeader,
            BlockKind::SequencePoint => Body::SequencePoint,
            BlockKind::Thread => Body::Threads,
            BlockKind::RemoveThread => Body::RemovedThreads,
            BlockKind::LabelList => Body::LabelListsHeader,
            BlockKind::EndOfStream => {
                self.end(End::Complete);
                Body::Rest
            }
            BlockKind::Unknown(_) => Body::Rest,
        };
        Ok(Record::Block(self.block))
    }
}

/// Checks that `rest` starts with `prefix`. `rest` begins `offset` bytes after the next byte to parse.
fn expect(rest: &[u8], offset: usize, prefix: &[u8]) -> Result<(), Stop> {
    if rest.starts_with(prefix) {
        return Ok(());
    }
    if prefix.starts_with(rest) {
        return Err(Stop::More(offset.saturating_add(prefix.len())));
    }
    Err(Stop::Fatal(0, Corruption::NotNetTrace))
}
