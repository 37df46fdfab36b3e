//! Tests of `dotnet-ipc monitor`: events, output and exit status.

use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;

use ipc_proto::{CollectTracing2, Command as _};
use ipc_std::Monitor;
use ipc_testkit::{FakePort, FakeRuntime, Fault, Profile, Response};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{HANGS, TOOL, finish, program, run, tool, until, until_some, within};
use crate::traces::lossy;

/// A running tool and its JSON events.
struct Tool {
    child: Child,
    events: mpsc::Receiver<Value>,
    errors: thread::JoinHandle<String>,
}

impl Tool {
    fn start(args: &[&str]) -> Self {
        let mut child = program(TOOL)
            .args(["monitor", "--json"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let events = lines(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, events, errors }
    }

    fn event(&self) -> Value {
        self.events.recv_timeout(HANGS).expect("an event")
    }

    /// Receives the next events, which must have these names.
    fn expect(&self, names: &[&str]) -> Vec<Value> {
        let events: Vec<_> = names.iter().map(|_| self.event()).collect();
        let seen: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!(seen, names, "{events:?}");
        events
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends the tool. Returns its exit status and its standard error.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let status = within(Pid::from_child(&self.child), move || self.child.wait());
        (status.unwrap().code(), self.errors.join().unwrap())
    }
}

/// Receives JSON events, and ignores the output of the command between them.
fn lines(stdout: ChildStdout) -> mpsc::Receiver<Value> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map(Result::unwrap);
        for event in lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok()) {
            if event["event"].is_string() && send.send(event).is_err() {
                return;
            }
        }
    });
    receive
}

struct Lab {
    directory: TempDir,
}

impl Lab {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
    /// Starts a fake runtime in this process that connects to this port.
    fn runtime(&self, port: &str) -> FakeRuntime {
        let ports = vec![FakePort { path: self.path(port), suspended: true }];
        FakeRuntime::without_listener(Profile { ports, ..Profile::net10() }).unwrap()
    }
    /// Returns the command line of a fake runtime that exits at the end of its standard input.
    fn command(&self) -> [String; 3] {
        let script = format!(
            "exec '{TOOL}' fake-runtime --dir '{}' --port \"$DOTNET_DiagnosticPorts\"",
            self.directory.path().display()
        );
        ["sh".to_owned(), "-c".to_owned(), script]
    }
}

/// Waits until the port listens.
fn wait_for(port: &Path) {
    until("the port does not listen", || UnixStream::connect(port).is_ok());
}

fn is_whole(path: &Path) -> bool {
    let trace = std::fs::read(path).unwrap();
    trace.starts_with(b"Nettrace") && trace.ends_with(&[6, 1])
}

#[test]
fn a_command_is_traced_from_its_first_event() {
    let lab = Lab::new();
    let (file, command) = (lab.text("{pid}.nettrace"), lab.command());
    let args = ["--set", "LEVEL=debug", "--set", "EMPTY=", "--trace", &file, "--"];
    let tool = Tool::start(&[&args[..], &command.each_ref().map(String::as_str)].concat());
    let events = tool.expect(&["arrived", "set", "set", "tracing", "resumed"]);
    let id = &events[0]["process_id"];
    assert!(events.iter().all(|event| event["process_id"] == *id));
    assert!(events.iter().all(|event| event["runtime_cookie"] == events[0]["runtime_cookie"]));
    assert_eq!((&events[1]["name"], &events[1]["value"]), (&"LEVEL".into(), &"debug".into()));
    assert_eq!((&events[2]["name"], &events[2]["value"]), (&"EMPTY".into(), &"".into()));
    let file = lab.path(&format!("{id}.nettrace"));
    assert_eq!(events[3]["file"], file.to_str().unwrap());
    // The tool ends the trace before it signals the command.
    tool.signal(Signal::TERM);
    let events = tool.expect(&["recorded", "left"]);
    assert_eq!((&events[0]["file"], &events[0]["complete"]), (&file.to_str().unwrap().into(), &true.into()));
    assert_eq!(events[0]["bytes"], std::fs::metadata(&file).unwrap().len());
    assert!(events[0]["events"].is_u64() && events[0]["lost"] == 0, "{events:?}");
    assert_eq!(tool.end(), (Some(0), String::new()));
    assert!(is_whole(&file));
}

