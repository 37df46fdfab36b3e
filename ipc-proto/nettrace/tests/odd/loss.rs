//! The numbers of lost events.
use super::*;

/// Lost events, gaps, numbers that went back, and untracked threads.
type Lost = (u64, u64, u64, u64);

fn lost(bytes: &[u8]) -> Lost {
    lost_by_thread(bytes).0
}

fn lost_by_thread(bytes: &[u8]) -> (Lost, Vec<(u64, u64)>) {
    let mut slots = [Slot::default(); 8];
    let mut loss = LossCounter::new(&mut slots);
    let (found, end) = picked(bytes, |step| Some(u64::from(loss.record(&step))));
    assert_eq!((found.iter().sum(), end), (loss.lost_after_start(), End::Complete));
    let mut threads: Vec<_> = loss.threads().collect();
    threads.sort_unstable();
    ((loss.lost_after_start(), loss.gaps(), loss.went_back(), loss.untracked()), threads)
}

/// Returns a stream whose `parts` are by turns the events of a block and the rows of a sequence point, as (thread,
/// number).
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
    // A first number is not a loss; a gap is, also before a sequence point.
    assert_eq!(lost(&[&[(1, 100), (1, 101), (1, 103)], &[(1, 110)], &[(1, 112)]]), (9, 3, 0, 0));
    // A sequence point alone makes a thread known: the gap after it is a loss.
    assert_eq!(lost(&[&[], &[(1, 50)], &[(1, 53)]]), (2, 1, 0, 0));
    // A new thread with a used id; a number that went back; a number that wrapped.
    assert_eq!(lost(&[&[(1, 5), (1, 1), (1, 2)]]), (0, 0, 0, 0));
    assert_eq!(lost(&[&[(1, 5), (1, 4), (1, 5)]]), (0, 0, 1, 0));
    assert_eq!(lost(&[&[(1, u32::MAX), (1, 0), (1, 3)]]), (2, 1, 0, 0));
    assert_eq!(lost(&[&[(1, 10)], &[(1, 8)], &[(1, 9)]]), (0, 0, 1, 0));
    assert_eq!(lost(&[&[(1, 10), (1, 11 + 0x7fff_ffff)]]), (0x7fff_ffff, 1, 0, 0));
    assert_eq!(lost(&[&[(1, 10), (1, 11 + 0x8000_0000)]]), (0, 0, 1, 0));
    // Threads are counted apart from each other, also those with large ids.
    assert_eq!(lost(&[&[(1, 1), (1 << 40, 1), (9, 1), (1, 2), (1 << 40, 2), (9, 3)]]), (1, 1, 0, 0));
    // Eight slots, so the ninth thread is not counted.
    let many: Vec<_> = (1..=9).chain(1..=9).map(|thread| (thread, 1)).collect();
    assert_eq!(lost(&[&many]), (0, 0, 0, 2));
}

/// Events before the first number of a thread are lost. The first event shows this loss; if all events are lost, a
/// sequence point does.
#[test]
fn loss_at_start() {
    let at_start = |bytes: &[u8]| {
        let mut slots = [Slot::default(); 8];
        let mut loss = LossCounter::new(&mut slots);
        picked(bytes, |step| Some(loss.record(&step)));
        (loss.lost_after_start(), loss.lost_at_start())
    };
    let v4 = |parts: &[&[(u64, u32)]]| at_start(&numbered(V4, parts));
    assert_eq!(v4(&[&[(1, 1), (1, 2)], &[(1, 2), (2, 0)]]), (0, 0));
    assert_eq!(v4(&[&[(1, 501), (1, 502), (1, 504)]]), (1, 500));
    assert_eq!(v4(&[&[(1, 1)], &[(1, 1), (2, 500)], &[(2, 502)]]), (1, 500));
    // A thread with the id of an earlier one, and a number that no runtime reaches.
    assert_eq!(v4(&[&[(1, 9), (1, 1), (1, 2)]]), (0, 8));
    assert_eq!(v4(&[&[(1, u32::MAX), (1, 0)]]), (0, 0));
    assert_eq!(v4(&[&[(1, 1 << 31)], &[(2, 0x7fff_ffff)]]), (0, 0xffff_fffe));
    assert_eq!(at_start(&numbered(V3, &[&[(1, 501)]])), (0, 0));
    let mut stream = Stream::v6();
    stream.block(2, &[blob_header(20, 1), event(4, 9, b"")].concat());
    assert_eq!(at_start(&stream.0), (0, 0));
}

#[test]
fn loss_v6() {
    let mut stream = Stream::v6();
    // Threads 5 and 6 begin at 0; the first event of thread 5 is lost.
    stream.block(6, b"\x01\0\x05\x01\0\x06");
    stream.block(2, &[blob_header(20, 1), event(1, 5, b"")].concat());
    // The sequence point states 2 for thread 5 and 3 for thread 6, which had no event. It then removes all threads.
    stream.block(4, b"\x09\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x05\x02\x06\x03");
    // A new thread with index 5: its last number is 2 when it is removed.
    stream.block(6, b"\x01\0\x05");
    stream.block(2, &[blob_header(20, 1), event(0, 5, b"")].concat());
    stream.block(7, b"\x05\x02");
    stream.block(6, b"\x01\0\x05");
    stream.block(2, &[blob_header(20, 1), event(0, 5, b"")].concat());
    // In V6, a number starts again only if a record declares a new thread.
    stream.block(2, &[blob_header(20, 1), event(0, 5, b"")].concat());
    stream.block(6, b"\x01\0\x07\x01\0\x08");
    stream.block(7, b"\x08\x02");
    // A thread that was never declared may have begun with any number.
    stream.block(2, &[blob_header(20, 1), event(4, 9, b"")].concat());
    stream.block(0, &[]);
    assert_eq!(lost_by_thread(&stream.0), ((1 + 3 + 1 + 2, 4, 1, 0), vec![(5, 0), (7, 0), (9, 0)]));
}
