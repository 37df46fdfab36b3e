//! Objects and blocks of unknown names, of every form, between all blocks, whole, in pieces, and cut off.
use super::*;

/// A value of each tag, with its tag.
fn values(begin: u8) -> Vec<Vec<u8>> {
    let long = [&[14][..], &300u32.to_le_bytes(), &[6; 300]].concat();
    let type_object = [&[begin, 1][..], &type_content("T")].concat();
    vec![
        vec![1],
        vec![2, 6, 6, 6, 6],
        [&[3, 0, 0, 0, 0][..], &type_object].concat(),
        vec![7, 1, 0, 0, 0],
        vec![8, 6],
        vec![9, 6, 1],
        vec![10, 6, 1, 0, 0],
        vec![11, 6, 5, 5, 1, 0, 0, 0, 0],
        vec![12, 9, 0, 0, 0],
        b"\x0d\x03\0\0\0abc".to_vec(),
        vec![13, 0, 0, 0, 0],
        vec![13, 0xff, 0xff, 0xff, 0xff],
        vec![14, 0, 0, 0, 0],
        long,
    ]
}

/// The content of a type object after its tags, with its end tag.
fn type_content(name: &str) -> Vec<u8> {
    [&[9, 0, 0, 0, 7, 0, 0, 0][..], &(name.len() as u32).to_le_bytes(), name.as_bytes(), &[6]].concat()
}

/// An object that begins with its type, and has these values.
fn nested(begin: u8, values: &[u8]) -> Vec<u8> {
    [&[begin, begin, 1][..], &type_content("Inner"), values, &[6]].concat()
}

/// The contents of objects of an unknown name: every value alone, all of them, none, and objects in objects.
fn contents_of_unknown(begin: u8) -> Vec<Vec<u8>> {
    let values = values(begin);
    let all = values.concat();
    let mut contents = vec![Vec::new(), all.clone()];
    contents.extend(values);
    contents.push(nested(begin, &[]));
    contents.push([nested(begin, &nested(begin, &all)), all].concat());
    // Objects without a type, and one that begins with a null reference.
    contents.push(vec![begin, 8, 7, begin, 6, begin, 1, 6, 6]);
    contents.push((0..100).flat_map(|_| [begin, 8, 6]).chain([6; 100]).collect());
    contents
}

impl Stream {
    /// An object of an unknown name, which only a reader of a later version can read.
    fn unknown(&mut self, begin: u8, values: &[u8]) {
        self.0.extend([begin, begin, 1]);
        self.0.extend(type_content("NewBlock"));
        self.0.extend(values);
        self.0.push(6);
    }
}

/// A stream of this version with blocks of all kinds. `between` is called before each of them, and before the end.
fn with_between(version: u32, mut between: impl FnMut(usize, &mut Stream)) -> Vec<u8> {
    let metadata = [blob_header(20, 1), vec![0xc0, 1, 1, b'm']].concat();
    let events = [blob_header(20, 1), event(0, 1, b"ab"), event(0, 1, b"c")].concat();
    let stacks = vec![1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4];
    let mut point = vec![7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    if version == V4 {
        point.extend([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        let blocks =
            [("MetadataBlock", metadata), ("StackBlock", stacks), ("EventBlock", events), ("SPBlock", point)];
        let mut stream = Stream::v4();
        for (at, (name, body)) in blocks.iter().enumerate() {
            between(at, &mut stream);
            stream.object(name, body);
        }
        between(blocks.len(), &mut stream);
        return stream.end();
    }
    if version == V3 {
        let mut blob = vec![0; 60];
        blob[0] = 57;
        blob[4] = 1;
        blob.extend(b"\0");
        let mut stream = Stream::v3();
        for at in 0..2 {
            between(at, &mut stream);
            stream.object_with(4, "EventBlock", [1, 0], &blob, &[6]);
        }
        between(2, &mut stream);
        return stream.end();
    }
    point.splice(8..8, [0; 4]);
    point.extend([1, 2]);
    let metadata = b"\0\0\x01\0m".to_vec();
    let threads = b"\x01\0\x05".to_vec();
    let labels = b"\x01\0\0\0\x01\0\0\0\x87\x01".to_vec();
    let blocks = [(6, threads), (3, metadata), (5, stacks), (8, labels), (2, events), (4, point)];
    let mut stream = Stream::v6();
    for (at, (kind, body)) in blocks.iter().enumerate() {
        between(at, &mut stream);
        stream.block(*kind, body);
    }
    between(blocks.len(), &mut stream);
    stream.block(0, &[]);
    stream.0
}

/// Returns the records of a stream in memory without the blocks of unknown kinds, and the end.
fn known(bytes: &[u8]) -> (Vec<Record<'_>>, End) {
    let unknown = |record: &Record<'_>| matches!(record, Record::Block(block) if matches!(block.kind, BlockKind::Unknown(_)));
    picked(bytes, |record| Some(record).filter(|record| !unknown(record)))
}

/// Returns the records without the offsets of blocks, which differ if an object precedes the blocks.
fn contents<'a>(records: &[Record<'a>]) -> Vec<Record<'a>> {
    let content = |record: &Record<'a>| match record {
        Record::Block(block) => Record::Block(Block { offset: 0, body: 0, ..*block }),
        record => *record,
    };
    records.iter().map(content).collect()
}

