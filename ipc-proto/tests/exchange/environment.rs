//! [`ReceiveEnvironment`], [`SendEnvironment`] and [`EnvironmentEntry`].
use super::*;

fn announced(incoming_bytes: usize) -> ProcessEnvironment {
    ProcessEnvironment { incoming_bytes: u32::try_from(incoming_bytes).unwrap(), future: 0 }
}

/// Receives `bytes`, announced as `len` bytes, with a buffer of `room` bytes, and returns the entries.
fn receive(bytes: &[u8], len: usize, room: usize) -> Result<Vec<String>, ProtocolError> {
    let mut buf = vec![0; room];
    let mut receive = ReceiveEnvironment::new(&announced(len), u32::MAX, &mut buf)?;
    let (mut wire, mut entries) = (bytes, Vec::new());
    while !receive.is_finished() {
        feed(&mut receive, &mut wire, &mut iter::empty())?;
        while let Some(entry) = receive.next_entry()? {
            entries.push(entry.to_string());
        }
        assert!(receive.is_finished() || matches!(receive.step(), Step::Receive(_)), "stands still");
    }
    Ok(entries)
}

/// Encodes a list of these entries, with `count` as the number of entries, right or wrong.
fn list(count: u32, entries: &[&str]) -> Vec<u8> {
    let texts: Vec<Text<'_>> = entries.iter().map(|entry| Text::from(*entry)).collect();
    let mut bytes = encode_to_vec(Code::OK, &Array::from(&texts[..])).unwrap().split_off(20);
    bytes[..4].copy_from_slice(&count.to_le_bytes());
    bytes
}

#[test]
fn longer_than_any_message() {
    let entries: Vec<String> = (0..3_000).map(|i| format!("NAME_{i}=value of {i}")).collect();
    let texts: Vec<Text<'_>> = entries.iter().map(|entry| Text::from(&entry[..])).collect();
    let mut piece = [0; 1000];
    let mut send = SendEnvironment::new(Array::from(&texts[..]), &mut piece).unwrap();
    let len = usize::try_from(send.announcement().incoming_bytes).unwrap();
    let bytes = take(&mut send, &mut iter::repeat(999), usize::MAX);
    assert_eq!(bytes.len(), len);
    assert!(len > 2 * Message::MAX_LEN);
    assert_eq!(receive(&bytes, len, 64), Ok(entries));
}

/// For each piece, only the entries in the piece are encoded, not the whole environment.
#[test]
fn the_work_is_proportional_to_the_length() {
    let entries: Vec<String> = (0..1_000).map(|i| format!("NAME_{i}=é value of {i}")).collect();
    let texts: Vec<Text<'_>> = entries.iter().map(|entry| Text::from(&entry[..])).collect();
    let bytes = list(1_000, &entries.iter().map(String::as_str).collect::<Vec<_>>());
    for entries in [Array::from(&texts[..]), wire::decode(&bytes).unwrap()] {
        for room in [1, 3, 16, 100, 4096] {
            let mut piece = vec![0; room];
            let before = wire::steps::counted();
            let mut send = SendEnvironment::new(entries, &mut piece).unwrap();
            assert!(take(&mut send, &mut iter::repeat(room), usize::MAX) == bytes, "{room}");
            let taken = wire::steps::counted() - before;
            // An entry that does not fit into a piece is encoded once for each of its pieces.
            let turns = 3 + entries.iter().map(|entry| entry.encoded_len().div_ceil(room)).max().unwrap();
            assert!(taken <= (turns * bytes.len()) as u64, "{taken} steps with {room} bytes");
        }
    }
}

#[test]
fn empty() {
    assert_eq!(receive(&[0; 4], 4, 4), Ok(vec![]));
    let mut piece = [0; 1];
    let mut send = SendEnvironment::new(Array::EMPTY, &mut piece).unwrap();
    assert_eq!(send.announcement().incoming_bytes, 4);
    assert_eq!(take(&mut send, &mut iter::empty(), usize::MAX), [0; 4]);
}

