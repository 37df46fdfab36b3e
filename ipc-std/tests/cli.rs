//! The tool as people and scripts see it: arguments, output, exit status, against runtimes that are fake or worse.
#![cfg(feature = "cli")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]
#![cfg_attr(windows, allow(dead_code, unused_imports, reason = "signals, and what else only Unix has"))]

mod peer;
mod tool;

use core::time::Duration;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use ipc_proto::types::{ClientData, ProcessInfo3};
use ipc_proto::{AttachProfiler, Code, Guid, HResult, ResumeRuntime, Text};
use ipc_std::fake::{FakeRuntime, Fault, Profile, Response};
use ipc_std::{Connection, Stream};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peer::{Listener, Place};
use crate::tool::{HANGS, Ran, TOOL, finish, run, tool};

const COLLECT_TRACING_2: Code = Code(0x0203);
const GET_PROCESS_INFO: Code = Code(0x0400);
const GET_PROCESS_INFO_2: Code = Code(0x0404);
const GET_PROCESS_INFO_3: Code = Code(0x0408);
const RESUME_RUNTIME: Code = Code(0x0401);
const STOP_TRACING: Code = Code(0x0201);

/// Runs it for the runtime at `socket`: the first argument is the command.
fn ask(socket: &Path, args: &[&str]) -> Ran {
    run(&[args, &["--socket", socket.to_str().unwrap()]].concat())
}

/// Waits until something is so.
#[track_caller]
fn until(mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < HANGS, "it never came");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Somebody who listens at a socket and is no runtime.
struct Impostor {
    place: Place,
}

impl Impostor {
    /// Who does this with every connection, once a request has come whole.
    fn new(serve: impl Fn(Stream) + Send + 'static) -> Self {
        Self::listening(move |mut stream| {
            stream.read_exact(&mut [0; 20]).unwrap();
            serve(stream);
        })
    }
    fn listening(serve: impl Fn(Stream) + Send + 'static) -> Self {
        let impostor = Self { place: Place::new() };
        let listener = Listener::bind(&impostor.socket());
        thread::spawn(move || {
            loop {
                serve(listener.accept());
            }
        });
        impostor
    }
    fn socket(&self) -> PathBuf {
        self.place.path("socket")
    }
}

/// Sends these bytes, and stays or closes.
fn sends(bytes: &[u8], stays: bool) -> Impostor {
    let bytes = bytes.to_vec();
    Impostor::new(move |mut stream| {
        stream.write_all(&bytes).unwrap();
        if stays {
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
    })
}

fn header(magic: &[u8; 14], size: u16, set: u8, id: u8) -> Vec<u8> {
    [&magic[..], &size.to_le_bytes(), &[set, id, 0, 0]].concat()
}

/// Runs `info` both ways, and compares what it says: exit status, kind, and words in the sentence.
#[track_caller]
fn fails(args: &[&str], status: i32, kind: &str, words: &str) -> Value {
    let ran = run(args);
    assert_eq!((ran.status, ran.text()), (Some(status), ""), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(words), "{words}: {ran:?}");
    let ran = run(&[args, &["--json"]].concat());
    assert_eq!((ran.status, ran.text()), (Some(status), ""), "{ran:?}");
    let error = ran.error();
    let keys: Vec<_> = error.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["error", "kind", "command", "hresult", "hresult_name", "hint"]);
    assert_eq!(error["kind"], kind, "{ran:?}");
    assert!(error["error"].as_str().unwrap().contains(words), "{ran:?}");
    assert!(error["hint"].is_string(), "it says what to do next: {ran:?}");
    error
}

#[track_caller]
fn info_fails(socket: &Path, timeout: &str, status: i32, kind: &str, words: &str) -> Value {
    fails(&["info", "--timeout", timeout, "--socket", socket.to_str().unwrap()], status, kind, words)
}

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const SHORT: &str = "300ms";
const LONG: &str = "30s";

#[test]
fn silence_is_a_timeout() {
    info_fails(&sends(&[], true).socket(), SHORT, 4, "timeout", "waiting for an answer");
}

#[test]
fn closing_at_once_is_going_away() {
    let impostor = Impostor::listening(drop);
    info_fails(&impostor.socket(), LONG, 7, "gone", "0 received");
}

#[test]
fn nineteen_bytes_are_no_answer() {
    let answer = header(MAGIC, 24, 0xff, 0);
    info_fails(&sends(&answer[..19], false).socket(), LONG, 7, "gone", "19 received");
}

#[test]
fn another_magic_breaks_the_protocol() {
    let answer = header(b"DOTNET_IPC_V2\0", 24, 0xff, 0);
    let error = info_fails(&sends(&answer, true).socket(), LONG, 6, "protocol", "magic");
    assert_eq!(error["command"], "GetProcessInfo3");
}

