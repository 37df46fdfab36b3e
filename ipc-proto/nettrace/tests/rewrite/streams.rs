//! Filters, versions and command lines of whole streams.
use super::threads::numbered;
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
                    let only = [EventSelector { provider, event_id, event_name: None }];
                    let mut options = to(version);
                    options.only = &only;
                    check(&name, &bytes, &source, options, |e| {
                        e.provider == *provider && event_id.is_none_or(|id| id == e.event_id)
                    });
                }
            }
            let mut options = to(version);
            options.from = middle;
            check(&name, &bytes, &source, options, |e| e.timestamp >= middle || names_code(e));
            options = to(version);
            options.to = middle;
            check(&name, &bytes, &source, options, |e| e.timestamp <= middle || names_code(e));
            let only = [EventSelector { provider: "None", event_id: None, event_name: None }];
            options.only = &only;
            check(&name, &bytes, &source, options, |_| false);
        }
    }
}

/// Returns whether a copy has the event although it is from another time.
fn names_code(event: &Whole) -> bool {
    match event.provider.as_str() {
        "Microsoft-Windows-DotNETRuntimeRundown" | "Microsoft-DotNETCore-EventPipe" => true,
        "Microsoft-Windows-DotNETRuntime" => {
            [141..=144, 151..=157].iter().any(|ids| ids.contains(&event.event_id))
        }
        provider => provider == "Universal.System",
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
    let only = [EventSelector { provider: "P", event_id: Some(only), event_name: None }];
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
    // Events before the first number of a thread are lost too, which V6 states by the same number.
    let events = [(7, 100, 2), (7, 102, 1), (7, 103, 1)];
    assert_eq!(v4(&events, &[]), [(7, 100), (7, 102)]);
    assert_eq!(v6(&events, &[]), [(7, 101), (7, 102)]);
    // No event of the thread remains.
    assert_eq!(v4(&[(7, 100, 2), (8, 1, 1)], &[]), [(8, 1)]);
    assert_eq!(v6(&[(7, 100, 2), (8, 1, 1)], &[]), [(8, 1)]);
    // A new thread has the id of one that ended.
    let events = [(7, 8, 1), (7, 9, 1), (7, 1, 1), (7, 3, 1), (7, 1, 2), (7, 3, 1)];
    assert_eq!(v4(&events, &[]), [(7, 8), (7, 9), (7, 1), (7, 3), (7, 5)]);
    assert_eq!(v6(&events, &[]), [(7, 8), (7, 9), (7, 10), (7, 12), (7, 14)]);
    // Only the losses of a thread remain: after its last event, and between two events.
    assert_eq!(v4(&[(7, 1, 2), (8, 1, 1)], &[(7, 5)]), [(8, 1)]);
    assert_eq!(v6(&[(7, 1, 2), (8, 1, 1)], &[(7, 5)]), [(8, 1)]);
    assert_eq!(v4(&[(7, 1, 2), (7, 5, 2), (8, 1, 1)], &[]), [(8, 1)]);
    assert_eq!(v6(&[(7, 1, 2), (7, 5, 2), (8, 1, 1)], &[]), [(8, 1)]);
    // The number 5 after 10 is not a loss.
    assert_eq!(v4(&[(7, 10, 1), (7, 5, 2), (7, 6, 1)], &[]), [(7, 10), (7, 11)]);
    assert_eq!(v4(&[(7, 10, 1), (7, 5, 1), (7, 6, 1)], &[]), [(7, 10), (7, 5), (7, 6)]);
    assert_eq!(v6(&[(7, 10, 1), (7, 5, 1), (7, 6, 1)], &[(7, 3)]), [(7, 10), (7, 11), (7, 12)]);
    // One gap cannot express so many losses, so a part is reported later.
    let (much, more) = (0x7fff_fff0, 0xffff_0000);
    let events = [(7, 1, 1), (7, much, 2), (7, more, 2), (7, more + 1, 1), (7, more + 2, 1)];
    assert_eq!(v4(&events, &[]), [(7, 1), (7, 0x8000_0001), (7, 0xffff_0000)]);
    // The number after the largest one is 0, which is not a loss.
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
            let mut unjudged = 0;
            for event in &mut want {
                // Descriptions of events with byte arrays have no fields.
                if event.provider.starts_with("Lab-") && event.about.ends_with("[]") {
                    unjudged += u64::from(!event.payload.is_empty());
                    event.payload.clear();
                }
                if event.provider == "Microsoft-DotNETCore-EventPipe" {
                    event.payload.drain(..end);
                }
            }
            let trace = read(&result);
            assert!(trace.events == want, "{name}");
            assert_eq!((trace.lost, report.unjudged), (source.lost, unjudged));
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
    // Bytes after the last value can be the rest of a command line with a NUL in its middle.
    let (got, lines) = strip("microsoft-windows-dotnetruntime", 187, &[], &[&payload[..], &secret].concat());
    assert_eq!((got, lines), (vec![], 1));
    // Readers do not need its description.
    assert_eq!(strip("Microsoft-Windows-DotNETRuntime", 187, &[("a", text)], &secret), (vec![], 0));
    // Other events of the runtime have no command line.
    assert_eq!(strip("Microsoft-Windows-DotNETRuntime", 1, &[], &payload), (payload.clone(), 0));
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
    // A field with this name that is not text, and two fields with this name: the whole payload is removed.
    let fields = [("CommandLine", Scalar::UInt32), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&[1; 4][..], &secret].concat()), (vec![], 1));
    let fields = [("CommandLine", text), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&secret[..], &secret].concat()), (vec![], 1));
}

