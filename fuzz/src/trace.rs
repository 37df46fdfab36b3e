//! The properties of a trace that is made of any description, with and without damage.
use arbitrary::{Arbitrary, Result, Unstructured};
use ipc_proto::Guid;
use nettrace::{
    BlockKind, Event, Fields, FileTime, Item, Label, Labels, Limits, Metadata, MetadataBuf, Pairs, Parser,
    PayloadWriter, Record, Scalar, SequencePoint, Stack, ThreadEntries, ThreadEntry, ThreadSequence, Trace,
    TraceWriter, Version, clr, frames,
};

use crate::made_up::put;
use crate::nettrace::{balanced, nettrace};
use crate::payload_writer::One;
use crate::reading::{RecordBytes, debug_bytes, of_event, read};
use crate::rewrite::rewrite_any;
use crate::unknown::unknown;
use crate::work::parse;

/// Checks generated traces, also with damage.
///
/// - A complete trace reads as its records were written, including the values in the payloads.
/// - Damage does not change the records before it.
/// - Blocks that are skipped or taken whole do not change the records of the other blocks.
/// - Arbitrary bytes as a part of a record cause no panic.
pub fn trace(bytes: &[u8]) {
    parts(bytes);
    let mut u = Unstructured::new(bytes);
    let version = if u.arbitrary().unwrap_or_default() { Version::V6 } else { Version::V4 };
    let damage: Result<Damage<'_>> = u.arbitrary();
    let Ok(written) = written_trace(&mut u, version) else { return };
    let whole = read(&written.stream);
    // The writer moves records that events refer to before these events, so each kind is compared separately.
    for records in [&written.events, &written.stacks, &written.others] {
        let mut read = whole.records.iter();
        let all = records.iter().all(|record| read.any(|read| read == record));
        assert!(all, "{version}: the records that were read differ from those written");
    }
    described(&written, version);
    skipping(&written.stream, bytes.last().copied().unwrap_or_default());
    let Ok(damage) = damage else { return };
    let (at, damaged) = damage.do_to(&written.stream);
    // Records that end before the damage.
    let before = whole.offsets.iter().take_while(|end| **end <= at as u64).count();
    let after = read(&damaged);
    let mut both = whole.records.iter().zip(&whole.offsets).zip(after.records.iter().zip(&after.offsets));
    for at in 0..before {
        let same = both.next().is_some_and(|(record, again)| record == again);
        assert!(same, "record {at} before {damage:?} is lost");
    }
    nettrace(&damaged);
    rewrite_any(&damaged);
}

/// Checks the parts of records alone: reading is bounded and stops at the first malformed byte.
fn parts(bytes: &[u8]) {
    if let Ok(labels) = Labels::from_bytes(bytes) {
        assert!(bytes.starts_with(labels.as_bytes()) && labels.count() > 0);
    }
    assert!(ThreadEntries::from_bytes(bytes).count() <= bytes.len());
    assert!(Pairs::from_bytes(bytes).count() <= bytes.len());
    for (pointer_size, len) in [(4, 4), (8, 8), (0, 8)] {
        assert_eq!(frames(bytes, pointer_size).count(), bytes.len() / len);
    }
    // An owned description equals the borrowed one.
    for version in [Version::V3, Version::V4, Version::V6] {
        let (owned, lent) = (MetadataBuf::decode(version, bytes), Metadata::decode(version, bytes));
        assert_eq!(owned.as_ref().err(), lent.as_ref().err());
        if let (Ok(mut owned), Ok(lent)) = (owned, lent) {
            assert_eq!(format!("{owned:?}"), format!("{lent:?}"));
            owned.describe(8);
            assert_eq!(format!("{owned:?}"), format!("{:?}", clr::describe(lent, 8)));
        }
    }
}

/// A change that damages a file.
#[derive(Debug, Arbitrary)]
enum Damage<'a> {
    /// Removes the end.
    Cut { at: u16 },
    /// Replaces bytes by as many others.
    Overwrite { at: u16, with: &'a [u8] },
    /// Adds bytes.
    Insert { at: u16, bytes: &'a [u8] },
    /// Removes bytes.
    Remove { at: u16, n: u8 },
    /// Repeats a range of bytes, as a tool that writes a buffer again does.
    Twice { at: u16, n: u16 },
}

impl Damage<'_> {
    /// Returns the offset from which the bytes may differ, and the damaged bytes.
    fn do_to(&self, stream: &[u8]) -> (usize, Vec<u8>) {
        let (Self::Cut { at }
        | Self::Overwrite { at, .. }
        | Self::Insert { at, .. }
        | Self::Remove { at, .. }
        | Self::Twice { at, .. }) = self;
        let at = usize::from(*at) % (stream.len() + 1);
        let (before, after) = stream.split_at(at);
        let skip = |n: usize| &after[n.min(after.len())..];
        let damaged = match self {
            Self::Cut { .. } => before.to_vec(),
            Self::Overwrite { with, .. } => {
                [before, &with[..with.len().min(after.len())], skip(with.len())].concat()
            }
            Self::Insert { bytes, .. } => [before, bytes, after].concat(),
            Self::Remove { n, .. } => [before, skip(usize::from(*n))].concat(),
            Self::Twice { n, .. } => [before, &after[..usize::from(*n).min(after.len())], after].concat(),
        };
        (at, damaged)
    }
}