#[test]
fn a_command_keeps_its_status_and_its_output() {
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + 9)] {
        let (code, stderr) = Tool::start(&["--", "sh", "-c", script]).end();
        assert_eq!(code, Some(status), "{script}");
        assert!(stderr.contains("no runtime connected: is sh a .NET program"), "{stderr}");
    }
    let output = program(TOOL).args(["monitor", "--", "echo", "hello"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"hello\n"[..]));
    // With `--trace`, a missing trace is a failure.
    let (code, stderr) = Tool::start(&["--trace", "/no/such/folder/f", "--", "sh", "-c", "exit 0"]).end();
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("there is no trace: no runtime connected"), "{stderr}");
    let (code, stderr) = Tool::start(&["--", "/no/such/program"]).end();
    assert_eq!(code, Some(1));
    assert!(stderr.contains("cannot start /no/such/program"), "{stderr}");
}

#[test]
fn child_processes_of_a_command_are_monitored() {
    let lab = Lab::new();
    // Two concurrent runtimes, each with its own directory. Both exit at the end of the input that they share.
    std::fs::create_dir(lab.path("other")).unwrap();
    let one = lab.command()[2].replace("exec ", "");
    let folder = |name: &str| one.replacen(lab.directory.path().to_str().unwrap(), &lab.text(name), 1);
    // A background command of the shell has no standard input by default.
    let script = format!("exec 3<&0; {} <&3 & {} <&3 & wait", folder(""), folder("other"));
    let tool = Tool::start(&["--", "sh", "-c", &script]);
    let mut seen = BTreeSet::new();
    let mut resumed = 0;
    while resumed < 2 {
        let event = tool.event();
        match event["event"].as_str().unwrap() {
            "arrived" => assert!(seen.insert(event["runtime_cookie"].to_string())),
            "resumed" => resumed += 1,
            _ => panic!("{event}"),
        }
    }
    assert_eq!(seen.len(), 2);
    let (code, stderr) = tool.end();
    // The shell makes its background commands ignore SIGINT.
    let is_told = stderr.lines().all(|line| line.starts_with("note: this process ignores Ctrl-C (SIGINT)"));
    assert!(code == Some(0) && is_told, "{stderr}");
}

/// A descendant of the command starts a runtime after the command has ended.
#[test]
#[cfg(target_os = "linux")]
fn the_port_serves_descendants_of_a_command_that_has_ended() {
    let lab = Lab::new();
    let late = &lab.command()[2];
    let script =
        format!("exec 3<&0; (while kill -0 $$ 2>/dev/null; do sleep 0.01; done; {late} <&3) & exit 5");
    let tool = Tool::start(&["--", "sh", "-c", &script]);
    tool.expect(&["arrived", "resumed"]);
    let (code, stderr) = tool.end();
    assert_eq!(code, Some(5), "{stderr}");
}

#[test]
fn first_only_resumes_the_others_and_ends_with_the_command() {
    let lab = Lab::new();
    let first = lab.command()[2].replace("exec ", "");
    std::fs::create_dir(lab.path("other")).unwrap();
    let second = first.replacen(lab.directory.path().to_str().unwrap(), &lab.text("other"), 1);
    // Each runtime ends after a line of the test. The last process outlives the command.
    let script = format!(
        "exec 3<&0; (read line <&3) | {first}; (read line <&3) | {second}; (read line <&3) >/dev/null 2>&1 & exit 4"
    );
    let mut tool = Tool::start(&["--first-only", "--set", "A=B", "--", "sh", "-c", &script]);
    let mut stdin = tool.child.stdin.take().unwrap();
    tool.expect(&["arrived", "set", "resumed"]);
    stdin.write_all(b"first\n").unwrap();
    // The monitor notices an end by a check from time to time, so the order is open.
    let names: BTreeSet<_> = (0..3).map(|_| tool.event()["event"].to_string()).collect();
    assert_eq!(names, ["arrived", "left", "resumed"].map(|name| format!("{name:?}")).into());
    stdin.write_all(b"second\n").unwrap();
    tool.expect(&["left"]);
    let (code, stderr) = tool.end();
    assert_eq!((code, stderr.as_str()), (Some(4), ""));
    drop(stdin);
}

