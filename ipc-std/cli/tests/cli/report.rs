//! Tests of `dotnet-ipc report`, on recorded traces.

use std::fs;

use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace::{Event, Metadata, SequencePoint, Stack, Trace, TraceWriter, Version};
use serde_json::Value;

use crate::tool::{run, run_with};
use crate::traces::{analysed, lossy, lossy_with, path, put};

fn startup() -> String {
    analysed("net10-startup.nettrace")
}

fn names(report: &Value) -> Vec<&str> {
    report["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect()
}

#[test]
fn cpu_is_the_default() {
    // No method is one of the program.
    let text = run(&["report", &startup(), "--top", "2", "--own", "Nothing"]).well().into_text();
    assert_eq!(
        run(&["report", &startup(), "--top", "2", "--own", "Nothing", "--cpu"]).well().into_text(),
        text
    );
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("recorded ")).collect();
    assert_eq!(lines[0], "CPU: samples of threads in managed code");
    assert!(lines[1].starts_with("16 of 2,122 samples, 0 events lost, "), "{text}");
    assert_eq!(lines[2], "43.75 % of these samples: work for this recording (manifests of event sources)");
    assert_eq!(lines[3], "?!? (43.75 %) calls methods for the runtime: static constructors, reflection");
    assert_eq!(lines[5], "EXCLUSIVE INCLUSIVE  FUNCTION");
    // Two functions, and how many are missing.
    assert!(lines[6].contains(" % ") && lines[7].contains('!'), "{text}");
    assert!(lines[8].ends_with("shows all"), "{text}");
    assert_eq!(lines.len(), 9, "{text}");

    let text = run(&["report", &analysed("net31-sampled.nettrace"), "--cpu"]).well().into_text();
    assert!(text.contains("2 of 5,478 samples"), "{text}");
    let last = "1 thread only waits or runs native code (1,826 samples); --wall shows where";
    assert_eq!(text.lines().last(), Some(last));
}

/// The functions have the order and the shares of dotnet-trace.
#[test]
fn thread_time() {
    let report = run(&["report", &startup(), "--thread-time", "--json"]).well().json();
    assert_eq!((&report["clock"], &report["unit"]), (&"thread-time".into(), &"nanoseconds".into()));
    assert_eq!(report["lost"], 0);
    let expected = fs::read_to_string(analysed("net10-startup.topn.txt")).unwrap();
    let shares = |line: &str| -> Vec<f64> {
        line.split_whitespace().filter_map(|word| word.strip_suffix('%')?.parse().ok()).collect()
    };
    let expected: Vec<_> = expected.lines().map(shares).filter(|shares| shares.len() == 2).collect();
    let frames = report["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 20);
    for (frame, expected) in frames.iter().zip(expected) {
        assert!((frame["exclusive"].as_f64().unwrap() - expected[1]).abs() < 0.0151, "{frame} {expected:?}");
    }
}

/// Before all functions stand those of the program with what the framework does for them.
#[test]
fn own_functions_come_first() {
    let text = run(&["report", &startup(), "--top", "2"]).well().into_text();
    // They are within the first ten lines, so what samples do not see comes after them.
    let lines: Vec<_> = text.lines().skip(4).collect();
    assert_eq!(
        lines[..5],
        [
            "      OWN INCLUSIVE  FUNCTION OF THE PROGRAM",
            "  25.00 %   25.00 % *Workload!Work.Loop()",
            "  12.50 %   12.50 % *Workload!RichSource.Everything(int32)",
            "   6.25 %   31.25 % *Workload!Work.Main(class System.String[])",
            "",
        ]
    );
    let lines: Vec<_> = lines.into_iter().skip(3).collect();
    assert!(lines[2].contains(" of these samples: ") && lines[3].starts_with("?!? ("), "{text}");
    assert_eq!(lines[5], "EXCLUSIVE INCLUSIVE  FUNCTION");
    // Of functions of equal share, those of the program come first.
    assert_eq!(lines[6], "  12.50 %   12.50 % *Workload!RichSource.Everything(int32)");
    assert!(lines[7].starts_with("  12.50 %   12.50 %  System."), "{text}");

    let text = run(&["report", &startup(), "--by", "own"]).well().into_text();
    let lines: Vec<_> = text.lines().skip(6).collect();
    assert_eq!(lines[0], "      OWN INCLUSIVE  FUNCTION");
    assert!(lines[1].starts_with("  56.25 %            [no own code]"), "{text}");
    assert_eq!(lines[2], "  25.00 %   25.00 % *Workload!Work.Loop()");
    let report = run(&["report", &startup(), "--by", "own", "--json"]).well().json();
    let frames = report["frames"].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame["own"] == true), "{report}");
    let own: f64 = frames.iter().map(|frame| frame["own_share"].as_f64().unwrap()).sum();
    assert!((own + report["not_own"].as_f64().unwrap() - 100.0).abs() < 1e-6, "{report}");

    // Short names have lost the module, by which the framework is known.
    let short =
        run(&["report", &startup(), "--by", "own", "--short", "--own", "Workload"]).well().into_text();
    assert!(short.contains(" % *Work.Loop\n") && !short.contains("System."), "{short}");
    let pattern = ["report", &startup(), "--by", "own", "--own", "RichSource", "--own", "System.GC"];
    let text = run(&pattern).well().into_text();
    assert!(text.contains("*Workload!RichSource.Everything") && !text.contains("Work.Loop"), "{text}");
    assert!(text.contains("*System.Private.CoreLib!System.GC._Collect"), "{text}");
}