/// Payloads are removed if their description does not show their fields.
#[test]
fn what_cannot_be_judged_is_removed() {
    let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let payload = [utf16("--password=1234"), utf16("Linux"), utf16("x64")].concat();
    let secret = &payload[..30];
    let text = 18u32.to_le_bytes();
    let names = |names: &[&str]| {
        let count = u32::try_from(names.len()).unwrap().to_le_bytes();
        names.iter().fold(count.to_vec(), |all, name| [&all[..], &text, &utf16(name)].concat())
    };
    // A tag with V2 fields: its size, kind, and the size, name and type of each field.
    let field = |name: &str| {
        let body = [&utf16(name)[..], &text].concat();
        [&u32::try_from(body.len() + 4).unwrap().to_le_bytes()[..], &body].concat()
    };
    let tag = |fields: &[&str]| {
        let count = u32::try_from(fields.len()).unwrap().to_le_bytes();
        let body = fields.iter().fold(count.to_vec(), |all, name| [all, field(name)].concat());
        [&[0; 4], &u32::try_from(body.len()).unwrap().to_le_bytes()[..], &[2], &body].concat()
    };
    let (all, info) = (["CommandLine", "OSInformation", "ArchInformation"], "Microsoft-DotNETCore-EventPipe");
    let reordered = ["OSInformation", "CommandLine", "ArchInformation"];
    let slack = [&names(&all)[..], &20u32.to_le_bytes(), &[9], &payload[..20]].concat();
    let rest = &payload[32..];
    let kept = [&[0, 0][..], rest].concat();
    // The provider, the bytes after the level in the description, and the payload and the counts of the result.
    for (provider, fields, want, command_lines, unjudged) in [
        (info, names(&all), &kept[..], 1, 0),
        (info, tag(&all), &kept, 1, 0),
        (info, slack, &kept, 1, 0),
        (info, names(&all[..2]), &[], 1, 0),
        (info, names(&["CMDLINE"]), &[], 1, 0),
        ("Elsewhere", names(&["process.command_line", "x"]), &[], 1, 0),
        ("Elsewhere", names(&["process.command_line", "x", "y"]), &kept, 1, 0),
        // Without fields, with other names, in another order, and with damaged fields.
        (info, vec![], &[], 0, 1),
        (info, names(&["a", "b", "c"]), &[], 0, 1),
        (info, names(&reordered), &[], 0, 1),
        (info, names(&all)[..20].to_vec(), &[], 0, 1),
        (info, [&1u32.to_le_bytes()[..], &[99, 0, 0, 0, b'a', 0, 0, 0]].concat(), &[], 0, 1),
        (info, tag(&all)[..60].to_vec(), &[], 0, 1),
        (info, tag(&reordered), &[], 0, 1),
        ("microsoft-dotnetcore-eventpipe", names(&["a", "b", "c"]), &[], 0, 1),
        ("Elsewhere", vec![], &[], 0, 1),
        ("Elsewhere", [&names(&["a"])[..], &[7]].concat(), &[], 0, 1),
        ("Elsewhere", names(&["a", "b", "c"]), &payload, 0, 0),
    ] {
        let head = [&[1, 0, 0, 0], &utf16(provider)[..], &[1, 0, 0, 0, 0, 0], &[0; 16]].concat();
        let record = [head, fields].concat();
        let source = stream!(Version::V4,
            metadata(&Event { payload: &record, ..Event::default() });
            event(&Event { payload: &payload, ..numbered(7, 1, 1) });
        );
        for version in [Version::V4, Version::V6] {
            let options = RewriteOptions { strip_command_line: true, ..to(version) };
            let (result, report) = rewrite(&source, options).unwrap();
            assert_eq!(read(&result).events[0].payload, want, "{provider} {record:?} {version}");
            assert_eq!(
                (report.command_lines, report.unjudged),
                (command_lines, unjudged),
                "{provider} {record:?}"
            );
            let has_secret = result.windows(secret.len()).any(|window| window == secret);
            assert_eq!(has_secret, command_lines + unjudged == 0, "{record:?}");
        }
    }
    // A description that cannot be read, none, one that follows the event, and two of one id.
    let fields = |names: &[&'static str], space| {
        let fields: Vec<_> = names.iter().map(|name| (*name, Scalar::Utf16String)).collect();
        Fields::build(&fields, space).unwrap()
    };
    let (mut space, mut other) = ([0; 200], [0; 200]);
    let mut good = metadata(1, 1);
    (good.provider, good.fields) = (info.into(), fields(&all, &mut space));
    let mut bad = good;
    (bad.provider, bad.fields) = ("Elsewhere".into(), fields(&["a", "b", "c"], &mut other));
    let one = Event { payload: &payload, ..numbered(7, 1, 1) };
    let broken = Event { payload: secret, ..Event::default() };
    let late = written(Version::V4, |stream| {
        put!(stream.event(&one));
        stream.flush();
        put!(stream.describe(&good));
    });
    for (source, unjudged) in [
        (stream!(Version::V4, metadata(&broken); event(&one)), 2),
        (stream!(Version::V4, event(&one)), 1),
        (late, 1),
        (stream!(Version::V4, describe(&good); describe(&bad); event(&one)), 1),
        (stream!(Version::V4, describe(&bad); describe(&good); event(&one)), 1),
    ] {
        let options = RewriteOptions { strip_command_line: true, ..options() };
        let (result, report) = rewrite(&source, options).unwrap();
        assert!(!result.windows(secret.len()).any(|window| window == secret));
        assert_eq!((report.kept, report.unjudged, report.command_lines), (1, unjudged, 0));
    }
}

