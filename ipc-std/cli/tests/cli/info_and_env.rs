//! Tests of the tool's arguments, output and exit status, with fake runtimes and faulty peers.

use core::time::Duration;
use std::fs::{self};
use std::io::{Read, Write};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use ipc_proto::types::ProcessInfo3;
use ipc_proto::{Code, Guid, HResult, Text};
use ipc_std::Stream;
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peer::{Listener, Place};
#[cfg(unix)]
use crate::tool::dead_socket;
use crate::tool::{Ran, TOOL, finish, run, tool, unhex};

const GET_PROCESS_INFO: Code = Code(0x0400);
const GET_PROCESS_INFO_2: Code = Code(0x0404);
const GET_PROCESS_INFO_3: Code = Code(0x0408);

/// Runs a command on the runtime at `socket`. The first argument is the command.
fn run_at(socket: &Path, args: &[&str]) -> Ran {
    run(&[args, &["--socket", socket.to_str().unwrap()]].concat())
}

/// A listener that is not a runtime.
struct Impostor {
    place: Place,
}

impl Impostor {
    /// Calls `serve` with each connection after it has received a complete request.
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

/// Starts a listener that sends these bytes, and then keeps the connection open or closes it.
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

/// Runs the command with text and JSON output, and checks the exit status, the kind, and words of the message.
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
    assert!(error["hint"].is_string(), "the error has no hint: {ran:?}");
    error
}

#[track_caller]
fn info_fails(socket: &Path, timeout: &str, status: i32, kind: &str, words: &str) -> Value {
    fails(&["info", "--timeout", timeout, "--socket", socket.to_str().unwrap()], status, kind, words)
}

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const SHORT: &str = "300ms";
const LONG: &str = "60s";

#[test]
fn no_response_is_a_timeout() {
    info_fails(&sends(&[], true).socket(), SHORT, 4, "timeout", "waiting for the response");
}

#[test]
fn an_immediate_close_is_gone() {
    let impostor = Impostor::listening(drop);
    info_fails(&impostor.socket(), LONG, 7, "gone", "0 received");
}

#[test]
fn nineteen_bytes_are_not_a_response() {
    let answer = header(MAGIC, 24, 0xff, 0);
    info_fails(&sends(&answer[..19], false).socket(), LONG, 7, "gone", "19 received");
}

#[test]
fn a_wrong_magic_is_a_protocol_error() {
    let answer = header(b"DOTNET_IPC_V2\0", 24, 0xff, 0);
    let error = info_fails(&sends(&answer, true).socket(), LONG, 6, "protocol", "magic");
    assert_eq!(error["command"], "GetProcessInfo3");
}

#[test]
fn an_incomplete_response_is_a_timeout() {
    let answer = [header(MAGIC, 65_535, 0xff, 0), vec![0; 10]].concat();
    info_fails(&sends(&answer, true).socket(), SHORT, 4, "timeout", "receiving the response");
}

#[test]
fn a_truncated_response_is_gone() {
    let answer = [header(MAGIC, 65_535, 0xff, 0), vec![0; 10]].concat();
    info_fails(&sends(&answer, false).socket(), LONG, 7, "gone", "30 received");
}

#[test]
fn a_size_of_zero_is_a_protocol_error() {
    info_fails(&sends(&header(MAGIC, 0, 0xff, 0), true).socket(), LONG, 6, "protocol", "size");
}

#[test]
fn a_request_is_not_a_response() {
    info_fails(&sends(&header(MAGIC, 20, 4, 8), true).socket(), LONG, 6, "protocol", "0x0408");
}

#[test]
fn a_byte_a_second_does_not_prolong_the_deadline() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(Fault::Drip(Duration::from_secs(1)));
    info_fails(runtime.path(), "1500ms", 4, "timeout", "receiving the header of the response");
}

#[test]
#[cfg(unix)]
fn a_socket_without_a_listener() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    dead_socket(&socket);
    info_fails(&socket, LONG, 3, "no_listener", "no process listens at");
}

