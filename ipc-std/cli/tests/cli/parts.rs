//! `--from`, `--to` and `--thread`, on every command that reads a trace.
use std::collections::BTreeMap;
use std::fs;

use nettrace::{Event, Metadata, Stack, ThreadEntry, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{Ran, run, run_with};
use crate::traces::{analysed, path, put};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns the row of a method of 256 bytes at an address.
fn method(start: u64, name: &str) -> Vec<u8> {
    let ids = [start, 42, start].into_iter().flat_map(u64::to_le_bytes);
    let mut payload: Vec<u8> =
        ids.chain(0x100_u32.to_le_bytes()).chain([0; 4]).chain(numbers(&[8])).collect();
    payload.extend([utf16("Shop.Cart"), utf16(name), utf16("instance void  ()")].concat());
    payload.extend([0; 10]);
    payload
}

/// Returns the start of the compilation of the method at an address.
fn jitting(start: u64, name: &str) -> Vec<u8> {
    let ids = [start, 42].into_iter().flat_map(u64::to_le_bytes);
    let mut payload: Vec<u8> = ids.chain([0; 8]).collect();
    payload.extend([utf16("Shop.Cart"), utf16(name), utf16("instance void  ()"), vec![0; 2]].concat());
    payload
}

const SECOND: u64 = 1_000_000_000;

/// Returns a trace of 4 seconds. Threads 1 and 2 are sampled 10 times a second, in `Early` and in `Late`. The name of
/// the one comes from an event before the samples, that of the other from the rundown after them. At seconds 1, 2 and 3
/// there is a collection, and a compilation on thread 2. Thread 1 waits for a lock from second 1.5 to 2.5.
fn trace(version: Version) -> Vec<u8> {
    let kinds: [(&str, u32, u32); 13] = [
        (SAMPLER, 0, 0),
        (RUNTIME, 143, 2),
        (RUNTIME, 145, 1),
        (RUNTIME, 9, 1),
        (RUNTIME, 8, 1),
        (RUNTIME, 1, 2),
        (RUNTIME, 2, 1),
        (RUNTIME, 4, 2),
        (RUNTIME, 3, 1),
        (RUNTIME, 81, 1),
        (RUNTIME, 91, 1),
        (RUNDOWN, 144, 1),
        (RUNTIME, 14, 1),
    ];
    let mut events = Vec::new();
    let ms = SECOND / 1_000;
    events.push((10 * ms, 1, (RUNTIME, 143), method(0x1000, "Early")));
    events.push((15 * ms, 9, (RUNTIME, 14), vec![0; 2]));
    for tenth in 1..40 {
        for thread in [1, 2] {
            events.push((tenth * 100 * ms + thread, thread, (SAMPLER, 0), numbers(&[2])));
        }
    }
    for (number, second) in (1..).zip(1_u64..4) {
        let start = second * SECOND + 20 * ms;
        let collection = [
            (9, numbers(&[1, number])),
            (8, vec![0; 2]),
            (1, numbers(&[number, 0, 0, 0])),
            (2, numbers(&[number, 0])),
            (4, vec![0; 110]),
            (3, vec![0; 2]),
        ];
        for (step, (id, payload)) in (0..).zip(collection) {
            events.push((start + step * ms, 1, (RUNTIME, id), payload));
        }
        let (address, name) = (0x10_0000 * second, format!("Compiled{second}"));
        events.push((start + 10 * ms, 2, (RUNTIME, 145), jitting(address, &name)));
        events.push((start + 15 * ms, 2, (RUNTIME, 143), method(address, &name)));
    }
    events.push((SECOND * 3 / 2, 1, (RUNTIME, 81), vec![0; 3]));
    events.push((SECOND * 5 / 2, 1, (RUNTIME, 91), vec![0; 11]));
    events.push((5 * SECOND, 1, (RUNDOWN, 144), method(0x2000, "Late")));
    events.sort_by_key(|event| event.0);

    let (mut buf, mut out) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).unwrap();
    for (id, (provider, event_id, version)) in (1..).zip(kinds) {
        let mut metadata = Metadata::new(id, provider, event_id, "");
        metadata.version = version;
        put!(out, writer.describe(&metadata));
    }
    if version == Version::V6 {
        for (index, name) in [(1, "worker-1"), (2, "worker-10"), (9, "")] {
            let entries = [ThreadEntry::ThreadId(index), ThreadEntry::Name(name.into())];
            out.extend_from_slice(&writer.thread(index, entries).unwrap());
        }
    }
    for (id, address) in [(1, 0x1010_u64), (2, 0x2010)] {
        put!(out, writer.stack(&Stack { id, bytes: &address.to_le_bytes() }));
    }
    let mut sequences = BTreeMap::new();
    for (timestamp, thread, (provider, event_id), payload) in &events {
        let kind = kinds.iter().position(|kind| (kind.0, kind.1) == (*provider, *event_id)).unwrap();
        let sequence = sequences.entry(*thread).and_modify(|sequence| *sequence += 1).or_insert(1);
        let event = Event {
            metadata_id: u32::try_from(kind + 1).unwrap(),
            sequence: *sequence,
            thread: *thread,
            capture_thread: *thread,
            timestamp: *timestamp,
            payload,
            stack_id: if *thread == 2 { 2 } else { 1 },
            ..Event::default()
        };
        put!(out, writer.event(&event));
    }
    out.extend_from_slice(&writer.finish());
    out
}