/// Parses the first `at` bytes of a stream, then the whole stream. Checks that both parts together have the `records`
/// of the stream.
fn check_at(records: &[Record<'_>], bytes: &[u8], at: usize, what: &str) {
    let (mut parser, mut found) = (Parser::new(Limits::default()), 0);
    let mut window = &bytes[..at];
    let end = loop {
        match parser.next(window) {
            Record::More { .. } if window.len() < bytes.len() => {
                let cut = parser.finish(window);
                assert!(!matches!(cut, End::Corrupt { .. }), "{what}, cut at {at}: {cut}");
                assert!(cut != End::Complete || found == records.len(), "{what}, cut at {at}");
                window = bytes;
            }
            Record::More { .. } => break parser.finish(window),
            Record::End(end) => break end,
            record => {
                assert_eq!(Some(&record), records.get(found), "{what}, split at {at}");
                found += 1;
            }
        }
    };
    assert_eq!((found, end), (records.len(), End::Complete), "{what}, split at {at}");
}

/// Checks a stream that has unknown objects: whole, in pieces, split at every byte, and cut at every byte.
fn check(bytes: &[u8], what: &str) {
    assert_eq!(read(bytes).1, End::Complete, "{what}");
    let (records, _) = picked(bytes, Some);
    for at in 0..=bytes.len() {
        check_at(&records, bytes, at, what);
    }
}

#[test]
fn unknown_objects() {
    for (version, begin, places) in [(V3, 4, 3), (V4, 5, 5)] {
        let plain = with_between(version, |_, _| ());
        let (plain, _) = known(&plain);
        let plain = contents(&plain);
        for (n, values) in contents_of_unknown(begin).iter().enumerate() {
            for place in 0..places {
                let bytes = with_between(version, |at, stream| {
                    if at == place {
                        stream.unknown(begin, values);
                    }
                });
                let what = || format!("V{version}, before block {place}: {values:?}");
                let (records, end) = known(&bytes);
                assert_eq!((contents(&records), end), (plain.clone(), End::Complete), "{}", what());
                if bytes.len() < 1000 && n % places == place {
                    check(&bytes, &what());
                }
            }
        }
        // All tagged values, in every position between two objects.
        let bytes = with_between(version, |_, stream| {
            contents_of_unknown(begin).iter().for_each(|values| stream.unknown(begin, values));
        });
        let (records, end) = known(&bytes);
        assert_eq!((contents(&records), end), (plain, End::Complete), "V{version}");
    }
}

/// Blocks of V6 state their length, so an unknown one is skipped whatever it contains.
#[test]
fn unknown_blocks_v6() {
    let plain = with_between(6, |_, _| ());
    let (plain, _) = known(&plain);
    let plain = contents(&plain);
    let values = values(5);
    for kind in [9, 0x7f, 0xff] {
        for body in [&[][..], &[0; 5], &values.concat()] {
            for place in 0..=6 {
                let bytes = with_between(6, |at, stream| {
                    if at == place {
                        stream.block(kind, body);
                    }
                });
                let what = format!("kind {kind}, before block {place}: {body:?}");
                let (records, end) = known(&bytes);
                assert_eq!((contents(&records), end), (plain.clone(), End::Complete), "{what}");
                check(&bytes, &what);
            }
        }
    }
}

/// An object that needs a later reader ends the stream only if this reader would have to read it.
#[test]
fn minimum_versions() {
    for minimum in [0, 1, 2, 3, 5, u32::MAX] {
        let mut stream = Stream::v4();
        stream.object_with(5, "NewBlock", [minimum, minimum], &[7; 30], &[6]);
        stream.blobs("EventBlock", &event(0, 1, b"x"));
        let (steps, end) = after_trace(&stream.end());
        assert_eq!((steps.len(), end), (3, End::Complete), "{minimum}");
        let mut stream = Stream::v4();
        let at = stream.object_with(5, "StackBlock", [minimum, minimum], &[0; 8], &[6]);
        let end = read(&stream.end()).1;
        let refused = End::Corrupt { offset: at + 7, reason: Corruption::Minimum(minimum) };
        assert_eq!(end, if minimum > 2 { refused } else { End::Complete }, "{minimum}");
    }
    // The first object must have a known name.
    let mut stream = Stream(Stream::v4().0[..32].to_vec());
    stream.unknown(5, &[]);
    assert_eq!(read(&stream.end()).1, End::Corrupt { offset: 32, reason: Corruption::Object });
}

/// An object of an unknown name that is not tagged values ends the stream at its first bad byte.
#[test]
fn unreadable_objects() {
    let too_long = Corruption::TooLong { len: u32::MAX };
    for (bad, at, reason) in [
        (&[0xff; 40][..], 0, Corruption::Tag(0xff)),
        (&[0; 40], 0, Corruption::Tag(0)),
        // The first tag 6 ends the object.
        (&[6, 6, 6, 6], 1, Corruption::Tag(6)),
        (&[8, 1, 0], 2, Corruption::Tag(0)),
        (&[14, 0xff, 0xff, 0xff, 0xff], 1, too_long),
    ] {
        let mut stream = Stream::v4();
        stream.blobs("EventBlock", &event(0, 1, b"x"));
        // The object begins with three tags and its type.
        let offset = stream.0.len() as u64 + 3 + type_content("NewBlock").len() as u64 + at;
        stream.unknown(5, bad);
        stream.0.extend([0xee; 4]);
        let (steps, end) = after_trace(&stream.end());
        assert_eq!(steps, ["EventBlock", "event 1 #1 [120]", "unknown 0"], "{bad:?}");
        assert_eq!(end, End::Corrupt { offset, reason }, "{bad:?}");
    }
}

/// The values of an object have the length of a block at most, all together.
#[test]
fn limit_of_values() {
    let long = [&[14][..], &80u32.to_le_bytes(), &[0; 80]].concat();
    let end_with = |values: &[u8], name: Option<&str>, block| {
        let mut stream = Stream::v4();
        match name {
            None => stream.unknown(5, values),
            Some(name) => {
                stream.object_with(5, name, [2, 2], &[0; 8], &[values, &[6]].concat());
            }
        }
        // The last value and the end tag have three bytes.
        let offset = stream.0.len() as u64 - 3;
        (end_of(&stream.end(), Limits { block, ..Limits::default() }), offset)
    };
    let values = [&long[..], &[8, 8]].concat();
    for name in [None, Some("StackBlock")] {
        assert_eq!(end_with(&values, name, 87).0, End::Complete, "{name:?}");
        let (end, offset) = end_with(&values, name, 86);
        assert_eq!(end, End::Corrupt { offset, reason: Corruption::Tag(8) }, "{name:?}");
    }
}
