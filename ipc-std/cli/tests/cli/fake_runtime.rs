//! Tests of `fake-runtime` and `demo`.

use std::fs::{self};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ipc_proto::types::ClientData;
use ipc_proto::{AttachProfiler, Guid, HResult, ResumeRuntime};
use ipc_std::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

#[cfg(target_os = "linux")]
use crate::tool::ignores;
use crate::tool::{FakeProcess, HANGS, Ran, finish, run, tool};

/// Runs a command on the runtime at a socket.
fn run_at(socket: &Path, args: &[&str]) -> Ran {
    run(&[args, &["--socket", socket.to_str().unwrap()]].concat())
}

/// Starts a fake runtime in a separate process. Returns the process and its first line.
fn fake_runtime(directory: &Path, args: &[&str]) -> (Child, Value) {
    let mut command = tool(&[&["fake-runtime", "--dir", directory.to_str().unwrap()], args].concat());
    let mut child = command.env("TMPDIR", directory).stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // The fake runtime writes only one line.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

#[test]
fn the_demo_passes() {
    let directory = TempDir::new().unwrap();
    let mut command = tool(&["demo"]);
    let ran = finish(command.env("TMPDIR", directory.path()).spawn().unwrap()).well();
    // Other runtimes in the usual directory, and requests of other tools, do not change what the demo shows.
    let sockets: Vec<&str> = ran.text().lines().skip_while(|line| !line.contains("Sockets in a")).collect();
    assert_eq!(sockets[0].trim(), "Sockets in a directory of the demo: 1.");
    let private = Path::new(sockets[1].trim()).parent().unwrap();
    assert_eq!(private.parent(), Some(directory.path()), "{}", sockets[1]);
    for words in [
        "44 4f 54 4e 45 54 5f 49 50 43 5f 56 31 00  magic",
        "clr_product_version:              10.0.12",
        "OPTIONS=a=1;b=2",
        "the trace is complete",
        "there is no process to dump",
        "GetProcessInfo3, then GetProcessInfo2, then GetProcessInfo\n",
        "waiting for the response",
    ] {
        assert!(ran.text().contains(words), "{words}: {}", ran.text());
    }
    assert!((40..=70).contains(&ran.text().lines().count()));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "files remain");

    let mut command = tool(&["demo", "--json"]);
    let ran = finish(command.env("TMPDIR", directory.path()).spawn().unwrap()).well();
    for line in ran.text().lines() {
        let step: Value = serde_json::from_str(line).unwrap();
        assert!(step["step"].is_string() && step["lines"].is_array(), "{line}");
    }
}

#[test]
fn a_fake_runtime_ends_with_its_input() {
    let directory = TempDir::new().unwrap();
    let (mut child, line) = fake_runtime(directory.path(), &["--runtime", "net9-aot", "--suspend"]);
    let socket = Path::new(line["socket"].as_str().unwrap());
    assert_eq!(line["process_id"], child.id());
    assert_eq!(socket.parent(), Some(directory.path()));
    let info = run_at(socket, &["info", "--json"]).well().json();
    assert_eq!(info["clr_product_version"], "9.0.20");
    #[cfg(target_os = "linux")]
    assert_eq!(
        run(&["info", &child.id().to_string(), "--json"]).well().json(),
        info,
        "found through the TMPDIR of the process"
    );
    drop(child.stdin.take());
    finish(child).well();
    assert!(!socket.exists());
}

/// Accepts the next runtime. Returns its advertise message and its connection.
fn accepted(monitor: &UnixListener) -> (Vec<u8>, UnixStream) {
    let (mut stream, _) = monitor.accept().unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    let mut frame = vec![0; 34];
    stream.read_exact(&mut frame).unwrap();
    (frame, stream)
}

#[test]
fn a_fake_runtime_connects_to_monitors() {
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
        let (frame, stream) = accepted(monitor);
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
        Connection::new(accepted(monitor).1).call(&attach).unwrap_err().hresult()
    };
    let frame = resume(&first);
    assert_eq!(attach(&first), Some(HResult::NOT_YET_AVAILABLE), "the other port suspends by default");
    assert_eq!(resume(&second), frame);
    assert_eq!(attach(&first), Some(HResult::MOD_NOT_FOUND));
    let info = run_at(Path::new(line["socket"].as_str().unwrap()), &["info", "--json"]).well().json();
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
fn each_fake_runtime_has_its_own_cookie() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("monitor");
    let monitor = UnixListener::bind(&path).unwrap();
    let port = format!("{},nosuspend", path.display());
    let started = [(); 2].map(|()| fake_runtime(directory.path(), &["--port", &port]));
    let cookies = [(); 2].map(|()| accepted(&monitor)).map(|(frame, _stream)| frame[8..24].to_vec());
    assert_ne!(cookies[0], cookies[1]);
    for (mut child, _) in started {
        drop(child.stdin.take());
        finish(child).well();
    }
}

#[test]
fn a_fake_runtime_ends_with_a_signal() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let directory = TempDir::new().unwrap();
        let (mut child, line) = fake_runtime(directory.path(), &[]);
        // `finish` would close the input, which ends the fake runtime, too.
        let stdin = child.stdin.take();
        kill_process(Pid::from_child(&child), signal).unwrap();
        finish(child).well();
        drop(stdin);
        assert!(!Path::new(line["socket"].as_str().unwrap()).exists());
    }
}

/// The signals that `nohup`, or `&` in a script, or another parent can make a program ignore.
#[cfg(target_os = "linux")]
const SIGNALS: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// A program that ignored them would not end when a test sends one.
#[test]
#[cfg(target_os = "linux")]
fn a_program_of_a_test_ignores_no_signal() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    for signal in SIGNALS {
        assert!(!ignores(runtime.id(), signal.as_raw()), "{signal:?} is ignored");
        if std::env::var_os(IGNORES_SIGNALS).is_some() {
            // This test still ignores it.
            kill_process(rustix::process::getpid(), signal).unwrap();
        }
    }
}

/// The variable by which the next test announces to the previous one that it ignores signals.
#[cfg(target_os = "linux")]
const IGNORES_SIGNALS: &str = "DOTNET_IPC_TEST_IGNORES_SIGNALS";

#[test]
#[cfg(target_os = "linux")]
fn tests_can_ignore_signals() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP INT QUIT TERM; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    shell.args(["--exact", "fake_runtime::a_program_of_a_test_ignores_no_signal"]).env(IGNORES_SIGNALS, "1");
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}
