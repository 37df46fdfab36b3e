//! `dotnet-ipc report`, `flame`, `gc`, `jit` and `requests` of a runtime that records.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;

use ipc_proto::{Code, CollectTracing4, HResult};
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{Ran, finish, run, tool, until};
use crate::traces::{analysed, lossy};

const COLLECT_TRACING: Code = Code(0x0202);
const COLLECT_TRACING_2: Code = Code(0x0203);
const COLLECT_TRACING_3: Code = Code(0x0204);
const COLLECT_TRACING_4: Code = Code(0x0205);
const STOP_TRACING: Code = Code(0x0201);
const RESUME: Code = Code(0x0401);

const STARTUP: &str = "net10-startup.nettrace";
const COLLECTIONS: &str = "net10-collections.nettrace";
const COMPILATIONS: &str = "net10-compilations.nettrace";
const REQUESTS: &str = "net10-requests.nettrace";
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

fn trace(name: &str) -> Vec<u8> {
    fs::read(analysed(name)).unwrap()
}

/// Starts a runtime that sends this trace, and its last byte only after the request to stop.
fn traced(stream: Vec<u8>) -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in [COLLECT_TRACING, COLLECT_TRACING_2, COLLECT_TRACING_3, COLLECT_TRACING_4] {
        let stream = stream.clone();
        runtime.on(code, move |_| Response::Trace(stream.clone()));
    }
    runtime
}

/// Runs a command with the runtime's socket.
fn live(runtime: &FakeRuntime, command: &str, options: &[&str]) -> Ran {
    finish(started(runtime, command, options))
}

fn started(runtime: &FakeRuntime, command: &str, options: &[&str]) -> Child {
    let socket = runtime.path().to_str().unwrap();
    tool(&[&[command, "--socket", socket], options].concat()).spawn().unwrap()
}

fn asked(runtime: &FakeRuntime, code: Code) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(code))
}

/// A recording shows the same as the file with the same bytes. The runtime ends the recording.
#[test]
fn the_results_are_those_of_the_trace() {
    for (command, name, options) in [
        ("report", STARTUP, &["--wall", "--top", "30", "--threads", "--tree"][..]),
        ("report", STARTUP, &["--thread-time", "--json"]),
        ("report", STARTUP, &["--event", SAMPLER, "--json"]),
        ("gc", COLLECTIONS, &[]),
        ("gc", COLLECTIONS, &["--json"]),
        ("gc", COLLECTIONS, &["--csv"]),
        ("gc", COLLECTIONS, &["--summary", "--json"]),
        ("jit", COMPILATIONS, &[]),
        ("jit", COMPILATIONS, &["--csv"]),
        ("requests", REQUESTS, &[]),
        ("requests", REQUESTS, &["--json"]),
    ] {
        let runtime = traced(trace(name));
        let live = live(&runtime, command, &[options, &["--duration", "100ms"]].concat()).well();
        let path = analysed(name);
        let file = run(&[&[command, &path], options].concat()).well();
        assert_eq!(live.text(), file.text(), "{command} {options:?}");
        assert!(asked(&runtime, STOP_TRACING) && asked(&runtime, RESUME), "{command}");
    }
}

#[test]
fn flame_graphs_of_a_process() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.folded");
    let (output, path) = (file.to_str().unwrap(), analysed(STARTUP));
    let runtime = traced(trace(STARTUP));
    let ran = live(&runtime, "flame", &["-o", output, "--wall", "--duration", "100ms"]);
    assert!(ran.status == Some(0) && ran.stderr.starts_with("Wrote "), "{ran:?}");
    let converted = run(&["convert", &path, "-o", "-", "--format", "folded", "--wall"]).into_text();
    assert!(!converted.is_empty() && fs::read_to_string(&file).unwrap() == converted);

    // A file that cannot be written is reported before the process is recorded.
    let before = runtime.requests().len();
    live(&runtime, "flame", &["-o", output]).fails(1, "exists already");
    live(&runtime, "flame", &["-o", "/nowhere/x.html"]).fails(1, "cannot write /nowhere/x.html");
    live(&runtime, "flame", &["-o", "x"]).fails(2, "states no format");
    assert_eq!(runtime.requests().len(), before);
    let entries = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(entries, 1, "temporary files remain");
}

type Session = (Vec<(String, u64, u32)>, u64);

