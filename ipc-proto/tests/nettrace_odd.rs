//! Streams that are odd and legal, or broken in one place, made by hand.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test says what it expects by unwrapping it"
)]

mod nettrace_steps;

use ipc_proto::nettrace::{
    BadBlock, BlockKind, Corruption, End, Event, Label, Labels, Limits, Loss, Pairs, Parser, Slot, Step, Str,
    Thread, ThreadEntries, ThreadEntry, Truncation, Version, frames,
};
use ipc_proto::{DecodeErrorKind, Guid};
use nettrace_steps::picked;

/// A stream under construction.
struct Stream(Vec<u8>);

const V3: u32 = 3;
const V4: u32 = 4;

impl Stream {
    fn v3() -> Self {
        let mut stream = Self(b"\x14\0\0\0!FastSerialization.1".to_vec());
        stream.object_with(4, "Trace", [3, 0], &trace_body(), &[6]);
        stream
    }
    fn v4() -> Self {
        let mut stream = Self(b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec());
        stream.object_with(5, "Trace", [4, 4], &trace_body(), &[6]);
        stream
    }
    fn v6() -> Self {
        let mut stream = Self(b"Nettrace\0\0\0\0\x06\0\0\0\x63\0\0\0".to_vec());
        let mut body = trace_body()[..36].to_vec();
        body.extend(2u32.to_le_bytes());
        body.extend(b"\x09ProcessId\x0277\x01x\0");
        stream.block(1, &body);
        stream
    }
    /// A block of V6.
    fn block(&mut self, kind: u8, body: &[u8]) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend((body.len() as u32 | u32::from(kind) << 24).to_le_bytes());
        self.0.extend(body);
        at
    }
    fn object_with(&mut self, tag: u8, name: &str, versions: [u32; 2], body: &[u8], tail: &[u8]) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend([tag, tag, 1]);
        versions.iter().for_each(|version| self.0.extend(version.to_le_bytes()));
        self.0.extend((name.len() as u32).to_le_bytes());
        self.0.extend(name.as_bytes());
        self.0.push(6);
        if name != "Trace" {
            self.0.extend((body.len() as u32).to_le_bytes());
            while self.0.len() % 4 != 0 {
                self.0.push(0xee);
            }
        }
        self.0.extend(body);
        self.0.extend(tail);
        at
    }
    /// A block of V4.
    fn object(&mut self, name: &str, body: &[u8]) -> u64 {
        self.object_with(5, name, [2, 2], body, &[6])
    }
    /// A block of compressed blobs.
    fn blobs(&mut self, name: &str, blobs: &[u8]) -> u64 {
        self.object(name, &[&blob_header(20, 1), blobs].concat())
    }
    fn end(mut self) -> Vec<u8> {
        self.0.push(1);
        self.0
    }
}

fn trace_body() -> [u8; 48] {
    let mut body = [0; 48];
    body[16] = 7;
    body[24] = 10;
    body[32] = 8;
    body[36] = 42;
    body
}

fn blob_header(size: u16, flags: u16) -> Vec<u8> {
    let mut header = size.to_le_bytes().to_vec();
    header.extend(flags.to_le_bytes());
    header.resize(usize::from(size).max(20), 0x55);
    header
}

/// A compressed event of metadata 1 that carries everything but activity ids.
fn event(sequence_delta: u8, thread: u8, payload: &[u8]) -> Vec<u8> {
    let mut blob = vec![0x8f, 1, sequence_delta, thread, 3, thread, 0, 1];
    blob.extend(match payload.len() {
        len @ 0..128 => vec![len as u8],
        len => vec![len as u8 | 0x80, (len >> 7) as u8],
    });
    blob.extend(payload);
    blob
}

/// Every step, shown by what matters here, and the end. In three ways, which must agree: all at once, through a window
/// that is never longer than it must be, and through one that grows and of which nothing is ever given back.
fn read(bytes: &[u8]) -> (Vec<String>, End) {
    let mut whole = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let end = loop {
        match parser.next(bytes) {
            Step::More { .. } => break parser.finish(bytes),
            Step::End(end) => break end,
            step => whole.push(show(parser.version(), &step)),
        }
    };
    let mut pieces = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let (mut window, mut rest) = (Vec::new(), bytes.iter());
    let end_of_pieces = loop {
        match parser.next(&window) {
            Step::More { needed } => {
                window.drain(..parser.release());
                assert!(needed > window.len());
                let Some(byte) = rest.next() else { break parser.finish(&window) };
                window.push(*byte);
            }
            Step::End(end) => break end,
            step => pieces.push(show(parser.version(), &step)),
        }
    };
    assert_eq!((&whole, end), (&pieces, end_of_pieces));
    let mut grown = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let mut len = 0;
    let end_of_grown = loop {
        match parser.next(&bytes[..len]) {
            Step::More { .. } if len == bytes.len() => break parser.finish(bytes),
            Step::More { .. } => len += 1,
            Step::End(end) => break end,
            step => grown.push(show(parser.version(), &step)),
        }
    };
    assert_eq!((&whole, end), (&grown, end_of_grown));
    (whole, end)
}

