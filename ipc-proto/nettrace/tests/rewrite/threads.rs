//! Threads, sequence points, and records of single streams.
use super::*;

/// A thread of which only the losses remain is introduced first, by a number that is not a loss. It is not 0, which
/// Microsoft's reader takes for "not seen yet".
#[test]
fn threads_are_introduced() {
    let event = |capture_thread, sequence, metadata_id| Event {
        capture_thread,
        sequence,
        metadata_id,
        sorted: true,
        ..Event::default()
    };
    let row = |thread, sequence| ThreadSequence { thread, sequence };
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        event(&event(7, 1, 2));
        event(&event(7, 5, 2));
        event(&event(8, 1, 2));
        event(&event(8, 3, 2));
        event(&event(9, 1, 1));
        sequence_point(&SequencePoint::default());
        thread_sequence(&row(7, 5));
        thread_sequence(&row(9, 1));
    );
    let only = [EventSelector { provider: "p", event_id: Some(1), event_name: None }];
    for (version, want) in [
        (
            Version::V4,
            vec![
                vec![(7, 1 << 31), (9, 1)],
                vec![(8, 1 << 31)],
                vec![(7, (1 << 31) + 3), (8, (1 << 31) + 1)],
            ],
        ),
        (Version::V6, vec![vec![(9, 1)], vec![(7, 3), (8, 1)]]),
    ] {
        let options = RewriteOptions { only: &only, version: Some(version), ..options() };
        let (result, _) = rewrite(&source, options).unwrap();
        let mut got = points(&result);
        got.iter_mut().for_each(|rows| rows.sort_unstable());
        assert_eq!(got, want, "{version}");
        assert_eq!((read(&result).lost, read(&source).lost), (4, 4));
    }
}

/// Ids that start again after a sequence point do so in the result, or get other numbers there.
#[test]
fn ids_that_start_again() {
    let (a, b) = (Guid([1; 16]), Guid([2; 16]));
    let event = |sequence, timestamp| Event {
        metadata_id: 1,
        sequence,
        timestamp,
        stack_id: 1,
        label_list: 1,
        sorted: true,
        ..Event::default()
    };
    let point = SequencePoint { timestamp: 5, flags: 3, threads: 0 };
    let source = stream!(Version::V6,
        describe(&metadata(1, 1));
        thread(0, [ThreadEntry::ThreadId(70)]);
        stack(&Stack { id: 1, bytes: &[1; 8] });
        label_list(1, [Label::ActivityId(a)]);
        event(&event(1, 2));
        sequence_point(&point);
        describe(&metadata(1, 2));
        thread(0, [ThreadEntry::ThreadId(80)]);
        stack(&Stack { id: 1, bytes: &[2; 8] });
        label_list(1, [Label::ActivityId(b)]);
        event(&event(1, 6));
        sequence_point(&SequencePoint { timestamp: 7, ..SequencePoint::default() });
        stack(&Stack { id: 1, bytes: &[3; 8] });
        label_list(1, [Label::ActivityId(b), Label::RelatedActivityId(a)]);
        event(&event(2, 8));
        sequence_point(&point);
        describe(&metadata(1, 3));
        thread(0, [ThreadEntry::ThreadId(80)]);
        // The trace has no label list, so the event refers to none.
        event(&event(1, 9));
    );
    let before = read(&source);
    let ids: Vec<_> = before.events.iter().map(|e| (e.event_id, e.thread, e.activities)).collect();
    let none = (Guid::NIL, Guid::NIL);
    assert_eq!(ids, [(1, 70, (a, Guid::NIL)), (2, 80, (b, Guid::NIL)), (2, 80, (b, a)), (3, 80, none)]);
    let (v4, _) = rewrite(&source, to(Version::V4)).unwrap();
    same("V6 to V4", &before, &read(&v4));
    let (v6, _) = rewrite(&v4, to(Version::V6)).unwrap();
    same("V6 to V4 to V6", &before, &read(&v6));
    let (v6, _) = rewrite(&source, to(Version::V6)).unwrap();
    assert!(v6 == source);
    for id in 1..=4 {
        let only = [EventSelector { provider: "p", event_id: Some(id), event_name: None }];
        for version in [Version::V4, Version::V6] {
            let options = RewriteOptions { only: &only, version: Some(version), ..options() };
            check("V6", &source, &before, options, |event| event.event_id == id);
        }
    }
    // The same activity on both sides of a sequence point.
    let event =
        |sequence| Event { metadata_id: 1, sequence, activity_id: a, sorted: true, ..Event::default() };
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        event(&event(1));
        sequence_point(&SequencePoint::default());
        event(&event(2));
    );
    let (v6, _) = rewrite(&source, to(Version::V6)).unwrap();
    same("V4 to V6", &read(&source), &read(&v6));
}