/// Returns the providers and the rundown that a command asks for.
fn session(command: &str, options: &[&str]) -> Session {
    let runtime = traced(trace(STARTUP));
    live(&runtime, command, &[options, &["--duration", "0"]].concat());
    let requests = runtime.requests();
    let request = requests.iter().find(|request| request.code() == Some(COLLECT_TRACING_4)).unwrap();
    let session: CollectTracing4<'_> = request.message().unwrap().decode().unwrap();
    let providers = { session.providers.iter() }
        .map(|provider| (provider.name.to_string(), provider.keywords, provider.level.0));
    (providers.collect(), session.rundown_keyword)
}

#[test]
fn the_clock_decides_what_is_recorded() {
    /// Keywords of the names of methods and modules: in the rundown at the end, and for methods that are compiled
    /// meanwhile.
    const NAMES: u64 = 0x138;
    const CODE: u64 = 0x18;
    let provider = |name: &str, keywords, level| (name.to_owned(), keywords, level);
    let samples = vec![provider(SAMPLER, 0xf000_0000_0000, 4), provider(RUNTIME, CODE, 5)];
    for options in [&[][..], &["--cpu"], &["--wall"], &["--thread-time"]] {
        assert_eq!(session("report", options), (samples.clone(), NAMES), "{options:?}");
    }
    assert_eq!(session("flame", &["-o", "-", "--format", "folded"]), (samples.clone(), NAMES));
    // A page has several clocks, so its session has the events of all of them.
    let page = vec![samples[0].clone(), provider(RUNTIME, 0xc00_0000_c019, 5)];
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.html");
    assert_eq!(session("flame", &["-o", file.to_str().unwrap()]), (page, NAMES));
    for (option, keywords) in
        [("--allocations", 0x800_0000_0019), ("--exceptions", 0x8018), ("--contention", 0x4018)]
    {
        let expected = vec![provider(RUNTIME, keywords, 5)];
        assert_eq!(session("report", &[option]), (expected, NAMES), "{option}");
    }
    let expected = vec![provider("Shop", u64::MAX, 5), provider(RUNTIME, CODE, 5)];
    assert_eq!(session("report", &["--event", "Shop/3"]), (expected, NAMES));
    let (providers, _) = session("report", &["--event", &format!("{RUNTIME}/80")]);
    // Not the keywords GCHeapDump and GCHeapCollect, which stop the program for a long time.
    assert_eq!((providers.len(), providers[0].1 & 0x90_8018), (1, 0x8018), "{providers:?}");
    let (providers, _) = session("report", &["--event", "all"]);
    assert_eq!(providers.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), [RUNTIME, SAMPLER]);
}

#[test]
fn requests_are_recorded_with_activity_ids() {
    for (options, tasks) in [(&[][..], 0x88), (&["--no-waits"], 0x80)] {
        let (providers, rundown) = session("requests", options);
        let expected = [
            ("Microsoft.AspNetCore.Hosting", 0xf000_0000_0000, 4),
            ("System.Net.Http", 0xf000_0000_0000, 4),
            ("System.Threading.Tasks.TplEventSource", tasks, 4),
            (RUNTIME, 0x18, 5),
        ];
        assert_eq!(
            (providers, rundown),
            (expected.map(|(name, of, level)| (name.to_owned(), of, level)).into(), 0x138)
        );
    }
}

/// Collections and compilations need neither stacks nor names. No note mentions that older runtimes send stacks.
#[test]
fn sessions_without_stacks() {
    for (command, name, keywords, level) in [("gc", COLLECTIONS, 1, 4), ("jit", COMPILATIONS, 0x10, 5)] {
        let runtime = traced(trace(name));
        live(&runtime, command, &["--duration", "0"]).well();
        let codes: Vec<_> = runtime.requests().iter().filter_map(|request| request.code()).collect();
        assert_eq!(codes[0], COLLECT_TRACING_3, "{command}");
        let bytes = &runtime.requests()[0].bytes;
        // After the header, the buffer and the format: no rundown, no stacks, one provider.
        assert_eq!(bytes[28..34], [0, 0, 1, 0, 0, 0], "{command}");
        assert_eq!(u64::from_le_bytes(bytes[34..42].try_into().unwrap()), keywords, "{command}");
        assert_eq!(bytes[42], level, "{command}");

        let runtime = FakeRuntime::start(Profile::net8()).unwrap();
        let stream = trace(name);
        runtime.on(COLLECT_TRACING_2, move |_| Response::Trace(stream.clone()));
        live(&runtime, command, &["--duration", "0"]).well();
    }
}

