//! The headers of objects and blocks, and the parts of records: texts, pairs, thread entries, labels.
use ipc_proto::wire::{low_u8, to_u32, to_u64};
use ipc_proto::{Encode, Guid, wire};

use crate::encoding::{Str, Varint32, Varint64, Zigzag64};
use crate::parse::{BlockKind, CalendarTime, Label, ThreadEntry, ThreadSequence, Trace, Version};

/// The length of a block's size and kind, which precede the body in V6.
pub(super) const V6_HEADER: usize = 4;
pub(super) const NULL_REFERENCE: u8 = 1;
const BEGIN_OBJECT: u8 = 4;
const BEGIN_PRIVATE_OBJECT: u8 = 5;
pub(super) const END_OBJECT: u8 = 6;
pub(super) const LAST_LABEL: u8 = 0x80;

/// Writes the type of an object, which precedes the body in V3 and V4, with the numbers that runtimes write: the
/// version of the object, and the oldest version of a reader that can read it.
pub(super) fn object_type(w: &mut wire::Writer<'_>, kind: BlockKind, version: Version) {
    let (begin, number, reader): (_, u32, u32) = match (version, kind) {
        (Version::V3, BlockKind::Trace) => (BEGIN_OBJECT, 3, 0),
        (Version::V3, _) => (BEGIN_OBJECT, 1, 0),
        (_, BlockKind::Trace) => (BEGIN_PRIVATE_OBJECT, 4, 4),
        _ => (BEGIN_PRIVATE_OBJECT, 2, 2),
    };
    w.bytes(&[begin, begin, NULL_REFERENCE]);
    number.encode(w);
    reader.encode(w);
    let name = kind.name(Version::V4).as_bytes();
    to_u32(name.len()).encode(w);
    w.bytes(name);
    w.bytes(&[END_OBJECT]);
}

/// Writes the type and the size of a block at this offset of the stream, with the padding that aligns the body to 4
/// bytes.
pub(super) fn object_header(
    w: &mut wire::Writer<'_>,
    kind: BlockKind,
    version: Version,
    offset: u64,
    len: usize,
) {
    object_type(w, kind, version);
    to_u32(len).encode(w);
    let at = low_u8(offset.wrapping_add(to_u64(w.len())));
    let padding = usize::from(at.wrapping_neg() & 3);
    w.bytes([0; 3].get(..padding).unwrap_or_default());
}

/// Returns the length of the longest result of [`object_header`].
pub(super) const fn max_object_header(kind: BlockKind) -> usize {
    kind.name(Version::V4).len().wrapping_add(23)
}

/// Returns the bytes that precede a body in V6.
pub(super) fn v6_header(kind: BlockKind, len: usize) -> [u8; V6_HEADER] {
    (to_u32(len) & 0x00ff_ffff | u32::from(number(kind)) << 24).to_le_bytes()
}

const fn number(kind: BlockKind) -> u8 {
    match kind {
        BlockKind::EndOfStream => 0,
        BlockKind::Trace => 1,
        BlockKind::Event => 2,
        BlockKind::Metadata => 3,
        BlockKind::SequencePoint => 4,
        BlockKind::Stack => 5,
        BlockKind::Thread => 6,
        BlockKind::RemoveThread => 7,
        BlockKind::LabelList => 8,
        BlockKind::Unknown(number) => number,
    }
}

/// Writes the numbers with which all versions begin the description of a trace.
pub(super) fn common(trace: &Trace<'_>, w: &mut wire::Writer<'_>) {
    let CalendarTime { year, month, day_of_week, day, hour, minute, second, millisecond } = trace.sync_time;
    for part in [year, month, day_of_week, day, hour, minute, second, millisecond] {
        part.encode(w);
    }
    trace.sync_ticks.encode(w);
    trace.frequency.encode(w);
    trace.pointer_size.encode(w);
}

