//! Filters, versions and command lines of whole streams.
use super::*;

#[test]
fn an_unfiltered_copy_is_unchanged() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        let (result, report) = rewrite(&bytes, options()).unwrap();
        let result_trace = read(&result);
        same(&name, &source, &result_trace);
        let count = source.events.len() as u64;
        assert_eq!(
            (report.events, report.kept, report.command_lines, report.descriptions),
            (count, count, 0, 0),
            "{name}"
        );
        if source.version != Version::V3 {
            assert_eq!(result_trace.raw, source.raw, "{name}");
            assert_eq!(result_trace.went_back, source.went_back, "{name}");
        }
        if name.starts_with("gen-") && source.version == Version::V4 {
            assert!(result == bytes, "{name} is not as it was");
        }
    }
}

#[test]
fn another_version_has_the_same_content() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        let mut before: Option<Vec<u8>> = None;
        for version in [Version::V6, Version::V4] {
            let (result, report) = rewrite(&bytes, to(version)).unwrap_or_else(|e| panic!("{name}: {e}"));
            let trace = read(&result);
            assert_eq!(trace.version, version, "{name}");
            if report.descriptions == 0 && report.labels == 0 {
                same(&format!("{name} to {version}"), &source, &trace);
            }
            // A rewrite of this result, or of the result in the other version, has the same events.
            let (other, _) = rewrite(before.as_ref().unwrap_or(&result), to(version)).unwrap();
            if report.descriptions == 0 && report.labels == 0 {
                same(&format!("{name} to {version} again"), &source, &read(&other));
            }
            before = Some(result);
        }
    }
}

/// Whatever a filter removes, the other events are unchanged, and the number of lost events is the same.
#[test]
fn filters() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        let mut kinds: Vec<_> = source.events.iter().map(|e| (e.provider.clone(), e.event_id)).collect();
        kinds.sort();
        kinds.dedup();
        let middle = source.events[source.events.len() / 2].timestamp;
        for version in [Version::V4, Version::V6] {
            for (provider, id) in &kinds {
                for event_id in [None, Some(*id)] {
                    let only = [EventSelector { provider, event_id }];
                    let mut options = to(version);
                    options.only = &only;
                    check(&name, &bytes, &source, options, |e| {
                        e.provider == *provider && event_id.is_none_or(|id| id == e.event_id)
                    });
                }
            }
            let mut options = to(version);
            options.from = middle;
            check(&name, &bytes, &source, options, |e| e.timestamp >= middle);
            options = to(version);
            options.to = middle;
            check(&name, &bytes, &source, options, |e| e.timestamp <= middle);
            let only = [EventSelector { provider: "None", event_id: None }];
            options.only = &only;
            check(&name, &bytes, &source, options, |_| false);
        }
    }
}

/// Returns the thread and the sequence number of each event in the result, and checks that the losses stay the same.
fn numbers(
    events: &[(u64, u32, u32)],
    points: &[(u64, u32)],
    only: u32,
    version: Version,
) -> Vec<(u64, u32)> {
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        put!(stream.describe(&metadata(2, 2)));
        for (capture_thread, sequence, metadata_id) in events.iter().copied() {
            put!(stream.event(&Event {
                capture_thread,
                sequence,
                metadata_id,
                sorted: true,
                ..Event::default()
            }));
        }
        put!(stream.sequence_point(&SequencePoint::default()));
        for (thread, sequence) in points.iter().copied() {
            put!(stream.thread_sequence(&ThreadSequence { thread, sequence }));
        }
    });
    let only = [EventSelector { provider: "P", event_id: Some(only) }];
    let mut options = to(version);
    options.only = &only;
    let (result, _) = rewrite(&source, options).unwrap();
    let (before, after) = (read(&source), read(&result));
    assert_eq!(after.lost, before.lost);
    after.raw.iter().map(|raw| (raw[2], u32::try_from(raw[1]).unwrap())).collect()
}