#[test]
fn a_duration_ends_the_monitor() {
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file, "--duration", "0"]);
    let (code, stderr) = tool.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!lab.path("port").exists());
    // A command continues: only its trace ends.
    let command = lab.command();
    let args = ["--trace", &file, "--duration", "300ms", "--"];
    let tool = Tool::start(&[&args[..], &command.each_ref().map(String::as_str)].concat());
    tool.expect(&["arrived", "tracing", "resumed", "recorded"]);
    assert_eq!(tool.end(), (Some(0), String::new()));
    assert!(is_whole(&lab.path("app.nettrace")));
}

#[test]
fn the_traces_of_several_runtimes_are_numbered() {
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file]);
    let (first, second) = (lab.runtime("port"), lab.runtime("port"));
    let mut files = BTreeSet::new();
    for _ in 0..6 {
        let event = tool.event();
        if event["event"] == "tracing" {
            files.insert(event["file"].as_str().unwrap().to_owned());
        }
        assert_ne!(event["event"], "error", "{event}");
    }
    assert!(!first.is_suspended() && !second.is_suspended());
    assert_eq!(files, BTreeSet::from([file.clone(), lab.text("app.2.nettrace")]));
    tool.signal(Signal::INT);
    let (code, stderr) = tool.end();
    assert_eq!(code, Some(0));
    let hint: Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(hint["note"], format!("runtimes connect with DOTNET_DiagnosticPorts={port},suspend"));
    assert!(is_whole(&lab.path("app.nettrace")) && is_whole(&lab.path("app.2.nettrace")));
    assert!(!lab.path("port").exists(), "the socket still exists");
}

#[test]
fn the_losses_of_a_trace_are_reported() {
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file, "--buffer", "3"]);
    let ports = vec![FakePort { path: lab.path("port"), suspended: true }];
    let runtime = FakeRuntime::without_listener(Profile { ports, ..Profile::net8() }).unwrap();
    runtime.on(CollectTracing2::CODE, |_| Response::Trace(lossy()));
    let id = tool.expect(&["arrived", "tracing"])[0]["process_id"].clone();
    tool.signal(Signal::INT);
    let recorded =
        core::iter::repeat_with(|| tool.event()).find(|event| event["event"] == "recorded").unwrap();
    assert_eq!([&recorded["events"], &recorded["lost"]], [3, 6], "{recorded}");
    let (code, stderr) = tool.end();
    assert_eq!(code, Some(0), "{stderr}");
    let note: Value = serde_json::from_str(stderr.lines().nth(1).unwrap()).unwrap();
    let expected = format!("process {id}: 6 of 9 events were lost");
    assert!(note["note"].as_str().unwrap().starts_with(&expected), "{note}");
    assert!(std::fs::read(&file).unwrap() == lossy());
}

