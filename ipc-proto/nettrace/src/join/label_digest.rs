//! The labels of a list that replace parts of an event or of its description.
use ipc_proto::Guid;

use crate::describe::Metadata;
use crate::encoding::Str;
use crate::parse::{Label, Labels};
use core::ops::Range;
use ipc_proto::wire::{to_u32, to_usize};

/// A label list, with the labels that replace parts of an event or of its description.
///
/// A list is read once, when it is stored, because many events can refer to it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LabelDigest {
    /// The labels as the stream has them, in the memory of the owner.
    pub(crate) place: ByteRange,
    pub(crate) activity_id: Option<Guid>,
    pub(crate) related_activity_id: Option<Guid>,
    pub(crate) opcode: Option<u8>,
    pub(crate) keywords: Option<u64>,
    pub(crate) level: Option<u8>,
    pub(crate) version: Option<u8>,
    pub(crate) trace_id: Option<[u8; 16]>,
    pub(crate) span_id: Option<u64>,
}

impl LabelDigest {
    pub(crate) fn new(place: ByteRange, labels: Labels<'_>) -> Self {
        let mut digest = Self { place, ..Self::default() };
        let mut text_version = None;
        for label in labels {
            match label {
                // Of several activity ids the first one counts, of other labels the last one.
                Label::ActivityId(id) => digest.activity_id = digest.activity_id.or(Some(id)),
                Label::RelatedActivityId(id) => {
                    digest.related_activity_id = digest.related_activity_id.or(Some(id));
                }
                Label::TraceId(id) => digest.trace_id = Some(id),
                Label::SpanId(id) => digest.span_id = Some(id),
                Label::Opcode(opcode) => digest.opcode = Some(opcode),
                Label::Keywords(keywords) => digest.keywords = Some(keywords),
                Label::Level(level) => digest.level = Some(level),
                Label::Version(version) => digest.version = Some(version),
                // Some writers state the version as a text.
                Label::Text(key, value) if is_version(key) => text_version = small_number(value),
                Label::Number(key, value) if is_version(key) => text_version = u8::try_from(value).ok(),
                _ => {}
            }
        }
        digest.version = digest.version.or(text_version);
        digest
    }

    /// Replaces the parts of the description that the labels state for one event.
    pub(crate) fn replace_parts(&self, metadata: &mut Metadata<'_>) {
        metadata.opcode = self.opcode.or(metadata.opcode);
        metadata.keywords = self.keywords.unwrap_or(metadata.keywords);
        metadata.level = self.level.map_or(metadata.level, u32::from);
        metadata.version = self.version.map_or(metadata.version, u32::from);
    }
}

fn is_version(key: Str<'_>) -> bool {
    key.chars().map(|c| c.to_ascii_lowercase()).eq("version".chars())
}

/// Parses a number of one byte.
fn small_number(text: Str<'_>) -> Option<u8> {
    let digit = |c: char| u8::try_from(c.to_digit(10)?).ok();
    let number = text.chars().try_fold(0u8, |number, c| number.checked_mul(10)?.checked_add(digit(c)?));
    number.filter(|_| !text.is_empty())
}

/// A part of a buffer or of a window of less than 4 GiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ByteRange {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl ByteRange {
    /// Returns the range of `len` bytes that begins at `start`. A number that does not fit into 32 bits counts as the
    /// largest one.
    #[inline]
    pub(crate) fn new(start: usize, len: usize) -> Self {
        Self { start: to_u32(start), len: to_u32(len) }
    }

    #[inline]
    pub(crate) fn range(self) -> Range<usize> {
        let start = to_usize(self.start);
        start..start.saturating_add(to_usize(self.len))
    }

    /// Returns the bytes of this range in `bytes`; none if the range is not in them.
    #[inline]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.range()).unwrap_or_default()
    }
}
