//! Tests of `dotnet-ipc trace --names-first`.

use std::fs;
use std::path::PathBuf;

use ipc_proto::{Code, CollectTracing2, CollectTracing4, HResult, Request};
use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace::{Event, Metadata, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{Ran, run, run_with};
use crate::traces::{analysed, path, put};

const COLLECT_TRACING_2: Code = Code(0x0203);
const COLLECT_TRACING_4: Code = Code(0x0205);
const STOP_TRACING: Code = Code(0x0201);
/// The keywords of the rundown that is taken at the start.
const NAMES: u64 = 0x138;

fn startup() -> Vec<u8> {
    fs::read(analysed("net10-startup.nettrace")).unwrap()
}

/// A runtime, and a folder for its traces.
struct Fixture {
    runtime: FakeRuntime,
    folder: tempfile::TempDir,
}

impl Fixture {
    /// Starts a runtime with this stream of the recording and this answer to the session of the rundown.
    fn new(recording: Vec<u8>, rundown: Response) -> Self {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        let stream = recording.clone();
        runtime.on(COLLECT_TRACING_4, move |request| {
            let Request::CollectTracing4(session) = request else { panic!("{request:?}") };
            if session.rundown_keyword == NAMES { rundown.clone() } else { Response::Trace(stream.clone()) }
        });
        // A session without rundown: the recording with --no-rundown, or the session beside the recording.
        runtime.on(COLLECT_TRACING_2, move |request| {
            let Request::CollectTracing2(session) = request else { panic!("{request:?}") };
            let is_recording = session.providers.iter().count() > 1;
            Response::Trace(if is_recording { recording.clone() } else { Vec::new() })
        });
        Self { runtime, folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("names.nettrace")
    }

    fn trace(&self, options: &[&str]) -> Ran {
        let (socket, file) = (self.runtime.path().to_str().unwrap(), self.file());
        let file = file.to_str().unwrap();
        let args =
            ["trace", "--socket", socket, "-o", file, "--names-first", "--duration", "0", "--overwrite"];
        run(&[&args[..], options].concat())
    }

    /// Records a trace that is complete. Returns the notes.
    fn complete(&self, options: &[&str]) -> String {
        let ran = self.trace(options);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        ran.stderr
    }

    fn stats(&self) -> Value {
        run(&["stats", self.file().to_str().unwrap(), "--json"]).well().json()
    }

    fn events(&self) -> Vec<Value> {
        run(&["events", self.file().to_str().unwrap(), "--stacks", "--json"]).well().lines()
    }
}

const RUNDOWN_PROVIDER: &str = "Microsoft-Windows-DotNETRuntimeRundown";

fn is_rundown(event: &Value) -> bool {
    event["provider"] == RUNDOWN_PROVIDER
}

/// Returns the trace without its rundown.
fn without_rundown(trace: Vec<u8>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("part.nettrace");
    let args = ["rewrite", "-", "-o", file.to_str().unwrap()];
    let mut only: Vec<&str> = Vec::new();
    for provider in [
        "Microsoft-DotNETCore-SampleProfiler",
        "Microsoft-Windows-DotNETRuntime",
        "Microsoft-DotNETCore-EventPipe",
    ] {
        only.extend(["--only", provider]);
    }
    assert_eq!(run_with(&[&args[..], &only].concat(), trace).status, Some(0));
    fs::read(file).unwrap()
}

#[test]
fn a_process_that_dies_has_the_names_of_the_start() {
    let part = without_rundown(startup());
    let fixture = Fixture::new(part[..part.len() * 2 / 3].to_vec(), Response::Trace(startup()));
    let ran = fixture.trace(&[]);
    assert_eq!(ran.status, Some(7));
    assert!(
        ran.stderr.contains("error: trace incomplete: the process exited while recording"),
        "{}",
        ran.stderr
    );
    let stats = fixture.stats();
    assert_eq!(
        (&stats["end"], &stats["lost"], &stats["lost_at_start"]),
        (&json!("complete"), &json!(0), &json!(0))
    );
    assert!(ran.stderr.contains(" events, 0 lost) to "), "{}", ran.stderr);

    let all = run(&["events", &analysed("net10-startup.nettrace"), "--stacks", "--json"]).well().lines();
    let (rundown, recorded): (Vec<_>, Vec<_>) = fixture.events().into_iter().partition(is_rundown);
    let (rows, before): (Vec<_>, Vec<_>) = all.into_iter().partition(is_rundown);
    assert!(recorded.len() > 100 && recorded.len() < before.len(), "{}", recorded.len());
    let mut before = before.into_iter();
    for event in &recorded {
        assert!(before.any(|other| other == *event), "{event}");
    }
    assert!(recorded.iter().any(|event| event["stack"].to_string().contains("System.Private.CoreLib!")));
    assert_eq!(rundown.len(), rows.len());
    let last = recorded.last().unwrap()["time_ns"].clone();
    for (row, expected) in rundown.iter().zip(rows) {
        assert_eq!((&row["fields"], &row["thread_id"]), (&expected["fields"], &expected["thread_id"]));
        assert_eq!((&row["name"], &row["time_ns"], &row["stack"]), (&expected["name"], &last, &json!([])));
    }
}

#[test]
fn a_session_with_its_own_names_is_recorded_as_it_is() {
    for recording in [startup(), fs::read(path("gen-net10-lab-small.nettrace")).unwrap()] {
        let fixture = Fixture::new(recording.clone(), Response::Trace(startup()));
        fixture.complete(&[]);
        let has_rundown = recording == startup();
        assert_eq!(fs::read(fixture.file()).unwrap() == recording, has_rundown);
        let rows = fixture.events().iter().filter(|event| is_rundown(event)).count();
        assert!(rows > 2000, "{rows}");
    }
    // With --no-rundown, the names from the start are the only ones.
    let fixture = Fixture::new(without_rundown(startup()), Response::Trace(startup()));
    fixture.complete(&["--no-rundown"]);
    assert_eq!(fixture.stats()["end"], "complete");
    let unnamed =
        |file: &str| run(&["report", file, "--wall", "--json"]).well().json()["unnamed_frames"].clone();
    let all = unnamed(&analysed("net10-startup.nettrace"));
    assert_eq!(unnamed(fixture.file().to_str().unwrap()), all);
}

#[test]
fn the_sessions_ask_for_names() {
    let fixture = Fixture::new(startup(), Response::Trace(startup()));
    let options = ["--provider", "Demo:1:1", "--clr-events", "gc", "--clr-event-level", "critical"];
    fixture.complete(&options);
    let requests = fixture.runtime.requests();
    let of = |code| requests.iter().filter(move |request| request.code() == Some(code));
    let providers = |list: ipc_proto::wire::Array<'_, ipc_proto::types::Provider<'_>>| {
        let providers = list.iter().map(|p| (p.name.to_string(), p.keywords, p.level.0));
        providers.collect::<Vec<_>>()
    };
    let runtime = "Microsoft-Windows-DotNETRuntime".to_owned();
    let sessions: Vec<CollectTracing2<'_>> =
        of(COLLECT_TRACING_2).map(|request| request.message().unwrap().decode().unwrap()).collect();
    let [recording, beside] = &sessions[..] else { panic!("{sessions:?}") };
    assert_eq!((providers(beside.providers), beside.rundown), (vec![(runtime.clone(), 0x18, 5)], false));
    let expected = vec![("Demo".to_owned(), 1, 1), (runtime, 0x19, 4)];
    assert_eq!((providers(recording.providers), recording.rundown), (expected, true));
    let rundown = of(COLLECT_TRACING_4).next().unwrap();
    let rundown: CollectTracing4<'_> = rundown.message().unwrap().decode().unwrap();
    assert_eq!((rundown.rundown_keyword, of(STOP_TRACING).count()), (NAMES, 3));
    // The names are taken after the recording has begun.
    let codes = requests.iter().filter_map(|request| request.code());
    let codes: Vec<Code> =
        codes.filter(|code| [COLLECT_TRACING_2, COLLECT_TRACING_4].contains(code)).collect();
    assert_eq!(codes, [COLLECT_TRACING_2, COLLECT_TRACING_2, COLLECT_TRACING_4]);
}

/// Returns a trace of one exception.
fn exception() -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let mut metadata = Metadata::new(1, "Microsoft-Windows-DotNETRuntime", 80, "");
    metadata.version = 1;
    put!(trace, writer.describe(&metadata));
    put!(trace, writer.event(&Event { metadata_id: 1, sequence: 1, ..Event::default() }));
    trace.extend_from_slice(&writer.finish());
    trace
}

/// Without --duration, the event ends the trace when it arrives, although its block is written later.
#[test]
fn an_event_ends_the_trace() {
    let fixture = Fixture::new(exception(), Response::Trace(startup()));
    let (socket, file) = (fixture.runtime.path().to_str().unwrap(), fixture.file());
    let until = "Microsoft-Windows-DotNETRuntime/80";
    let args = ["trace", "--socket", socket, "-o", file.to_str().unwrap(), "--names-first", "--until", until];
    let ran = run(&args);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(fixture.events().iter().filter(|event| event["id"] == 80).count(), 1);
}

#[test]
fn names_that_cannot_be_taken_are_a_note() {
    let part = without_rundown(startup());
    let rundowns = [
        (Response::Refuse(HResult(0x8013_1384)), true),
        (Response::Trace(startup()[..100_000].to_vec()), true),
        // A suspended runtime.
        (Response::Trace(Vec::new()), false),
    ];
    for (rundown, is_noted) in rundowns {
        let fixture = Fixture::new(part.clone(), rundown);
        let notes = fixture.complete(&[]);
        assert_eq!(notes.contains("note: the names of the process cannot be taken first: "), is_noted);
        assert_eq!(fs::read(fixture.file()).unwrap(), part);
    }
    // A rundown that is not a trace has no names.
    let fixture = Fixture::new(part.clone(), Response::Trace(b"no trace".to_vec()));
    fixture.trace(&[]);
    assert_eq!(fs::read(fixture.file()).unwrap(), part);
}

#[test]
fn a_corrupt_session_has_its_valid_part() {
    let mut corrupt = without_rundown(startup());
    let middle = corrupt.len() / 2;
    corrupt.truncate(middle);
    corrupt.extend([0xff; 100_000]);
    let fixture = Fixture::new(corrupt, Response::Trace(startup()));
    let ran = fixture.trace(&[]);
    assert_eq!(ran.status, Some(6), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: the runtime: the trace is corrupt"), "{}", ran.stderr);
    assert_eq!(fixture.stats()["end"], "complete");
    // An empty session remains empty.
    let fixture = Fixture::new(Vec::new(), Response::Trace(startup()));
    assert_eq!(fixture.trace(&[]).status, Some(7));
    assert!(fs::read(fixture.file()).unwrap().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_the_failure() {
    let fixture = Fixture::new(startup(), Response::Trace(startup()));
    let socket = fixture.runtime.path().to_str().unwrap();
    let ran = run(&["trace", "--socket", socket, "-o", "/dev/full", "--names-first"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("error: cannot write /dev/full"), "{}", ran.stderr);
}