/// Functions that only carry threads and continuations become one, unless all are wanted.
#[test]
fn folded_functions() {
    let trace = startup();
    for options in [&["--tree"][..], &["--by", "inclusive"], &["--json", "--tree"]] {
        let report = |also: &[&str]| {
            let args = [&["report", &trace, "--wall", "--top", "1000"][..], options, also].concat();
            run(&args).well().into_text()
        };
        let is_folded = |text: &str| {
            let is_folded = text.contains("[threads and async]");
            assert_eq!(is_folded, !text.contains("System.Threading.Thread+StartHelper.Run("), "{text}");
            is_folded
        };
        assert!(is_folded(&report(&[])) && !is_folded(&report(&["--raw"])), "{options:?}");
        let times = run(&[&["report", &trace, "--thread-time", "--top", "1000"][..], options].concat());
        assert!(!is_folded(times.well().text()), "{options:?}");
    }
}

#[test]
fn orders_and_clocks() {
    let by = |args: &[&str]| {
        let trace = startup();
        let args = [&["report", &trace, "--json"], args].concat();
        run(&args).well().json()
    };
    let wall = by(&["--wall", "--by", "inclusive", "--top", "1000"]);
    assert_eq!((&wall["samples"], &wall["total"]), (&2122.into(), &2122.into()));
    let inclusive = |frame: &Value| frame["inclusive"].as_f64().unwrap();
    assert!(wall["frames"].as_array().unwrap().is_sorted_by(|a, b| inclusive(a) >= inclusive(b)));
    let exclusive: f64 =
        wall["frames"].as_array().unwrap().iter().map(|frame| frame["exclusive"].as_f64().unwrap()).sum();
    assert!((exclusive - 100.0).abs() < 1e-6);
    assert!(wall["unnamed_frames"].as_f64().unwrap() < 2.0);

    let sampler = "Microsoft-DotNETCore-SampleProfiler";
    for event in [sampler.to_owned(), format!("{sampler}/0")] {
        let events = by(&["--event", &event, "--by", "inclusive", "--top", "1000"]);
        assert_eq!(names(&events), names(&wall));
        assert_eq!(events["unit"], "events");
    }
    assert_eq!(by(&["--event", "all"])["total"], 2250);
}

#[test]
fn threads_and_tree() {
    let text = run(&["report", &startup(), "--wall", "--threads", "--tree"]).well().into_text();
    assert!(text.contains("THREAD  NAME, TOP FUNCTION") && text.contains("INCLUSIVE EXCLUSIVE  CALLS"));
    let report = run(&["report", &startup(), "--wall", "--threads", "--tree", "--json"]).well().json();
    let threads = report["threads"].as_array().unwrap();
    let sum: f64 = threads.iter().map(|thread| thread["share"].as_f64().unwrap()).sum();
    assert!((sum - 100.0).abs() < 1e-6 && threads.len() > 1);
    assert!(threads[0]["top"].as_str().unwrap().contains('!'));
    let tree = report["tree"].as_array().unwrap();
    let depth = |node: &Value| node["depth"].as_u64().unwrap();
    assert_eq!(depth(&tree[0]), 0);
    for pair in tree.windows(2) {
        assert!(depth(&pair[1]) <= depth(&pair[0]) + 1);
        if depth(&pair[1]) > depth(&pair[0]) {
            assert!(pair[1]["inclusive"].as_f64().unwrap() <= pair[0]["inclusive"].as_f64().unwrap());
        }
    }
}