/// Checks that skipping the blocks that `which` has a bit for does not change the records of other blocks.
fn skipping(stream: &[u8], which: u8) {
    let (mut whole, mut some) = (Parser::new(Limits::default()), Parser::new(Limits::default()));
    let (mut blocks, mut left_out) = (0u32, false);
    loop {
        let step = whole.next(stream);
        if let Record::Block(block) = step {
            assert_eq!(some.next(stream), step);
            blocks += 1;
            left_out = block.kind != BlockKind::Trace && which >> (blocks % 8) & 1 != 0;
            if left_out {
                some.skip_block();
            }
        } else if !left_out || matches!(step, Record::More { .. } | Record::End(_)) {
            assert_eq!(some.next(stream), step);
        }
        if matches!(step, Record::More { .. } | Record::End(_)) {
            break;
        }
    }
}

/// A trace, its records as they were written, and the payload of each kind of event.
#[derive(Default)]
struct WrittenTrace {
    stream: Vec<u8>,
    events: RecordBytes,
    stacks: RecordBytes,
    /// Threads, and their sequence numbers at sequence points.
    others: RecordBytes,
    kinds: Vec<Kind>,
}

/// A kind of event. Each event of a kind has the same values.
struct Kind {
    values: Vec<String>,
    payload: Vec<u8>,
}

fn written_trace(u: &mut Unstructured<'_>, version: Version) -> Result<WrittenTrace> {
    let v6 = version == Version::V6;
    let mut buf = vec![0xa5; usize::from(u.int_in_range(1u8..=8)?) * 2048 + 2000];
    let mut written = WrittenTrace::default();
    let out = &mut written.stream;
    let mut trace = Trace::new(version);
    (trace.sync_ticks, trace.frequency) = (u.arbitrary()?, u.arbitrary()?);
    trace.pointer_size = if u.arbitrary()? { 8 } else { 4 };
    let mut writer = TraceWriter::new(&trace, &mut buf).expect("a version that can be written");
    for id in 1..=u.int_in_range(1..=4)? {
        let (kind, fields) = kind(u, v6)?;
        let fields: Vec<(&str, Scalar)> = fields.iter().map(|(name, scalar)| (&name[..], *scalar)).collect();
        let mut description = vec![0; 1000];
        let mut metadata = Metadata::new(id, "p", 0, "n");
        metadata.fields = Fields::build(&fields, &mut description).expect("there is room");
        if fields.is_empty() {
            let providers = ["Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown"];
            (metadata.provider, metadata.name) = ((*u.choose(&providers)?).into(), "".into());
        }
        (metadata.event_id, metadata.version) = (u.int_in_range(0..=300)?, u.int_in_range(0..=3)?);
        (metadata.keywords, metadata.level) = (u.arbitrary()?, u.int_in_range(0..=6)?);
        put(out, writer.describe(&metadata));
        written.kinds.push(kind);
    }
    for _ in 0..u.int_in_range(0..=60)? {
        match u.int_in_range(0..=15)? {
            0 => {
                let stack = Stack {
                    id: u.arbitrary()?,
                    bytes: &[7; 80][..usize::from(u.int_in_range(0u8..=10)?) * 8],
                };
                put(out, writer.stack(&stack));
                written.stacks.push(&debug_bytes(&Record::Stack(stack), [(); 0]));
            }
            1 => {
                let point = SequencePoint { timestamp: u.arbitrary()?, flags: 0, threads: 0 };
                put(out, writer.sequence_point(&point));
                for _ in 0..u.int_in_range(0..=3)? {
                    let row = ThreadSequence { thread: u.arbitrary()?, sequence: u.arbitrary()? };
                    put(out, writer.thread_sequence(&row));
                    written.others.push(&debug_bytes(&Record::ThreadSequence(row), [(); 0]));
                }
            }
            2 if v6 => {
                let name = short_text(u)?;
                let index: u64 = u.arbitrary()?;
                let entries = [ThreadEntry::Name(name.into()), ThreadEntry::ThreadId(u.arbitrary()?)];
                put(out, writer.thread(index, entries));
                written.others.push(&debug_bytes(&index, entries));
            }
            3 if v6 => {
                let text = short_text(u)?;
                let labels = [
                    Label::TraceId(u.arbitrary()?),
                    Label::Text(text.into(), "v".into()),
                    Label::Number("n".into(), u.arbitrary()?),
                ];
                put(out, writer.label_list(u.arbitrary()?, labels));
            }
            4 => {
                out.extend_from_slice(&writer.flush());
                out.extend(unknown(u, version)?);
            }
            _ => {
                let at = u.choose_index(written.kinds.len())?;
                let mut event = Event { payload: &written.kinds[at].payload, ..Event::default() };
                event.metadata_id = u32::try_from(at + 1).expect("four at most");
                (event.sequence, event.timestamp) = (u.arbitrary()?, u.arbitrary()?);
                (event.thread, event.capture_thread) = (u.arbitrary()?, u.int_in_range(0..=3)?);
                event.sorted = u.arbitrary()?;
                if !v6 {
                    event.activity_id = Guid(if u.arbitrary()? { u.arbitrary()? } else { [0; 16] });
                }
                put(out, writer.event(&event));
                written.events.push(&of_event(&event));
            }
        }
    }
    written.stream.extend_from_slice(&writer.finish());
    Ok(written)
}