/// Returns the record with each of its bits changed, each of its bytes removed, and each of its ends removed.
fn mutations(record: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let flipped = (0..record.len() * 8).map(|bit| {
        let mut record = record.to_vec();
        record[bit / 8] ^= 1 << (bit % 8);
        record
    });
    let removed = (0..record.len()).map(|at| [&record[..at], &record[at + 1..]].concat());
    flipped.chain(removed).chain((0..record.len()).map(|len| record[..len].to_vec()))
}

/// Whatever a fault changes in the description of `ProcessInfo`, no version of the copy has the command line.
#[test]
fn a_damaged_description_keeps_no_command_line() {
    let payload: Vec<u8> =
        "--password=1234\0Linux\0x64\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let secret = &payload[..30];
    let fields = ["CommandLine", "OSInformation", "ArchInformation"].map(|name| (name, Scalar::Utf16String));
    let mut space = [0; 200];
    let mut info = metadata(1, 1);
    info.provider = "Microsoft-DotNETCore-EventPipe".into();
    info.name = "ProcessInfo".into();
    info.fields = Fields::build(&fields, &mut space).unwrap();
    let one = Event { payload: &payload, ..numbered(7, 1, 1) };
    for version in [Version::V4, Version::V6] {
        let described = written(version, |stream| put!(stream.describe(&info)));
        let [record] = &*descriptions(&described) else { panic!("{described:?}") };
        for record in mutations(record.payload) {
            let source = written(version, |stream| {
                put!(stream.metadata(&Event { payload: &record, ..Event::default() }));
                if version == Version::V6 {
                    put!(stream.thread(7, [ThreadEntry::ThreadId(7)]));
                }
                put!(stream.event(&one));
            });
            for version in [Version::V4, Version::V6] {
                let options = RewriteOptions { strip_command_line: true, ..to(version) };
                let (result, _) = rewrite(&source, options).unwrap();
                assert!(!result.windows(secret.len()).any(|window| window == secret), "{record:x?}");
            }
        }
    }
}