#[test]
fn numbers_become_contiguous_and_losses_remain() {
    let v4 = |events: &[_], points: &[_]| numbers(events, points, 1, Version::V4);
    let v6 = |events: &[_], points: &[_]| numbers(events, points, 1, Version::V6);
    // Event 3 is filtered, 5 and 6 are lost.
    let events = [(7, 1, 1), (7, 2, 1), (7, 3, 2), (7, 4, 1), (7, 7, 1), (7, 8, 1)];
    assert_eq!(v4(&events, &[]), [(7, 1), (7, 2), (7, 3), (7, 6), (7, 7)]);
    assert_eq!(v6(&events, &[]), [(7, 1), (7, 2), (7, 3), (7, 6), (7, 7)]);
    // A filtered event hides a loss, which is reported later.
    let events = [(7, 1, 1), (7, 4, 2), (7, 5, 1)];
    assert_eq!(v4(&events, &[(7, 9)]), [(7, 1), (7, 4)]);
    assert_eq!(v6(&events, &[(7, 9)]), [(7, 1), (7, 4)]);
    // A thread that started before the trace: its first number is no loss. In V6 the first number is 1.
    let events = [(7, 100, 2), (7, 102, 1), (7, 103, 1)];
    assert_eq!(v4(&events, &[]), [(7, 100), (7, 102)]);
    assert_eq!(v6(&events, &[]), [(7, 2), (7, 3)]);
    // A new thread has the id of one that ended.
    let events = [(7, 8, 1), (7, 9, 1), (7, 1, 1), (7, 3, 1), (7, 1, 2), (7, 3, 1)];
    assert_eq!(v4(&events, &[]), [(7, 8), (7, 9), (7, 1), (7, 3), (7, 5)]);
    assert_eq!(v6(&events, &[]), [(7, 1), (7, 2), (7, 3), (7, 5), (7, 7)]);
    // Only the losses of a thread remain: after its last event, and between two events.
    assert_eq!(v4(&[(7, 1, 2), (8, 1, 1)], &[(7, 5)]), [(8, 1)]);
    assert_eq!(v6(&[(7, 1, 2), (8, 1, 1)], &[(7, 5)]), [(8, 1)]);
    assert_eq!(v4(&[(7, 1, 2), (7, 5, 2), (8, 1, 1)], &[]), [(8, 1)]);
    assert_eq!(v6(&[(7, 1, 2), (7, 5, 2), (8, 1, 1)], &[]), [(8, 1)]);
    // The number 5 after 10 is no loss.
    assert_eq!(v4(&[(7, 10, 1), (7, 5, 2), (7, 6, 1)], &[]), [(7, 10), (7, 11)]);
    assert_eq!(v4(&[(7, 10, 1), (7, 5, 1), (7, 6, 1)], &[]), [(7, 10), (7, 5), (7, 6)]);
    assert_eq!(v6(&[(7, 10, 1), (7, 5, 1), (7, 6, 1)], &[(7, 3)]), [(7, 1), (7, 2), (7, 3)]);
    // One gap cannot express so many losses, so a part is reported later.
    let (much, more) = (0x7fff_fff0, 0xffff_0000);
    let events = [(7, 1, 1), (7, much, 2), (7, more, 2), (7, more + 1, 1), (7, more + 2, 1)];
    assert_eq!(v4(&events, &[]), [(7, 1), (7, 0x8000_0001), (7, 0xffff_0000)]);
    // The number after the largest one is 0, which is no loss.
    let events = [(7, u32::MAX - 1, 1), (7, u32::MAX, 2), (7, 1, 1), (7, 2, 1)];
    assert_eq!(v4(&events, &[(7, 3)]), [(7, u32::MAX - 1), (7, 1), (7, 2)]);
    // A reader would not notice a gap that ends at number 1, so the loss is reported later.
    let events = [(7, u32::MAX - 1, 1), (7, 1, 2), (7, 4, 1), (7, 5, 1)];
    assert_eq!(v4(&events, &[]), [(7, u32::MAX - 1), (7, u32::MAX), (7, 2)]);
}

/// The result does not contain the command line, and contains everything else.
#[test]
fn command_lines_are_removed() {
    for name in [
        "gen-net10-lab-small.nettrace",
        "gen-net10-lab-v3-small.netperf",
        "gen-net9-windows-lab-small.nettrace",
    ] {
        let bytes = trace(name);
        let source = read(&bytes);
        let info = source.events.iter().find(|e| e.provider == "Microsoft-DotNETCore-EventPipe").unwrap();
        let end = info.payload.chunks(2).position(|unit| unit == [0, 0]).unwrap() * 2;
        let secret = &info.payload[..end];
        assert!(secret.len() > 20, "{name}");
        let is_in = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
        for version in [Version::V4, Version::V6] {
            let (kept, report) = rewrite(&bytes, to(version)).unwrap();
            assert!(is_in(&kept) && report.command_lines == 0, "{name}");
            let mut options = to(version);
            options.strip_command_line = true;
            let (result, report) = rewrite(&bytes, options).unwrap();
            assert!(!is_in(&result), "{name}");
            assert_eq!(report.command_lines, 1, "{name}");
            let mut want = source.events.clone();
            for event in &mut want {
                if event.provider == "Microsoft-DotNETCore-EventPipe" {
                    event.payload.drain(..end);
                }
            }
            let trace = read(&result);
            assert_eq!(trace.events, want, "{name}");
            assert_eq!(trace.lost, source.lost);
        }
    }
}