#[test]
fn buffers() {
    let bytes = list(2, &["A=b", "LONG=entry"]);
    let too_small = |needed| Err(ProtocolError::BufferTooSmall { needed });
    let no_room = ReceiveEnvironment::new(&announced(4), u32::MAX, &mut [0; 3]).map(|_| ());
    assert_eq!(no_room, Err(ProtocolError::BufferTooSmall { needed: 4 }));
    assert_eq!(receive(&bytes, bytes.len(), 4 + 2 * 11 - 1), too_small(4 + 2 * 11));
    assert_eq!(receive(&bytes, bytes.len(), 4 + 2 * 11).map(|entries| entries.len()), Ok(2));
    let no_room = SendEnvironment::new(Array::EMPTY, &mut []).map(|_| ());
    assert_eq!(no_room, Err(EncodeError::BufferTooSmall { needed: 1 }));
}

#[test]
fn limit() {
    let new = |len, limit| ReceiveEnvironment::new(&announced(len), limit, &mut [0; 8]).map(|_| ());
    assert_eq!(new(1000, 1000), Ok(()));
    assert_eq!(new(1001, 1000), Err(ProtocolError::TooLong { len: 1001, limit: 1000 }));
}

#[test]
fn wrong_count_of_entries() {
    let wrong = |kind, offset| Err(decode_error(kind, offset).into());
    for room in [16, 1000] {
        let more = list(3, &["A=b", "C"]);
        assert_eq!(receive(&more, more.len(), room), wrong(DecodeErrorKind::UnexpectedEnd, 24));
        let most = list(u32::MAX, &["A=b", "C"]);
        assert_eq!(receive(&most, most.len(), room), wrong(DecodeErrorKind::UnexpectedEnd, 24));
        let fewer = list(1, &["A=b", "C"]);
        assert_eq!(receive(&fewer, fewer.len(), room), wrong(DecodeErrorKind::TrailingBytes, 16));
        let none = list(0, &["A=b"]);
        assert_eq!(receive(&none, none.len(), room), wrong(DecodeErrorKind::TrailingBytes, 4));
    }
    assert_eq!(receive(&[], 0, 16), wrong(DecodeErrorKind::UnexpectedEnd, 0));
    assert_eq!(receive(&[9; 3], 3, 16), wrong(DecodeErrorKind::UnexpectedEnd, 0));
}

#[test]
fn bytes_after_the_last_entry_are_not_the_end() {
    let bytes = list(1, &["A=b", "C"]);
    for room in [12, 100] {
        let mut buf = vec![0; room];
        let mut receive = ReceiveEnvironment::new(&announced(bytes.len()), u32::MAX, &mut buf).unwrap();
        let mut wire = &bytes[..];
        feed(&mut receive, &mut wire, &mut iter::empty()).unwrap();
        if room == 12 {
            assert_eq!(receive.next_entry(), Ok(None)); // `next_entry` makes room for this entry only
            feed(&mut receive, &mut wire, &mut iter::repeat(4)).unwrap();
        }
        assert_eq!(receive.next_entry().unwrap().unwrap(), "A=b");
        assert!(!receive.is_finished(), "{room}");
    }
}

#[test]
fn wrong_length_of_an_entry() {
    let mut bytes = list(2, &["A=b", "C"]);
    bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let too_long = decode_error(DecodeErrorKind::UnexpectedEnd, 4).into();
    assert_eq!(receive(&bytes, bytes.len(), 64), Err(too_long));
    bytes[4..8].copy_from_slice(&3u32.to_le_bytes());
    let unterminated = decode_error(DecodeErrorKind::Unterminated, 12).into();
    assert_eq!(receive(&bytes, bytes.len(), 64), Err(unterminated));
    bytes[12..14].copy_from_slice(&0x4100u16.to_le_bytes()); // only the low byte of the unit is 0
    assert_eq!(receive(&bytes, bytes.len(), 64), Err(unterminated));
}

#[test]
fn cut_off() {
    let bytes = list(2, &["A=b", "C"]);
    for received in 0..bytes.len() {
        let closed = Err(ProtocolError::Closed { received });
        assert_eq!(receive(&bytes[..received], bytes.len(), 12), closed);
    }
}