pub(crate) fn numbered(capture_thread: u64, sequence: u32, metadata_id: u32) -> Event<'static> {
    Event { capture_thread, thread: capture_thread, sequence, metadata_id, sorted: true, ..Event::default() }
}

/// A sequence point that discards threads is the last record that can report their losses, whether or not the source
/// reports them there.
#[test]
fn losses_are_reported_before_threads_are_discarded() {
    let point = SequencePoint { timestamp: 5, flags: SequencePoint::FLUSH_THREADS, threads: 0 };
    let flushed = stream!(Version::V6,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        thread(0, [ThreadEntry::ThreadId(70)]);
        thread(1, [ThreadEntry::ThreadId(71)]);
        event(&numbered(0, 1, 1));
        event(&numbered(0, 5, 2));
        event(&numbered(1, 3, 2));
        sequence_point(&point);
        thread_sequence(&ThreadSequence { thread: 1, sequence: 4 });
    );
    let more = stream!(Version::V6,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        thread(0, [ThreadEntry::ThreadId(70)]);
        event(&numbered(0, 5, 2));
        sequence_point(&point);
        thread(0, [ThreadEntry::ThreadId(80)]);
        event(&numbered(0, 2, 2));
        event(&numbered(0, 3, 1));
        sequence_point(&point);
    );
    // The last four bytes are the end mark.
    let cut = &flushed[..flushed.len() - 4];
    for (source, lost, rows) in [
        (&flushed[..], 6, vec![vec![(0, 4), (1, 3)]]),
        (cut, 6, vec![vec![(0, 4), (1, 3)], vec![]]),
        (&more, 5, vec![vec![(0, 4)], vec![]]),
    ] {
        let before = read(source);
        assert_eq!(before.lost, lost);
        let only = [EventSelector { provider: "p", event_id: Some(1), event_name: None }];
        let options = RewriteOptions { only: &only, ..options() };
        check("flush", source, &before, options, |event| event.event_id == 1);
        let mut got = points(&rewrite(source, options).unwrap().0);
        got.iter_mut().for_each(|rows| rows.sort_unstable());
        assert_eq!(got, rows);
    }
}

/// Blocks end where those of the source end. If events are removed or the version changes, blocks are as long as
/// possible.
#[test]
fn blocks_are_joined() {
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        for sequence in 1..=3 {
            put!(stream.event(&Event { timestamp: sequence.into(), ..numbered(7, sequence, 1) }));
            stream.flush();
        }
    });
    let blocks = |bytes: &[u8]| {
        assert_eq!(count(bytes, |step| matches!(step, Record::Event(_))), 3);
        count(bytes, |step| matches!(step, Record::Block(block) if block.kind == BlockKind::Event))
    };
    assert_eq!(blocks(&source), 3);
    let only = [EventSelector { provider: "p", event_id: None, event_name: None }];
    for (options, want) in [
        (options(), 3),
        (to(Version::V4), 3),
        (to(Version::V6), 1),
        (RewriteOptions { only: &only, ..options() }, 1),
        (RewriteOptions { from: 1, ..options() }, 1),
        (RewriteOptions { to: 3, ..options() }, 1),
    ] {
        assert_eq!(blocks(&rewrite(&source, options).unwrap().0), want, "{options:?}");
    }
}

