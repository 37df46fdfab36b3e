use core::fmt::{Debug, Write};

use arbitrary::{Result, Unstructured};
use ipc_proto::nettrace::{
    Counter, End, Event, FieldType, Fields, Item, Label, Limits, Loss, Metadata, Only, Parser, Rewrite,
    RewriteOptions, RewriteSpace, Rewritten, Scalar, SequencePoint, Slot, Stack, Step, ThreadEntry,
    ThreadSequence, Trace, Version, WriteError, Writer,
};
use ipc_proto::{DecodeErrorKind, Guid};

use crate::wire::sizes;

/// A stream says the same however it is cut into pieces, and a `Writer` that is given its records writes one that says
/// the same.
///
/// The sizes of the pieces are read off the bytes from the last on.
pub fn nettrace(bytes: &[u8]) {
    let whole = read(bytes);
    let pieces = read_in_pieces(bytes, sizes(bytes.iter().rev()));
    assert_eq!(pieces.end, whole.end);
    assert_eq!(pieces.lost, whole.lost);
    assert!(pieces.records == whole.records, "pieces say something else");
    assert_eq!(pieces.offsets, whole.offsets);
    if let Some(copy) = copy(bytes) {
        let copy = read(&copy);
        assert_eq!(copy.end, End::Complete);
        assert!(copy.events == whole.events, "events were written otherwise than read");
        assert!(copy.others == whole.others, "records were written otherwise than read");
    }
}

/// A stream made of any events is read as it was written; and any bytes as a block of events say the same however they
/// are cut.
pub fn events(bytes: &[u8]) {
    for version in [Version::V4, Version::V6] {
        let mut u = Unstructured::new(bytes);
        let len = usize::from(u.arbitrary::<u8>().unwrap_or_default());
        let made = made_up(&mut u, version, false, len).unwrap_or_default();
        let seen = read(&made.stream);
        assert_eq!(seen.end, End::Complete);
        assert!(seen.events == made.events, "{version}: events were read otherwise than written");
        let pieces = read_in_pieces(&made.stream, sizes(bytes.iter().rev()));
        assert!(pieces.records == seen.records, "{version}: pieces say something else");
        nettrace(&block_of(version, bytes));
    }
}

/// Any bytes as a metadata record: what is understood of them is understood again when it is written in any version.
pub fn metadata(bytes: &[u8]) {
    for from in [Version::V3, Version::V4, Version::V6] {
        let Ok(read) = Metadata::decode(from, bytes) else { continue };
        for to in [Version::V4, Version::V6] {
            described(&read, bytes.len(), to, |again| {
                // Neither version keeps all: V6 has a byte for these, V4 ends texts at a NUL.
                let low = |n: u32| n & 0xff;
                assert_eq!((again.id, again.event_id), (read.id, read.event_id));
                assert_eq!(again.keywords, read.keywords);
                assert_eq!((low(again.level), low(again.version)), (low(read.level), low(read.version)));
                assert_eq!(again.opcode.unwrap_or_default(), read.opcode.unwrap_or_default());
                assert_eq!(again.problem, None);
                assert_eq!(again.fields.len(), read.fields.len());
                if to == from {
                    assert_eq!((again.provider, again.name), (read.provider, read.name));
                    let same =
                        alike(&again.fields, &read.fields) || to == Version::V4 && !before_v6(&read.fields);
                    assert!(same, "{:?} became {:?}", read.fields, again.fields);
                }
            });
        }
    }
}

/// How many items these are; what is opened is closed.
pub(crate) fn balanced<'a>(items: impl Iterator<Item = Item<'a>>) -> usize {
    let (mut open, mut count) = (0u32, 0);
    for item in items {
        count += 1;
        match item {
            Item::BeginObject { .. } | Item::BeginArray { .. } => open += 1,
            Item::EndObject | Item::EndArray => open -= 1,
            Item::Value { .. } => {}
        }
    }
    assert_eq!(open, 0, "something is left open");
    count
}