/// Without a duration, a signal ends the recording, and the received events are reported.
#[test]
#[cfg(unix)]
fn a_signal_ends_the_recording() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.html");
    for (command, options) in [
        ("report", &["--wall"][..]),
        ("gc", &[]),
        ("flame", &["--wall", "-o", file.to_str().unwrap(), "--overwrite"]),
    ] {
        for signal in [Signal::INT, Signal::TERM] {
            let runtime = traced(trace(if command == "gc" { COLLECTIONS } else { STARTUP }));
            let child = started(&runtime, command, options);
            until("the session does not start", || asked(&runtime, RESUME));
            kill_process(Pid::from_child(&child), signal).unwrap();
            let ran = finish(child);
            assert_eq!(ran.status, Some(0), "{command}: {ran:?}");
            assert!(asked(&runtime, STOP_TRACING));
            if command == "flame" {
                assert!(fs::read_to_string(&file).unwrap().contains("</html>"));
            } else {
                // The end takes long beside busy processor cores.
                let is_wait =
                    |line: &str| line.starts_with("note: waiting for the process to end its session");
                assert!(ran.text().len() > 100 && ran.stderr.lines().all(is_wait), "{ran:?}");
            }
        }
    }
}

/// A runtime that does not end the session does not delay a second signal, which ends the tool. No file remains.
#[test]
#[cfg(unix)]
fn a_second_signal_ends_the_tool() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.html");
    let runtime = traced(trace(STARTUP));
    runtime.set_fault(Fault::StallStream(60_000));
    let child = started(&runtime, "flame", &["-o", file.to_str().unwrap()]);
    until("the session does not start", || asked(&runtime, RESUME));
    let process = Pid::from_child(&child);
    kill_process(process, Signal::INT).unwrap();
    until("the session does not stop", || asked(&runtime, STOP_TRACING));
    kill_process(process, Signal::INT).unwrap();
    let ran = finish(child);
    assert_eq!((ran.status, ran.stderr.as_str()), (None, ""), "{ran:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Rows are written as their events arrive: the runtime sends the end only after the signal.
#[test]
#[cfg(unix)]
fn rows_are_written_as_they_come() {
    let expected = run(&["gc", &analysed(COLLECTIONS), "--json"]).well().lines();
    for format in ["--json", "--csv"] {
        let runtime = traced(trace(COLLECTIONS));
        let mut child = started(&runtime, "gc", &[format]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        if format == "--json" {
            assert_eq!(serde_json::from_str::<Value>(&first).unwrap(), expected[0]);
        } else {
            assert!(first.starts_with("process_id,number,"));
            assert_eq!(lines.next().unwrap().unwrap().split(',').nth(1), Some("1"));
        }
        assert!(!asked(&runtime, STOP_TRACING));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(lines.count(), expected.len() - 1);
        finish(child).well();
    }
}

#[test]
#[cfg(unix)]
fn a_reader_that_wants_no_more_rows_ends_the_session() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let runtime = traced(trace(COLLECTIONS));
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let mut command = tool(&["gc", "--json", "--socket", runtime.path().to_str().unwrap()]);
    finish(command.stdout(OwnedFd::from(theirs)).spawn().unwrap()).well();
    assert!(asked(&runtime, STOP_TRACING));
}

#[test]
fn a_runtime_that_exits() {
    const ANSWER: usize = 28;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.folded");
    let output = file.to_str().unwrap();
    for (command, name, options) in [
        ("report", STARTUP, &["--wall", "--json"][..]),
        ("flame", STARTUP, &["--wall", "--json", "-o", output]),
        ("gc", COLLECTIONS, &["--json"]),
        ("jit", COMPILATIONS, &["--json"]),
    ] {
        let stream = trace(name);
        let runtime = traced(stream.clone());
        runtime.set_fault(Fault::CloseAfter(ANSWER + stream.len() / 2));
        let ran = live(&runtime, command, options);
        assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(7), &json!("gone")), "{ran:?}");
        assert!(ran.stderr.contains("the process exited while recording"), "{ran:?}");
        assert!(!ran.lines().is_empty(), "{command}");

        // Before the first event, there is nothing to report.
        runtime.set_fault(Fault::CloseAfter(ANSWER));
        fs::remove_file(&file).ok();
        let ran = live(&runtime, command, options);
        assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(7), &json!("gone")), "{ran:?}");
        assert_eq!((ran.text(), file.exists()), ("", false), "{command}");
    }
}

#[test]
fn lost_events_are_reported_with_advice() {
    let runtime = traced(lossy());
    let ran = live(&runtime, "report", &["--event", "Demo", "--duration", "0", "--buffer", "3", "--json"]);
    assert_eq!((ran.status, &ran.json()["lost"]), (Some(0), &json!(6)), "{ran:?}");
    let note = ran.error()["note"].as_str().unwrap().to_owned();
    assert!(
        note.starts_with("6 of 9 events were lost")
            && note.ends_with("larger than 64 KiB, which no runtime records"),
        "{note}"
    );
}