#[test]
fn an_answer_that_stops_is_a_timeout() {
    let answer = [header(MAGIC, 65_535, 0xff, 0), vec![0; 10]].concat();
    info_fails(&sends(&answer, true).socket(), SHORT, 4, "timeout", "receiving the answer");
}

#[test]
fn an_answer_that_is_cut_off_is_going_away() {
    let answer = [header(MAGIC, 65_535, 0xff, 0), vec![0; 10]].concat();
    info_fails(&sends(&answer, false).socket(), LONG, 7, "gone", "30 received");
}

#[test]
fn a_size_of_zero_breaks_the_protocol() {
    info_fails(&sends(&header(MAGIC, 0, 0xff, 0), true).socket(), LONG, 6, "protocol", "size");
}

#[test]
fn a_request_is_no_answer() {
    info_fails(&sends(&header(MAGIC, 20, 4, 8), true).socket(), LONG, 6, "protocol", "0x0408");
}

#[test]
fn a_byte_a_second_does_not_prolong_the_deadline() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(Fault::Drip(Duration::from_secs(1)));
    info_fails(runtime.path(), "1500ms", 4, "timeout", "receiving the header of the answer");
}

#[test]
#[cfg(unix)]
fn a_socket_that_nobody_listens_at() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    drop(UnixListener::bind(&socket).unwrap());
    info_fails(&socket, LONG, 3, "no_listener", "nobody listens at");
}

#[test]
#[cfg(unix)]
fn a_process_that_is_gone() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    fails(&["info", &child.id().to_string()], 3, "not_found", "there is no such process");
}

#[test]
fn a_process_without_a_runtime() {
    let own = std::process::id().to_string();
    fails(&["info", &own], 3, "not_found", "has no diagnostic ");
}

#[test]
fn a_path_that_is_not_there() {
    info_fails(&Place::new().path("socket"), LONG, 3, "not_found", "there is no socket at");
}

#[test]
#[cfg(unix)]
fn a_socket_of_somebody_else() {
    if rustix::process::geteuid().is_root() {
        return; // may open everything
    }
    let impostor = sends(&[], true);
    fs::set_permissions(impostor.socket(), fs::Permissions::from_mode(0o000)).unwrap();
    info_fails(&impostor.socket(), LONG, 3, "permission", "no permission");
}

#[test]
fn a_refusal_says_why() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(GET_PROCESS_INFO_3, |_| Response::Refuse(HResult::RUNTIME_UNINITIALIZED));
    let error = info_fails(runtime.path(), LONG, 5, "refused", "refuses GetProcessInfo3");
    assert_eq!(error["command"], "GetProcessInfo3");
    assert_eq!(error["hresult"], "0x80131371");
    assert_eq!(error["hresult_name"], "DS_IPC_E_RUNTIME_UNINITIALIZED");
}

#[test]
fn an_unknown_command_is_unsupported() {
    let runtime = FakeRuntime::start(Profile::net31()).unwrap();
    let error = info_fails(runtime.path(), LONG, 5, "unsupported", "older than .NET 5");
    assert_eq!(error["command"], "GetProcessInfo");
    assert_eq!(error["hresult_name"], "DS_IPC_E_UNKNOWN_COMMAND");
    let asked: Vec<_> = runtime.requests().iter().map(|request| request.code().unwrap()).collect();
    assert_eq!(asked[..3], [GET_PROCESS_INFO_3, GET_PROCESS_INFO_2, GET_PROCESS_INFO]);
}

#[test]
fn the_command_line_is_checked() {
    let profiles = "dotnet-common, dotnet-sampled-thread-time, gc-verbose, gc-collect, database";
    for (args, words) in [
        (&["info"][..], "required"),
        (&["info", "1", "--socket", "x"], "cannot be used with"),
        (&["info", "-1"], "unexpected argument"),
        (&["info", "one"], "invalid value 'one'"),
        (&["info", "1", "--timeout", "soon"], "00:01:30"),
        (&["trace", "1"], "--output"),
        (&["trace", "1", "-o", "x", "--profile", "cpu-sampling"], profiles),
        (&["trace", "1", "-o", "x", "--provider", ":5"], "needs a name"),
        (&["trace", "1", "-o", "x", "--provider", "A:keyword"], "not hexadecimal"),
        (&["trace", "1", "-o", "x", "--provider", "A::6"], "0 to 5"),
        (&["trace", "1", "-o", "x", "--provider", "A:::a", "--provider", "A:::b"], "arguments twice"),
        (&["trace", "1", "-o", "x", "--buffer", "0"], "--buffer"),
        (&["fake-runtime", "--runtime", "net7"], "net9-aot"),
        (&["inform"], "a similar subcommand exists: 'info'"),
    ] {
        fails(args, 2, "usage", words);
    }
}