/// Silent connections do not use up the descriptors: the oldest of them is dropped for the newest connection.
#[test]
fn exhausted_descriptors_delay_no_runtime() {
    let lab = Lab::new();
    let port = lab.path("port");
    let script = "ulimit -n 64; exec \"$0\" \"$@\"";
    let args = ["-c", script, TOOL, "monitor", "--listen", port.to_str().unwrap()];
    let mut limited = program("sh");
    limited.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = limited.spawn().unwrap();
    wait_for(&port);
    let mut silent: Vec<_> = (0..100).map(|_| UnixStream::connect(&port).unwrap()).collect();
    // Each connection of a runtime is accepted and gets its command, and no runtime must connect again.
    for number in 0..10_u8 {
        silent.extend([(); 3].map(|()| UnixStream::connect(&port).unwrap()));
        let mut runtime = UnixStream::connect(&port).unwrap();
        runtime.set_read_timeout(Some(HANGS)).unwrap();
        let frame = [&b"ADVR_V1\0"[..], &[number; 16], &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        runtime.write_all(&frame).unwrap();
        let mut request = [0; 20];
        runtime.read_exact(&mut request).unwrap_or_else(|e| panic!("runtime {number}: {e}"));
        assert!(request.starts_with(b"DOTNET_IPC_V1\0"));
    }
    // A quarter of the descriptors is free for commands, but the next connection may be accepted already.
    let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).map(Iterator::count);
    assert!(open.is_ok_and(|open| open <= 50) || cfg!(not(target_os = "linux")), "the reserve is in use");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
}

/// A traced runtime needs three descriptors: of its session, of its file and of its next connection.
#[test]
#[cfg(target_os = "linux")]
fn a_traced_runtime_needs_three_descriptors() {
    const MORE: usize = 8;
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file]);
    let is_resumed =
        || until_some("no runtime is resumed", || (tool.event()["event"] == "resumed").then_some(()));
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", tool.child.id())).unwrap().count();
    let mut runtimes = vec![lab.runtime("port")];
    is_resumed();
    let first = descriptors();
    runtimes.extend([(); MORE].map(|()| {
        let runtime = lab.runtime("port");
        is_resumed();
        runtime
    }));
    // The connection of a request that has ended is closed soon.
    until("a runtime needs more descriptors", || descriptors() <= first + 3 * MORE);
    tool.signal(Signal::INT);
    assert_eq!(tool.end().0, Some(0));
}