/// Any bytes as a payload of any description: bounded work, every `Begin` with its `End`, and the same values when the
/// description is written again.
pub fn payload(bytes: &[u8]) {
    let (record, payload) = bytes.split_at(bytes.first().map_or(0, |n| bytes.len().min(usize::from(*n) + 1)));
    let record = record.get(1..).unwrap_or_default();
    for version in [Version::V4, Version::V6] {
        let Ok(metadata) = Metadata::decode(version, record) else { continue };
        let mut values = metadata.fields.values(payload);
        let mut items = Vec::new();
        balanced(values.by_ref().inspect(|item| items.push(format!("{item:?}"))));
        assert!(items.len() <= 20 * payload.len() + 20 * record.len() + 2000, "{} items", items.len());
        let end = values.error().map(|error| error.kind);
        described(&metadata, record.len(), version, |again| {
            if version == Version::V4 && !before_v6(&metadata.fields) {
                return;
            }
            let mut values = again.fields.values(payload);
            let same: Vec<_> = values.by_ref().map(|item| format!("{item:?}")).collect();
            // How much work is too much depends on the description's length.
            let error = values.error().map(|error| error.kind);
            if [error, end].contains(&Some(DecodeErrorKind::TooManyItems)) {
                return;
            }
            assert_eq!(same, items);
            assert_eq!(error, end);
        });
    }
}

/// Whatever is left out of a stream, and whatever version is made of it, the rest is as it was, and as much was lost.
/// Any bytes as a stream become a whole stream.
pub fn rewrite(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    for from in [Version::V4, Version::V6] {
        let choice = u.arbitrary().unwrap_or_default();
        let made = made_up(&mut u, from, true, 120).unwrap_or_default();
        rewrite_made_up(&made, from, choice);
    }
    rewrite_any(bytes);
}

/// Any bytes as a stream become a whole stream.
pub(crate) fn rewrite_any(bytes: &[u8]) {
    for version in [None, Some(Version::V4), Some(Version::V6)] {
        let options = RewriteOptions { version, strip_command_line: true, ..RewriteOptions::default() };
        if let Some((result, said)) = rewritten(bytes, options) {
            let seen = read(&result);
            assert!(result.is_empty() || seen.end == End::Complete, "{}", seen.end);
            assert_eq!(seen.events.len() as u64, said.kept);
        }
    }
}

fn rewrite_made_up(made: &MadeUp, from: Version, choice: u8) {
    let only = [Only { provider: "p", event_id: Some(u32::from(choice & 3)) }];
    let filter = choice & 4 != 0;
    let to = [None, Some(Version::V4), Some(Version::V6), None][usize::from(choice >> 3 & 3)];
    let only = if filter { &only[..] } else { &[] };
    let options = RewriteOptions { only, version: to, ..RewriteOptions::default() };
    let to = to.unwrap_or(from);
    let source = read(&made.stream);
    let (result, said) = rewritten(&made.stream, options).expect("there is room");
    let seen = read(&result);
    assert_eq!(seen.end, End::Complete);
    assert_eq!(seen.lost, source.lost, "lost, {from} to {to}, filter {filter}");
    assert_eq!(seen.events.len() as u64, said.kept);
    assert_eq!(said.events, source.events.len() as u64);
    if !filter {
        assert_eq!(said.kept, said.events);
        if to == from {
            assert!(seen.events == source.events && seen.others == source.others, "not as it was");
        }
    }
    // What neither number nor version changes, of the events to keep.
    let want: Vec<_> =
        made.plain.iter().filter(|event| !filter || event.0 == u32::from(choice & 3) + 1).cloned().collect();
    assert!(seen.plain == want, "{from} to {to}, filter {filter}: other events than those to keep");
}

fn rewritten(bytes: &[u8], options: RewriteOptions<'_>) -> Option<(Vec<u8>, Rewritten)> {
    let (mut metadata, mut threads) = (vec![Slot::default(); 128], vec![Slot::default(); 128]);
    let (mut buffer, mut labels) = (vec![0xa5; 0x4000], vec![Slot::default(); 128]);
    let space = RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut labels,
    };
    let mut rewrite = Rewrite::new(options, space).expect("a version that can be written");
    let (mut parser, mut result) = (Parser::new(Limits::default()), Vec::new());
    loop {
        let step = parser.next(bytes);
        while let Some(bytes) = rewrite.step(&step).ok()? {
            assert!(!bytes.is_empty(), "nothing is to go out");
            result.extend_from_slice(bytes);
        }
        if matches!(step, Step::More { .. } | Step::End(_)) {
            break;
        }
    }
    while let Some(bytes) = rewrite.finish().ok()? {
        assert!(!bytes.is_empty(), "nothing is to go out");
        result.extend_from_slice(bytes);
    }
    Some((result, *rewrite.so_far()))
}