#[test]
fn help_has_examples() {
    for args in [&[][..], &["ps"], &["info"], &["env"], &["trace"], &["demo"], &["fake-runtime"]] {
        let ran = run(&[args, &["--help"]].concat()).well();
        assert!(ran.text().contains("Examples:\n  dotnet-ipc ") || args.is_empty(), "{}", ran.text());
        assert!(ran.text().contains("Usage: dotnet-ipc"));
    }
    let ran = run(&[]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("Usage:"));
    assert_eq!(run(&["--version"]).well().text(), concat!("dotnet-ipc ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
#[cfg(unix)]
fn a_closed_output_is_no_error() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let socket = runtime.path().to_str().unwrap();
    let directory = TempDir::new().unwrap();
    for args in
        [&["info", "--socket", socket][..], &["env", "--socket", socket, "--json"], &["--help"], &["demo"]]
    {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        let mut command = tool(args);
        command.stdout(OwnedFd::from(theirs)).env("TMPDIR", directory.path());
        finish(command.spawn().unwrap()).well();
    }
}

#[test]
fn info_in_json_and_text() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let info = ask(runtime.path(), &["info", "--json"]).well();
    let profile = runtime.profile();
    let expected = json!({
        "process_id": profile.process_id,
        "runtime_cookie": profile.runtime_cookie.to_string(),
        "command_line": profile.command_line,
        "os": profile.os,
        "arch": profile.arch,
        "managed_entrypoint_assembly_name": profile.managed_entrypoint_assembly_name,
        "clr_product_version": profile.clr_product_version,
        "runtime_identifier": profile.portable_rid,
    });
    assert_eq!(info.text(), format!("{expected}\n"));
    let info = ask(runtime.path(), &["info"]).well();
    assert!(info.text().contains("\nclr_product_version:              10.0.12\n"), "{}", info.text());
    assert_eq!(info.text().lines().count(), 8);
}

#[test]
fn odd_strings_show() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(GET_PROCESS_INFO_3, |_| {
        Response::ok(&ProcessInfo3 {
            version: 1,
            process_id: u64::MAX,
            runtime_cookie: Guid([0xAB; 16]),
            command_line: Text::from_utf16(&[0x61, 0xd800, 0x1b, 0x0a]),
            os: Text::NULL,
            arch: "".into(),
            managed_entrypoint_assembly_name: "é😀".into(),
            clr_product_version: Text::NULL,
            portable_rid: Text::NULL,
        })
    });
    let info = ask(runtime.path(), &["info", "--json"]).well().json();
    assert_eq!(info["process_id"], u64::MAX);
    assert_eq!(info["runtime_cookie"], "abababab-abab-abab-abab-abababababab");
    assert_eq!(info["command_line"], "a\u{fffd}\u{1b}\n");
    assert_eq!((&info["os"], &info["arch"]), (&Value::Null, &json!("")));
    assert_eq!(info["managed_entrypoint_assembly_name"], "é😀");
    let info = ask(runtime.path(), &["info"]).well();
    assert!(info.text().contains("a\u{fffd}\\u{1b}\\n\n"), "nothing that moves the cursor: {}", info.text());
}

/// Delete, a command of some terminals in one character, and one that turns the direction of what follows.
const STEERING: &str = "a\u{7f}b\u{9b}2Jc\u{202e}d";

#[test]
fn nothing_steers_a_terminal() {
    let profile = Profile { command_line: STEERING.to_owned(), ..Profile::net10() };
    let runtime = FakeRuntime::start(profile).unwrap();
    let info = ask(runtime.path(), &["info"]).well();
    assert!(info.text().contains("a\\u{7f}b\\u{9b}2Jc\\u{202e}d\n"), "{}", info.text());
    let info = ask(runtime.path(), &["info", "--json"]).well();
    assert!(info.text().contains(r"a\u007fb\u009b2Jc\u202ed"), "{}", info.text());
    assert_eq!(info.json()["command_line"], STEERING);
}

#[test]
fn an_older_runtime_knows_less_of_itself() {
    let profile = Profile { version: 5, ..Profile::net8() };
    let runtime = FakeRuntime::start(profile).unwrap();
    let info = ask(runtime.path(), &["info", "--json"]).well().json();
    assert_eq!(info["command_line"], runtime.profile().command_line);
    assert_eq!(info["clr_product_version"], Value::Null);
    assert_eq!(info["runtime_identifier"], Value::Null);
}

#[test]
fn env_in_json_and_text() {
    let entries = ["A=1=2", "=C:=C:\\x", "odd", "A=3", "EMPTY=", ""].map(str::to_owned).to_vec();
    let runtime = FakeRuntime::start(Profile { environment: entries, ..Profile::net8() }).unwrap();
    let env = ask(runtime.path(), &["env", "--json"]).well();
    let expected = r#"{"environment":{"A":"1=2","=C:":"C:\\x","EMPTY":""},"other":["odd","A=3",""]}"#;
    assert_eq!(env.text().trim_end(), expected);
    assert_eq!(ask(runtime.path(), &["env"]).well().text(), "A=1=2\n=C:=C:\\x\nodd\nA=3\nEMPTY=\n\n");
}