/// A file in a directory that is removed at the end.
struct TraceFile(tempfile::TempDir);

impl TraceFile {
    fn new(bytes: &[u8]) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        fs::write(file.path(), bytes).unwrap();
        file
    }

    fn path(&self) -> String {
        self.0.path().join("app.nettrace").to_str().unwrap().to_owned()
    }

    /// Runs a command on the file.
    fn run(&self, command: &str, args: &[&str]) -> Ran {
        run(&[&[command, &self.path()], args].concat())
    }
}

const EARLY: &str = "ManagedModule!Shop.Cart.Early()";
const LATE: &str = "ManagedModule!Shop.Cart.Late()";

#[test]
fn report_of_a_part() {
    for version in [Version::V4, Version::V6] {
        let file = TraceFile::new(&trace(version));
        let report = |args: &[&str]| file.run("report", &[&["--json", "--cpu"], args].concat()).well().json();
        let names = |report: &Value| -> Vec<String> {
            let frames = report["frames"].as_array().unwrap();
            frames.iter().map(|frame| frame["name"].as_str().unwrap().to_owned()).collect()
        };
        for (args, samples) in [
            (&[][..], 78),
            (&["--from", "1"], 60),
            (&["--to", "00:00:01.95"], 38),
            (&["--from", "1s", "--to", "1950ms"], 20),
            // The trace starts in 1970.
            (&["--from", "1970-01-01T00:00:01Z", "--to", "1970-01-01T00:00:01.95Z"], 20),
        ] {
            let report = report(args);
            assert_eq!(
                (&report["total"], &report["unnamed_frames"]),
                (&json!(samples), &json!(0.0)),
                "{args:?}"
            );
            assert_eq!(names(&report), [EARLY, LATE], "{args:?}");
        }
        for (args, samples, name) in [
            (&["--thread", "2"][..], 39, LATE),
            (&["--thread", "1", "--from", "1", "--to", "1.95"], 10, EARLY),
        ] {
            let report = report(args);
            assert_eq!(
                (&report["total"], names(&report)),
                (&json!(samples), vec![name.to_owned()]),
                "{args:?}"
            );
        }
        assert_eq!(report(&["--thread", "2", "--thread", "1"])["total"], 78);
        let waits =
            |args: &[&str]| file.run("report", &[&["--json", "--contention"], args].concat()).well().json();
        assert_eq!(waits(&["--from", "2", "--to", "2.1"])["total"], 100_000_000);
        assert_eq!(waits(&["--from", "2"])["total"], 500_000_000);
        assert_eq!(waits(&["--to", "2", "--thread", "1"])["total"], 500_000_000);
        // The older trace is read whole.
        let diff = file.run("report", &["--json", "--to", "1.95", "--diff", &file.path()]).well().json();
        assert_eq!((&diff["samples"], &diff["samples_before"]), (&json!(38), &json!(78)));
    }
}