/// The fake runtime is in this process, which does not end. So the closed connections are the only sign that it has
/// left.
#[test]
fn a_peer_that_disconnects_during_a_command_leaves() {
    for options in [&[][..], &["--set", "A=b"], &["--trace", "{pid}.nettrace"]] {
        let lab = Lab::new();
        let port = lab.text("port");
        let file = lab.text("{pid}.nettrace");
        let options: Vec<_> =
            options.iter().map(|one| if *one == "{pid}.nettrace" { &*file } else { one }).collect();
        let tool = Tool::start(&[&["--listen", &port][..], &options].concat());
        wait_for(&lab.path("port"));
        for number in 0..4 {
            let mut peer = UnixStream::connect(&port).unwrap();
            peer.set_read_timeout(Some(HANGS)).unwrap();
            peer.write_all(&[&b"ADVR_V1\0"[..], &[number; 16], &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat())
                .unwrap();
            peer.read_exact(&mut [0; 20]).unwrap();
        }
        let events: Vec<_> = (0..12).map(|_| tool.event()).collect();
        for name in ["arrived", "error", "left"] {
            assert_eq!(events.iter().filter(|event| event["event"] == name).count(), 4, "{events:?}");
        }
        tool.signal(Signal::INT);
        tool.end();
    }
}

#[test]
fn a_path_that_is_too_long_is_named_as_the_reason() {
    let lab = Lab::new();
    let port = lab.text(&"x".repeat(120));
    run(&["monitor", "--listen", &port]).fails(1, "; choose a shorter path");
}

#[test]
fn a_failure_is_reported_and_the_runtime_is_resumed() {
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("no such folder/app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file]);
    let runtime = lab.runtime("port");
    let events = tool.expect(&["arrived", "error", "resumed"]);
    assert_eq!(events[1]["kind"], "io");
    assert!(!runtime.is_suspended());
    tool.signal(Signal::INT);
    let (code, stderr) = tool.end();
    assert_eq!(code, Some(1), "{stderr}");
}

#[test]
fn an_unresponsive_runtime_does_not_delay_others() {
    let lab = Lab::new();
    let port = lab.text("port");
    let tool = Tool::start(&["--listen", &port, "--timeout", "2s"]);
    let sick = lab.runtime("port");
    sick.set_fault(Fault::Silent);
    let well = lab.runtime("port");
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "error") {
        names.push(tool.event()["event"].as_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["arrived", "arrived", "error", "resumed"]);
    assert!(sick.is_suspended() && !well.is_suspended());
    tool.signal(Signal::INT);
    assert_eq!(tool.end().0, Some(4), "it timed out");
}

#[test]
fn a_runtime_that_responds_late_is_resumed() {
    let lab = Lab::new();
    let port = lab.text("port");
    let tool = Tool::start(&["--listen", &port, "--timeout", "200ms", "--set", "A=b"]);
    let runtime = lab.runtime("port");
    runtime.set_fault(Fault::Silent);
    tool.expect(&["arrived", "error", "error"]);
    assert!(runtime.is_suspended());
    runtime.set_fault(None);
    tool.expect(&["resumed"]);
    assert!(!runtime.is_suspended());
    tool.signal(Signal::INT);
    assert_eq!(tool.end().0, Some(4));
}

#[test]
fn runtimes_are_resumed_although_the_output_fails() {
    let lab = Lab::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut child = program(TOOL)
        .args(["monitor", "--json", "--set", "A=b", "--listen", &lab.text("port")])
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let runtimes = [(); 2].map(|()| lab.runtime("port"));
    while runtimes.iter().any(FakeRuntime::is_suspended) {
        assert!(child.try_wait().unwrap().is_none(), "the tool ended early");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot write to standard output"), "{stderr}");
}

#[test]
fn a_note_precedes_the_failure() {
    let mut monitor = tool(&["monitor", "--", "/no/such/program"]);
    let ran = finish(monitor.env("DOTNET_EnableDiagnostics", "0").spawn().unwrap());
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines[0], "note: DOTNET_EnableDiagnostics=0 prevents runtimes from connecting");
    assert!(ran.status == Some(1) && lines[1].starts_with("error: cannot start /no/such/program"), "{ran:?}");
}

/// Returns both ends of a stream that is full. The first end takes nothing.
fn full_stream() -> (UnixStream, OwnedFd) {
    let (reader, mut writer) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    writer.set_nonblocking(false).unwrap();
    (reader, writer.into())
}

/// A reader of standard error that takes nothing delays no runtime, and the end only for 10 seconds after a signal. It
/// also would not take a report of that.
#[test]
fn standard_error_that_takes_nothing_blocks_nothing() {
    let lab = Lab::new();
    let (port, done) = (lab.text("port"), lab.path("done"));
    let script = |status: u8| format!("trap '' TERM; >> '{}' echo; exit {status}", done.display());
    let (succeeds, fails) = (script(0), script(7));
    let started = [
        (&["--", "sh", "-c", &succeeds][..], 1),
        (&["--json", "--", "sh", "-c", &succeeds], 1),
        (&["--trace", "/no/such/folder/f", "--", "sh", "-c", &succeeds], 3),
        (&["--", "sh", "-c", &fails], 7),
        (&["--listen", &port], 1),
    ];
    let started = started.map(|(args, status)| {
        let (reader, writer) = full_stream();
        let mut monitor = tool(&[&["monitor"], args].concat());
        (monitor.env("DOTNET_EnableDiagnostics", "0").stderr(writer).spawn().unwrap(), reader, args, status)
    });
    let runtime = lab.runtime("port");
    until("a command does not start", || std::fs::read(&done).is_ok_and(|lines| lines.len() == 4));
    until("the runtime is not resumed", || !runtime.is_suspended());
    for (child, ..) in &started {
        kill_process(Pid::from_child(child), Signal::TERM).unwrap();
    }
    for (child, _reader, args, status) in started {
        assert_eq!(finish(child).status, Some(status), "{args:?}");
    }
}

#[test]
fn a_second_signal_leaves_no_files() {
    let lab = Lab::new();
    let script = "trap '' TERM; echo '{\"event\": \"ready\"}'; read line";
    let mut child = program(TOOL)
        .args(["monitor", "--json", "--", "sh", "-c", script])
        .env("TMPDIR", lab.directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let events = lines(child.stdout.take().unwrap());
    events.recv_timeout(HANGS).unwrap();
    let left = || std::fs::read_dir(lab.directory.path()).unwrap().count();
    assert_eq!(left(), 1, "the directory of its socket");
    while child.try_wait().unwrap().is_none() {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(), 0);
}

#[test]
fn a_command_keeps_its_configured_ports() {
    let lab = Lab::new();
    let outer = Monitor::bind(lab.path("outer")).unwrap();
    let mut child = program(TOOL)
        .args(["monitor", "--json", "--"])
        .args(lab.command())
        .env("DOTNET_DiagnosticPorts", outer.variable(false).unwrap().1)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let events = lines(child.stdout.take().unwrap());
    assert!(outer.next_event(HANGS).unwrap().is_some());
    while events.recv_timeout(HANGS).unwrap()["event"] != "resumed" {}
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_wire_log_that_cannot_be_written_is_a_failure() {
    let lab = Lab::new();
    let command = lab.command();
    let args = ["--wire-log", "/dev/full", "--"];
    let tool = Tool::start(&[&args[..], &command.each_ref().map(String::as_str)].concat());
    tool.expect(&["arrived", "resumed"]);
    let (code, stderr) = tool.end();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("cannot write /dev/full"), "{stderr}");
}

#[test]
fn a_peer_that_is_not_a_runtime_is_reported() {
    let lab = Lab::new();
    let port = lab.text("port");
    let tool = Tool::start(&["--listen", &port]);
    // The socket has its name before it listens, so the first attempts to connect can fail.
    let mut connected = until_some("the port does not listen", || UnixStream::connect(&port).ok());
    connected.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    drop(connected);
    let events = tool.expect(&["error"]);
    assert_eq!(events[0]["kind"], "protocol");
    assert_eq!(events[0]["runtime_cookie"], Value::Null);
    assert!(events[0]["error"].as_str().unwrap().contains("not the magic ADVR_V1"), "{events:?}");
    tool.signal(Signal::TERM);
    assert_eq!(tool.end().0, Some(0), "a foreign peer is not a failure");
}

#[test]
fn no_resume_leaves_the_runtime_suspended() {
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file, "--no-resume"]);
    let runtime = lab.runtime("port");
    tool.expect(&["arrived", "tracing"]);
    assert!(runtime.is_suspended());
    tool.signal(Signal::INT);
    let (code, stderr) = tool.end();
    assert!(stderr.contains(",nosuspend"), "{stderr}");
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("the trace is empty: the runtime was suspended"), "{stderr}");
}

#[test]
fn invalid_arguments_are_refused() {
    let lab = Lab::new();
    let port = lab.text("port");
    let taken = Monitor::bind(lab.path("taken")).unwrap();
    let taken_path = taken.path().unwrap().to_str().unwrap();
    for (args, status, part) in [
        (&["--set", "A=b"][..], 2, "--listen"),
        (&["--listen", &port, "--set", "A"], 2, "NAME=VALUE"),
        (&["--listen", &port, "--set", "=A"], 2, "NAME=VALUE"),
        (&["--listen", &port, "--provider", "A"], 2, "--trace"),
        (&["--listen", &port, "--trace", "-"], 2, "a file"),
        (&["--listen", taken_path], 1, "is in use"),
        (&["--listen", "/no/such/folder/port"], 1, "cannot listen at /no/such/folder/port"),
        (&["--listen", &format!("{port}{}", "x".repeat(200))], 1, "cannot listen at"),
    ] {
        let (code, stderr) = Tool::start(args).end();
        assert_eq!(code, Some(status), "{args:?}: {stderr}");
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
    assert!(!lab.path("port").exists());
}