#[test]
#[cfg(target_os = "linux")]
fn env_on_a_terminal() {
    let entries = vec!["A=\u{1b}[2J\nFAKE=1".to_owned(), format!("B={STEERING}")];
    let runtime = FakeRuntime::start(Profile { environment: entries, ..Profile::net8() }).unwrap();
    // For other programs it is what it is.
    let piped = ask(runtime.path(), &["env"]).well();
    assert_eq!(piped.text(), format!("A=\u{1b}[2J\nFAKE=1\nB={STEERING}\n"));
    // A terminal of its own, which `script` of util-linux makes.
    let command = format!("'{TOOL}' env --socket '{}'", runtime.path().display());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let Ok(script) = script.stderr(Stdio::piped()).spawn() else {
        eprintln!("NOT RUN: there is no script(1) here");
        return;
    };
    let shown = finish(script).well();
    let expected = "A=\\u{1b}[2J\\nFAKE=1\r\nB=a\\u{7f}b\\u{9b}2Jc\\u{202e}d\r\n";
    assert_eq!(shown.text(), expected);
}

/// `ps` in this directory.
fn ps(directory: &Path, args: &[&str]) -> Ran {
    let mut command = tool(&[&["ps"], args].concat());
    finish(command.env("TMPDIR", directory).spawn().unwrap())
}

#[cfg(unix)]
/// Its rows about the sockets in this directory: there may be other runtimes on the machine.
fn ps_rows(directory: &Path, args: &[&str]) -> Vec<Value> {
    let mut rows = ps(directory, &[&["--json", "--timeout", "1s"], args].concat()).well().lines();
    let directory = directory.to_str().unwrap();
    rows.retain(|row| row["socket"].as_str().is_some_and(|socket| socket.starts_with(directory)));
    rows
}

#[test]
#[cfg(unix)]
fn ps_tells_of_every_runtime() {
    let directory = TempDir::new().unwrap();
    // No process has such an id: as if they were in a container that shares the directory.
    let ids = [4_000_000_001, 4_000_000_002, 4_000_000_003, 4_000_000_004, 4_000_000_005];
    let start = |process_id, profile| {
        FakeRuntime::start_in(directory.path(), Profile { process_id, ..profile }).unwrap()
    };
    let well = start(ids[0], Profile::net9());
    let silent = start(ids[1], Profile::net10());
    silent.set_fault(Fault::Silent);
    let _old = start(ids[2], Profile::net31());
    let broken = start(ids[3], Profile::net10());
    broken.set_fault(Fault::Garbage(vec![b'?'; 20]));
    let dead = directory.path().join(format!("dotnet-diagnostic-{}-1-socket", ids[4]));
    drop(UnixListener::bind(&dead).unwrap());
    File::create(directory.path().join("dotnet-diagnostic-4000000006-1-socket")).unwrap();

    let rows = ps_rows(directory.path(), &[]);
    let row = |pid: u32| rows.iter().find(|row| row["process_id"] == pid).unwrap();
    let statuses = ids[..4].iter().map(|pid| row(*pid)["status"].as_str().unwrap());
    assert!(statuses.eq(["ok", "timeout", "refused", "protocol"]), "{rows:?}");
    assert_eq!(rows.len(), 4);
    assert_eq!(row(ids[0])["socket"], well.path().to_str().unwrap());
    assert_eq!(row(ids[0])["clr_product_version"], "9.0.20");
    let keys: Vec<_> = row(ids[0]).as_object().unwrap().keys().collect();
    assert_eq!(keys[..4], ["process_id", "socket", "status", "runtime_cookie"]);
    let keys: Vec<_> = row(ids[1]).as_object().unwrap().keys().collect();
    assert_eq!(keys, ["process_id", "socket", "status"]);

    let rows = ps_rows(directory.path(), &["--why"]);
    let statuses =
        rows.iter().map(|row| (row["process_id"].as_u64().unwrap(), row["status"].as_str().unwrap()));
    let statuses: std::collections::BTreeMap<_, _> = statuses.collect();
    let expected = ["ok", "timeout", "refused", "protocol", "no_listener", "not_found"];
    assert!(statuses.into_iter().eq((4_000_000_001..).zip(expected)), "{rows:?}");

    let ran = ps(directory.path(), &["--timeout", "1s"]).well();
    let line = ran.text().lines().find(|line| line.contains(&format!(" {} ", ids[0]))).unwrap();
    assert!(line.contains(" ok ") && line.contains(" 9.0.20 ") && line.ends_with("/app/Fake --of-a runtime"));
    assert!(!ran.text().contains("4000000005"), "{}", ran.text());
}

