//! `dotnet-ipc monitor` as people and scripts see it.
#![cfg(all(unix, feature = "cli"))]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

mod tool;

use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use ipc_std::Monitor;
use ipc_std::fake::{FakeRuntime, Fault, Port, Profile};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{HANGS, TOOL, within};

/// The tool at work, and the events that it tells of in JSON.
struct Tool {
    child: Child,
    events: mpsc::Receiver<Value>,
    errors: thread::JoinHandle<String>,
}

impl Tool {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(TOOL)
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

    /// The next events, which have these names.
    fn expect(&self, names: &[&str]) -> Vec<Value> {
        let events: Vec<_> = names.iter().map(|_| self.event()).collect();
        let seen: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!(seen, names, "{events:?}");
        events
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its status, and what it said on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let status = within(Pid::from_child(&self.child), move || self.child.wait());
        (status.unwrap().code(), self.errors.join().unwrap())
    }
}

/// Lines of JSON; a command's own output may stand between them.
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
    /// A runtime that calls this port, in this process.
    fn runtime(&self, port: &str) -> FakeRuntime {
        let ports = vec![Port { path: self.path(port), suspended: true }];
        FakeRuntime::without_listener(Profile { ports, ..Profile::net10() }).unwrap()
    }
    /// A command line that is a runtime, and ends when its input does.
    fn command(&self) -> [String; 3] {
        let script = format!(
            "exec '{TOOL}' fake-runtime --dir '{}' --port \"$DOTNET_DiagnosticPorts\"",
            self.directory.path().display()
        );
        ["sh".to_owned(), "-c".to_owned(), script]
    }
}

fn is_whole(path: &Path) -> bool {
    let trace = std::fs::read(path).unwrap();
    trace.starts_with(b"Nettrace") && trace.ends_with(&[6, 1])
}

#[test]
fn a_command_is_traced_from_its_first_event_on() {
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
    // The trace is ended first, then the command is told.
    tool.signal(Signal::TERM);
    tool.expect(&["left"]);
    assert_eq!(tool.end(), (Some(0), String::new()));
    assert!(is_whole(&file));
}

#[test]
fn a_command_keeps_its_status_and_its_output() {
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + 9)] {
        let (code, said) = Tool::start(&["--", "sh", "-c", script]).end();
        assert_eq!(code, Some(status), "{script}");
        assert!(said.contains("no runtime connected: is sh a .NET program"), "{said}");
    }
    let output = Command::new(TOOL).args(["monitor", "--", "echo", "hello"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"hello\n"[..]));
    // Whoever wants a trace wants to know that there is none.
    let (code, said) = Tool::start(&["--trace", "/no/such/folder/f", "--", "sh", "-c", "exit 0"]).end();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is no trace: no runtime connected"), "{said}");
    let (code, said) = Tool::start(&["--", "/no/such/program"]).end();
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot start /no/such/program"), "{said}");
}

