//! The tagged values of objects, and type objects, which have the name and the version of an object.
use ipc_proto::wire::{Reader, to_u64};

use crate::parse::end::Corruption;
use crate::parse::parser::stop::Stop;

/// Tags of objects.
pub(super) mod tag {
    pub(crate) const NULL_REFERENCE: u8 = 1;
    pub(super) const OBJECT_REFERENCE: u8 = 2;
    pub(super) const FORWARD_REFERENCE: u8 = 3;
    pub(crate) const BEGIN_OBJECT: u8 = 4;
    pub(crate) const BEGIN_PRIVATE_OBJECT: u8 = 5;
    pub(crate) const END_OBJECT: u8 = 6;
    pub(super) const FORWARD_DEFINITION: u8 = 7;
    pub(super) const BYTE: u8 = 8;
    pub(super) const INT16: u8 = 9;
    pub(super) const INT32: u8 = 10;
    pub(super) const INT64: u8 = 11;
    pub(super) const SKIP_REGION: u8 = 12;
    pub(super) const STRING: u8 = 13;
    pub(super) const BLOB: u8 = 14;
}

/// The longest name of an object, in bytes; the longest known name has 38 bytes.
const MAX_NAME: usize = 64;

/// The content of a type object after its tags.
pub(super) struct TypeObject<'w> {
    pub(super) version: u32,
    pub(super) minimum: u32,
    pub(super) name: &'w [u8],
    /// The length of the content in bytes, with the end tag.
    pub(super) len: usize,
}

impl<'w> TypeObject<'w> {
    /// Parses version, minimum, name and end tag from the start of `rest`.
    pub(super) fn parse(rest: &'w [u8]) -> Result<Self, Stop> {
        let mut r = Reader::new(rest);
        let (Ok(version), Ok(minimum), Ok(name_len)) = (r.read::<u32>(), r.read::<u32>(), r.read::<u32>())
        else {
            return Err(Stop::More(12));
        };
        let name_len = usize::try_from(name_len).ok().filter(|len| *len <= MAX_NAME);
        let name_len = name_len.ok_or(Stop::Fatal(8, Corruption::Object))?;
        let Ok(name) = r.bytes(name_len) else {
            return Err(Stop::More(name_len.wrapping_add(13)));
        };
        expect_tags(r.rest(), r.offset(), &[tag::END_OBJECT])?;
        Ok(Self { version, minimum, name, len: name_len.wrapping_add(13) })
    }
}

/// The rest of an object: tags with their values, up to the end tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tags {
    /// The offset in the stream of the next tag.
    at: u64,
    /// The offset in the stream that no value may exceed.
    limit: u64,
    /// The number of nested objects that have not ended.
    depth: u64,
}

impl Tags {
    /// Starts at the offset `at` of the stream. All values together have at most `limit` bytes.
    pub(super) fn new(at: u64, limit: u32) -> Self {
        Self { at, limit: at.saturating_add(limit.into()), depth: 0 }
    }

    /// Returns the offset in the stream of the next tag.
    pub(super) const fn offset(&self) -> u64 {
        self.at
    }

    /// Reads one tag and its value. `rest` starts with the tag; the value need not be in `rest`. Returns whether the
    /// tag is the end tag of the object.
    pub(super) fn step(&mut self, rest: &[u8]) -> Result<bool, Stop> {
        let Some(&tag) = rest.first() else { return Err(Stop::More(1)) };
        let value = rest.get(1..).unwrap_or_default();
        let len = match tag {
            tag::END_OBJECT => match self.depth.checked_sub(1) {
                None => return Ok(true),
                Some(depth) => {
                    self.depth = depth;
                    0
                }
            },
            tag::BEGIN_OBJECT | tag::BEGIN_PRIVATE_OBJECT => self.begin(value)?,
            tag::NULL_REFERENCE => 0,
            tag::BYTE => 1,
            tag::INT16 => 2,
            tag::OBJECT_REFERENCE
            | tag::FORWARD_REFERENCE
            | tag::FORWARD_DEFINITION
            | tag::SKIP_REGION
            | tag::INT32 => 4,
            tag::INT64 => 8,
            tag::STRING | tag::BLOB => match Reader::new(value).read::<u32>() {
                // A null string has no bytes.
                Ok(u32::MAX) if tag == tag::STRING => 4,
                Ok(len) if self.at.saturating_add(5).saturating_add(len.into()) > self.limit => {
                    return Err(Stop::Fatal(1, Corruption::TooLong { len }));
                }
                Ok(len) => u64::from(len).saturating_add(4),
                Err(_) => return Err(Stop::More(5)),
            },
            tag => return Err(Stop::Fatal(0, Corruption::Tag(tag))),
        };
        let at = self.at.saturating_add(len).saturating_add(1);
        if at > self.limit {
            return Err(Stop::Fatal(0, Corruption::Tag(tag)));
        }
        self.at = at;
        Ok(false)
    }

    /// Returns the number of bytes to skip after a begin tag. If a type object begins, this is the whole type object.
    /// Otherwise it is 0, and the tag opens a nested object.
    fn begin(&mut self, value: &[u8]) -> Result<u64, Stop> {
        match value.split_first() {
            None => return Err(Stop::More(2)),
            // A null reference begins a type object, or is the first value of another object. It begins a type object
            // if the version that follows is less than 256 and the rest is valid.
            Some((&tag::NULL_REFERENCE, content))
                if content.iter().skip(1).take(3).all(|byte| *byte == 0) =>
            {
                match TypeObject::parse(content) {
                    Ok(content) => return Ok(to_u64(content.len).saturating_add(1)),
                    Err(stop @ Stop::More(_)) => return Err(stop.after(2)),
                    Err(_) => {}
                }
            }
            Some(_) => {}
        }
        self.depth = self.depth.saturating_add(1);
        Ok(0)
    }
}

/// Checks that `rest` starts with `tags`. `rest` begins `offset` bytes after the next byte to parse.
pub(super) fn expect_tags(rest: &[u8], offset: usize, tags: &[u8]) -> Result<(), Stop> {
    for (i, tag) in tags.iter().enumerate() {
        let at = offset.wrapping_add(i);
        match rest.get(i) {
            None => return Err(Stop::More(at.wrapping_add(1))),
            Some(found) if found != tag => return Err(Stop::Fatal(at, Corruption::Tag(*found))),
            Some(_) => {}
        }
    }
    Ok(())
}