/// V6: writes the pairs of the trace unchanged, then a pair for each known field of V4 whose key is not among the
/// pairs.
pub(super) fn pairs(trace: &Trace<'_>, keeps: impl Fn(Str<'_>) -> bool, w: &mut wire::Writer<'_>) {
    let at = w.len();
    let mut count = 0u32;
    count.encode(w);
    for (key, value) in trace.pairs.filter(|(key, _)| keeps(*key)) {
        utf8(key, w);
        utf8(value, w);
        count = count.saturating_add(1);
    }
    let known = [
        ("HardwareThreadCount", trace.processors),
        ("ProcessId", trace.process_id),
        ("ExpectedCPUSamplingRate", trace.sampling_interval),
    ];
    for (key, value) in known {
        let mut pairs = trace.pairs;
        if let Some(value) = value.filter(|_| pairs.all(|(there, _)| there != key)) {
            utf8(key.into(), w);
            decimal(value, w);
            count = count.saturating_add(1);
        }
    }
    w.patch_u32(at, count);
}

/// Writes a number as a V6 string of digits.
fn decimal(mut value: u32, w: &mut wire::Writer<'_>) {
    let mut digits = [0; 10];
    let mut len = 0usize;
    for place in digits.iter_mut().rev() {
        *place = low_u8(value.wrapping_rem(10).into()) | b'0';
        len = len.wrapping_add(1);
        value = value.wrapping_div(10);
        if value == 0 {
            break;
        }
    }
    let start = digits.len().wrapping_sub(len);
    utf8(Str::Utf8(digits.get(start..).unwrap_or_default()), w);
}

/// Writes a row of V6: a thread, and the sequence number of its last event.
pub(super) fn counted(row: &ThreadSequence, w: &mut wire::Writer<'_>) {
    Varint64(row.thread).encode(w);
    Varint32(row.sequence).encode(w);
}

pub(super) fn thread_entry(entry: ThreadEntry<'_>, w: &mut wire::Writer<'_>) {
    match entry {
        ThreadEntry::Name(name) => item(1, Utf8(name), w),
        ThreadEntry::ProcessId(id) => item(2, Varint64(id), w),
        ThreadEntry::ThreadId(id) => item(3, Varint64(id), w),
        ThreadEntry::Pair(key, value) => pair(4, key, Utf8(value), w),
    }
}

pub(super) fn label(label: Label<'_>, last: u8, w: &mut wire::Writer<'_>) {
    match label {
        Label::ActivityId(id) => item(1 | last, id, w),
        Label::RelatedActivityId(id) => item(2 | last, id, w),
        Label::TraceId(id) => item(3 | last, Guid(id), w),
        Label::SpanId(id) => item(4 | last, id, w),
        Label::Text(key, value) => pair(5 | last, key, Utf8(value), w),
        Label::Number(key, value) => pair(6 | last, key, Zigzag64(value), w),
        Label::Opcode(opcode) => item(7 | last, opcode, w),
        Label::Keywords(keywords) => item(8 | last, keywords, w),
        Label::Level(level) => item(9 | last, level, w),
        Label::Version(version) => item(10 | last, version, w),
    }
}

/// Writes the kind of an optional part (a label, an entry), and its content.
pub(super) fn item(kind: u8, content: impl Encode, w: &mut wire::Writer<'_>) {
    kind.encode(w);
    content.encode(w);
}

pub(super) fn pair(kind: u8, key: Str<'_>, value: impl Encode, w: &mut wire::Writer<'_>) {
    item(kind, Utf8(key), w);
    value.encode(w);
}

/// Text as a length and UTF-8.
pub(super) struct Utf8<'a>(pub(super) Str<'a>);

impl Encode for Utf8<'_> {
    fn encode(&self, w: &mut wire::Writer<'_>) {
        utf8(self.0, w);
    }
}

/// Writes a length and UTF-8, with U+FFFD for a lone surrogate.
pub(super) fn utf8(text: Str<'_>, w: &mut wire::Writer<'_>) {
    if let Str::Utf8(bytes) = text {
        Varint32(to_u32(bytes.len())).encode(w);
        w.bytes(bytes);
        return;
    }
    Varint32(to_u32(utf8_len(text))).encode(w);
    text.chars().for_each(|c| w.bytes(c.encode_utf8(&mut [0; 4]).as_bytes()));
}

/// Returns the length of a text in UTF-8.
pub(crate) fn utf8_len(text: Str<'_>) -> usize {
    match text {
        Str::Utf8(bytes) => bytes.len(),
        Str::Utf16(_) => text.chars().fold(0, |len, c| len.saturating_add(c.len_utf8())),
    }
}