#[test]
fn children_of_a_command_arrive_too() {
    let lab = Lab::new();
    // Two at once, each with a folder of its own, which end when the input that they share does.
    std::fs::create_dir(lab.path("other")).unwrap();
    let one = lab.command()[2].replace("exec ", "");
    let folder = |name: &str| one.replacen(lab.directory.path().to_str().unwrap(), &lab.text(name), 1);
    // What runs in the background has no input of its own accord.
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
    let (code, said) = tool.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

#[test]
fn runtimes_come_and_go_and_their_traces_get_numbers() {
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
    let (code, said) = tool.end();
    assert_eq!(code, Some(0));
    let hint: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(hint["note"], format!("runtimes connect with DOTNET_DiagnosticPorts={port},suspend"));
    assert!(is_whole(&lab.path("app.nettrace")) && is_whole(&lab.path("app.2.nettrace")));
    assert!(!lab.path("port").exists(), "its socket is removed");
}

#[test]
fn what_fails_is_told_and_the_runtime_is_resumed_all_the_same() {
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("no such folder/app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file]);
    let runtime = lab.runtime("port");
    let events = tool.expect(&["arrived", "error", "resumed"]);
    assert_eq!(events[1]["kind"], "io");
    assert!(!runtime.is_suspended());
    tool.signal(Signal::INT);
    let (code, said) = tool.end();
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_sick_runtime_holds_nobody_up() {
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
fn a_runtime_that_does_not_answer_is_resumed_when_it_does() {
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
fn runtimes_are_resumed_even_if_nobody_can_be_told() {
    let lab = Lab::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut child = Command::new(TOOL)
        .args(["monitor", "--json", "--set", "A=b", "--listen", &lab.text("port")])
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let runtimes = [(); 2].map(|()| lab.runtime("port"));
    while runtimes.iter().any(FakeRuntime::is_suspended) {
        assert!(child.try_wait().unwrap().is_none(), "it has given up");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot write to standard output"), "{said}");
}

#[test]
fn a_second_signal_leaves_nothing_behind() {
    let lab = Lab::new();
    let script = "trap '' TERM; echo '{\"event\": \"ready\"}'; read line";
    let mut child = Command::new(TOOL)
        .args(["monitor", "--json", "--", "sh", "-c", script])
        .env("TMPDIR", lab.directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let events = lines(child.stdout.take().unwrap());
    events.recv_timeout(HANGS).unwrap();
    let left = || std::fs::read_dir(lab.directory.path()).unwrap().count();
    assert_eq!(left(), 1, "the folder of its socket");
    while child.try_wait().unwrap().is_none() {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(), 0);
}

#[test]
fn a_command_keeps_the_ports_that_it_had() {
    let lab = Lab::new();
    let outer = Monitor::bind(lab.path("outer")).unwrap();
    let mut child = Command::new(TOOL)
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
    let (code, said) = tool.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot write /dev/full"), "{said}");
}

#[test]
fn who_is_no_runtime_is_told_of() {
    let lab = Lab::new();
    let port = lab.text("port");
    let tool = Tool::start(&["--listen", &port]);
    while !lab.path("port").exists() {
        thread::sleep(Duration::from_millis(5));
    }
    UnixStream::connect(lab.path("port")).unwrap().write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let events = tool.expect(&["error"]);
    assert_eq!(events[0]["kind"], "protocol");
    assert_eq!(events[0]["runtime_cookie"], Value::Null);
    assert!(events[0]["error"].as_str().unwrap().contains("not the magic ADVR_V1"), "{events:?}");
    tool.signal(Signal::TERM);
    assert_eq!(tool.end().0, Some(0), "that is no failure");
}

#[test]
fn no_resume_leaves_the_runtime_to_others() {
    let lab = Lab::new();
    let (port, file) = (lab.text("port"), lab.text("app.nettrace"));
    let tool = Tool::start(&["--listen", &port, "--trace", &file, "--no-resume", "--duration", "1ms"]);
    let runtime = lab.runtime("port");
    tool.expect(&["arrived", "tracing"]);
    assert!(runtime.is_suspended());
    tool.signal(Signal::INT);
    let (code, said) = tool.end();
    assert!(said.contains(",nosuspend"), "{said}");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the runtime was not resumed"), "{said}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = Lab::new();
    let port = lab.text("port");
    let taken = Monitor::bind(lab.path("taken")).unwrap();
    let taken_path = taken.path().to_str().unwrap();
    for (args, status, part) in [
        (&["--set", "A=b"][..], 2, "--listen"),
        (&["--listen", &port, "--set", "A"], 2, "NAME=VALUE"),
        (&["--listen", &port, "--set", "=A"], 2, "NAME=VALUE"),
        (&["--listen", &port, "--provider", "A"], 2, "--trace"),
        (&["--listen", &port, "--trace", "-"], 2, "a file"),
        (&["--listen", taken_path], 1, "somebody listens at"),
        (&["--listen", "/no/such/folder/port"], 1, "cannot listen at /no/such/folder/port"),
        (&["--listen", &format!("{port}{}", "x".repeat(200))], 1, "cannot listen at"),
    ] {
        let (code, said) = Tool::start(args).end();
        assert_eq!(code, Some(status), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
    assert!(!lab.path("port").exists());
}