/// The name of a process has no space, but a command line can be in its place.
#[test]
fn names_of_processes() {
    for (name, payload, unjudged) in
        [("ProcessCreate", &b"\x01\x04\0bash\0\0"[..], 0), ("ExistingProcess", b"\x01\x06\0app -p\0\0", 1)]
    {
        let mut metadata = metadata(1, 1);
        (metadata.provider, metadata.name) = ("Universal.System".into(), name.into());
        let source = stream!(Version::V6,
            describe(&metadata);
            thread(7, [ThreadEntry::ThreadId(7)]);
            event(&Event { payload, ..numbered(7, 1, 1) });
        );
        let options = RewriteOptions { strip_command_line: true, ..options() };
        let (result, report) = rewrite(&source, options).unwrap();
        assert_eq!((report.unjudged, read(&result).events[0].payload.is_empty()), (unjudged, unjudged > 0));
    }
}

/// Labels, attributes of threads and of descriptions, and pairs of a V6 trace can have a command line too.
#[test]
fn command_lines_outside_of_payloads() {
    let pair = |key: &str, value: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [text(key), text(value)].concat()
    };
    let secret = "--password=1234";
    let pairs = [pair("CommandLine", secret), pair("Host", "h")].concat();
    let trace =
        nettrace::Trace { pairs: nettrace::Pairs::from_bytes(&pairs), ..nettrace::Trace::new(Version::V6) };
    // The optional parts of a row: two attributes.
    let attributes = [&[6][..], &pair("cmdline", secret), &[6], &pair("owner", "me")].concat();
    let row =
        [&[1, 1, b'p', 1, 0, 0, 0], &[u8::try_from(attributes.len()).unwrap(), 0][..], &attributes].concat();
    let mut buf = vec![0; TraceWriter::BUFFER];
    let mut stream = stream::Stream::new(&trace, &mut buf);
    put!(stream.metadata(&Event { payload: &row, ..Event::default() }));
    put!(
        stream.thread(7, [ThreadEntry::Pair("command-line".into(), secret.into()), ThreadEntry::ThreadId(7)])
    );
    put!(
        stream
            .label_list(1, [Label::Text("CommandLine".into(), secret.into()), Label::Number("n".into(), 1)])
    );
    put!(stream.label_list(2, [Label::Text("CommandLine".into(), secret.into())]));
    put!(stream.event(&Event { label_list: 1, ..numbered(7, 1, 1) }));
    put!(stream.event(&Event { label_list: 2, ..numbered(7, 2, 1) }));
    let source = stream.finish();
    for version in [Version::V4, Version::V6] {
        let options = RewriteOptions { strip_command_line: true, ..to(version) };
        let (result, report) = rewrite(&source, options).unwrap();
        let contains = |text: &str| result.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!contains(secret) && contains("Host") == (version == Version::V6), "{version}");
        assert_eq!((report.kept, read(&result).end), (2, End::Complete));
        if version == Version::V6 {
            assert_eq!((report.command_lines, report.unjudged), (5, 0));
        }
    }
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
    assert_eq!(rewrite(&[], to(Version::V3)), Err(RewriteError::Write(WriteError::Version(Version::V3))));
    let no_room = RewriteError::Write(WriteError::BufferTooSmall { needed: 12 });
    assert_eq!(rewrite_with(&[], options(), 11, 0), Err(no_room));
}