fn show(version: Version, step: &Step<'_>) -> String {
    match step {
        Step::Block(block) => match block.kind {
            BlockKind::Unknown(n) => format!("unknown {n}"),
            kind => kind.name(version).to_owned(),
        },
        Step::Trace(trace) => format!("trace {}.{} pid {:?}", trace.version, trace.minor, trace.process_id),
        Step::Event(e) => format!("event {} #{} {:?}", e.capture_thread, e.sequence, e.payload),
        Step::Metadata(m) => format!("metadata {:?}", m.payload),
        Step::Stack(s) => format!("stack {} {}", s.id, s.bytes.len()),
        Step::SequencePoint(p) => format!("point {} {}", p.timestamp, p.threads),
        Step::ThreadSequence(t) => format!("at {} #{}", t.thread, t.sequence),
        Step::RemoveThread(t) => format!("removed {} #{}", t.thread, t.sequence),
        Step::Thread(t) => format!("thread {} {:?}", t.index, t.entries.collect::<Vec<_>>()),
        Step::LabelList(l) => format!("labels {} {:?}", l.id, l.labels.collect::<Vec<_>>()),
        Step::BadBlock(bad) => format!("bad {:?}", bad.error),
        other => format!("{other:?}"),
    }
}

fn behind_trace(bytes: &[u8]) -> (Vec<String>, End) {
    let (mut steps, end) = read(bytes);
    assert!(steps.len() >= 2, "{end}");
    assert_eq!(steps.drain(..2).next().unwrap(), "Trace");
    (steps, end)
}

#[test]
fn empty_streams() {
    for len in 0..32 {
        let end = End::Truncated { offset: len, reason: Truncation::Header };
        assert_eq!(read(&Stream::v4().0[..len as usize]), (vec![], end));
    }
    let end = End::Truncated { offset: 32, reason: Truncation::BetweenBlocks };
    assert_eq!(read(&Stream::v4().0[..32]), (vec![], end));
    let end = End::Truncated { offset: 20, reason: Truncation::BetweenBlocks };
    assert_eq!(read(&Stream::v6().0[..20]), (vec![], end));
    for stream in [Stream::v3(), Stream::v4()] {
        let offset = stream.0.len() as u64;
        let (steps, end) = read(&stream.0);
        assert_eq!(
            steps[1],
            if stream.0[0] == 20 { "trace V3.0 pid Some(42)" } else { "trace V4.0 pid Some(42)" }
        );
        assert_eq!(end, End::Truncated { offset, reason: Truncation::BetweenBlocks });
        assert_eq!(read(&stream.end()).1, End::Complete);
    }
    let mut stream = Stream::v6();
    stream.block(0, b"whatever");
    stream.0.extend(b"and behind it");
    let (steps, end) = read(&stream.0);
    assert_eq!(steps, ["Trace", "trace V6.99 pid Some(77)", "EndOfStream"]);
    assert_eq!(end, End::Complete);
}

/// Where a stream is cut, said in its own terms.
#[test]
fn cut_streams() {
    let mut v4 = Stream::v4();
    let block = v4.blobs("EventBlock", &event(0, 1, b"abc"));
    let v4 = v4.end();
    let mut v6 = Stream::v6();
    let v6_block = v6.block(2, &[&blob_header(20, 1)[..], &event(0, 1, b"abc")].concat());
    for (bytes, block, header, len, end) in [(&v4, block, 30, 32, 1), (&v6.0, v6_block, 4, 32, 0)] {
        let body = block + header;
        assert_eq!(bytes.len() as u64, body + u64::from(len) + 2 * end);
        for cut in block..=body + u64::from(len) + end {
            let have = cut.saturating_sub(body) as u32;
            let reason = match cut {
                _ if cut == block => Truncation::BetweenBlocks,
                _ if cut < body => Truncation::BlockHeader,
                _ if have < len => Truncation::Block { kind: BlockKind::Event, have, len },
                _ => Truncation::BetweenBlocks,
            };
            let (_, end) = read(&bytes[..cut as usize]);
            assert_eq!(end, End::Truncated { offset: cut, reason }, "{cut}");
        }
    }
}