#[test]
#[cfg(unix)]
fn a_process_that_has_ended() {
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
fn a_path_that_does_not_exist() {
    info_fails(&Place::new().path("socket"), LONG, 3, "not_found", "there is no socket at");
}

#[test]
#[cfg(unix)]
fn a_socket_without_permission() {
    if rustix::process::geteuid().is_root() {
        return; // root may open every file
    }
    let impostor = sends(&[], true);
    fs::set_permissions(impostor.socket(), fs::Permissions::from_mode(0o000)).unwrap();
    info_fails(&impostor.socket(), LONG, 3, "permission", "no permission");
}

#[test]
fn a_refusal_has_the_error_of_the_runtime() {
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
fn a_closed_output_is_not_an_error() {
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
    let info = run_at(runtime.path(), &["info", "--json"]).well();
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
    let info = run_at(runtime.path(), &["info"]).well();
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
    let info = run_at(runtime.path(), &["info", "--json"]).well().json();
    assert_eq!(info["process_id"], u64::MAX);
    assert_eq!(info["runtime_cookie"], "abababab-abab-abab-abab-abababababab");
    assert_eq!(info["command_line"], "a\u{fffd}\u{1b}\n");
    assert_eq!((&info["os"], &info["arch"]), (&Value::Null, &json!("")));
    assert_eq!(info["managed_entrypoint_assembly_name"], "é😀");
    let info = run_at(runtime.path(), &["info"]).well();
    assert!(
        info.text().contains("a\u{fffd}\\u{1b}\\n\n"),
        "control characters are not escaped: {}",
        info.text()
    );
}

/// Delete, a one-character control sequence introducer, and a character that reverses the direction of the text.
const STEERING: &str = "a\u{7f}b\u{9b}2Jc\u{202e}d";

#[test]
fn nothing_steers_a_terminal() {
    let profile = Profile { command_line: STEERING.to_owned(), ..Profile::net10() };
    let runtime = FakeRuntime::start(profile).unwrap();
    let info = run_at(runtime.path(), &["info"]).well();
    assert!(info.text().contains("a\\u{7f}b\\u{9b}2Jc\\u{202e}d\n"), "{}", info.text());
    let info = run_at(runtime.path(), &["info", "--json"]).well();
    assert!(info.text().contains(r"a\u007fb\u009b2Jc\u202ed"), "{}", info.text());
    assert_eq!(info.json()["command_line"], STEERING);
}

#[test]
fn an_older_runtime_has_fewer_properties() {
    let profile = Profile { version: 5, ..Profile::net8() };
    let runtime = FakeRuntime::start(profile).unwrap();
    let info = run_at(runtime.path(), &["info", "--json"]).well().json();
    assert_eq!(info["command_line"], runtime.profile().command_line);
    assert_eq!(info["clr_product_version"], Value::Null);
    assert_eq!(info["runtime_identifier"], Value::Null);
}

#[test]
fn env_in_json_and_text() {
    let entries = ["A=1=2", "=C:=C:\\x", "odd", "A=3", "EMPTY=", ""].map(str::to_owned).to_vec();
    let runtime = FakeRuntime::start(Profile { environment: entries, ..Profile::net8() }).unwrap();
    let env = run_at(runtime.path(), &["env", "--json"]).well();
    let expected = r#"{"environment":{"A":"1=2","=C:":"C:\\x","EMPTY":""},"other":["odd","A=3",""]}"#;
    assert_eq!(env.text().trim_end(), expected);
    assert_eq!(run_at(runtime.path(), &["env"]).well().text(), "A=1=2\n=C:=C:\\x\nodd\nA=3\nEMPTY=\n\n");
}

#[test]
#[cfg(target_os = "linux")]
fn env_on_a_terminal() {
    let entries = vec!["A=\u{1b}[2J\nFAKE=1".to_owned(), format!("B={STEERING}")];
    let runtime = FakeRuntime::start(Profile { environment: entries, ..Profile::net8() }).unwrap();
    // The output for other programs is not escaped.
    let piped = run_at(runtime.path(), &["env"]).well();
    assert_eq!(piped.text(), format!("A=\u{1b}[2J\nFAKE=1\nB={STEERING}\n"));
    // `script` of util-linux creates a terminal.
    let command = format!("'{TOOL}' env --socket '{}'", runtime.path().display());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let Ok(script) = script.stderr(Stdio::piped()).spawn() else {
        eprintln!("NOT RUN: script(1) is not available here");
        return;
    };
    let shown = finish(script).well();
    let expected = "A=\\u{1b}[2J\\nFAKE=1\r\nB=a\\u{7f}b\\u{9b}2Jc\\u{202e}d\r\n";
    assert_eq!(shown.text(), expected);
}

#[test]
fn the_wire_log_has_all_messages() {
    let runtime = FakeRuntime::start(Profile { version: 7, ..Profile::net8() }).unwrap();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("wire.jsonl");
    run_at(runtime.path(), &["info", "--wire-log", file.to_str().unwrap()]).well();
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

    let ran = run_at(runtime.path(), &["info", "--wire-log", "/nowhere/wire.jsonl"]);
    assert_eq!(ran.status, Some(1));
}

#[cfg(target_os = "linux")]
#[test]
#[cfg(unix)]
fn a_full_wire_log_is_reported() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let ran = run_at(runtime.path(), &["info", "--wire-log", "/dev/full"]);
    assert_eq!((ran.status, ran.text().lines().count()), (Some(1), 8));
    assert!(ran.stderr.contains("/dev/full"));
}

/// A runtime of this process, named as its own socket, that cannot send its process information.
#[cfg(target_os = "linux")]
fn unreported() -> (TempDir, FakeRuntime) {
    let directory = TempDir::new().unwrap();
    let profile =
        Profile { process_id: std::process::id(), command_line: "long ".repeat(10_000), ..Profile::net10() };
    let runtime = FakeRuntime::start_in(directory.path(), profile).unwrap();
    (directory, runtime)
}

/// No .NET can send a command line that is longer than a message.
#[test]
#[cfg(target_os = "linux")]
fn a_command_line_that_is_too_long_comes_from_the_system() {
    let (directory, runtime) = unreported();
    let own = std::process::id();
    let command_line = std::env::args().collect::<Vec<_>>().join(" ");
    let note = "does not fit into a message of 64 KiB, probably because of its command line";

    let ran = run_at(runtime.path(), &["info", "--json"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.error()["note"].as_str().unwrap().contains(note));
    let info = ran.json();
    let expected = (&json!(own), &json!(command_line), &json!("/proc"));
    assert_eq!((&info["process_id"], &info["command_line"], &info["command_line_from"]), expected);
    assert_eq!((&info["os"], &info["runtime_cookie"]), (&Value::Null, &Value::Null));
    let text = run_at(runtime.path(), &["info"]).into_text();
    let has =
        |name: &str, value: &str| text.lines().any(|line| line.starts_with(name) && line.ends_with(value));
    assert!(has("command_line:", &command_line) && has("command_line_from:", "/proc"), "{text}");
    assert!(has("clr_product_version:", "(not reported)"), "{text}");

    let in_directory = |args: &[&str]| {
        let mut command = tool(args);
        let ran =
            finish(command.env("TMPDIR", directory.path()).current_dir(directory.path()).spawn().unwrap());
        assert_eq!(ran.status, Some(0), "{ran:?}");
        ran
    };
    for args in [&["ps", "--json", "--why", "--timeout", LONG][..], &["ps", "--json", "--timeout", LONG]] {
        let rows = in_directory(args).lines();
        let row = rows.iter().find(|row| row["socket"] == json!(runtime.path())).unwrap();
        assert_eq!(row["status"], "refused");
        assert_eq!(
            (&row["command_line"], &row["command_line_from"]),
            (&json!(command_line), &json!("/proc"))
        );
        assert!(row["why"].as_str().unwrap().contains(note), "{row}");
    }
    let text = in_directory(&["ps", "--wide", "--timeout", LONG]).into_text();
    let sentence = format!("the command line of process {own} is from /proc, ");
    assert!(text.lines().any(|line| line.starts_with(&sentence) && line.contains(note)), "{text}");
    let line = text.lines().find(|line| line.contains(&*runtime.path().to_string_lossy())).unwrap();
    assert!(line.contains(" (refused) ") || line.contains(" refused "), "{line}");
    assert!(line.ends_with(&format!("[/proc] {command_line}")), "{line}");

    let text = in_directory(&["find", &own.to_string()]).into_text();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("found: the runtime at ") && last.ends_with(note), "{text}");

    // The kind of counters depends on the version of the runtime, which is unknown.
    let ran = run_at(runtime.path(), &["counters", "--duration", "0"]);
    assert!(!ran.stderr.contains("refuses"), "{ran:?}");

    // Only the name of the file needs the command line.
    let ran = in_directory(&["trace", "--socket", runtime.path().to_str().unwrap(), "--duration", "0"]);
    assert!(ran.stderr.contains(note));
    let name = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let name =
        name.filter_map(|name| name.into_string().ok()).find(|name| name.ends_with(".nettrace")).unwrap();
    assert!(name.starts_with("cli-") && name.contains(&format!("_{own}_")), "{name}");
}

/// The process at the socket of a router is the router, so its command line is not that of the runtime.
#[test]
#[cfg(target_os = "linux")]
fn the_command_line_of_a_router_is_not_shown_as_that_of_its_runtime() {
    let (directory, runtime) = unreported();
    let own = std::process::id();
    let router = crate::find::router(directory.path(), own, 0);
    fs::hard_link(runtime.path(), &router).unwrap();
    let mut ps = tool(&["ps", "--json", "--timeout", LONG]);
    let rows = finish(ps.env("TMPDIR", directory.path()).spawn().unwrap()).well().lines();
    let row = rows.iter().find(|row| row["socket"] == json!(router)).unwrap();
    assert_eq!((&row["status"], &row["command_line"]), (&json!("refused"), &Value::Null), "{row}");
    let why = format!("process {own} does not report its command line: ");
    assert!(row["why"].as_str().unwrap().starts_with(&why), "{row}");
}