#[test]
fn what_is_missing() {
    let collections = analysed("net10-collections.nettrace");
    for (args, what, how) in [
        (&[][..], "no samples of threads", "--profile dotnet-sampled-thread-time"),
        (&["--wall"], "no samples of threads", "compiled ahead of time sends them since .NET 10"),
        (&["--thread-time"], "no samples of threads", "--profile dotnet-sampled-thread-time"),
        (&["--allocations"], "no allocations", "--profile gc-verbose"),
        (&["--exceptions"], "no exceptions", "--clr-events exception"),
        (&["--contention"], "no contended locks", "--clr-events contention"),
        (&["--event", "System.Runtime"], "no such events", "dotnet-ipc stats"),
    ] {
        let args = [&["report", &collections], args].concat();
        run(&args).fails(9, what).fails(9, how);
        // With --json, the result is empty.
        let ran = run(&[&args[..], &["--json"]].concat());
        assert_eq!(
            (ran.status, &ran.json()["total"], &ran.json()["frames"]),
            (Some(9), &0.into(), &Value::Array(Vec::new()))
        );
    }
    run(&["report", &collections, "--event", "A/x"]).fails(2, "is not an ID");
    run(&["report", &collections, "--cpu", "--wall"]).fails(2, "cannot be used with");
    run(&["report", &path("no-such-file")]).fails(1, "cannot read");
}

/// The runtime sends some events without a stack, and a related one with it.
#[test]
fn events_without_stacks_name_those_that_have_one() {
    for (event, other) in [(85, 70), (1, 35)] {
        let event = format!("Microsoft-Windows-DotNETRuntime/{event}");
        let ran = run(&["report", &analysed("net10-startup.nettrace"), "--event", &event]).well();
        let expected = format!("; Microsoft-Windows-DotNETRuntime/{other} has the stack of the code that ");
        assert!(
            ran.text().contains("from threads that run no managed code") && ran.text().contains(&expected)
        );
    }
}

#[test]
fn events_without_stacks() {
    let args = ["report", "-", "--event", "Demo"];
    let ran = run_with(&args, lossy());
    assert!(ran.text().starts_with("Events of Demo\n3 events, 6 events lost"), "{ran:?}");
    assert!(ran.text().contains("\nno event has a stack: ") && !ran.text().contains("FUNCTION"), "{ran:?}");
    let ran = run_with(&[&args[..], &["--json"]].concat(), lossy());
    assert_eq!(ran.json()["frames"], Value::Array(Vec::new()));
    // All three events have the same time, so no time passes.
    let ran = run_with(&["report", "-", "--thread-time"], lossy());
    assert_eq!((ran.status, ran.text()), (Some(9), ""));
    assert!(ran.stderr.contains("standard input: no time is known; a time ends with "), "{ran:?}");
}

/// A trace that was cut is reported as far as it goes, and standard input is a trace too.
#[test]
fn truncated_and_from_standard_input() {
    let bytes = fs::read(startup()).unwrap();
    let whole = run_with(&["report", "-", "--wall", "--json"], bytes.clone()).well().json();
    let cut = run_with(&["report", "-", "--wall", "--json"], &bytes[..bytes.len() / 8]);
    let report: Value = serde_json::from_str(cut.text().lines().next().unwrap()).unwrap();
    cut.fails(6, "truncated");
    assert!(report["samples"].as_u64().unwrap() < whole["samples"].as_u64().unwrap());
    // The names come last in the trace, so the cut trace lacks some.
    assert!(report["unnamed_frames"].as_f64().unwrap() > whole["unnamed_frames"].as_f64().unwrap());
    run_with(&["report", "-"], *b"no trace").fails(6, "corrupt");
}

const POINT: u32 = u32::MAX;