#[test]
fn the_wire_log_holds_what_was_sent() {
    let runtime = FakeRuntime::start(Profile { version: 7, ..Profile::net8() }).unwrap();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("wire.jsonl");
    ask(runtime.path(), &["info", "--wire-log", file.to_str().unwrap()]).well();
    let log = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines.iter().map(|line| &line["direction"]).eq(["sent", "received", "sent", "received"]),
        "{log}"
    );
    for (line, request) in lines.iter().step_by(2).zip(runtime.requests()) {
        assert_eq!(unhex(line["hex"].as_str().unwrap()), request.bytes);
    }
    let refusal = "444f544e45545f4950435f5631001800ffff000085131380";
    assert_eq!(lines[1]["hex"], refusal);
    assert_eq!(lines[0]["connection"], lines[1]["connection"]);
    assert_ne!(lines[1]["connection"], lines[2]["connection"]);
    let time = lines[0]["time"].as_str().unwrap();
    assert!(humantime::parse_rfc3339(time).is_ok() && time.contains('.'), "{time}");

    let ran = ask(runtime.path(), &["info", "--wire-log", "/nowhere/wire.jsonl"]);
    assert_eq!(ran.status, Some(1));
}

#[cfg(target_os = "linux")]
#[test]
#[cfg(unix)]
fn a_wire_log_that_is_full_is_told() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let ran = ask(runtime.path(), &["info", "--wire-log", "/dev/full"]);
    assert_eq!((ran.status, ran.text().lines().count()), (Some(1), 8));
    assert!(ran.stderr.contains("/dev/full"));
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A stream larger than any buffer on its way, with every value of a byte and the right end.
fn stream() -> Vec<u8> {
    let middle = (0_u32..1_000_000).map(|i| (i ^ (i >> 8)).to_le_bytes()[0]);
    b"Nettrace".iter().copied().chain(middle).chain([6, 1]).collect()
}

/// A runtime that sends this as any trace.
fn traced(profile: Profile, stream: Vec<u8>) -> FakeRuntime {
    let runtime = FakeRuntime::start(profile).unwrap();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Trace(stream.clone()));
    runtime
}

fn asked(runtime: &FakeRuntime, code: Code) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(code))
}

/// A directory, and a file in it for a trace.
fn output() -> (TempDir, PathBuf, String) {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.nettrace");
    let text = file.to_str().unwrap().to_owned();
    (directory, file, text)
}

#[test]
fn a_trace_ends_with_its_duration() {
    let runtime = traced(Profile::net10(), stream());
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--duration", "0.2", "--json"]).well();
    assert!(fs::read(&file).unwrap() == stream());
    let summary = ran.json();
    let keys: Vec<_> = summary.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["file", "bytes", "seconds", "complete", "session_id", "command"]);
    assert_eq!((&summary["file"], &summary["bytes"]), (&json!(path), &json!(stream().len())));
    assert_eq!((&summary["complete"], &summary["command"]), (&json!(true), &json!("CollectTracing2")));
    assert!(summary["seconds"].as_f64().unwrap() >= 0.2 && summary["session_id"].is_u64());

    // A second one takes the place of the first, shorter or not.
    runtime.on(COLLECT_TRACING_2, |_| Response::Trace(b"Nettrace\x06\x01".to_vec()));
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--duration", "0.2"]);
    assert_eq!((ran.status, ran.text()), (Some(0), ""));
    assert_eq!(fs::read(&file).unwrap(), b"Nettrace\x06\x01");
    assert_eq!(ran.stderr.lines().count(), 1);
    assert!(ran.stderr.contains("10 bytes") && ran.stderr.contains(&path), "{}", ran.stderr);
}

#[test]
#[cfg(unix)]
fn a_trace_ends_with_a_signal() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let runtime = traced(Profile::net8(), stream());
        let (_directory, file, path) = output();
        let socket = runtime.path().to_str().unwrap();
        let child = tool(&["trace", "--json", "-o", &path, "--socket", socket]).spawn().unwrap();
        until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(finish(child).well().json()["complete"], true);
        assert!(fs::read(&file).unwrap() == stream());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_ignored_signal_stays_ignored() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let trace =
        tool(&["trace", "-o", &path, "--timeout", "1s", "--socket", runtime.path().to_str().unwrap()]);
    // As nohup starts it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(trace.get_program()).args(trace.get_args());
    let child = shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // INT was the first that counts, so its end is waited for until the deadline. The second would end it at once.
    assert_eq!(finish(child).status, Some(4));
}

#[test]
fn a_trace_that_cannot_be_resumed_ends_well_all_the_same() {
    let runtime = traced(Profile::net8(), stream());
    runtime.on(Code(0x0401), |_| Response::Refuse(HResult::FAIL));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path]);
    assert_eq!(ran.status, Some(5), "{ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
    assert!(fs::read(&file).unwrap() == stream());
}