/// A record that cannot be read is copied if the version stays the same. Events without a description stay, unless a
/// filter selects some events only.
#[test]
fn events_without_a_description() {
    for version in [Version::V4, Version::V6] {
        let record = Event { payload: &[1], processor: 3, ..Event::default() };
        let source = if version == Version::V4 {
            stream!(version,
                metadata(&record);
                event(&numbered(7, 1, 9));
            )
        } else {
            stream!(version,
                metadata(&record);
                thread(7, [ThreadEntry::ThreadId(7)]);
                event(&numbered(7, 1, 9));
            )
        };
        let records = |bytes: &[u8]| {
            let records = descriptions(bytes).into_iter();
            records.map(|record| (record.payload.to_vec(), record.processor)).collect::<Vec<_>>()
        };
        let processor = if version == Version::V4 { 3 } else { 0 };
        assert_eq!(records(&source), [(vec![1], processor)]);
        let only = [EventSelector { provider: "p", event_id: None, event_name: None }];
        for to in [Version::V4, Version::V6] {
            let mut options = self::to(to);
            let (result, report) = rewrite(&source, options).unwrap();
            let want = if to == version { vec![(vec![1], processor)] } else { vec![] };
            assert_eq!((records(&result), report.descriptions), (want, u64::from(to != version)));
            assert_eq!((report.kept, read(&result).events.len()), (1, 1), "{version} to {to}");
            options.only = &only;
            let (result, report) = rewrite(&source, options).unwrap();
            assert_eq!(
                (records(&result), report.descriptions, report.kept),
                (vec![], 1, 0),
                "{version} to {to}"
            );
        }
    }
}

/// A description that fits V4 but not V6: its event and its name remain.
#[test]
fn fields_that_are_too_many() {
    for (fields, want) in [(16_000, 16_000), (17_000, 0), (70_000, 0)] {
        let field = [&9u32.to_le_bytes()[..], &[0; 2]].concat();
        let head = [&[1, 0, 0, 0, b'p', 0, 0, 0, 7, 0, 0, 0, b'n', 0, 0, 0][..], &[0; 16]].concat();
        let payload =
            [head, u32::to_le_bytes(fields).to_vec(), field.repeat(fields.try_into().unwrap())].concat();
        let (mut buf, mut source) = (vec![0; 0x20_0000], Vec::new());
        let trace = nettrace::Trace::new(Version::V4);
        let mut writer = TraceWriter::new(&trace, &mut buf).unwrap();
        let record = Event { payload: &payload, ..Event::default() };
        source.extend_from_slice(&writer.metadata(&record).unwrap());
        source.extend_from_slice(&writer.event(&numbered(7, 1, 1)).unwrap());
        source.extend_from_slice(&writer.finish());
        let (result, report) = rewrite(&source, to(Version::V6)).unwrap();
        assert_eq!((report.kept, report.descriptions), (1, u64::from(want == 0)), "{fields}");
        let metadata = Metadata::decode(Version::V6, descriptions(&result)[0].payload).unwrap();
        assert_eq!((metadata.provider, metadata.name), ("p".into(), "n".into()));
        assert_eq!((metadata.fields.len(), metadata.problem), (want, None));
    }
}

/// The processor of a metadata record remains; records of V3 have none.
#[test]
fn processors_of_descriptions() {
    let mut v3 = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x03\0\0\0\0\0\0\0\x05\0\0\0Trace\x06".to_vec();
    v3.extend([0; 48]);
    v3.extend(b"\x06\x04\x04\x01\x01\0\0\0\0\0\0\0\x0a\0\0\0EventBlock\x06");
    // An id, no provider, an event's id, no name, and four numbers.
    let payload = [&[1, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0][..], &[0; 16]].concat();
    let blob =
        [&[0; 48][..], &u32::try_from(payload.len()).unwrap().to_le_bytes(), &payload, &[0; 4]].concat();
    v3.extend(u32::try_from(blob.len() + 4).unwrap().to_le_bytes());
    v3.resize(v3.len().next_multiple_of(4), 0);
    v3.extend(u32::try_from(blob.len()).unwrap().to_le_bytes());
    v3.extend(&blob);
    v3.extend([6, 1]);
    let v4 = stream!(Version::V4,
        metadata(&Event { payload: &payload, processor: 3, ..Event::default() });
    );
    for (source, want) in [(v3, Event::UNKNOWN_PROCESSOR), (v4, 3)] {
        let (result, report) = rewrite(&source, to(Version::V4)).unwrap();
        assert_eq!(report.descriptions, 0);
        let record = descriptions(&result)[0];
        assert_eq!((record.payload, record.processor), (&payload[..], want));
    }
}

