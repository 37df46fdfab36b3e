//! Headers, blocks, tails and limits.
use super::*;

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
    stream.0.extend(b"and after it");
    let (steps, end) = read(&stream.0);
    assert_eq!(steps, ["Trace", "trace V6.99 pid Some(77)", "EndOfStream"]);
    assert_eq!(end, End::Complete);
}

/// The end of a truncated stream is reported in terms of its structure.
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
    // Version 2 was the last version in which the object `Trace` had this name.
    for (version, reason) in [(2, Corruption::Version(2)), (3, Corruption::Object)] {
        let mut stream = Stream(Stream::v3().0[..24].to_vec());
        stream.object_with(4, "Microsoft.DotNet.Runtime.EventPipeFile", [version, 0], &[0; 32], &[6]);
        let offset = if version == 2 { 27 } else { 24 };
        assert_eq!(read(&stream.0), (vec![], End::Corrupt { offset, reason }));
    }
    // Another block before the block `Trace`: in V6, then in V4.
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
    // A block header that is longer than today's, and has unknown flags.
    stream.object("EventBlock", &[blob_header(33, 0xfff1), event(0, 5, b"a")].concat());
    stream.object("StackBlock", &[1, 0, 0, 0, 0, 0, 0, 0]);
    stream.object("StackBlock", &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb]);
    // Data that a later version might add.
    stream.object_with(
        5,
        "SPBlock",
        [9, 2],
        &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        b"\x08x\x09xx\x0d\x02\0\0\0ab\x06",
    );
    stream.object_with(5, "EventBlock", [2, 0], &[blob_header(20, 1), event(1, 5, b"b")].concat(), &[6]);
    stream.object("NewBlock", &[&b"\x0e\x2c\x01\0\0"[..], &[0xff; 300]].concat());
    stream.blobs("MetadataBlock", &[0xc0, 1, 1, b'm']);
    stream.0.extend([1, 0, 0, 0]);
    let (steps, end) = after_trace(&stream.0);
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
        let (steps, end) = after_trace(&stream.end());
        let (head, rest) = steps.split_first().unwrap();
        assert_eq!(head, name);
        assert_eq!(&rest[..good.len()], good, "{name}");
        assert_eq!(rest[good.len()..], [&format!("bad {error:?}"), "EventBlock", "event 9 #1 [111, 110]"]);
        assert!(
            matches!(end, End::Corrupt { offset, reason: Corruption::Block(BadBlock { .. }) } if offset == first),
            "{name} {end}"
        );
    }
    // Of two bad blocks the first is reported, even if the stream is truncated after them.
    let mut stream = Stream::v4();
    let first = bad(&mut stream, "EventBlock", &[]);
    bad(&mut stream, "StackBlock", &[]);
    assert!(matches!(read(&stream.0).1, End::Corrupt { offset, .. } if offset == first));
}

/// An unknown object has a name directly after its block record.
#[test]
fn names_of_objects() {
    let mut stream = Stream::v4();
    stream.object("NewBlock", &[8, 0xff]);
    stream.object("", &[]);
    let bytes = stream.end();
    let mut parser = Parser::new(Limits::default());
    let (mut names, mut at) = (Vec::new(), 0);
    loop {
        match parser.next(&bytes[at..]) {
            Record::Block(_) => names.push(parser.object_name(&bytes[at..]).map(<[u8]>::to_vec)),
            Record::End(_) => break,
            _ => at += parser.release(),
        }
    }
    assert_eq!(names, [Some(b"Trace".to_vec()), Some(b"NewBlock".to_vec()), Some(Vec::new())]);
}

#[test]
fn bad_framing() {
    // The tag after a block; the begin tag of the other version; a name without end; an unsupported version.
    let mut stream = Stream::v4();
    stream.object_with(5, "EventBlock", [2, 2], &blob_header(20, 1), &[15]);
    let at = stream.0.len() as u64 - 1;
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: at, reason: Corruption::Tag(15) });
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
    assert_eq!(Corruption::Version(4).to_string(), "version 4 after the header of another");
    let mut stream = Stream::v4();
    let at = stream.object("EventBlock", &[]);
    stream.0[at as usize + 26..][..4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let reason = Corruption::TooLong { len: 0x7fff_ffff };
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: at, reason });
    // The `Trace` block itself is malformed.
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
    // Threads: a name, ids, a pair; an unknown entry hides the entries after it in its row.
    stream.block(6, b"\x0e\0\x05\x01\x02hi\x02\x07\x03\x80\x01\x04\x01k\0\x06\0\x06\x09\x01\x02hi\x01\0\x07");
    stream.block(8, b"\x01\0\0\0\x02\0\0\0\x07\x01\x86\x01k\x03\x85\x01a\x01b");
    stream.block(3, b"\x02\0zz\x01\0m");
    stream.block(3, b"\x02\0zz");
    stream.block(2, &[blob_header(20, 1), vec![0xbf, 1, 0, 5, 9, 6, 2, 8, 1, 3, b'x', b'y', b'z']].concat());
    stream.block(4, b"\x09\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x05\x02\x06\x01");
    stream.block(7, b"\x05\x02\x80\x01\x03");
    stream.block(0, &[]);
    let (steps, end) = after_trace(&stream.0);
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