/// What records say, one behind the other.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Said {
    pub(crate) fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }
}

/// What is good in a stream.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Every record in its order.
    pub(crate) records: Said,
    /// Where in the stream each ends.
    pub(crate) offsets: Vec<u64>,
    events: Said,
    /// The rest, but for what a writer makes up itself.
    others: Said,
    plain: Vec<Plain>,
    lost: u64,
    end: End,
}

/// Of an event what neither its number nor the version changes: what it is, its time and payload.
type Plain = (u32, u64, Vec<u8>);

struct Reading<'s> {
    seen: Seen,
    loss: Loss<'s>,
    version: Version,
}

impl<'s> Reading<'s> {
    fn new(slots: &'s mut [Slot<Counter>]) -> Self {
        let [records, events, others] = [(); 3].map(|()| Said::default());
        let (offsets, plain) = (Vec::new(), Vec::new());
        let seen = Seen { records, offsets, events, others, plain, lost: 0, end: End::Complete };
        Self { seen, loss: Loss::new(slots), version: Version::V4 }
    }

    fn step(&mut self, step: &Step<'_>, offset: u64) {
        self.loss.step(step);
        let Seen { records, offsets, events, others, plain, .. } = &mut self.seen;
        let bytes = match step {
            Step::Event(event) => of_event(event),
            Step::Metadata(record) if self.version == Version::V6 => [b"metadata", record.payload].concat(),
            Step::Metadata(record) => [b"metadata", &of_event(record)[..]].concat(),
            // Label by label: a number may take more bytes than it needs.
            Step::LabelList(list) => said(&list.id, list.labels),
            Step::Thread(thread) => said(&thread.index, thread.entries),
            step => said(step, [(); 0]),
        };
        match step {
            Step::Event(event) => {
                events.push(&bytes);
                plain.push((event.metadata_id, event.timestamp, event.payload.to_vec()));
            }
            Step::Trace(trace) => self.version = trace.version,
            Step::Block(_) | Step::BadBlock(_) => {}
            // How many follow is counted anew.
            Step::SequencePoint(point) => {
                others.push(&said(&SequencePoint { threads: 0, ..*point }, [(); 0]));
            }
            _ => others.push(&bytes),
        }
        records.push(&bytes);
        offsets.push(offset);
    }

    fn end(mut self, end: End) -> Seen {
        self.seen.end = end;
        self.seen.lost = self.loss.lost();
        self.seen
    }
}

/// Something, and what it consists of.
pub(crate) fn said(whole: &impl Debug, parts: impl IntoIterator<Item = impl Debug>) -> Vec<u8> {
    let mut said = String::with_capacity(200);
    write!(said, "{whole:?}").expect("there is memory");
    parts.into_iter().for_each(|part| write!(said, "{part:?}").expect("there is memory"));
    said.into_bytes()
}

pub(crate) fn of_event(event: &Event<'_>) -> Vec<u8> {
    let mut numbers = [[0; 8]; 8];
    let values = [event.metadata_id, event.sequence, event.processor, event.stack_id, event.label_list]
        .map(u64::from)
        .into_iter()
        .chain([event.capture_thread, event.thread, event.timestamp]);
    numbers.iter_mut().zip(values).for_each(|(number, value)| *number = value.to_le_bytes());
    let (activity_id, related_activity_id) = (&event.activity_id.0, &event.related_activity_id.0);
    let sorted = [u8::from(event.sorted)];
    [
        numbers.as_flattened(),
        activity_id,
        related_activity_id,
        &sorted,
        event.stack,
        b" stack, payload ",
        event.payload,
    ]
    .concat()
}

pub(crate) fn read(bytes: &[u8]) -> Seen {
    let mut slots = vec![Slot::default(); 256];
    let mut reading = Reading::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    loop {
        match parser.next(bytes) {
            Step::More { .. } => return reading.end(parser.finish(bytes)),
            Step::End(end) => return reading.end(end),
            step => reading.step(&step, parser.offset()),
        }
    }
}