/// Sequence points that a rewrite adds have the time of the last event.
#[test]
fn points_that_are_added() {
    let event = |sequence, timestamp| Event { timestamp, ..numbered(7, sequence, 1) };
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        event(&event(1, 50));
        event(&event(4, 70));
        event(&event(5, 60));
    );
    let times = |bytes: &[u8]| {
        let (times, end) = picked(bytes, |step| match step {
            Record::SequencePoint(point) => Some(point.timestamp),
            _ => None,
        });
        assert_eq!(end, End::Complete);
        times
    };
    assert!(times(&rewrite(&source, options()).unwrap().0).is_empty());
    // The source without its last byte, the end mark.
    assert_eq!(times(&rewrite(&source[..source.len() - 1], options()).unwrap().0), [70]);
    // A filtered thread has a loss, and the result must declare the thread to report the loss.
    let only = [EventSelector { provider: "None", event_id: None, event_name: None }];
    let options = RewriteOptions { only: &only, ..options() };
    assert_eq!(times(&rewrite(&source, options).unwrap().0), [70, 70]);
}

/// Activities that take turns have one list of labels each.
#[test]
fn one_list_for_the_same_activities() {
    let of = |activity: u8, related: u8| {
        let id = |n: u8| if n == 0 { Guid::NIL } else { Guid([n; 16]) };
        (id(activity), id(related))
    };
    let pairs = [of(1, 0), of(2, 0), of(0, 1), of(1, 2), of(2, 1), of(1, 1)];
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        for (sequence, (activity_id, related_activity_id)) in (1..=60).zip(pairs.into_iter().cycle()) {
            put!(stream.event(&Event { activity_id, related_activity_id, ..numbered(7, sequence, 1) }));
        }
    });
    let (result, _) = rewrite(&source, to(Version::V6)).unwrap();
    same("V4 to V6", &read(&source), &read(&result));
    assert_eq!(count(&result, |step| matches!(step, Record::LabelList(_))), pairs.len());
}

/// Each kind of content that V4 cannot express.
#[test]
fn losses_are_counted() {
    let (mut rich, mut space) = (metadata(1, 1), [0; 64]);
    rich.fields = Fields::build(&[("b", Scalar::Boolean8), ("n", Scalar::Int32)], &mut space).unwrap();
    (rich.message_template, rich.description) = (Some("{n}".into()), Some("d".into()));
    let source = stream!(Version::V6,
        describe(&rich);
        thread(7, [ThreadEntry::Name("n".into()), ThreadEntry::ThreadId(70), ThreadEntry::ProcessId(1)]);
        thread(8, [ThreadEntry::ThreadId(80), ThreadEntry::Pair("k".into(), "v".into())]);
        label_list(1, [Label::ActivityId(Guid([1; 16])), Label::Opcode(1), Label::Level(2)]);
        label_list(2, [Label::RelatedActivityId(Guid([1; 16])), Label::Keywords(3)]);
        event(&numbered(7, 1, 1));
    );
    let (_, report) = rewrite(&source, to(Version::V4)).unwrap();
    assert_eq!((report.thread_entries, report.labels, report.label_lists, report.pairs), (3, 3, 0, 0));
    assert_eq!((report.types, report.description_parts, report.descriptions), (1, 2, 0));
    let (_, report) = rewrite(&source, to(Version::V6)).unwrap();
    assert_eq!((report.types, report.description_parts, report.descriptions), (0, 0, 0));
    assert_eq!((report.thread_entries, report.labels, report.label_lists, report.pairs), (0, 0, 0, 0));
}

#[test]
fn errors_have_their_source() {
    use core::error::Error;
    let error = RewriteError::from(WriteError::Misplaced);
    assert_eq!(error.source().unwrap().to_string(), WriteError::Misplaced.to_string());
    assert!(RewriteError::TooManyThreads.source().is_none());
}

/// A thread can be known by a sequence point alone: its numbers continue from there.
#[test]
fn known_by_a_sequence_point() {
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        event(&numbered(6, 1, 1));
        sequence_point(&SequencePoint::default());
        thread_sequence(&ThreadSequence { thread: 5, sequence: 100 });
        thread_sequence(&ThreadSequence { thread: 6, sequence: 1 });
        event(&numbered(5, 103, 1));
    );
    let before = read(&source);
    assert_eq!(before.lost, 100 + 2);
    assert!(rewrite(&source, options()).unwrap().0 == source);
    same("to V6", &before, &read(&rewrite(&source, to(Version::V6)).unwrap().0));
}

