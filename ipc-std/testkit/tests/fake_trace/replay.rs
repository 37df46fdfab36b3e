//! Replays of a recording.
use std::collections::BTreeSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ipc_proto::Guid;
use ipc_proto::types::SessionBufferMode;
use ipc_std::{TraceConfig, TraceReader};
use ipc_testkit::{Profile, Recording, Replay};
use nettrace::{CalendarTime, EventAssembler, EventOrder, Limits, Parser, ReadOptions, Record, Version};

use crate::recordings::*;
use crate::stream::*;

#[test]
fn events_repeat_until_the_session_is_stopped() {
    let runtime = replaying(Profile { process_id: 4711, ..Profile::net10() }, &alternating(Version::V4));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (began, started) = (now(), Instant::now());
    let (whole, _) = trace(&runtime, &TraceConfig::new(&APP), rounds(4));
    let took = u64::try_from(started.elapsed().as_nanos()).unwrap();
    assert!((began..=now()).contains(&whole.sync.0), "{:?}", whole.sync);
    assert_eq!((whole.process_id, whole.pointer_size, whole.lost), (Some(4711), 8, 0));

    let full = whole.points.len() - 1;
    for round in 0..full {
        let events: Vec<_> = whole.events.iter().filter(|event| event.round == round).collect();
        assert_eq!(events.len(), 5, "{events:?}");
        for (thread, count) in [(7, 3), (9, 2)] {
            let of_thread: Vec<_> = events.iter().filter(|event| event.thread == thread).collect();
            let numbers: Vec<u32> = of_thread.iter().map(|event| event.sequence).collect();
            let first = round as u32 * count + 1;
            assert_eq!(numbers, (first..first + count).collect::<Vec<_>>(), "sequence numbers continue");
            assert!(of_thread.iter().all(|event| event.stack == (thread * 16).to_le_bytes()));
            // Payloads are unchanged.
            assert!(of_thread.iter().zip(1u32..).all(|(event, n)| event.payload == n.to_le_bytes()));
        }
        let first = events.iter().map(|event| event.timestamp).min().unwrap();
        let mut offsets: Vec<_> = events.iter().map(|event| event.timestamp - first).collect();
        offsets.sort_unstable();
        assert_eq!(
            offsets,
            [0, 10 * MS, 20 * MS, 30 * MS, 40 * MS],
            "the distances are those of the recording"
        );
        assert_eq!(first + 100 * MS, whole.points[round].timestamp, "a sequence point ends the round");
        // A round that no client read is skipped.
        let ended = round.checked_sub(1).map_or(whole.sync.1, |before| whole.points[before].timestamp);
        assert!(first == ended || round > 0 && first > ended + 1000 * MS, "round {round}: {first} {ended}");
    }
    // On a slow machine, too, no event is sent before its time.
    let span = whole.events.iter().map(|event| event.timestamp).max().unwrap() - whole.sync.1;
    assert!(span >= full as u64 * 100 * MS && span <= took, "{span} of {took}");
    // The events of the recording are of two kinds; the third kind is `ProcessInfo` at the end.
    assert_eq!(whole.kinds, 3);
    let last = whole.events.last().unwrap();
    assert_eq!((&*last.provider, last.id), ("Microsoft-DotNETCore-EventPipe", 1));
    let Profile { command_line, os, arch, .. } = runtime.profile();
    let text = [command_line, os, arch].map(|text| format!("{text}\0")).concat();
    assert_eq!(last.payload, text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
}

#[test]
fn a_recording_can_have_any_version() {
    let v4 =
        trace(&replaying(Profile::net8(), &alternating(Version::V4)), &TraceConfig::new(&APP), rounds(1)).0;
    let v6 =
        trace(&replaying(Profile::net8(), &alternating(Version::V6)), &TraceConfig::new(&APP), rounds(1)).0;
    let first = |whole: &ReadTrace| {
        let sync = whole.sync.1;
        let plain = |event: &ReadEvent| ReadEvent { timestamp: event.timestamp - sync, ..event.clone() };
        let mut events: Vec<_> = whole.events.iter().filter(|event| event.round == 0).map(plain).collect();
        // The order depends on the pieces in which events are sent.
        events.sort_by_key(|event| event.timestamp);
        events
    };
    assert_eq!(first(&v4).len(), 5);
    assert_eq!(first(&v4), first(&v6));
    // An invalid recording has no events.
    let (none, _) = trace(&replaying(Profile::net8(), b"no recording"), &TraceConfig::new(&APP), rounds(1));
    assert_eq!(none.events.len(), 1);
}

#[test]
fn a_gap_counts_as_lost_events_in_every_round() {
    // Thread 7 lost two events before its second event, and four after this event. The session includes no events of
    // thread 9, so none of them counts as lost.
    let events = [(0, 7, 11, 0), (1, 9, 1, 1), (0, 7, 14, 2), (1, 9, 5, 3)];
    let kinds = [("App", 1, 0, 4), ("Other", 1, 0, 4)];
    let recording = recording(Version::V4, &kinds, &events, &[(7, 18), (9, 5)]);
    let (whole, stream) = trace(&replaying(Profile::net10(), &recording), &TraceConfig::new(&APP), rounds(3));
    assert_eq!(whole.ids("Other"), BTreeSet::new());
    let numbers: Vec<u32> = whole.events_of("App").iter().take(6).map(|event| event.sequence).collect();
    assert_eq!(numbers, [1, 4, 9, 12, 17, 20]);
    let (sent, full) = (whole.events_of("App").len(), whole.points.len() - 1);
    let lost = match sent - full * 2 {
        0 | 1 => 0,
        2 => 2,
        more => panic!("{more} events of an incomplete round"),
    };
    assert_eq!(whole.lost, full as u64 * 6 + lost, "{full} rounds");
    // The replay of the stream has the same numbers in one round, and one `ProcessInfo`.
    let (again, _) = trace(&replaying(Profile::net10(), &stream), &TraceConfig::new(&[all("*")]), rounds(1));
    let numbers = |whole: &ReadTrace, round| {
        let events = whole.events.iter().filter(|event| event.provider == "App" && event.round <= round);
        events.map(|event| event.sequence).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&again, 0), numbers(&whole, full));
    assert_eq!(again.events_of("Microsoft-DotNETCore-EventPipe").len(), 1);
}