fn read_in_pieces(mut bytes: &[u8], mut sizes: impl Iterator<Item = usize>) -> Seen {
    let mut slots = vec![Slot::default(); 256];
    let mut reading = Reading::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let mut window = Vec::new();
    loop {
        match parser.next(&window) {
            Step::More { needed } => {
                let used = parser.release();
                window.drain(..used);
                assert!(needed > window.len(), "{needed} bytes are there: {}", window.len());
                if bytes.is_empty() {
                    return reading.end(parser.finish(&window));
                }
                let (now, later) = bytes.split_at(sizes.next().unwrap_or(usize::MAX).min(bytes.len()));
                window.extend_from_slice(now);
                bytes = later;
            }
            Step::End(end) => return reading.end(end),
            step => reading.step(&step, parser.offset()),
        }
    }
}

/// Gives a record until it is taken.
macro_rules! put {
    ($out:expr, $writer:ident.$method:ident($($arg:expr),*)) => {
        loop {
            match $writer.$method($($arg),*) {
                Ok(Some(bytes)) => {
                    assert!(!bytes.is_empty(), "nothing is to go out");
                    $out.extend_from_slice(bytes);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        }
    };
}

pub(crate) use put;

/// Writes the records of a stream again, block for block; `None` if they make none that can be written.
fn copy(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut buf = vec![0xa5; bytes.len() * 4 + 1000];
    let mut out = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let mut writer = loop {
        match parser.next(bytes) {
            Step::Block(_) => {}
            Step::Trace(trace) => {
                let mut writer = Writer::new(trace.version, &mut buf).ok()?;
                put!(out, writer.trace(&trace)).expect("there is room");
                break writer;
            }
            _ => return None,
        }
    };
    loop {
        let written = match parser.next(bytes) {
            Step::Block(_) => {
                while let Some(bytes) = writer.flush() {
                    out.extend_from_slice(bytes);
                }
                Ok(())
            }
            // Rows that were cut off from their point, and a second trace.
            Step::Trace(_) => return None,
            Step::Metadata(record) => put!(out, writer.metadata(&record)),
            Step::Event(event) => put!(out, writer.event(&event)),
            Step::Stack(stack) => put!(out, writer.stack(&stack)),
            Step::SequencePoint(point) => put!(out, writer.sequence_point(&point)),
            Step::ThreadSequence(row) => put!(out, writer.thread_sequence(&row)),
            Step::Thread(thread) => put!(out, writer.thread(thread.index, thread.entries)),
            Step::RemoveThread(row) => put!(out, writer.remove_thread(&row)),
            Step::LabelList(list) => put!(out, writer.label_list(list.id, list.labels)),
            Step::BadBlock(_) => Ok(()),
            Step::More { .. } | Step::End(_) => break,
        };
        written.expect("there is room");
    }
    while let Some(bytes) = writer.finish() {
        out.extend_from_slice(bytes);
    }
    Some(out)
}

/// A stream of this version with these bytes as a block of events: the first of them is the block's flags.
fn block_of(version: Version, bytes: &[u8]) -> Vec<u8> {
    let mut buf = [0; 1024];
    let mut writer = Writer::new(version, &mut buf).expect("a version that can be written");
    let mut stream = Vec::new();
    put!(stream, writer.trace(&Trace::new(version))).expect("there is room");
    while let Some(bytes) = writer.flush() {
        stream.extend_from_slice(bytes);
    }
    let (flags, blobs) = bytes.split_first().unwrap_or((&1, &[]));
    let len = u32::try_from(blobs.len() + 20).expect("not so many");
    if version == Version::V6 {
        stream.extend((len | 2 << 24).to_le_bytes());
    } else {
        stream.extend(b"\x05\x05\x01\x02\0\0\0\x02\0\0\0\x0a\0\0\0EventBlock\x06");
        stream.extend(len.to_le_bytes());
        stream.resize(stream.len().next_multiple_of(4), 0);
    }
    stream.extend([20, 0, *flags, 0]);
    stream.extend([0; 16]);
    stream.extend(blobs);
    stream.push(6);
    stream
}

/// Describes again in another version, and reads that, if the version can say it.
fn described(metadata: &Metadata<'_>, len: usize, version: Version, check: impl FnOnce(Metadata<'_>)) {
    // A code of one byte may become one of four, and so may a letter, for which a byte is three.
    let mut buf = vec![0xa5; len * 16 + 1000];
    let mut writer = Writer::new(version, &mut buf).expect("a version that can be written");
    let mut stream = Vec::new();
    put!(stream, writer.trace(&Trace::new(version))).expect("there is room");
    match put!(stream, writer.describe(metadata)) {
        Ok(()) => {}
        Err(WriteError::Version(_) | WriteError::TooLong { .. }) => return,
        Err(error) => panic!("{error}"),
    }
    while let Some(bytes) = writer.finish() {
        stream.extend_from_slice(bytes);
    }
    let mut parser = Parser::new(Limits::default());
    loop {
        match parser.next(&stream) {
            Step::Metadata(record) => {
                check(Metadata::decode(version, record.payload).expect("it was written here"));
                return;
            }
            Step::Block(_) | Step::Trace(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Whether two descriptions say the same.
fn alike(a: &Fields<'_>, b: &Fields<'_>) -> bool {
    let same = |(a, b): (ipc_proto::nettrace::Field<'_>, ipc_proto::nettrace::Field<'_>)| {
        a.name == b.name && same_type(a.field_type, b.field_type)
    };
    a.len() == b.len() && a.iter().zip(b.iter()).all(same)
}

/// Whether V4 has these types; read they are everywhere, but written under the names that V4 has.
fn before_v6(fields: &Fields<'_>) -> bool {
    fields.iter().all(|field| {
        let mut field_type = field.field_type;
        while let FieldType::Array { element, .. } = field_type {
            field_type = element.field_type();
        }
        match field_type {
            FieldType::Scalar(scalar) => scalar.code() <= Scalar::Utf16String.code(),
            FieldType::Object(fields) => before_v6(&fields),
            _ => true,
        }
    })
}

fn same_type(a: FieldType<'_>, b: FieldType<'_>) -> bool {
    match (a, b) {
        (FieldType::Scalar(a), FieldType::Scalar(b)) => a == b,
        (FieldType::Object(a), FieldType::Object(b)) => alike(&a, &b),
        (FieldType::Array { kind, element }, FieldType::Array { kind: other, element: others }) => {
            kind == other && same_type(element.field_type(), others.field_type())
        }
        _ => false,
    }
}

/// A stream made up, and its events.
#[derive(Debug, Default)]
struct MadeUp {
    stream: Vec<u8>,
    events: Said,
    plain: Vec<Plain>,
}

/// Numbers as they hurt: small, odd, or any.
fn odd(u: &mut Unstructured<'_>) -> Result<u64> {
    const ODD: [u64; 8] = [0, 1, 0x7f, 0x80, 0xffff_ffff, 0x1_0000_0000, 1 << 63, u64::MAX];
    Ok(match u.arbitrary::<u8>()? {
        n @ 0..=99 => n.into(),
        n @ 100..=199 => ODD[usize::from(n & 7)],
        _ => u.arbitrary()?,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "any number will do")]
fn odd32(u: &mut Unstructured<'_>) -> Result<u32> {
    odd(u).map(|n| n as u32)
}

/// Makes up a stream with at most so many records. One that `makes_sense` has threads that count, lose events and are
/// followed by others with the same id; else every number is any.
fn made_up(u: &mut Unstructured<'_>, version: Version, makes_sense: bool, len: usize) -> Result<MadeUp> {
    let v6 = version == Version::V6;
    let mut buf = vec![0xa5; usize::from(u.int_in_range(1u8..=16)?) * 1024 + 1000];
    let mut writer = Writer::new(version, &mut buf).expect("a version that can be written");
    let mut made = MadeUp::default();
    let out = &mut made.stream;
    put!(out, writer.trace(&Trace::new(version))).expect("there is room");
    for id in 0..4u32 {
        let mut metadata = Metadata::default();
        (metadata.id, metadata.provider, metadata.event_id) = (id + 1, "p".into(), id);
        put!(out, writer.describe(&metadata)).expect("there is room");
    }
    // How far each has counted, and whether its id was given to another.
    let mut threads = [0u32; 4];
    if v6 {
        for thread in 0..4 {
            put!(out, writer.thread(thread, [ThreadEntry::ThreadId(thread + 100)])).expect("there is room");
        }
    }
    let mut now = 1000u64;
    for _ in 0..len {
        if u.is_empty() {
            break;
        }
        let what = u.arbitrary::<u8>()?;
        let thread = usize::from(what >> 6);
        let number = u64::from(what >> 6);
        match what & 0x3f {
            0 => {
                put!(out, writer.sequence_point(&SequencePoint { timestamp: now, flags: 0, threads: 0 }))
                    .expect("there is room");
                for (thread, last) in threads.iter_mut().enumerate() {
                    let known = *last != 0 || v6;
                    if known && u.arbitrary::<bool>()? {
                        *last += u32::from(u.arbitrary::<u8>()? & 3);
                        let row = ThreadSequence { thread: thread as u64, sequence: *last };
                        put!(out, writer.thread_sequence(&row)).expect("there is room");
                    }
                }
            }
            1 => {
                let stack =
                    Stack { id: odd32(u)?, bytes: &[7; 64][..usize::from(u.arbitrary::<u8>()? & 63)] };
                put!(out, writer.stack(&stack)).expect("there is room");
            }
            2 if v6 => {
                let labels =
                    [Label::ActivityId(Guid([7; 16])), Label::Number("n".into(), -5), Label::Opcode(3)];
                let some = labels.into_iter().take(usize::from(u.arbitrary::<u8>()? & 3));
                let id = odd32(u)?;
                put!(out, writer.label_list(id, some.clone())).expect("there is room");
            }
            3 if v6 && makes_sense => {
                let sequence = threads[thread] + u32::from(u.arbitrary::<u8>()? & 3);
                put!(out, writer.remove_thread(&ThreadSequence { thread: number, sequence }))
                    .expect("there is room");
                put!(out, writer.thread(number, [ThreadEntry::ThreadId(number + 100)]))
                    .expect("there is room");
                threads[thread] = 0;
            }
            // Another thread has got the id.
            3 if makes_sense => {
                if threads[thread] != 0 {
                    threads[thread] = 0;
                }
            }
            4 => {
                let mut metadata = Metadata::default();
                metadata.id = u.int_in_range(10..=50)?;
                put!(out, writer.describe(&metadata)).expect("there is room");
            }
            5 => {
                while let Some(bytes) = writer.flush() {
                    out.extend_from_slice(bytes);
                }
            }
            _ => {
                let fresh = threads[thread] == 0;
                let len = u.arbitrary::<u8>()?;
                let payload = vec![len; if len == 255 { 300 } else { usize::from(len & 15) }];
                let mut event = Event { payload: &payload, sorted: what & 1 != 0, ..Event::default() };
                if makes_sense {
                    // A thread of V4 whose id another had begins at 1, or nobody could know.
                    let lost = if fresh && !v6 { 0 } else { u32::from((len >> 4).saturating_sub(12)) };
                    threads[thread] += 1 + lost;
                    now += u64::from(len & 7);
                    event.metadata_id = u.int_in_range(1..=4)?;
                    event.sequence = threads[thread];
                    (event.capture_thread, event.thread, event.timestamp) = (number, number, now);
                } else {
                    (event.metadata_id, event.sequence) = (odd32(u)?, odd32(u)?);
                    (event.capture_thread, event.thread, event.timestamp) = (odd(u)?, odd(u)?, odd(u)?);
                    (event.processor, event.stack_id) = (odd32(u)?, odd32(u)?);
                    if v6 {
                        event.label_list = odd32(u)?;
                    } else {
                        event.activity_id = Guid([len & 1; 16]);
                        event.related_activity_id = Guid([len >> 7; 16]);
                    }
                }
                put!(out, writer.event(&event)).expect("there is room");
                made.events.push(&of_event(&event));
                let plain = (event.metadata_id, event.timestamp, payload.clone());
                made.plain.push(plain);
            }
        }
    }
    while let Some(bytes) = writer.finish() {
        made.stream.extend_from_slice(bytes);
    }
    Ok(made)
}