/// Command lines at positions at which no trace of `testdata/` has one.
#[test]
fn command_lines_are_removed_from_any_event() {
    let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let secret = utf16("--password=1234");
    let strip = |provider: &'static str, event_id, fields: &[(&str, Scalar)], payload: &[u8]| {
        let (mut metadata, mut space) = (metadata(1, event_id), [0; 200]);
        metadata.provider = provider.into();
        metadata.fields = Fields::build(fields, &mut space).unwrap();
        let source = stream!(Version::V6,
            describe(&metadata);
            thread(0, []);
            event(&Event { metadata_id: 1, sequence: 1, payload, ..Event::default() });
        );
        let mut options = options();
        options.strip_command_line = true;
        let (result, report) = rewrite(&source, options).unwrap();
        let payload = read(&result).events.pop().unwrap().payload;
        (payload, report.command_lines)
    };
    let text = Scalar::Utf16String;
    // An event that no stream describes: the rewrite knows where its command line is.
    let head = [5; 25];
    let tail = [&[9; 16][..], &utf16("/usr/share/dotnet/libcoreclr.so")].concat();
    let payload = [&head[..], &secret, &tail].concat();
    let (got, lines) = strip("Microsoft-Windows-DotNETRuntimeRundown", 187, &[], &payload);
    assert_eq!((got, lines), ([&head[..], &[0, 0], &tail].concat(), 1));
    // An event of another provider with this id has another meaning.
    assert_eq!(strip("Elsewhere", 187, &[], &payload), (payload.clone(), 0));
    // The field follows a string and numbers, and has a name in any case of letters.
    let fields =
        [("Name", text), ("Id", Scalar::UInt64), ("B", Scalar::Boolean8), ("commandline", text), ("X", text)];
    let name = utf16("a name");
    let payload = [&name[..], &[1; 9], &secret, &name].concat();
    let want = [&name[..], &[1; 9], &[0, 0], &name].concat();
    assert_eq!(strip("Elsewhere", 1, &fields, &payload), (want.clone(), 1));
    // A second rewrite finds no command line.
    assert_eq!(strip("Elsewhere", 1, &fields, &want), (want, 0));
    // A command line without its NUL; and a payload that ends before it.
    let (got, lines) = strip("Elsewhere", 1, &fields, &payload[..name.len() + 9 + 4]);
    assert_eq!((got, lines), ([&name[..], &[1; 9]].concat(), 1));
    assert_eq!(strip("Elsewhere", 1, &fields, &payload[..5]), (vec![], 1));
    // The command line cannot be found after a field of unknown length, so the whole payload is removed.
    let fields = [("n", Scalar::VarUInt), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&[7][..], &secret].concat()), (vec![], 1));
    // A field with this name that is no text, and two fields with this name: the whole payload is removed.
    let fields = [("CommandLine", Scalar::UInt32), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&[1; 4][..], &secret].concat()), (vec![], 1));
    let fields = [("CommandLine", text), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&secret[..], &secret].concat()), (vec![], 1));
}

/// Content that V4 cannot express is counted.
#[test]
fn losses_of_a_conversion_are_counted_per_kind() {
    let bytes = trace("synth-v6-all.nettrace");
    let (_, report) = rewrite(&bytes, to(Version::V6)).unwrap();
    assert_eq!((report.labels, report.pairs, report.thread_entries, report.descriptions), (0, 0, 0, 0));
    let (_, report) = rewrite(&bytes, to(Version::V4)).unwrap();
    assert!(
        report.labels > 0 && report.pairs > 0 && report.thread_entries > 0 && report.descriptions > 0,
        "{report:?}"
    );
}

/// A rewrite of a stream that was cut, or that has a bad block, is a whole stream.
#[test]
fn damaged_streams_become_complete() {
    let bytes = trace("gen-net10-lab-small.nettrace");
    for at in (0..bytes.len()).step_by(97) {
        let source = read(&bytes[..at]);
        for version in [Version::V4, Version::V6] {
            let (result, _) = rewrite(&bytes[..at], to(version)).unwrap();
            let trace = read(&result);
            assert_eq!(trace.events, source.events, "cut at {at}");
            assert_eq!(trace.lost, source.lost, "cut at {at}");
            if !source.about.is_empty() {
                assert_eq!(trace.end, End::Complete, "cut at {at}");
                // The result has one more sequence point, at which a reader that sorts releases its events.
                assert!(points(&result).len() > points(&bytes[..at]).len(), "cut at {at}");
            }
        }
    }
}

/// With a buffer and tables of any size, the result is correct or an error.
#[test]
fn little_room() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        for version in [Version::V4, Version::V6] {
            for buffer in [0, 3, 4, 100, 300, 1000, 2500, 9999, 70_000, 300_000] {
                match rewrite_with(&bytes, to(version), buffer, 256) {
                    Ok((result, report)) => {
                        let trace = read(&result);
                        assert_eq!(trace.events.len(), source.events.len(), "{name}, {buffer} bytes");
                        assert_eq!(trace.lost, source.lost, "{name}, {buffer} bytes");
                        if report.descriptions == 0 && report.labels == 0 {
                            same(&name, &source, &trace);
                        }
                    }
                    Err(RewriteError::Write(WriteError::BufferTooSmall { needed })) => {
                        assert!(
                            needed > buffer && buffer < 300_000,
                            "{name}: {buffer} bytes, {needed} needed"
                        );
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            match rewrite_with(&bytes, to(version), TraceWriter::BUFFER, 0) {
                Err(RewriteError::TooManyMetadata | RewriteError::TooManyThreads) => {}
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    let refused = rewrite(&[], to(Version::V3));
    assert_eq!(refused, Err(RewriteError::Write(WriteError::Version(Version::V3))));
}