/// The recording has 16 MB of events at one time. The buffer of the session has room for five of them.
#[test]
fn a_full_buffer_loses_events_or_blocks_the_program() {
    let (profile, file) = (Profile::net11(), flood());
    let replayed = |buffer_mode| {
        let mut space = Replay::buffer(file.len());
        let recording = Recording::read(&file);
        let config = TraceConfig { buffer_mb: 1, buffer_mode, ..TraceConfig::new(&APP) };
        let mut replay =
            Replay::new(&recording, Some(config), &profile, CalendarTime::default(), 0, &mut space).unwrap();
        // The reader takes a piece ten times a second.
        let mut stream: Vec<u8> = (0..19).flat_map(|tick| replay.advance(tick * 100 * MS).unwrap()).collect();
        stream.extend(replay.finish(1_900 * MS).unwrap());
        parse(&stream)
    };
    let numbers =
        |whole: &ReadTrace| whole.events_of("App").iter().map(|event| event.sequence).collect::<Vec<_>>();

    let dropping = replayed(SessionBufferMode::DROP);
    assert_eq!(numbers(&dropping)[..7], [1, 2, 3, 4, 5, FLOOD + 1, FLOOD + 2]);
    let rounds = dropping.points.len() as u64;
    assert_eq!(dropping.lost, rounds * u64::from(FLOOD - 5), "{rounds} rounds");

    let blocking = replayed(SessionBufferMode::BLOCK);
    assert_eq!(blocking.lost, 0);
    assert_eq!(numbers(&blocking), (1..=20 * 5).collect::<Vec<_>>());
    // The program waited, so the events happened later.
    let times: BTreeSet<u64> = blocking.events_of("App").iter().map(|event| event.timestamp).collect();
    assert!(times.len() > 15, "{times:?}");
}

#[test]
fn events_that_are_not_sent_do_not_affect_the_order() {
    // The session includes only one event of thread 7, which is younger than the event of thread 9. Thread 7 loses two
    // events before its second event, and two before its last event.
    let events = [(0, 5, 1, 0), (1, 7, 1, 1), (1, 7, 4, 2), (0, 9, 1, 3), (0, 7, 5, 4), (1, 7, 8, 5)];
    let recording = recording(Version::V4, &[("App", 1, 0, 4), ("Other", 1, 0, 4)], &events, &[]);
    // `parse` checks the order of every stream.
    let (whole, stream) = trace(&replaying(Profile::net10(), &recording), &TraceConfig::new(&APP), rounds(3));
    let full = |event: &&ReadEvent| event.thread == 7 && event.round < 3;
    let numbers: Vec<u32> = whole.events.iter().filter(full).map(|event| event.sequence).collect();
    // A reader cannot notice losses before the first event of a thread.
    assert_eq!(numbers, [1, 6, 11]);
    let mut reader = TraceReader::with_assembler(
        &*stream,
        EventAssembler::new(EventOrder::BY_TIME, ReadOptions::default()),
    );
    let mut times = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        times.push(event.timestamp());
    }
    assert!(times.is_sorted() && times.len() == whole.events.len(), "{times:?}");
    assert_eq!(reader.summary().late, 0);
}

#[test]
fn threads_of_v6_have_the_ids_of_the_system() {
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-v6-onecollect-small.nettrace");
    let recording = std::fs::read(file).unwrap();
    let threads = |stream: &[u8]| {
        let (mut reader, mut threads) = (TraceReader::new(stream), Vec::new());
        while let Some(event) = reader.next_event().unwrap() {
            threads.push(event.thread_id());
        }
        threads
    };
    let (_, stream) =
        trace(&replaying(Profile::net10(), &recording), &TraceConfig::new(&[all("*")]), rounds(1));
    let mut replayed = threads(&stream);
    replayed.pop(); // the thread of `ProcessInfo`
    assert_eq!(BTreeSet::from_iter(replayed), BTreeSet::from_iter(threads(&recording)));
}

#[test]
fn activities_and_losses_of_v6_are_kept_in_v4() {
    let runtime = replaying(Profile::net10(), &with_activity());
    let (whole, stream) = trace(&runtime, &TraceConfig::new(&APP), rounds(2));
    let full = whole.points.len() as u64 - 1;
    assert_eq!(whole.lost, full * 3, "{full} rounds");
    assert!(whole.events_of("App").len() >= 2);
    let (mut parser, mut events) = (Parser::new(Limits::default()), 0);
    loop {
        match parser.next(&stream) {
            Record::Event(event) if event.activity_id != Guid::NIL => {
                // Capture threads keep their index: threads of two processes can have the same id.
                assert_eq!((event.thread, event.capture_thread), (4242, 1));
                assert_eq!(event.activity_id, Guid([7; 16]));
                assert_eq!(event.related_activity_id, Guid([8; 16]));
                events += 1;
            }
            Record::End(_) => break,
            _ => {}
        }
    }
    assert_eq!(events, whole.events_of("App").len());
}