/// A thread without losses and without remaining events is not in the result.
#[test]
fn threads_left_out() {
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        event(&numbered(7, 1, 2));
        event(&numbered(8, 1, 1));
        event(&numbered(7, 2, 2));
    );
    let only = [EventSelector { provider: "p", event_id: Some(1), event_name: None }];
    for version in [Version::V4, Version::V6] {
        let options = RewriteOptions { only: &only, version: Some(version), ..options() };
        let (result, _) = rewrite(&source, options).unwrap();
        assert_eq!(points(&result), Vec::<Vec<_>>::new(), "{version}");
        let threads =
            picked(&result, |step| if let Record::Thread(thread) = step { Some(thread.index) } else { None });
        assert_eq!(threads, (if version == Version::V6 { vec![8] } else { vec![] }, End::Complete));
    }
}

/// The largest gap that is a loss; one more means that the number went back.
#[test]
fn the_most_that_can_be_lost() {
    for (gap, lost) in [(0x7fff_ffff, 0x7fff_ffff), (0x8000_0000, 0)] {
        let source = stream!(Version::V4,
            describe(&metadata(1, 1));
            event(&numbered(7, 1, 1));
            event(&numbered(7, 2 + gap, 1));
        );
        for version in [Version::V4, Version::V6] {
            let (result, _) = rewrite(&source, to(version)).unwrap();
            assert_eq!((read(&source).lost, read(&result).lost), (lost, lost), "{version}");
        }
    }
}

/// A thread that is declared twice continues its numbers, or starts again at 1. Neither is a loss.
#[test]
fn threads_that_are_declared_twice() {
    let source = stream!(Version::V6,
        describe(&metadata(1, 1));
        thread(0, [ThreadEntry::ThreadId(70)]);
        event(&numbered(0, 1, 1));
        event(&numbered(0, 2, 1));
        sequence_point(&SequencePoint::default());
        thread(0, [ThreadEntry::ThreadId(80)]);
        event(&numbered(0, 3, 1));
        event(&numbered(0, 5, 1));
        sequence_point(&SequencePoint::default());
        thread(0, [ThreadEntry::ThreadId(80)]);
        event(&numbered(0, 1, 1));
    );
    let before = read(&source);
    assert_eq!(before.lost, 1);
    for version in [Version::V4, Version::V6] {
        same(&version.to_string(), &before, &read(&rewrite(&source, to(version)).unwrap().0));
    }
}

/// An index that leads to no thread, or to a thread without an id, never becomes an id, and its numbers before the
/// first one show no loss.
#[test]
fn threads_that_are_not_there() {
    let entries = |id| [ThreadEntry::Name("n".into()), ThreadEntry::ThreadId(id)];
    let row = |thread, sequence| ThreadSequence { thread, sequence };
    let source = stream!(Version::V6,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        thread(1, entries(70));
        thread(2, [ThreadEntry::Name("n".into())]);
        event(&numbered(1, 1, 1));
        event(&numbered(2, 1, 1));
        // Never declared.
        event(&numbered(3, 50, 2));
        event(&numbered(3, 52, 1));
        event(&numbered(3, 54, 1));
        remove_thread(&row(1, 2));
        // Removed, and then removed twice.
        event(&numbered(1, 60, 2));
        event(&numbered(1, 61, 1));
        remove_thread(&row(1, 61));
        remove_thread(&row(1, 61));
        // Discarded.
        sequence_point(&SequencePoint { flags: SequencePoint::FLUSH_THREADS, ..SequencePoint::default() });
        thread_sequence(&row(9, 99));
        event(&numbered(2, 80, 1));
        event(&numbered(9, 100, 1));
    );
    let before = read(&source);
    let unknown = Event::UNKNOWN_THREAD;
    let ids: Vec<u64> = before.events.iter().map(|event| event.thread).collect();
    assert_eq!(ids, [70, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown]);
    assert_eq!(before.lost, 1 + 1 + 1);
    let (v4, _) = rewrite(&source, to(Version::V4)).unwrap();
    same("V6 to V4", &before, &read(&v4));
    same("V6 to V4 to V6", &before, &read(&rewrite(&v4, to(Version::V6)).unwrap().0));
    assert!(rewrite(&source, to(Version::V6)).unwrap().0 == source);
    for id in 1..=3 {
        let only = [EventSelector { provider: "p", event_id: Some(id), event_name: None }];
        for version in [Version::V4, Version::V6] {
            let options = RewriteOptions { only: &only, version: Some(version), ..options() };
            check("V6", &source, &before, options, |event| event.event_id == id);
        }
    }
}