#[test]
#[cfg(unix)]
fn a_second_signal_ends_the_tool() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let socket = runtime.path().to_str().unwrap();
    let child = tool(&["trace", "-o", &path, "--socket", socket]).spawn().unwrap();
    until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    until(|| asked(&runtime, STOP_TRACING));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(finish(child).status, None);
    assert_eq!(fs::metadata(&file).unwrap().len(), 1000);
}

#[test]
#[cfg(unix)]
fn a_signal_before_the_trace_leaves_nothing() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    runtime.set_fault(Fault::Silent);
    let (_directory, file, path) = output();
    let socket = runtime.path().to_str().unwrap();
    let child = tool(&["trace", "-o", &path, "--socket", socket]).spawn().unwrap();
    until(|| asked(&runtime, COLLECT_TRACING_2));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(finish(child).status, None);
    assert!(!file.exists());
}

#[test]
fn a_trace_to_standard_output() {
    let runtime = traced(Profile::net8(), stream());
    let ran = ask(runtime.path(), &["trace", "-o", "-", "--duration", "200ms", "--json"]);
    assert_eq!(ran.status, Some(0));
    assert!(ran.stdout == stream());
    assert_eq!(ran.error()["file"], "-");
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_stops_the_trace() {
    let runtime = traced(Profile::net8(), stream());
    let socket = runtime.path().to_str().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let mut command = tool(&["trace", "-o", "-", "--socket", socket]);
    let ran = finish(command.stdout(OwnedFd::from(theirs)).spawn().unwrap());
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("cannot write standard output"), "{ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
}

#[cfg(target_os = "linux")]
#[test]
#[cfg(unix)]
fn a_full_disk_stops_the_trace() {
    let runtime = traced(Profile::net8(), stream());
    let ran = ask(runtime.path(), &["trace", "-o", "/dev/full"]);
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("error: cannot write /dev/full"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("{} bytes", stream().len())), "all of it was taken: {ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
}

#[test]
fn a_trace_that_cannot_be_written_is_not_begun() {
    let runtime = traced(Profile::net8(), stream());
    let ran = ask(runtime.path(), &["trace", "-o", "/nowhere/x.nettrace"]);
    assert_eq!(ran.status, Some(1));
    // At most somebody has connected.
    assert!(runtime.requests().iter().all(|request| request.bytes.is_empty()));
}

#[test]
fn a_trace_that_every_runtime_refuses_is_not_asked_for() {
    let runtime = traced(Profile::net10(), stream());
    let (_directory, file, name) = output();
    let providers: Vec<String> = (0..1_001).map(|n| format!("P{n}")).collect();
    let wished: Vec<&str> = providers.iter().flat_map(|name| ["--provider", name]).collect();
    let socket = runtime.path().to_str().unwrap();
    let args = [&["trace", "--socket", socket, "-o", &name], &wished[..]].concat();
    let error = fails(&args, 2, "usage", "is not sent");
    assert_eq!(error["command"], "CollectTracing2");
    // At most somebody has connected.
    assert!(runtime.requests().iter().all(|request| request.bytes.is_empty()));
    assert!(!file.exists());
}

#[test]
fn a_trace_that_cannot_begin_leaves_the_file_as_it_was() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    runtime.on(COLLECT_TRACING_2, |_| Response::Refuse(HResult::FAIL));
    let (_directory, file, path) = output();
    assert_eq!(ask(runtime.path(), &["trace", "-o", &path]).status, Some(5));
    assert!(!file.exists());
    fs::write(&file, "of old").unwrap();
    assert_eq!(ask(runtime.path(), &["trace", "-o", &path]).status, Some(5));
    assert_eq!(fs::read(&file).unwrap(), b"of old");
}

#[test]
fn a_trace_that_is_cut_off_is_kept() {
    const ANSWER: usize = 28;
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::CloseAfter(ANSWER + 1000));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--json"]);
    assert_eq!(ran.status, Some(7), "{ran:?}");
    assert_eq!(fs::read(&file).unwrap(), stream()[..1000]);
    assert_eq!((&ran.json()["complete"], &ran.json()["bytes"]), (&json!(false), &json!(1000)));
    assert_eq!(ran.error()["kind"], "gone");
}

#[test]
fn a_program_that_ends_ends_its_trace() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let session_id = [7; 8];
    let answer = [header(MAGIC, 28, 0xff, 0), session_id.to_vec(), stream()].concat();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Raw(answer.clone()));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("note: the program ended"), "{ran:?}");
    assert!(fs::read(&file).unwrap() == stream());
}

#[test]
fn a_trace_that_never_ends_is_a_timeout() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--duration", "0", "--timeout", "500ms"]);
    assert_eq!(ran.status, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("the end of the trace"), "{ran:?}");
    assert_eq!(fs::metadata(&file).unwrap().len(), 1000);
}

