//! Label lists of V6.
use ipc_proto::Guid;
use ipc_proto::wire::Reader;

use crate::encoding::{Str, Zigzag64, utf8};
use crate::error::{DecodeError, DecodeErrorKind};

/// A list of labels that events refer to by its id; V6.
///
/// Ids start again at each sequence point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabelList<'a> {
    /// The id, as in [`Event::label_list`](crate::Event::label_list).
    pub id: u32,
    /// The labels.
    pub labels: Labels<'a>,
}

/// A property of an event. The last four kinds replace the values in the metadata of the event.
///
/// ```
/// use ipc_proto::Guid;
/// use nettrace::{Label, Labels};
///
/// let bytes = [&[0x81][..], &[7; 16]].concat(); // kind 1, the last of the list
/// assert!(Labels::from_bytes(&bytes)?.into_iter().eq([Label::ActivityId(Guid([7; 16]))]));
/// # Ok::<(), nettrace::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label<'a> {
    /// Kind 1: the activity.
    ActivityId(Guid),
    /// Kind 2: the activity that started this activity.
    RelatedActivityId(Guid),
    /// Kind 3: the trace id of W3C, with its bytes in the order of the text form.
    TraceId([u8; 16]),
    /// Kind 4: the span id of W3C.
    SpanId(u64),
    /// Kind 5: a key and a text.
    Text(Str<'a>, Str<'a>),
    /// Kind 6: a key and a number. The format states a signed number, and the parser reads one. one_collect writes an
    /// unsigned number instead: then the value here is half of the number, or negative.
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
    /// Reads a label, and returns whether it is the last of its list.
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
            _ => return Err(DecodeError::at(&start, DecodeErrorKind::UnknownType)),
        };
        Ok((label, kind & 0x80 != 0))
    }
}

/// The labels of a list, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labels<'a> {
    /// Complete labels of known kinds.
    bytes: &'a [u8],
}

impl<'a> Labels<'a> {
    /// Reads labels as a stream has them, up to the last one: each is a kind, whose high bit marks the last, and its
    /// content.
    ///
    /// # Errors
    /// Fails if a label is incomplete or of an unknown kind.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::list(&mut Reader::new(bytes), &mut 0)
    }

    /// Returns the remaining labels as the stream has them, for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the labels of a list that [`list`](Self::list) returned before, without another check.
    #[cfg(feature = "alloc")]
    pub(crate) const fn from_checked(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Reads labels up to the last one.
    ///
    /// `checked` is the length of the labels at the front that an earlier call read. If the end of a list has not
    /// arrived, the next call continues after those labels. So the work is proportional to the bytes, even if the list
    /// arrives in small pieces.
    pub(crate) fn list(r: &mut Reader<'a>, checked: &mut usize) -> Result<Self, DecodeError> {
        let start = r.rest();
        r.bytes(*checked)?;
        while !Label::read(r)?.1 {
            *checked = start.len().saturating_sub(r.rest().len());
        }
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