/// Returns a trace of events of the runtime: each with its time in nanoseconds, thread, id, version and payload. An event
/// with id 0 is a sample, one with [`POINT`] a sequence point.
fn runtime_events(events: &[(u64, u64, u32, u32, Vec<u8>)]) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    put!(trace, writer.stack(&Stack { id: 1, bytes: &0x1000_u64.to_le_bytes() }));
    for (number, (time, thread, id, version, payload)) in (1..).zip(events) {
        if *id == POINT {
            put!(
                trace,
                writer.sequence_point(&SequencePoint { timestamp: *time, ..SequencePoint::default() })
            );
            continue;
        }
        let provider = match id {
            0 => "Microsoft-DotNETCore-SampleProfiler",
            _ => "Microsoft-Windows-DotNETRuntime",
        };
        let mut metadata = Metadata::new(number, provider, *id, "");
        metadata.version = *version;
        put!(trace, writer.describe(&metadata));
        let event = Event {
            metadata_id: number,
            sequence: number,
            thread: *thread,
            capture_thread: 1,
            timestamp: *time,
            payload,
            stack_id: 1,
            ..Event::default()
        };
        put!(trace, writer.event(&event));
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn allocations_by_type() {
    // AllocationSampled: kind, runtime, type, name, address, size, offset.
    let sampled =
        |of: &str, size: u64| [&[0; 14][..], &utf16(of), &[0; 8], &size.to_le_bytes(), &[0; 8]].concat();
    let trace = runtime_events(&[
        (1, 7, 303, 0, sampled("System.String", 24)),
        (2, 7, 303, 0, sampled("System.String", 24)),
        (3, 7, 303, 0, sampled("NULL", 1 << 60)),
        (4, 7, 303, 0, vec![0; 5]),
    ]);
    let args = ["report", "-", "--allocations", "--by-type"];
    let ran = run_with(&[&args[..], &["--json"]].concat(), trace.clone());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("allocations whose size is not known: 1; they are not counted"), "{ran:?}");
    let report = ran.json();
    // JavaScript would round a larger number than 2^53, so it is a text.
    let large = (1_u64 << 60).to_string();
    let types: Vec<_> = report["types"].as_array().unwrap().iter().collect();
    assert_eq!(types.len(), 2);
    let of = |row: &Value| (row["type"].clone(), row["bytes"].clone(), row["count"].clone());
    assert_eq!(of(types[0]), (Value::Null, large.as_str().into(), 1.into()));
    assert_eq!(of(types[1]), ("System.String".into(), 204_823.into(), 2.into()));
    let functions = report["type_functions"].as_array().unwrap();
    assert_eq!((of(&functions[1]), &functions[1]["function"]), (of(types[1]), &Value::from("?!?")));
    assert_eq!((&report["samples"], &report["uncounted"]), (&3.into(), &1.into()));
    let text = run_with(&args, trace.clone()).into_text();
    assert!(text.starts_with("Allocated bytes, estimated by sampled allocations\n"), "{text}");
    assert!(text.contains("COUNT  TYPE\n") && text.contains("COUNT  TYPE, FUNCTION\n"), "{text}");
    assert!(text.contains(" 0.205 MB          2  System.String, ?!?\n"), "{text}");
    let flame = ["flame", "-", "-o", "-", "--format", "folded", "--allocations", "--by-type"];
    assert!(run_with(&flame, trace.clone()).text().contains("?!?;System.String 204823\n"));
    run_with(&["report", "-", "--by-type"], trace).fails(2, "--allocations");
    let unknown = runtime_events(&[(1, 7, 10, 0, vec![0; 2])]);
    run_with(&args, unknown).fails(9, "standard input: the sizes of the allocations are not known");
}

#[test]
fn waits_without_an_end() {
    let (start, stop) = ((81, 1, vec![0; 3]), (91, 1, vec![0; 11]));
    let event = |time, thread, (id, version, payload): &(u32, u32, Vec<u8>)| {
        (time, thread, *id, *version, payload.clone())
    };
    let trace = runtime_events(&[
        event(1_000_000, 5, &stop),
        event(2_000_000, 6, &start),
        event(3_000_000, 7, &start),
        event(4_000_000, 7, &stop),
        event(5_000_000, 6, &start),
        event(9_000_000, 7, &start),
    ]);
    let ran = run_with(&["report", "-", "--contention", "--json"], trace.clone());
    let waits = serde_json::json!({ "open": 2, "without_end": 1, "without_start": 1 });
    assert_eq!((&ran.json()["total"], &ran.json()["waits"]), (&5_000_000.into(), &waits));
    let open = "waits that had not ended: 2; they count up to the end of the trace";
    let parts = "waits without an end in the trace: 1, ends without a start: 1; their times are not known";
    for args in [
        &["report", "-", "--contention"][..],
        &["flame", "-", "--contention", "-o", "-", "--format", "folded"],
    ] {
        let ran = run_with(args, trace.clone());
        assert!(ran.status == Some(0) && ran.stderr.contains(open) && ran.stderr.contains(parts), "{ran:?}");
    }
    let folded = run_with(&["flame", "-", "--contention", "-o", "-", "--format", "folded"], trace);
    assert_eq!(folded.text(), "?!? 5000000\n");
}