#[test]
#[cfg(unix)]
fn a_stop_that_nobody_hears_is_told() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let socket = runtime.path().to_str().unwrap();
    let child = tool(&["trace", "-o", &path, "--socket", socket]).spawn().unwrap();
    until(|| fs::metadata(&file).is_ok_and(|file| file.len() == 1000));
    fs::remove_file(runtime.path()).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ran = finish(child);
    assert_eq!(ran.status, Some(3), "{ran:?}");
    assert_eq!(fs::metadata(&file).unwrap().len(), 1000);
}

#[test]
fn a_suspended_runtime_is_resumed() {
    let (_directory, file, path) = output();
    let args = ["trace", "-o", &path, "--duration", "200ms", "--json"];
    let runtime = traced(Profile { suspended: true, ..Profile::net8() }, stream());
    let ran = ask(runtime.path(), &[&args[..], &["--no-resume"]].concat());
    assert!(runtime.is_suspended());
    // What is stopped before the runtime runs has not a byte.
    assert_eq!((ran.status, ran.json()["bytes"].as_u64()), (Some(1), Some(0)), "{ran:?}");
    ask(runtime.path(), &args).well();
    assert!(!runtime.is_suspended());
    assert!(fs::read(&file).unwrap() == stream());

    let old = traced(Profile::net31(), stream());
    ask(old.path(), &args).well();
    assert!(asked(&old, RESUME_RUNTIME), "it does not know the command, which is no matter");
}

/// What the tool sends to start a trace with these arguments.
fn request(runtime: &FakeRuntime, args: &[&str]) -> Vec<u8> {
    let (_directory, _, path) = output();
    let before = runtime.requests().len();
    let ran = ask(runtime.path(), &[&["trace", "-o", &path, "--duration", "0"], args].concat());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    runtime.requests()[before].bytes.clone()
}

/// A message of the test data.
fn recorded(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/messages").join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines().flat_map(|line| unhex(line.split('#').next().unwrap())).collect()
}

#[test]
fn profiles_are_those_of_dotnet_trace() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for (args, name) in [
        (&[][..], "CollectTracing2.default-profile.request.hex"),
        (&["--profile", "gc-verbose"], "CollectTracing2.gc-verbose.request.hex"),
        (&["--profile", "gc-collect"], "CollectTracing4.gc-collect.request.hex"),
        (&["--profile", "database"], "CollectTracing2.database.request.hex"),
        (
            &["--profile", "dotnet-common", "--profile", "dotnet-sampled-thread-time"],
            "CollectTracing2.default-profile.request.hex",
        ),
        (
            &["--buffer", "16", "--provider", "Microsoft-Windows-DotNETRuntime:8001:verbose"],
            "CollectTracing2.clrevents.request.hex",
        ),
        (
            &[
                "--no-rundown",
                "--provider",
                "Lab-Workload:0x10:5",
                "--provider",
                "System.Runtime:0:4:EventCounterIntervalSec=1;A=\"x;y\"",
            ],
            "CollectTracing2.quoted-arguments.request.hex",
        ),
        (
            &["--provider", "System.Diagnostics.Metrics:2::Metrics=Lab.Meter;SessionId=x"],
            "CollectTracing2.metrics.request.hex",
        ),
    ] {
        assert_eq!(request(&runtime, args), recorded(name), "{args:?}");
    }
}

#[test]
fn an_older_runtime_has_no_choice_of_rundown() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let (_directory, _, path) = output();
    let args = ["trace", "-o", &path, "--duration", "0", "--profile", "gc-collect"];
    let ran = ask(runtime.path(), &args);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("note: a rundown of one's choice needs .NET 9"), "{ran:?}");
    let ran = ask(runtime.path(), &[&args[..], &["--no-rundown"]].concat());
    assert!(!ran.stderr.contains("note:"), "{ran:?}");
}

#[test]
#[cfg(unix)]
fn the_demo_passes() {
    let directory = TempDir::new().unwrap();
    let mut command = tool(&["demo"]);
    let ran = finish(command.env("TMPDIR", directory.path()).spawn().unwrap()).well();
    for words in [
        "44 4f 54 4e 45 54 5f 49 50 43 5f 56 31 00  magic",
        "clr_product_version:              10.0.12",
        "OPTIONS=a=1;b=2",
        "nothing is cut off",
        "there is no process to dump",
        "GetProcessInfo3, then GetProcessInfo2, then GetProcessInfo\n",
        "waiting for an answer",
    ] {
        assert!(ran.text().contains(words), "{words}: {}", ran.text());
    }
    assert!((40..=70).contains(&ran.text().lines().count()));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "it leaves nothing behind");

    let mut command = tool(&["demo", "--json"]);
    let ran = finish(command.env("TMPDIR", directory.path()).spawn().unwrap()).well();
    for line in ran.text().lines() {
        let step: Value = serde_json::from_str(line).unwrap();
        assert!(step["step"].is_string() && step["lines"].is_array(), "{line}");
    }
}