/// A text of a hundred letters at most: the smallest buffer must hold a record with several such texts.
fn short_text<'a>(u: &mut Unstructured<'a>) -> Result<&'a str> {
    let text: &str = u.arbitrary()?;
    Ok(text.char_indices().nth(100).map_or(text, |(end, _)| &text[..end]))
}

/// Generates the fields of an event and a value for each.
fn kind(u: &mut Unstructured<'_>, v6: bool) -> Result<(Kind, Vec<(String, Scalar)>)> {
    const SCALARS: [Scalar; 8] = [
        Scalar::Int32,
        Scalar::UInt64,
        Scalar::Double,
        Scalar::Guid,
        Scalar::DateTime,
        Scalar::Utf16CodeUnit,
        Scalar::Utf16String,
        // A type that only V6 has.
        Scalar::Boolean8,
    ];
    let mut kind = Kind { values: Vec::new(), payload: Vec::new() };
    let mut fields = Vec::new();
    for at in 0..u.int_in_range(0..=6)? {
        let scalar = SCALARS[u.int_in_range(0..=if v6 { 7 } else { 6 })?];
        let value = One::arbitrary(scalar, u)?.without_nul();
        if let (Scalar::DateTime, One::UInt(ticks)) = (scalar, &value) {
            time(*ticks);
        }
        let mut buf = [0; 256];
        let payload = value.write(scalar, PayloadWriter::new(&mut buf)).finish();
        kind.payload.extend_from_slice(payload.expect("there is room"));
        kind.values.push(value.expected(scalar));
        fields.push((format!("f{at}"), scalar));
    }
    if fields.is_empty() {
        // An event without fields is one of the runtime. There are no values to compare, so its payload is arbitrary.
        let len = u.arbitrary_len::<u8>()?.min(1000);
        kind.payload = u.bytes(len)?.to_vec();
    }
    Ok((kind, fields))
}

/// Checks that the descriptions in the stream decode the payloads to the values that were written.
fn described(written: &WrittenTrace, version: Version) {
    let mut kinds = written.kinds.iter();
    parse(&written.stream, |record, _| {
        let Record::Metadata(record) = record else { return };
        let metadata = Metadata::decode(version, record.payload).expect("it was written here");
        let kind = kinds.next().expect("each description was written");
        if metadata.fields.is_empty() {
            for pointer_size in [4, 8] {
                let items = balanced(clr::describe(metadata, pointer_size).fields.values(&kind.payload));
                assert!(items <= 20 * kind.payload.len() + 2000, "{items} items");
            }
            return;
        }
        let mut values = metadata.fields.values(&kind.payload);
        let read = values.by_ref().map(|item| match item {
            Item::Value { value, .. } => format!("{value:?}"),
            other => panic!("{other:?} in a list of values"),
        });
        assert!(read.eq(kind.values.iter().cloned()), "the values that were read differ from those written");
        assert_eq!(values.finish(), Ok(&[][..]));
    });
    assert!(kinds.next().is_none(), "a description is lost");
}

/// Checks the text of a file time against a calendar that counts days from 1601.
fn time(ticks: u64) {
    let text = FileTime(ticks).to_string();
    let (date, rest) = text.split_once('T').expect("a date and a time");
    let date: Vec<u64> = date.split('-').map(|part| part.parse().expect("a number")).collect();
    let clock = rest.strip_suffix('Z').expect("UTC").replace('.', ":");
    let clock: Vec<u64> = clock.split(':').map(|part| part.parse().expect("a number")).collect();
    let (&[year, month, day], &[hour, minute, second, fraction]) = (&date[..], &clock[..]) else {
        panic!("{text}");
    };
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).expect("small");
    assert!((1..=12).contains(&month) && (1..=months[month - 1]).contains(&day), "{text}");
    let years = year - 1;
    let days = 365 * years + years / 4 - years / 100 + years / 400
        - (365 * 1600 + 1600 / 4 - 1600 / 100 + 1600 / 400);
    let days = days + months[..month - 1].iter().sum::<u64>() + day - 1;
    assert!(hour < 24 && minute < 60 && second < 60, "{text}");
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    assert_eq!(u128::from(seconds) * 10_000_000 + u128::from(fraction), u128::from(ticks), "{text}");
}