#[test]
fn a_peer_that_stops_reading() {
    let mut piece = [0; 3];
    let mut send = SendEnvironment::new(Array::EMPTY, &mut piece).unwrap();
    assert_eq!(take(&mut send, &mut iter::repeat(2), 2), [0; 2]); // then the peer closes
    send.advance(0).unwrap();
    assert!(matches!(send.step(), Step::Done), "does not end");
}

#[test]
fn a_larger_buffer_takes_over() {
    let bytes = list(3, &["A=b", "LONG=entry", "C"]);
    for cut in 4..12 {
        let mut buf = vec![0; cut + 8];
        let mut receive = ReceiveEnvironment::new(&announced(bytes.len()), u32::MAX, &mut buf).unwrap();
        let (mut wire, mut entries) = (&bytes[..], Vec::new());
        let error = loop {
            feed(&mut receive, &mut wire, &mut iter::repeat(cut)).unwrap();
            match receive.next_entry() {
                Ok(entry) => entries.extend(entry.map(|entry| entry.to_string())),
                Err(error) => break error,
            }
        };
        assert_eq!(error, ProtocolError::BufferTooSmall { needed: 4 + 2 * 11 });
        let suspended = receive.suspend();
        let smaller = suspended.resume(&mut [0; 3]).map(|_| ());
        assert!(matches!(smaller, Err(ProtocolError::BufferTooSmall { needed: 4.. })), "{smaller:?}");
        buf.resize(64, 0xa5);
        let mut receive = suspended.resume(&mut buf).unwrap();
        while !receive.is_finished() {
            feed(&mut receive, &mut wire, &mut iter::repeat(cut)).unwrap();
            entries.extend(receive.next_entry().unwrap().map(|entry| entry.to_string()));
        }
        assert_eq!(entries, ["A=b", "LONG=entry", "C"], "{cut}");
    }
}

#[test]
fn a_peer_that_closes_after_the_last_entry() {
    let bytes = list(1, &["A=b"]);
    let mut buf = [0; 64];
    let mut receive = ReceiveEnvironment::new(&announced(bytes.len()), u32::MAX, &mut buf).unwrap();
    feed(&mut receive, &mut &bytes[..], &mut iter::empty()).unwrap();
    assert_eq!(receive.advance(0), Ok(()));
    assert_eq!(receive.next_entry().unwrap().unwrap(), "A=b");
}

/// The name of an entry ends at the first `=` that is not the first character, in each form of a text.
#[test]
fn entry_is_split_into_name_and_value() {
    let lone = [0xd800, b'='.into(), 0xdc00];
    let table = [
        ("", None),
        ("=", None),
        ("odd", None),
        ("=odd", None),
        ("==", Some(("=", ""))),
        ("===", Some(("=", "="))),
        ("A=", Some(("A", ""))),
        ("A=1=2", Some(("A", "1=2"))),
        ("=C:=C:\\x", Some(("=C:", "C:\\x"))),
        ("é\u{1f600}=ſ\u{1f600}", Some(("é\u{1f600}", "ſ\u{1f600}"))),
    ];
    for (entry, expected) in table {
        let units: Vec<u16> = entry.encode_utf16().collect();
        let bytes = list(1, &[entry]).split_off(4);
        let wire: Text<'_> = wire::decode(&bytes).unwrap();
        assert!(wire.as_wire().is_some());
        for form in [Text::from(entry), Text::from_utf16(&units), wire] {
            let split = EnvironmentEntry::parse(form);
            let expected =
                expected.map(|(name, value)| EnvironmentEntry { name: name.into(), value: value.into() });
            assert_eq!(split, expected, "{form:?}");
            assert!(split.is_none_or(|split| split.to_string() == entry));
        }
    }
    assert_eq!(EnvironmentEntry::parse(Text::NULL), None);
    let split = EnvironmentEntry::parse(Text::from_utf16(&lone)).unwrap();
    assert_eq!((split.name, split.value), (Text::from_utf16(&lone[..1]), Text::from_utf16(&lone[2..])));
}