#[test]
fn what_is_missing() {
    let socket = |runtime: &FakeRuntime| runtime.path().to_str().unwrap().to_owned();
    let empty = traced(lossy());
    for (command, options, what, how) in [
        ("report", &[][..], "sent no samples of threads", "compiled ahead of time sends them since .NET 10"),
        ("report", &["--allocations"], "sent no allocation", "record for longer with --duration"),
        ("report", &["--exceptions"], "threw no exception", "record for longer with --duration"),
        ("report", &["--contention"], "did not wait for a lock", "record for longer with --duration"),
        ("report", &["--event", "Shop/1"], "sent no such event", "check the name of the provider"),
        ("flame", &["--wall", "-o", "x.html"], "sent no samples of threads", "--allocations"),
        ("gc", &[], "ran no garbage collection", "record for longer with --duration"),
        ("gc", &["--json"], "ran no garbage collection", "record for longer with --duration"),
        ("jit", &[], "compiled no method", "record for longer with --duration"),
        ("requests", &[], "began to receive or send no HTTP request", "EventSourceSupport"),
    ] {
        let ran = live(&empty, command, &[options, &["--duration", "0"]].concat());
        // A list can be empty, but a report and a graph cannot.
        let status = if ["gc", "jit", "requests"].contains(&command) { 0 } else { 9 };
        assert_eq!((ran.status, ran.text()), (Some(status), ""), "{ran:?}");
        let error = ran.stderr.lines().last().unwrap();
        let mut path = socket(&empty);
        if options.contains(&"--json") {
            path = path.replace('\\', r"\\");
        }
        assert!(error.contains(&format!("{path} {what}")) && error.contains(how), "{error}");
    }
    // A suspended runtime that is not resumed sends nothing.
    let suspended = traced(Vec::new());
    let ran = live(&suspended, "report", &["--no-resume", "--duration", "0"]);
    ran.fails(1, "the runtime was suspended until its end").fails(1, "dotnet-ipc resume");
    assert!(!asked(&suspended, RESUME));
}

#[test]
fn sessions_that_fail() {
    let refusing = FakeRuntime::start(Profile::net10()).unwrap();
    for code in [COLLECT_TRACING_2, COLLECT_TRACING_3, COLLECT_TRACING_4] {
        refusing.on(code, |_| Response::Refuse(HResult::BAD_ENCODING));
    }
    for command in ["report", "gc", "jit"] {
        live(&refusing, command, &[]).fails(5, "0x80131384");
    }
    let garbage = traced(b"garbage, and more of it".to_vec());
    live(&garbage, "report", &[]).fails(6, "corrupt");
    assert!(asked(&garbage, STOP_TRACING));

    let endless = traced(trace(STARTUP));
    endless.set_fault(Fault::StallStream(60_000));
    let ran = live(&endless, "report", &["--wall", "--json", "--duration", "0", "--timeout", "500ms"]);
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(4), &json!("timeout")), "{ran:?}");
    assert!(ran.json()["samples"].as_u64().unwrap() > 0);
}

#[test]
fn files_and_processes() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let runtime = traced(trace(STARTUP));
    live(&runtime, "report", &["--duration", "0", "--wire-log", log.to_str().unwrap()]).well();
    assert!(fs::read_to_string(&log).unwrap().lines().count() >= 4);

    // A number is a process, and with --file a file.
    let number = directory.path().join("4294967295");
    fs::copy(analysed(STARTUP), &number).unwrap();
    let in_folder = |args: &[&str]| finish(tool(args).current_dir(directory.path()).spawn().unwrap());
    in_folder(&["report", "4294967295", "--file"]).well();
    in_folder(&["report", "4294967295"]).fails(3, "4294967295");
    in_folder(&["gc", "4294967296"]).fails(3, "there is no process 4294967296");
    let file = analysed(STARTUP);
    for command in ["report", "gc", "jit"] {
        for options in
            [&["--duration", "1s"][..], &["--no-resume"], &["--timeout", "1s"], &["--wire-log", "x"]]
        {
            let ran = run(&[&[command, &file], options].concat());
            ran.fails(2, "is a file, so options for sessions do not apply");
        }
        run(&[command]).fails(2, "PID|FILE");
        run(&[command, &file, "--name", "x"]).fails(2, "cannot be used with");
    }
}