/// A fake runtime in a process of its own, and its first line.
fn fake_runtime(directory: &Path, args: &[&str]) -> (Child, Value) {
    let mut command = tool(&[&["fake-runtime", "--dir", directory.to_str().unwrap()], args].concat());
    let mut child = command.env("TMPDIR", directory).stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // Its only line.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

#[test]
#[cfg(unix)]
fn a_fake_runtime_ends_with_its_input() {
    let directory = TempDir::new().unwrap();
    let (mut child, line) = fake_runtime(directory.path(), &["--runtime", "net9-aot", "--suspend"]);
    let socket = Path::new(line["socket"].as_str().unwrap());
    assert_eq!(line["process_id"], child.id());
    assert_eq!(socket.parent(), Some(directory.path()));
    let info = ask(socket, &["info", "--json"]).well().json();
    assert_eq!(info["clr_product_version"], "9.0.20");
    #[cfg(target_os = "linux")]
    assert_eq!(
        run(&["info", &child.id().to_string(), "--json"]).well().json(),
        info,
        "found by its own TMPDIR"
    );
    drop(child.stdin.take());
    finish(child).well();
    assert!(!socket.exists());
}

/// The next one to call, once it has said who it is: how, and where.
#[cfg(unix)]
fn called(monitor: &UnixListener) -> (Vec<u8>, UnixStream) {
    let (mut stream, _) = monitor.accept().unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    let mut frame = vec![0; 34];
    stream.read_exact(&mut frame).unwrap();
    (frame, stream)
}

#[test]
#[cfg(unix)]
fn a_fake_runtime_calls_monitors() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name).into_os_string().into_string().unwrap();
    let [first, second] = ["first", "second"].map(|name| UnixListener::bind(at(name)).unwrap());
    let ports = [
        "--port",
        &format!("{},Connect,SUSPEND", at("first")),
        "--port",
        &format!("{};{},listen", at("second"), at("ignored")),
        "--port",
        &at(&"x".repeat(200)),
    ];
    let (mut child, line) = fake_runtime(directory.path(), &ports);
    let resume = |monitor: &UnixListener| {
        let (frame, stream) = called(monitor);
        assert!(frame.starts_with(b"ADVR_V1\0"));
        assert_eq!(frame[24..], [&child.id().to_le_bytes()[..], &[0; 6]].concat());
        Connection::new(stream).call(&ResumeRuntime {}).unwrap();
        frame
    };
    let attach = |monitor: &UnixListener| {
        let attach = AttachProfiler {
            attach_timeout: 1000,
            profiler_guid: Guid::NIL,
            profiler_path: "/p.so".into(),
            client_data: ClientData(&[]),
        };
        Connection::new(called(monitor).1).call(&attach).unwrap_err().hresult()
    };
    let frame = resume(&first);
    assert_eq!(attach(&first), Some(HResult::NOT_YET_AVAILABLE), "the other port suspends by default");
    assert_eq!(resume(&second), frame);
    assert_eq!(attach(&first), Some(HResult::MOD_NOT_FOUND));
    let info = ask(Path::new(line["socket"].as_str().unwrap()), &["info", "--json"]).well().json();
    assert_eq!(info["process_id"], child.id());
    drop(child.stdin.take());
    let notes = finish(child);
    assert_eq!(notes.status, Some(0), "{notes:?}");
    let notes: Vec<_> = notes.stderr.lines().collect();
    assert!(notes.iter().all(|note| note.starts_with("note: ")), "{notes:?}");
    for about in ["/second", "/ignored", "too long"] {
        assert!(notes.iter().any(|note| note.contains(about)), "{about}: {notes:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_fake_runtime_has_a_cookie_of_its_own() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("monitor");
    let monitor = UnixListener::bind(&path).unwrap();
    let port = format!("{},nosuspend", path.display());
    let started = [(); 2].map(|()| fake_runtime(directory.path(), &["--port", &port]));
    let cookies = [(); 2].map(|()| called(&monitor)).map(|(frame, _stream)| frame[8..24].to_vec());
    assert_ne!(cookies[0], cookies[1]);
    for (mut child, _) in started {
        drop(child.stdin.take());
        finish(child).well();
    }
}

#[test]
#[cfg(unix)]
fn a_fake_runtime_ends_with_a_signal() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let directory = TempDir::new().unwrap();
        let (mut child, line) = fake_runtime(directory.path(), &[]);
        // `finish` would close it.
        let stdin = child.stdin.take();
        kill_process(Pid::from_child(&child), signal).unwrap();
        finish(child).well();
        drop(stdin);
        assert!(!Path::new(line["socket"].as_str().unwrap()).exists());
    }
}