#[test]
fn flame_of_a_part() {
    let file = TraceFile::new(&trace(Version::V4));
    let folded = |args: &[&str]| {
        let ran = file.run("flame", &[&["-o", "-", "--format", "folded"], args].concat());
        let line = |line: &str| {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), weight.parse::<u64>().unwrap())
        };
        ran.text().lines().map(line).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(folded(&["--from", "1", "--to", "1.95"]), [(EARLY.into(), 10), (LATE.into(), 10)].into());
    assert_eq!(folded(&["--thread", "2"]), [(LATE.into(), 39)].into());
    // A file in the order of time has no other times.
    let ran = file
        .run("flame", &["-o", "-", "--format", "speedscope", "--thread-time", "--from", "1", "--to", "2"]);
    let speedscope = ran.json();
    let profiles = speedscope["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 2);
    for profile in profiles {
        let events = profile["events"].as_array().unwrap();
        let at = |event: &Value| event["at"].as_f64().unwrap();
        assert!(events.iter().map(at).all(|at| (999.9..2000.1).contains(&at)), "{profile}");
    }
}

#[test]
fn collections_and_compilations_of_a_part() {
    let file = TraceFile::new(&trace(Version::V4));
    let numbers = |args: &[&str]| {
        let rows = file.run("gc", &[&["--json"], args].concat()).well().lines();
        rows.iter().map(|row| row["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&[]), [1, 2, 3]);
    assert_eq!(numbers(&["--from", "1.5"]), [2, 3]);
    // A collection belongs to a part that it overlaps.
    assert_eq!(numbers(&["--from", "2.022", "--to", "2.023"]), [2]);
    let ran = file.run("gc", &["--from", "1.5", "--to", "1.7"]);
    assert_eq!((ran.status, ran.text()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.ends_with("has no garbage collection in this part\n"), "{ran:?}");
    file.run("gc", &["--thread", "1"]).fails(2, "--thread does not apply");

    let methods = |args: &[&str]| {
        let rows = file.run("jit", &[&["--json"], args].concat()).well().lines();
        rows.iter().map(|row| row["method"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [early, first, second, third] =
        ["Early", "Compiled1", "Compiled2", "Compiled3"].map(|name| format!("Shop.Cart.{name}()"));
    assert_eq!(methods(&[]), [&early, &first, &second, &third].map(String::clone));
    // A compilation belongs to the part of its start.
    assert_eq!(methods(&["--from", "1.02", "--to", "2.032"]), [first.clone(), second.clone()]);
    assert_eq!(methods(&["--from", "1.032", "--to", "2.032"]), [&*second]);
    assert_eq!(methods(&["--thread", "2", "--to", "1.5"]), [first]);
    let summary = file.run("jit", &["--json", "--summary", "--from", "2.5"]).well().json();
    assert_eq!(summary["all"]["compilations"], 1);
}

#[test]
fn diagnosis_of_a_part() {
    let file = TraceFile::new(&trace(Version::V4));
    let figures = |args: &[&str]| file.run("diagnose", &[&["--json"], args].concat()).well().json();
    let (all, part) = (figures(&[]), figures(&["--from", "1.9", "--to", "2.5"]));
    for (key, of_all, of_part) in
        [("collections", 3, 1), ("samples", 78, 12), ("compiled_methods", 3, 1), ("lock_waits", 1, 1)]
    {
        assert_eq!((&all[key], &part[key]), (&json!(of_all), &json!(of_part)), "{key}: {all} {part}");
    }
    assert!((0.5..=0.6).contains(&part["seconds"].as_f64().unwrap()), "{part}");
    file.run("diagnose", &["--thread", "1"]).fails(2, "--thread does not apply");
}

#[test]
fn locks_of_a_part() {
    let file = TraceFile::new(&trace(Version::V4));
    let waits = |args: &[&str]| {
        let report = file.run("locks", &[&["--json"], args].concat()).well().json();
        ["waits", "wait_ms"].map(|key| report[key].as_f64().unwrap())
    };
    assert_eq!(waits(&[]), [1.0, 1000.0]);
    // A part is as if nothing else had been recorded.
    // A wait that has not ended counts up to the end of the part.
    assert_eq!(waits(&["--to", "2"]), [1.0, 500.0]);
    assert_eq!(waits(&["--from", "2"])[0], 0.0);
    assert_eq!(waits(&["--thread", "2"])[0], 0.0);
}

#[test]
fn events_and_statistics_of_a_part() {
    for version in [Version::V4, Version::V6] {
        let file = TraceFile::new(&trace(version));
        let all = file.run("events", &["--json", "--ordered"]).well().lines();
        for (args, time, threads) in [
            (&[][..], 0..=u64::MAX, &[1, 2, 9][..]),
            (&["--from", "1", "--to", "2.05"], SECOND..=2 * SECOND + SECOND / 20, &[1, 2, 9]),
            (&["--thread", "2"], 0..=u64::MAX, &[2]),
            (&["--thread", "2", "--thread", "9", "--to", "2"], 0..=2 * SECOND, &[2, 9]),
        ] {
            let is_inside = |event: &&Value| {
                let [at, thread] = ["time_ns", "thread_id"]
                    .map(|key| event[key].as_u64().unwrap_or_else(|| panic!("{event}")));
                time.contains(&at) && threads.contains(&thread)
            };
            let expected: Vec<&Value> = all.iter().filter(is_inside).collect();
            let found = file.run("events", &[&["--json", "--ordered"], args].concat()).well().lines();
            assert!(!found.is_empty() && found.iter().eq(expected), "{args:?}");
            let stats = file.run("stats", &[&["--json"], args].concat()).well().json();
            assert_eq!((&stats["events"], &stats["lost"]), (&json!(found.len()), &json!(0)), "{args:?}");
            let kinds = stats["by_event"].as_array().unwrap();
            let sum: u64 = kinds.iter().map(|kind| kind["count"].as_u64().unwrap()).sum();
            assert_eq!(sum, u64::try_from(found.len()).unwrap(), "{args:?}");
        }
        // The names of stacks come from events of other times.
        let args = ["--stacks", "--from", "1", "--to", "1.05", "--thread", "2", "--only", SAMPLER];
        assert!(file.run("events", &args).well().text().contains(LATE), "{version:?}");
    }
}

/// Each event of two parts is in exactly one of them, and together they are the part that has both.
#[test]
fn two_parts_together() {
    for name in [
        "gen-net10-small-mixed.nettrace",
        "gen-v6-onecollect-small.nettrace",
        "gen-net8-aot-lab-small.nettrace",
    ] {
        let source = path(name);
        let mut times: Vec<i64> = run(&["events", &source, "--json"])
            .well()
            .lines()
            .iter()
            .map(|event| event["time_ns"].as_i64().unwrap())
            .filter(|time| *time > 0)
            .collect();
        times.sort_unstable();
        let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let [a, b, c] = [1, 3, 7].map(|share| times[times.len() * share / 8]);
        // The end of the first part is the last time before the second one.
        let before = seconds(b - 1);
        let [a, b, c] = [a, b, c].map(seconds);
        let part = |from: &str, to: &str| {
            let lines = run(&["events", &source, "--json", "--from", from, "--to", to]).well().lines();
            let stats = run(&["stats", &source, "--json", "--from", from, "--to", to]).well().json();
            assert_eq!(stats["events"], lines.len(), "{name}");
            let mut lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            lines.sort();
            (lines, stats["lost"].as_u64().unwrap())
        };
        let ((mut first, lost), (second, more)) = (part(&a, &before), part(&b, &c));
        first.extend(second);
        first.sort();
        assert_eq!((first, lost + more), part(&a, &c), "{name}");
    }
}

#[test]
fn counters_of_a_part() {
    let file = path("../counters/net10-meters.nettrace");
    let samples = |args: &[&str]| run(&[&["counters", &file, "--json"], args].concat()).well().lines();
    let all = samples(&[]);
    let mut times: Vec<&str> = all.iter().map(|sample| sample["time"].as_str().unwrap()).collect();
    times.dedup();
    // Times are shown in microseconds, without the rest.
    let (from, last) = (times[times.len() / 3], times[times.len() / 3 * 2]);
    let to = last.replace('Z', "999Z");
    let inside: Vec<&Value> =
        all.iter().filter(|sample| (from..=last).contains(&sample["time"].as_str().unwrap())).collect();
    assert!(inside.len() > 3 && inside.len() < all.len());
    // The names of instruments, and what a counter grew by, come from the events before.
    let found = samples(&["--from", from, "--to", &to]);
    assert!(found.iter().eq(inside), "{found:#?}");
    run(&["counters", &file, "--from", "1h"]).fails(9, "this part of the trace has no samples");
    run(&["counters", "1", "--from", "1"]).fails(2, "a part of a trace");
}

#[test]
fn threads_by_name() {
    let file = TraceFile::new(&trace(Version::V6));
    let total = |name: &str| file.run("report", &["--json", "--thread", name]).well().json()["total"].clone();
    // The thread of this name, and not another one whose name begins so.
    assert_eq!(total("worker-1"), 39);
    assert_eq!(total("Worker-10"), 39);
    assert_eq!(total("worker"), 78);
    for command in ["report", "events", "stats", "jit"] {
        let ran = file.run(command, &["--thread", "painter"]);
        ran.fails(9, "no thread is named painter");
    }
    // Version 4 knows a thread only by its purpose.
    let file = TraceFile::new(&trace(Version::V4));
    let events = file.run("events", &["--thread", "finalizer", "--json"]).well().lines();
    assert_eq!(events.iter().map(|event| event["thread_id"].clone()).collect::<Vec<_>>(), [json!(9)]);
    let ran = file.run("report", &["--thread", "worker-1"]);
    assert!(ran.stderr.contains("version 4 names only") && ran.stderr.contains(".NET Finalizer"), "{ran:?}");
    // A name needs two readings.
    run_with(&["report", "-", "--thread", "finalizer"], trace(Version::V4)).fails(2, "must be a file");
    assert_eq!(
        run_with(&["report", "-", "--thread", "1", "--json"], trace(Version::V4)).well().json()["total"],
        39
    );
    run(&["report", "1", "--thread", ""]).fails(2, "a name or an ID is required");
    run(&["report", "1", "--thread", "finalizer"]).fails(2, "known only after the recording");
}

/// A part without anything says so, and what the trace has.
#[test]
fn parts_without_events() {
    let file = TraceFile::new(&trace(Version::V4));
    let times = "the events are from 0.010 s to 5.000 s";
    for (command, args) in [
        ("report", &[][..]),
        ("flame", &["-o", "-", "--format", "folded"]),
        ("gc", &[]),
        ("jit", &[]),
        ("diagnose", &[]),
        ("locks", &[]),
        ("stats", &[]),
        ("events", &[]),
    ] {
        let ran = file.run(command, &[args, &["--from", "1h"]].concat());
        assert_eq!(ran.status, Some(9), "{command}: {ran:?}");
        assert!(ran.stderr.contains("no event between --from and --to"), "{command}: {ran:?}");
        assert!(ran.stderr.contains(times) || command == "events", "{command}: {ran:?}");
        if !["gc", "diagnose"].contains(&command) {
            file.run(command, &[args, &["--thread", "77"]].concat()).fails(9, "no event of thread 77");
        }
        file.run(command, &[args, &["--from", "soon"]].concat()).fails(2, "2026-11-20T21:45:13Z");
    }
    file.run("report", &["--from", "1.01", "--to", "1.015"]).fails(9, "this part has nothing to show");
}

/// A cut keeps the names, whatever it leaves out, and `--only` can leave them out.
#[test]
fn a_cut_keeps_names() {
    let (whole, startup) = (TraceFile::new(&trace(Version::V4)), analysed("net10-startup.nettrace"));
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join("cut.nettrace").to_str().unwrap().to_owned();
    for (source, from, to) in [(whole.path(), "1", "1.95"), (startup, "0.3", "0.6")] {
        let range = ["--from", from, "--to", to];
        let whole = run(&[&["report", &source, "--wall", "--json"], &range[..]].concat()).well().json();
        for format in ["4", "6"] {
            let args = ["rewrite", &source, "-o", &cut, "--overwrite", "--format", format];
            let ran = run(&[&args[..], &range].concat());
            assert!(ran.stderr.contains(" of them from other times, because they name code) to "), "{ran:?}");
            let copy = run(&["report", &cut, "--wall", "--json"]).well().json();
            assert_eq!(copy, whole, "{source} {format}");
        }
        let args = ["rewrite", &source, "-o", &cut, "--overwrite", "--only", SAMPLER, "--json"];
        let summary = run(&[&args[..], &range].concat()).well().json();
        assert_eq!((&summary["names"], &summary["kept"]), (&json!(0), &whole["samples"]), "{source}");
    }
}