/// A recording lasts up to its last sequence point: events of other kinds are not needed for it.
#[test]
fn open_waits_count_to_the_end_of_the_trace() {
    let start = |time, thread| (time, thread, 81, 1, vec![0; 3]);
    let point = |time| (time, 0, POINT, 0, Vec::new());
    let trace = runtime_events(&[start(2_000_000, 6), start(5_000_000, 7), point(12_000_000)]);
    let totals = |options: &[&str]| {
        let json =
            |command: &[&str]| run_with(&[command, &["--json"], options].concat(), trace.clone()).json();
        let report = json(&["report", "-", "--contention"]);
        let flame = [&["flame", "-", "--contention", "-o", "-", "--format", "folded"], options].concat();
        let flame = run_with(&flame, trace.clone()).text().to_owned();
        (report["total"].clone(), flame, json(&["locks", "-"])["wait_ms"].clone())
    };
    assert_eq!(totals(&[]), (17_000_000.into(), "?!? 17000000\n".to_owned(), 17.0.into()));
    // A part ends at its own end, and needs no event.
    let args = ["report", "-", "--contention", "--json", "--from", "0.008"];
    assert_eq!(run_with(&args, trace.clone()).json()["total"], 8_000_000);
    assert_eq!(totals(&["--to", "0.006"]), (5_000_000.into(), "?!? 5000000\n".to_owned(), 5.0.into()));
}

/// A wait from before the recording has no event, but samples show it; those of a process are taken at the end.
#[test]
fn waits_from_before_the_recording() {
    let numbers = [1_u64, 1, 0x1000].map(u64::to_le_bytes).concat();
    let sizes = [0x100_u32, 0, 0].map(u32::to_le_bytes).concat();
    let name = ["System.Threading.Monitor", "Enter_Slowpath", "void ()"].map(utf16).concat();
    let method = (1, 1, 143, 1, [numbers, sizes, name].concat());
    let sample = |thread| (2, thread, 0, 0, vec![1, 0, 0, 0]);
    let trace = runtime_events(&[method.clone(), sample(5), sample(6)]);
    let expected = "2 threads wait for locks since before the recording";
    for args in
        [&["report", "-", "--contention"][..], &["flame", "-", "-o", "-", "--format", "html", "--contention"]]
    {
        let ran = run_with(args, trace.clone());
        assert_eq!(ran.status, Some(9), "{ran:?}");
        assert!(
            ran.stderr.contains(&format!(": no wait began or ended, but {expected}; see `stack`")),
            "{ran:?}"
        );
    }
    let report = run_with(&["report", "-", "--contention", "--json"], trace);
    assert_eq!(report.json()["waiting_before"], 2);
    let one = runtime_events(&[method.clone(), sample(5)]);
    run_with(&["report", "-", "--contention"], one).fails(9, "1 thread waits for a lock since before");
    let started = runtime_events(&[method.clone(), (1, 5, 81, 1, vec![0; 3]), sample(5), sample(6)]);
    let ran = run_with(&["report", "-", "--contention"], started);
    assert!(
        ran.stderr.contains("1 thread waits for a lock since before the recording: see `stack`"),
        "{ran:?}"
    );

    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    // The recording has a rundown, and the samples need none.
    for (code, events) in [(0x0205, vec![method]), (0x0203, vec![sample(5), sample(6)])] {
        let trace = runtime_events(&events);
        runtime.on(ipc_proto::Code(code), move |_| Response::Trace(trace.clone()));
    }
    let socket = runtime.path().to_str().unwrap().to_owned();
    let args = ["report", "--socket", &socket, "--contention", "--duration", "0"];
    let ran = run(&args);
    assert!(ran.stderr.contains(expected) && !ran.stderr.contains("record for longer"), "{ran:?}");
}

/// A sample shows the stack, but no time passes until the next one.
#[test]
fn one_sample() {
    let one =
        lossy_with(Metadata::new(0, "Microsoft-DotNETCore-SampleProfiler", 0, ""), &2_u32.to_le_bytes());
    for args in [
        &["report", "-", "--thread-time"][..],
        &["flame", "-", "--thread-time", "-o", "-", "--format", "speedscope"],
        &["flame", "-", "-o", "-", "--format", "chromium"],
    ] {
        let ran = run_with(args, one.clone());
        assert_eq!((ran.status, ran.text()), (Some(9), ""), "{ran:?}");
        assert!(
            ran.stderr.contains("standard input: no time is known; a time ends with the next event"),
            "{ran:?}"
        );
    }
    assert_eq!(run_with(&["report", "-"], one).status, Some(0));
}