#[test]
fn no_stream() {
    for bytes in [&b"x"[..], b"Nettracf", b"Nettrace\x14\0\0\0!Slow", b"\x14\0\0\0?", b"\x15", b"PK\x03\x04"]
    {
        let end = End::Corrupt { offset: 0, reason: Corruption::NotNetTrace };
        assert_eq!(read(bytes), (vec![], end), "{bytes:?}");
    }
    let reason = Corruption::Version(7);
    let end = End::Corrupt { offset: 12, reason };
    assert_eq!(read(b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0").1, end);
    assert_eq!(reason.to_string(), "version 7, of which 3 to 6 can be read");
    let mut stream = Stream(Stream::v3().0[..24].to_vec());
    stream.object_with(4, "Microsoft.DotNet.Runtime.EventPipeFile", [1, 0], &[0; 32], &[6]);
    let (steps, end) = read(&stream.0);
    assert_eq!((steps, end), (vec![], End::Corrupt { offset: 27, reason: Corruption::Version(1) }));
    // Version 2 was the last to have that name.
    for (version, reason) in [(2, Corruption::Version(2)), (3, Corruption::Object)] {
        let mut stream = Stream(Stream::v3().0[..24].to_vec());
        stream.object_with(4, "Microsoft.DotNet.Runtime.EventPipeFile", [version, 0], &[0; 32], &[6]);
        let offset = if version == 2 { 27 } else { 24 };
        assert_eq!(read(&stream.0), (vec![], End::Corrupt { offset, reason }));
    }
    // A block of V6 before the trace; a block of V4 before it.
    let mut stream = Stream(Stream::v6().0[..20].to_vec());
    stream.block(2, &[]);
    assert_eq!(read(&stream.0).1, End::Corrupt { offset: 20, reason: Corruption::Object });
    let mut stream = Stream(Stream::v4().0[..32].to_vec());
    stream.blobs("EventBlock", &[]);
    assert_eq!(read(&stream.0).1, End::Corrupt { offset: 32, reason: Corruption::Object });
}

#[test]
fn odd_blocks() {
    let mut stream = Stream::v4();
    stream.blobs("EventBlock", &[]);
    // A header with more in it, and flags unknown here.
    stream.object("EventBlock", &[blob_header(33, 0xfff1), event(0, 5, b"a")].concat());
    stream.object("StackBlock", &[1, 0, 0, 0, 0, 0, 0, 0]);
    stream.object("StackBlock", &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb]);
    // What a later version might add.
    stream.object_with(
        5,
        "SPBlock",
        [9, 2],
        &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        b"\x08x\x09xx\x0d\x02\0\0\0ab\x06",
    );
    stream.object_with(5, "EventBlock", [2, 0], &[blob_header(20, 1), event(1, 5, b"b")].concat(), &[6]);
    stream.object("NewBlock", &[0xff; 300]);
    stream.blobs("MetadataBlock", &[0xc0, 1, 1, b'm']);
    stream.0.extend([1, 0, 0, 0]);
    let (steps, end) = behind_trace(&stream.0);
    assert_eq!(
        steps,
        [
            "EventBlock",
            "EventBlock",
            "event 5 #1 [97]",
            "StackBlock",
            "StackBlock",
            "stack 9 0",
            "SPBlock",
            "point 7 0",
            "EventBlock",
            "event 5 #2 [98]",
            "unknown 0",
            "MetadataBlock",
            "metadata [109]"
        ]
    );
    assert_eq!(end, End::Complete);
}

#[test]
fn bad_blocks() {
    let bad = |stream: &mut Stream, name: &str, body: &[u8]| {
        let offset = stream.object(name, body);
        stream.blobs("EventBlock", &event(0, 9, b"on"));
        offset
    };
    let cases: [(&str, Vec<u8>, &[&str], DecodeErrorKind); 9] = [
        ("EventBlock", vec![], &[], DecodeErrorKind::UnexpectedEnd),
        ("EventBlock", blob_header(19, 1), &[], DecodeErrorKind::BadSize),
        ("EventBlock", blob_header(20, 1)[..19].to_vec(), &[], DecodeErrorKind::UnexpectedEnd),
        (
            "EventBlock",
            [blob_header(20, 1), event(0, 1, b"good"), event(0, 1, b"too long")[..12].to_vec()].concat(),
            &["event 1 #1 [103, 111, 111, 100]"],
            DecodeErrorKind::UnexpectedEnd,
        ),
        (
            "EventBlock",
            [
                blob_header(20, 1),
                event(0, 1, b""),
                vec![0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
            ]
            .concat(),
            &["event 1 #1 []"],
            DecodeErrorKind::BadVarint,
        ),
        // An uncompressed blob that is too short for its header.
        (
            "EventBlock",
            [blob_header(20, 0), 60u32.to_le_bytes().to_vec(), vec![0; 60]].concat(),
            &[],
            DecodeErrorKind::UnexpectedEnd,
        ),
        (
            "StackBlock",
            vec![1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 7, 0xff, 0, 0, 0],
            &["stack 1 1"],
            DecodeErrorKind::UnexpectedEnd,
        ),
        (
            "MetadataBlock",
            [blob_header(20, 1), vec![0x80, 0, 5]].concat(),
            &[],
            DecodeErrorKind::UnexpectedEnd,
        ),
        (
            "SPBlock",
            [vec![0; 8], vec![2, 0, 0, 0, 7], vec![0; 7], vec![3, 0, 0, 0]].concat(),
            &["point 0 2", "at 7 #3"],
            DecodeErrorKind::UnexpectedEnd,
        ),
    ];
    for (name, body, good, error) in cases {
        let mut stream = Stream::v4();
        let first = bad(&mut stream, name, &body);
        let (steps, end) = behind_trace(&stream.end());
        let (head, rest) = steps.split_first().unwrap();
        assert_eq!(head, name);
        assert_eq!(&rest[..good.len()], good, "{name}");
        assert_eq!(rest[good.len()..], [&format!("bad {error:?}"), "EventBlock", "event 9 #1 [111, 110]"]);
        assert!(
            matches!(end, End::Corrupt { offset, reason: Corruption::Block(BadBlock { .. }) } if offset == first),
            "{name} {end}"
        );
    }
    // Of two, the first is told, even if the stream is cut then.
    let mut stream = Stream::v4();
    let first = bad(&mut stream, "EventBlock", &[]);
    bad(&mut stream, "StackBlock", &[]);
    assert!(matches!(read(&stream.0).1, End::Corrupt { offset, .. } if offset == first));
}

/// What is not known has a name all the same, at the moment of its block.
#[test]
fn names_of_objects() {
    let mut stream = Stream::v4();
    stream.object("NewBlock", &[0xff; 30]);
    stream.object("", &[]);
    let bytes = stream.end();
    let mut parser = Parser::new(Limits::default());
    let (mut names, mut at) = (Vec::new(), 0);
    loop {
        match parser.next(&bytes[at..]) {
            Step::Block(_) => names.push(parser.object_name(&bytes[at..]).map(<[u8]>::to_vec)),
            Step::End(_) => break,
            _ => at += parser.release(),
        }
    }
    assert_eq!(names, [Some(b"Trace".to_vec()), Some(b"NewBlock".to_vec()), Some(Vec::new())]);
}

#[test]
fn bad_framing() {
    // The tag behind a block; the begin tag of the other version; a name without end; a version too new.
    let mut stream = Stream::v4();
    stream.object_with(5, "EventBlock", [2, 2], &blob_header(20, 1), &[7]);
    let at = stream.0.len() as u64 - 1;
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: at, reason: Corruption::Tag(7) });
    let mut stream = Stream::v4();
    let at = stream.object_with(4, "EventBlock", [2, 2], &[], &[6]);
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: at, reason: Corruption::Tag(4) });
    let mut stream = Stream::v4();
    let at = stream.object(&"x".repeat(65), &[]);
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: at + 11, reason: Corruption::Object });
    let mut stream = Stream::v4();
    let at = stream.object_with(5, "EventBlock", [3, 3], &[], &[6]);
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: at + 7, reason: Corruption::Minimum(3) });
    assert!(!Corruption::Minimum(3).to_string().contains("3 to 6"));
    assert_eq!(Corruption::Version(4).to_string(), "version 4 behind the header of another");
    let mut stream = Stream::v4();
    let at = stream.object("EventBlock", &[]);
    stream.0[at as usize + 26..][..4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let reason = Corruption::TooLong { len: 0x7fff_ffff };
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: at, reason });
    // The trace itself.
    let mut stream = Stream(Stream::v6().0[..20].to_vec());
    stream.block(1, &[0; 35]);
    stream.block(0, &[]);
    let (steps, end) = read(&stream.0);
    assert_eq!(steps, ["Trace", "bad UnexpectedEnd"]);
    assert!(matches!(end, End::Corrupt { offset: 20, .. }));
}

