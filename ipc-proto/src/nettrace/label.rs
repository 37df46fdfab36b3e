use super::field::utf8;
use super::{Str, Zigzag64};
use crate::wire::Reader;
use crate::{DecodeError, DecodeErrorKind, Guid};

/// A list of labels that events point to by its id; V6.
///
/// Ids begin anew at every sequence point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabelList<'a> {
    /// What [`Event::label_list`](super::Event::label_list) says.
    pub id: u32,
    /// The labels.
    pub labels: Labels<'a>,
}

/// Something said of an event; the last four override what its metadata says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label<'a> {
    /// Kind 1: the activity.
    ActivityId(Guid),
    /// Kind 2: the activity that this one came from.
    RelatedActivityId(Guid),
    /// Kind 3: W3C's trace id, in the order in which it is written.
    TraceId([u8; 16]),
    /// Kind 4: W3C's span id.
    SpanId(u64),
    /// Kind 5: a key and a text.
    Text(Str<'a>, Str<'a>),
    /// Kind 6: a key and a number. Signed by the format; one_collect writes it as if it were not, and it comes out as
    /// half of what it was, or negative.
    Number(Str<'a>, i64),
    /// Kind 7: the opcode.
    Opcode(u8),
    /// Kind 8: the keywords.
    Keywords(u64),
    /// Kind 9: the level.
    Level(u8),
    /// Kind 10: the version.
    Version(u8),
}

impl<'a> Label<'a> {
    /// Reads a label, and whether it is the last of its list.
    fn read(r: &mut Reader<'a>) -> Result<(Self, bool), DecodeError> {
        let start = r.clone();
        let kind: u8 = r.read()?;
        let label = match kind & 0x7f {
            1 => Self::ActivityId(r.read()?),
            2 => Self::RelatedActivityId(r.read()?),
            3 => Self::TraceId(r.array()?),
            4 => Self::SpanId(r.read()?),
            5 => Self::Text(utf8(r)?, utf8(r)?),
            6 => Self::Number(utf8(r)?, r.read::<Zigzag64>()?.0),
            7 => Self::Opcode(r.read()?),
            8 => Self::Keywords(r.read()?),
            9 => Self::Level(r.read()?),
            10 => Self::Version(r.read()?),
            _ => return Err(start.error(DecodeErrorKind::UnknownType)),
        };
        Ok((label, kind & 0x80 != 0))
    }
}

/// The labels of a list, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labels<'a> {
    /// Checked.
    bytes: &'a [u8],
}

impl<'a> Labels<'a> {
    /// Labels up to the one that says it is the last, as they lie in a stream: a kind, whose high bit is set in the last,
    /// and what belongs to it.
    ///
    /// # Errors
    /// If one is of an unknown kind, or cut.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::list(&mut Reader::new(bytes))
    }

    /// The labels that are left as they lie in the stream, for whoever has to keep them.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Takes the labels up to the one that says it is the last.
    pub(super) fn list(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = r.rest();
        while !Label::read(r)?.1 {}
        let len = start.len().saturating_sub(r.rest().len());
        Ok(Self { bytes: start.get(..len).unwrap_or_default() })
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = Label<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut r = Reader::new(self.bytes);
        let (label, _) = Label::read(&mut r).ok()?;
        self.bytes = r.rest();
        Some(label)
    }
}
