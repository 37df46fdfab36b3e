//! Events and the headers of their blobs.
use super::*;

fn event_of(step: Record<'_>) -> Option<Event<'_>> {
    if let Record::Event(event) = step { Some(event) } else { None }
}

/// The events of a stream that is complete.
fn events(bytes: &[u8]) -> Vec<Event<'_>> {
    let (events, end) = picked(bytes, event_of);
    assert_eq!(end, End::Complete);
    events
}

/// An event inherits activity ids and all other parts that it does not state, but not from another block.
#[test]
fn inheritance() {
    let mut blobs = vec![0xff, 1, 0, 5, 9, 6, 2, 8];
    blobs.extend([0x11; 16]);
    blobs.extend([0x22; 16]);
    blobs.extend([2, b'a', b'b']);
    // An event that inherits all parts, one tick earlier; then one with id 0, which does not count.
    blobs.extend([0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, b'c', b'd']);
    blobs.extend([0x81, 0x00, 0x00, 0x00]);
    // An event that is long enough for the fast path.
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
    assert_eq!(a.without_payload(), Event { payload: &[], ..a });
    let inherited = Event { sequence: 2, timestamp: 7, sorted: false, payload: b"cd", ..a };
    assert_eq!(b, inherited);
    assert_eq!((c.metadata_id, c.sequence, c.timestamp, c.payload), (0, 2, 7, &b""[..]));
    assert_eq!((d.metadata_id, d.sequence, d.payload), (0, 2, &[7; 200][..]));
    assert_eq!((e.sequence, e.timestamp, e.activity_id, e.payload), (1, 0, Guid::NIL, &b""[..]));
}

/// V3 stores the stack in the event, directly after the payload, and pads the event.
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

/// Payloads that arrive after their headers, and that look like headers.
#[test]
fn long_payloads() {
    let mut stream = Stream::v4();
    stream.blobs("EventBlock", &[event(0, 1, b""), event(0, 2, &[0; 200]), event(0, 3, b"c")].concat());
    let (steps, end) = after_trace(&stream.end());
    let want =
        ["event 1 #1 []".to_owned(), format!("event 2 #2 {:?}", [0; 200]), "event 3 #3 [99]".to_owned()];
    assert_eq!((&steps[1..], end), (&want[..], End::Complete));
}

/// A block that ends within an event is invalid, whatever follows it: the bytes after it are not part of the event.
#[test]
fn a_block_that_ends_within_an_event() {
    // Its header has numbers of two bytes, and its payload looks like headers.
    let cut = [&[0xef, 0x81, 0x01, 0, 5, 0x89, 0x01, 6, 0x82, 0x02, 7, 0x83, 0x01][..], &[0; 131]].concat();
    for len in 0..=cut.len() {
        let mut stream = Stream::v6();
        let first = event(0, 1, b"a");
        stream.block(2, &[&blob_header(20, 1)[..], &first, &first, &cut[..len]].concat());
        stream.block(2, &[&blob_header(20, 1)[..], &event(0, 3, &[0; 200])].concat());
        stream.block(0, &[]);
        let (events, end) = picked(&stream.0, event_of);
        let is_whole = len == cut.len();
        assert_eq!(events.len(), 3 + usize::from(is_whole), "{len}");
        match end {
            End::Complete => assert!(len == 0 || is_whole, "{len}"),
            End::Corrupt { reason: Corruption::Block(BadBlock { error, .. }), .. } => {
                assert_eq!((error, len == 0 || is_whole), (DecodeErrorKind::UnexpectedEnd, false), "{len}");
            }
            end => panic!("{len} {end}"),
        }
    }
}

/// One bit for each activity id states whether it is present. V6 has label lists instead, and one of the bits has no
/// meaning.
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
        // If many bytes follow, the fast path reads the second event of a block.
        for after in [0, 200] {
            let body = [&blob_header(20, 1)[..], &[0, 0], &blob, &vec![0; after]].concat();
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
            assert_eq!((found, events.len()), (want, 2 + after / 2), "{version} {blob:x?}");
        }
    }
}

/// The same events twice: in one block, where the fast path reads them, and in a block each, where it does not.
#[test]
fn the_fast_path_finds_the_same_events() {
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

/// The fast path finds the same faults as the slow one.
#[test]
fn faults_on_the_fast_path() {
    let number = |bytes: &[u8]| [&[0x01], bytes, &[0]].concat();
    let payload = |len: u8| [&[0x80, 0, len, 0x01], &[7; 200][..]].concat();
    let cases = [
        (number(&[0x81, 0x80, 0x80, 0x80, 0x00]), None),
        // A zero in two bytes is still a zero.
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
        // The first event of a block is never read by the fast path, the second one is if enough bytes follow.
        for after in [0, 200] {
            let after = if blob.len() > 200 { vec![] } else { vec![0; after] };
            let mut stream = Stream::v4();
            stream.blobs("EventBlock", &[event(0, 1, b""), blob.clone(), after].concat());
            stream.blobs("EventBlock", &event(0, 2, b""));
            let (steps, end) = after_trace(&stream.end());
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