#[test]
fn v6_blocks() {
    let mut stream = Stream::v6();
    stream.block(99, b"new");
    // Threads: a name, ids, a pair; an entry unknown here hides what is behind it, in its row only.
    stream.block(6, b"\x0e\0\x05\x01\x02hi\x02\x07\x03\x80\x01\x04\x01k\0\x06\0\x06\x09\x01\x02hi\x01\0\x07");
    stream.block(8, b"\x01\0\0\0\x02\0\0\0\x07\x01\x86\x01k\x03\x85\x01a\x01b");
    stream.block(3, b"\x02\0zz\x01\0m");
    stream.block(3, b"\x02\0zz");
    stream.block(2, &[blob_header(20, 1), vec![0xbf, 1, 0, 5, 9, 6, 2, 8, 1, 3, b'x', b'y', b'z']].concat());
    stream.block(4, b"\x09\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x05\x02\x06\x01");
    stream.block(7, b"\x05\x02\x80\x01\x03");
    stream.block(0, &[]);
    let (steps, end) = behind_trace(&stream.0);
    let thread = |entries: &[ThreadEntry<'_>]| format!("{entries:?}");
    let labels = |labels: &[Label<'_>]| format!("{labels:?}");
    let name = Str::from("hi");
    let entries = [
        ThreadEntry::Name(name),
        ThreadEntry::ProcessId(7),
        ThreadEntry::ThreadId(128),
        ThreadEntry::Pair(Str::from("k"), Str::EMPTY),
    ];
    assert_eq!(
        steps,
        [
            "unknown 99".to_owned(),
            "Thread".to_owned(),
            format!("thread 5 {}", thread(&entries)),
            "thread 6 []".to_owned(),
            "thread 7 []".to_owned(),
            "LabelList".to_owned(),
            format!("labels 1 {}", labels(&[Label::Opcode(1), Label::Number(Str::from("k"), -2)])),
            format!("labels 2 {}", labels(&[Label::Text(Str::from("a"), Str::from("b"))])),
            "Metadata".to_owned(),
            "metadata [109]".to_owned(),
            "Metadata".to_owned(),
            "Event".to_owned(),
            "event 5 #1 [120, 121, 122]".to_owned(),
            "SequencePoint".to_owned(),
            "point 9 2".to_owned(),
            "at 5 #2".to_owned(),
            "at 6 #1".to_owned(),
            "RemoveThread".to_owned(),
            "removed 5 #2".to_owned(),
            "removed 128 #3".to_owned(),
            "EndOfStream".to_owned(),
        ]
    );
    assert_eq!(end, End::Complete);
}

/// Lists that are kept as they lie in the stream are the same lists.
#[test]
fn lists_from_bytes() {
    let labels = Labels::from_bytes(b"\x07\x01\x8a\x02\x07").unwrap();
    assert_eq!(labels.as_bytes(), b"\x07\x01\x8a\x02");
    let mut left = labels;
    assert_eq!(left.next(), Some(Label::Opcode(1)));
    assert_eq!(left.as_bytes(), b"\x8a\x02");
    assert_eq!((left.next(), left.next()), (Some(Label::Version(2)), None));
    for (bad, kind) in [
        (&b"\x07\x01\x8b\x02"[..], DecodeErrorKind::UnknownType),
        (b"\x07\x01\x8a", DecodeErrorKind::UnexpectedEnd),
        (b"\x07\x01\x0a\x02", DecodeErrorKind::UnexpectedEnd),
    ] {
        assert_eq!(Labels::from_bytes(bad).unwrap_err().kind, kind, "{bad:x?}");
    }
    let mut entries = ThreadEntries::from_bytes(b"\x02\x05\x01\x01a");
    assert_eq!(entries.next(), Some(ThreadEntry::ProcessId(5)));
    assert_eq!(entries.as_bytes(), b"\x01\x01a");
    let thread = Thread { index: 1, entries: ThreadEntries::from_bytes(b"\x02\x05\x03\x07\x01\x01a") };
    assert_eq!((thread.process_id(), thread.thread_id(), thread.name()), (Some(5), Some(7), "a".into()));
    assert_eq!((Thread::default().process_id(), Thread::default().thread_id()), (None, None));
    assert_eq!(Thread::default().name(), Str::EMPTY);
    let mut pairs = Pairs::from_bytes(b"\x01k\x01v\x00\x01w");
    assert_eq!(pairs.next(), Some(("k".into(), "v".into())));
    assert_eq!(pairs.as_bytes(), b"\x00\x01w");
    assert_eq!((pairs.next(), pairs.next()), (Some((Str::EMPTY, "w".into())), None));
}

/// How a stream that lies in memory as a whole ends, within these limits.
fn end_of(bytes: &[u8], limits: Limits) -> End {
    let mut parser = Parser::new(limits);
    loop {
        match parser.next(bytes) {
            Step::More { .. } => return parser.finish(bytes),
            Step::End(end) => return end,
            _ => {}
        }
    }
}

/// What a later version may put behind a body has the types that the format knows, and is no longer than a record may be.
#[test]
fn tails() {
    let tail =
        [&b"\x08a\x09ab\x0aabcd\x0babcdefgh\x0d\x03\0\0\0abc\x0e"[..], &[100, 0, 0, 0], &[6; 100], &[6]];
    let mut stream = Stream::v4();
    stream.object_with(5, "StackBlock", [2, 2], &[0; 8], &tail.concat());
    // Where the length of the longest stands.
    let offset = stream.0.len() as u64 - 4 - 100 - 1;
    stream.blobs("EventBlock", &event(0, 1, b""));
    let (steps, end) = behind_trace(&stream.0);
    assert_eq!(steps, ["StackBlock", "EventBlock", "event 1 #1 []"]);
    assert!(matches!(end, End::Truncated { .. }));
    let bytes = stream.end();
    for (record, want) in
        [(100, End::Complete), (99, End::Corrupt { offset, reason: Corruption::TooLong { len: 100 } })]
    {
        assert_eq!(end_of(&bytes, Limits { record, ..Limits::default() }), want);
    }
}

/// A block may be as long as the limit.
#[test]
fn longest_block() {
    let mut stream = Stream::v4();
    let offset = stream.blobs("EventBlock", &[0; 80]);
    let bytes = stream.end();
    for (block, want) in
        [(100, End::Complete), (99, End::Corrupt { offset, reason: Corruption::TooLong { len: 100 } })]
    {
        assert_eq!(end_of(&bytes, Limits { block, ..Limits::default() }), want);
    }
}

/// A record longer than the limit, which is what fits the caller's window, ends its block.
#[test]
fn limits() {
    let mut stream = Stream::v4();
    stream.blobs("EventBlock", &[event(0, 1, &[1; 10]), event(0, 1, &[2; 100])].concat());
    stream.blobs("EventBlock", &event(0, 1, b"next"));
    let bytes = stream.end();
    let mut parser = Parser::new(Limits { record: 99, ..Limits::default() });
    let (mut window, mut rest, mut events) = (Vec::new(), bytes.iter(), Vec::new());
    let end = loop {
        match parser.next(&window) {
            Step::More { needed } => {
                window.drain(..parser.release());
                assert!(needed <= 99);
                let Some(byte) = rest.next() else { break parser.finish(&window) };
                window.push(*byte);
            }
            Step::End(end) => break end,
            Step::Event(event) => events.push(event.payload.len()),
            _ => {}
        }
    };
    assert_eq!(events, [10, 4]);
    assert!(
        matches!(end, End::Corrupt { reason: Corruption::Block(bad), .. } if bad.error == DecodeErrorKind::TooLong)
    );
}

#[test]
fn blocks_as_they_are() {
    let mut stream = Stream::v4();
    stream.blobs("EventBlock", &event(0, 1, b"first"));
    stream.blobs("EventBlock", &event(0, 1, b"second"));
    stream.object("StackBlock", &[0; 8]);
    let bytes = stream.end();
    let mut parser = Parser::new(Limits::default());
    let mut bodies = Vec::new();
    let mut events = 0;
    let end = loop {
        match parser.next(&bytes) {
            Step::Block(block) if block.kind == BlockKind::Event => {
                assert_eq!(parser.take_block(&bytes[..bytes.len() - 60]).is_some(), bodies.is_empty());
                if bodies.is_empty() {
                    let body = usize::try_from(block.body).unwrap();
                    bodies.push(&bytes[body..body + block.len as usize]);
                }
            }
            Step::Event(_) => events += 1,
            Step::Block(block) => assert_eq!(block.kind == BlockKind::Trace, events == 0),
            Step::End(end) => break end,
            _ => {}
        }
    };
    assert_eq!(end, End::Complete);
    assert_eq!(events, 1);
    assert!(bodies[0].ends_with(b"first"));
}

fn event_of(step: Step<'_>) -> Option<Event<'_>> {
    if let Step::Event(event) = step { Some(event) } else { None }
}

/// The events of a stream that is complete.
fn events(bytes: &[u8]) -> Vec<Event<'_>> {
    let (events, end) = picked(bytes, event_of);
    assert_eq!(end, End::Complete);
    events
}

/// Activity ids and all that is inherited; nothing is across blocks.
#[test]
fn inheritance() {
    let mut blobs = vec![0xff, 1, 0, 5, 9, 6, 2, 8];
    blobs.extend([0x11; 16]);
    blobs.extend([0x22; 16]);
    blobs.extend([2, b'a', b'b']);
    // Nothing of its own, time going back by one; then id 0, which does not count.
    blobs.extend([0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, b'c', b'd']);
    blobs.extend([0x81, 0x00, 0x00, 0x00]);
    // Long enough for the quick way.
    blobs.extend([0x80, 0x00, 0xc8, 0x01].iter().chain([7; 200].iter()));
    let mut stream = Stream::v4();
    stream.blobs("EventBlock", &blobs);
    stream.blobs("EventBlock", &[0x01, 1, 0]);
    let bytes = stream.end();
    let events = events(&bytes);
    let [a, b, c, d, e] = events[..] else { panic!("{events:?}") };
    assert_eq!((a.metadata_id, a.sequence, a.capture_thread, a.processor, a.thread), (1, 1, 5, 9, 6));
    assert_eq!((a.stack_id, a.timestamp, a.sorted, a.payload), (2, 8, true, &b"ab"[..]));
    assert_eq!((a.activity_id, a.related_activity_id), (Guid([0x11; 16]), Guid([0x22; 16])));
    assert_eq!(a.known_processor(), Some(9));
    assert_eq!(a.without_payload(), Event { payload: &[], ..a });
    let inherited = Event { sequence: 2, timestamp: 7, sorted: false, payload: b"cd", ..a };
    assert_eq!(b, inherited);
    assert_eq!((c.metadata_id, c.sequence, c.timestamp, c.payload), (0, 2, 7, &b""[..]));
    assert_eq!((d.metadata_id, d.sequence, d.payload), (0, 2, &[7; 200][..]));
    assert_eq!((e.sequence, e.timestamp, e.activity_id, e.payload), (1, 0, Guid::NIL, &b""[..]));
}

/// V3 has the stack in the event, right behind the payload however long that is, and fills up.
#[test]
fn stacks_in_events() {
    let blob = |payload: &[u8], stack: &[u8]| {
        let mut blob =
            [&[1, 0, 0, 0, 5, 0, 0, 0, 9][..], &[0; 7 + 32], &[payload.len() as u8, 0, 0, 0], payload]
                .concat();
        blob.extend([&[stack.len() as u8, 0, 0, 0][..], stack].concat());
        blob.resize(blob.len().next_multiple_of(4), 0);
        [&(blob.len() as u32).to_le_bytes()[..], &blob].concat()
    };
    let mut stream = Stream::v3();
    let body = [blob(b"abc", &[7; 16]), blob(b"", &[]), blob(b"d", &[8; 8])].concat();
    stream.object_with(4, "EventBlock", [1, 0], &body, &[6]);
    let bytes = stream.end();
    let found: Vec<_> = events(&bytes).iter().map(|e| (e.thread, e.timestamp, e.payload, e.stack)).collect();
    assert_eq!(found, [(5, 9, &b"abc"[..], &[7; 16][..]), (5, 9, b"", &[]), (5, 9, b"d", &[8; 8])]);
    assert!(frames(&[7; 16], 8).eq([0x0707_0707_0707_0707; 2]));
    assert!(frames(&[7; 9], 4).eq([0x0707_0707; 2]));
}

/// Payloads that come after their headers, and look like headers.
#[test]
fn long_payloads() {
    let mut stream = Stream::v4();
    stream.blobs("EventBlock", &[event(0, 1, b""), event(0, 2, &[0; 200]), event(0, 3, b"c")].concat());
    let (steps, end) = behind_trace(&stream.end());
    let want =
        ["event 1 #1 []".to_owned(), format!("event 2 #2 {:?}", [0; 200]), "event 3 #3 [99]".to_owned()];
    assert_eq!((&steps[1..], end), (&want[..], End::Complete));
}

/// Whether activities are there or not says one bit for each. V6 has lists of labels there, and one bit says nothing.
#[test]
fn bits_of_activities() {
    let (a, b) = (Guid([0x11; 16]), Guid([0x22; 16]));
    let v4 = |flags: u8, ids: &[Guid]| {
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.0).collect();
        (Version::V4, [&[flags, 0][..], &ids].concat())
    };
    let v6 = |flags: u8, list: &[u8]| (Version::V6, [&[flags, 0][..], list].concat());
    let cases = [
        (v4(0x10, &[a]), (a, Guid::NIL, 0)),
        (v4(0x20, &[b]), (Guid::NIL, b, 0)),
        (v4(0x30, &[a, b]), (a, b, 0)),
        (v6(0x10, &[7]), (Guid::NIL, Guid::NIL, 7)),
        (v6(0x20, &[]), (Guid::NIL, Guid::NIL, 0)),
        (v6(0x30, &[7]), (Guid::NIL, Guid::NIL, 7)),
    ];
    for ((version, blob), want) in cases {
        // Where much follows, the second event of a block is read the quick way.
        for behind in [0, 200] {
            let body = [&blob_header(20, 1)[..], &[0, 0], &blob, &vec![0; behind]].concat();
            let mut stream = if version == Version::V6 { Stream::v6() } else { Stream::v4() };
            if version == Version::V6 {
                stream.block(2, &body);
                stream.block(0, &[]);
            } else {
                stream.object("EventBlock", &body);
                stream.0.push(1);
            }
            let events = events(&stream.0);
            let found = (events[1].activity_id, events[1].related_activity_id, events[1].label_list);
            assert_eq!((found, events.len()), (want, 2 + behind / 2), "{version} {blob:x?}");
        }
    }
}

/// The same events, compressed in a block of many, so that the quick way is taken, and one a block, so that it is not.
#[test]
fn quick_and_checked() {
    for flags in 0..=0xff_u8 {
        for wide in [false, true] {
            let number = |bits: u32| -> Vec<u8> {
                if wide {
                    let bytes = bits.div_ceil(7) as usize;
                    let mut number = vec![0xff; bytes];
                    number[bytes - 1] = if bits == 64 { 1 } else { 0x0f };
                    number
                } else {
                    vec![0xa5, 0x05]
                }
            };
            let mut blob = vec![flags];
            for (flag, bits) in [(1, 32), (2, 32), (2, 64), (2, 32), (4, 64), (8, 32), (0, 64)] {
                if flag == 0 || flags & flag != 0 {
                    blob.extend(number(bits));
                }
            }
            for flag in [0x10, 0x20] {
                if flags & flag != 0 {
                    blob.extend([flag; 16]);
                }
            }
            if flags & 0x80 != 0 {
                blob.push(1);
                blob.push(9);
            }
            let mut many = Stream::v4();
            many.blobs("EventBlock", &[blob.clone(), vec![0; 400]].concat());
            let mut one = Stream::v4();
            one.blobs("EventBlock", &blob);
            let (many, one) = (many.end(), one.end());
            let first = |bytes| {
                let (events, end) = picked(bytes, event_of);
                *events.first().unwrap_or_else(|| panic!("{flags:x} {wide}: {end}"))
            };
            assert_eq!(first(&many), first(&one), "{flags:x} {wide}");
        }
    }
}

/// What is wrong is wrong the quick way too.
#[test]
fn quickly_bad() {
    let number = |bytes: &[u8]| [&[0x01], bytes, &[0]].concat();
    let payload = |len: u8| [&[0x80, 0, len, 0x01], &[7; 200][..]].concat();
    let cases = [
        (number(&[0x81, 0x80, 0x80, 0x80, 0x00]), None),
        // A zero in two bytes.
        (number(&[0x80, 0x00]), None),
        (vec![0, 0x80, 0x00], None),
        (number(&[0xff, 0xff, 0xff, 0xff, 0x0f]), None),
        (number(&[0x81, 0x80, 0x80, 0x80, 0x80, 0x00]), Some(DecodeErrorKind::BadVarint)),
        (number(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Some(DecodeErrorKind::BadVarint)),
        (vec![0, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], None),
        (
            vec![0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            Some(DecodeErrorKind::BadVarint),
        ),
        (payload(0xc8), None),
        (payload(0xc9), Some(DecodeErrorKind::UnexpectedEnd)),
    ];
    for (blob, error) in cases {
        // The first event of a block is not read the quick way, the second is if enough follows.
        for behind in [0, 200] {
            let behind = if blob.len() > 200 { vec![] } else { vec![0; behind] };
            let mut stream = Stream::v4();
            stream.blobs("EventBlock", &[event(0, 1, b""), blob.clone(), behind].concat());
            stream.blobs("EventBlock", &event(0, 2, b""));
            let (steps, end) = behind_trace(&stream.end());
            assert_eq!(steps[1], "event 1 #1 []");
            assert_eq!(end == End::Complete, error.is_none(), "{blob:x?}: {end}");
            if let Some(error) = error {
                assert_eq!(
                    steps[2..],
                    [&format!("bad {error:?}"), "EventBlock", "event 2 #1 []"],
                    "{blob:x?}"
                );
            }
        }
    }
}

/// Lost, in how many gaps; went back, untracked.
type Lost = (u64, u64, u64, u64);

fn lost(bytes: &[u8]) -> Lost {
    lost_by_thread(bytes).0
}

fn lost_by_thread(bytes: &[u8]) -> (Lost, Vec<(u64, u64)>) {
    let mut slots = [Slot::default(); 8];
    let mut loss = Loss::new(&mut slots);
    let (found, end) = picked(bytes, |step| Some(u64::from(loss.step(&step))));
    assert_eq!((found.iter().sum(), end), (loss.lost(), End::Complete));
    let mut threads: Vec<_> = loss.threads().collect();
    threads.sort_unstable();
    ((loss.lost(), loss.gaps(), loss.went_back(), loss.untracked()), threads)
}

/// Events of (thread, number), each by itself, and sequence points.
fn numbered(version: u32, parts: &[&[(u64, u32)]]) -> Vec<u8> {
    let mut stream = if version == V3 { Stream::v3() } else { Stream::v4() };
    for (i, part) in parts.iter().enumerate() {
        if i % 2 == 0 {
            let mut body = blob_header(20, 0);
            for (thread, sequence) in *part {
                let mut blob = [0; 80];
                blob[0] = 76;
                blob[4] = 1;
                blob[8..12].copy_from_slice(&sequence.to_le_bytes());
                blob[20..28].copy_from_slice(&thread.to_le_bytes());
                body.extend(blob);
            }
            stream.object("EventBlock", &body);
        } else {
            let mut body = vec![0; 8];
            body.extend((part.len() as u32).to_le_bytes());
            for (thread, sequence) in *part {
                body.extend(thread.to_le_bytes());
                body.extend(sequence.to_le_bytes());
            }
            stream.object("SPBlock", &body);
        }
    }
    stream.end()
}

#[test]
fn loss_v4() {
    let lost = |parts: &[&[(u64, u32)]]| lost(&numbered(V4, parts));
    assert_eq!(lost(&[&[(1, 1), (1, 2), (1, 3)]]), (0, 0, 0, 0));
    // A first number says nothing; a gap does; so does a sequence point.
    assert_eq!(lost(&[&[(1, 100), (1, 101), (1, 103)], &[(1, 110)], &[(1, 112)]]), (9, 3, 0, 0));
    // A thread known by a sequence point alone.
    assert_eq!(lost(&[&[], &[(1, 50)], &[(1, 53)]]), (2, 1, 0, 0));
    // An id used again; a number that went back; and wrapped.
    assert_eq!(lost(&[&[(1, 5), (1, 1), (1, 2)]]), (0, 0, 0, 0));
    assert_eq!(lost(&[&[(1, 5), (1, 4), (1, 5)]]), (0, 0, 1, 0));
    assert_eq!(lost(&[&[(1, u32::MAX), (1, 0), (1, 3)]]), (2, 1, 0, 0));
    assert_eq!(lost(&[&[(1, 10)], &[(1, 8)], &[(1, 9)]]), (0, 0, 1, 0));
    assert_eq!(lost(&[&[(1, 10), (1, 11 + 0x7fff_ffff)]]), (0x7fff_ffff, 1, 0, 0));
    assert_eq!(lost(&[&[(1, 10), (1, 11 + 0x8000_0000)]]), (0, 0, 1, 0));
    // Threads do not mix, large ids neither.
    assert_eq!(lost(&[&[(1, 1), (1 << 40, 1), (9, 1), (1, 2), (1 << 40, 2), (9, 3)]]), (1, 1, 0, 0));
    // No slot for the eighth.
    let many: Vec<_> = (1..=8).chain(1..=8).map(|thread| (thread, 1)).collect();
    assert_eq!(lost(&[&many]), (0, 0, 0, 2));
}

#[test]
fn loss_v6() {
    let mut stream = Stream::v6();
    // Threads 5 and 6, which begin at 0; 5 loses one in front.
    stream.block(6, b"\x01\0\x05\x01\0\x06");
    stream.block(2, &[blob_header(20, 1), event(1, 5, b"")].concat());
    // 5 has come to 2, 6 to 3, without any event of it; threads are flushed then.
    stream.block(4, b"\x09\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x05\x02\x06\x03");
    // The same index, another thread: it has come to 2 when it is removed.
    stream.block(6, b"\x01\0\x05");
    stream.block(2, &[blob_header(20, 1), event(0, 5, b"")].concat());
    stream.block(7, b"\x05\x02");
    stream.block(6, b"\x01\0\x05");
    stream.block(2, &[blob_header(20, 1), event(0, 5, b"")].concat());
    // A number does not begin anew by itself.
    stream.block(2, &[blob_header(20, 1), event(0, 5, b"")].concat());
    stream.block(6, b"\x01\0\x07\x01\0\x08");
    stream.block(7, b"\x08\x02");
    // One that was never declared begins at 0 too.
    stream.block(2, &[blob_header(20, 1), event(4, 9, b"")].concat());
    stream.block(0, &[]);
    assert_eq!(lost_by_thread(&stream.0), ((1 + 3 + 1 + 2 + 4, 5, 1, 0), vec![(5, 0), (7, 0), (9, 4)]));
}