/// Threads of two processes can have the same id.
#[test]
fn one_thread_id_in_two_processes() {
    let entries = |process| [ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(7)];
    let source = stream!(Version::V6,
        describe(&metadata(1, 1));
        thread(1, entries(100));
        thread(2, entries(200));
        event(&numbered(1, 1, 1));
        event(&numbered(1, 2, 1));
        event(&numbered(2, 1, 1));
        event(&numbered(1, 3, 1));
        event(&numbered(2, 2, 1));
        event(&numbered(1, 5, 1));
    );
    let before = read(&source);
    assert_eq!((before.lost, before.went_back), (1, 0));
    let after = read(&rewrite(&source, to(Version::V4)).unwrap().0);
    same("V6 to V4", &before, &after);
    assert_eq!(after.went_back, 0);
}

/// From V6 to V4, an ended thread has no slot, unless it has a pending loss.
#[test]
fn threads_that_ended_make_room() {
    let threads = 3000;
    let source = |lost_by: &dyn Fn(u64) -> u32| {
        written(Version::V6, |stream| {
            put!(stream.describe(&metadata(1, 1)));
            for thread in 1..=threads {
                put!(stream.thread(thread, [ThreadEntry::ThreadId(thread + 10)]));
                put!(stream.event(&numbered(thread, 1, 1)));
                let sequence = 1 + lost_by(thread);
                put!(stream.remove_thread(&ThreadSequence { thread, sequence }));
            }
        })
    };
    let bytes = source(&|thread| u32::from(thread % 50 == 0));
    let before = read(&bytes);
    assert_eq!(before.lost, 60);
    let (result, _) = rewrite(&bytes, to(Version::V4)).unwrap();
    same("V6 to V4", &before, &read(&result));
    let (result, report) = rewrite(&source(&|_| 0), to(Version::V4)).unwrap();
    assert_eq!((report.kept, read(&result).lost), (threads, 0));
    assert_eq!(rewrite(&source(&|_| 1), to(Version::V4)), Err(RewriteError::TooManyThreads));
}

/// Many threads of which only losses remain take linear time.
#[test]
fn many_threads_that_lost() {
    let threads = 50_000;
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        for thread in 1..=threads {
            put!(stream.event(&numbered(thread, 1, 1)));
            put!(stream.event(&numbered(thread, 3, 1)));
        }
    });
    let only = [EventSelector { provider: "None", event_id: None, event_name: None }];
    for version in [Version::V4, Version::V6] {
        let options = RewriteOptions { only: &only, version: Some(version), ..options() };
        let (result, report) = rewrite_with(&source, options, 1 << 21, 1 << 16).unwrap();
        assert_eq!((report.events, report.kept), (2 * threads, 0));
        let mut slots = vec![Slot::default(); 1 << 16];
        let mut loss = LossCounter::new(&mut slots);
        let (_, end) = picked(&result, |step| Some(loss.record(&step)));
        assert_eq!(end, End::Complete);
        assert_eq!(
            (loss.lost_after_start(), loss.went_back(), loss.untracked()),
            (threads, 0, 0),
            "{version}"
        );
    }
}

/// Label lists without a slot are counted as such, and not as labels that V4 cannot express.
#[test]
fn lists_of_labels_without_room() {
    let source = written(Version::V6, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        put!(stream.thread(7, [ThreadEntry::ThreadId(7)]));
        for id in 1..=1100 {
            put!(stream.label_list(id, [Label::ActivityId(Guid([1; 16]))]));
            put!(stream.event(&Event { label_list: id, ..numbered(7, id, 1) }));
        }
    });
    // The table has 1,024 slots.
    let (result, report) = rewrite(&source, to(Version::V4)).unwrap();
    assert_eq!((report.kept, report.label_lists, report.labels), (1100, 76, 0));
    let with = read(&result).events.iter().filter(|event| event.activities.0 == Guid([1; 16])).count();
    assert_eq!(with, 1024);
}