/// Lists that are read again from their bytes in the stream are the same lists.
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

/// Data of later versions after a body has the types of the format, and is limited to the length of a block.
#[test]
fn tails() {
    let tail =
        [&b"\x08a\x09ab\x0aabcd\x0babcdefgh\x0d\x03\0\0\0abc\x0e"[..], &[100, 0, 0, 0], &[6; 100], &[6]];
    let mut stream = Stream::v4();
    stream.object_with(5, "StackBlock", [2, 2], &[0; 8], &tail.concat());
    // The offset of the length of the last value, which is the longest one.
    let offset = stream.0.len() as u64 - 4 - 100 - 1;
    let len = tail.concat().len() as u32 - 1;
    stream.blobs("EventBlock", &event(0, 1, b""));
    let (steps, end) = after_trace(&stream.0);
    assert_eq!(steps, ["StackBlock", "EventBlock", "event 1 #1 []"]);
    assert!(matches!(end, End::Truncated { .. }));
    let bytes = stream.end();
    for (block, want) in
        [(len, End::Complete), (len - 1, End::Corrupt { offset, reason: Corruption::TooLong { len: 100 } })]
    {
        assert_eq!(end_of(&bytes, Limits { block, ..Limits::default() }), want);
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

/// A record longer than the limit makes its block bad.
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
            Record::More { needed } => {
                window.drain(..parser.release());
                assert!(needed <= 99);
                let Some(byte) = rest.next() else { break parser.finish(&window) };
                window.push(*byte);
            }
            Record::End(end) => break end,
            Record::Event(event) => events.push(event.payload.len()),
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
            Record::Block(block) if block.kind == BlockKind::Event && bodies.is_empty() => {
                let body = usize::try_from(block.body).unwrap();
                bodies.push(&bytes[body..body + block.len as usize]);
                parser.skip_block();
            }
            Record::Event(_) => events += 1,
            Record::Block(Block { kind: BlockKind::Trace, .. }) => assert_eq!(events, 0),
            Record::Block(Block { kind: BlockKind::Stack, .. }) => assert_eq!(events, 1),
            Record::End(end) => break end,
            _ => {}
        }
    };
    assert_eq!(end, End::Complete);
    assert_eq!(events, 1);
    assert!(bodies[0].ends_with(b"first"));
}

/// An event block has a time range if it states a possible one.
#[test]
fn time_ranges() {
    let block = |name: &str, first: u64, last: u64| {
        let mut body = blob_header(20, 1);
        body[4..12].copy_from_slice(&first.to_le_bytes());
        body[12..20].copy_from_slice(&last.to_le_bytes());
        let mut stream = Stream::v4();
        stream.object(name, &[&body[..], &event(0, 1, b"")].concat());
        let (v4, _) = after_trace(&stream.end());
        let mut stream = Stream::v6();
        stream.block(if name == "EventBlock" { 2 } else { 9 }, &[&body[..], &event(0, 1, b"")].concat());
        let (v6, _) = after_trace(&stream.0);
        let ranges = |records: Vec<String>| records.iter().filter(|record| record.contains("first")).count();
        (v4.get(1).cloned().unwrap_or_default(), ranges(v4), ranges(v6))
    };
    for (first, last, is_possible) in
        [(7, 9, true), (9, 9, true), (0, 9, true), (0, u64::MAX, true), (0, 0, false), (9, 8, false)]
    {
        let (second, v4, v6) = block("EventBlock", first, last);
        assert_eq!((v4, v6), (is_possible.into(), is_possible.into()), "{first} to {last}");
        if is_possible {
            assert_eq!(second, format!("TimeRange(TimeRange {{ first: {first}, last: {last} }})"));
        }
        let (_, v4, v6) = block("MetadataBlock", first, last);
        assert_eq!((v4, v6), (0, 0));
    }
}
