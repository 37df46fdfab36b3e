//! Tests of the tool with real runtimes on Windows or Wine; `real/` has the tests for Linux. They use the runtimes of
//! `DOTNET_IPC_RUNTIMES` whose program is a `.exe`. Without such a runtime they do nothing.
#![cfg(windows)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

#[path = "../../tests/peer/mod.rs"]
mod peer;
mod tool;

use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use ipc_std::{Client, MonitorEvent};
use serde_json::Value;

use crate::peer::Place;
use crate::tool::{Ran, finish, run, tool};

struct Runtime(Child);

impl Runtime {
    fn start(command: &str, ports: &str) -> Self {
        let mut words = command.split_whitespace();
        let mut command = Command::new(words.next().expect("a command"));
        command.args(words).env("LAB_ODD_NAME", "a=b=c and a \u{fc}").stdin(Stdio::piped());
        if !ports.is_empty() {
            command.env("DOTNET_DiagnosticPorts", ports);
        }
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Starts a runtime and waits until it listens.
    fn listening(command: &str) -> Self {
        let runtime = Self::start(command, "");
        let began = Instant::now();
        while Client::for_process(runtime.0.id()).and_then(|client| client.process_info()).is_err() {
            assert!(began.elapsed() < tool::HANGS, "the runtime does not listen");
            thread::sleep(Duration::from_millis(50));
        }
        runtime
    }

    fn process_id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls `test` with the name and the command line of each runtime.
fn each(test: impl Fn(&str, &str)) {
    let runtimes = std::env::var("DOTNET_IPC_RUNTIMES").unwrap_or_default();
    if !runtimes.contains(".exe") {
        let test = thread::current().name().unwrap_or_default().to_owned();
        // The test harness shows the output of `eprintln!` only for failed tests.
        let why = format!("{test}: skipped, DOTNET_IPC_RUNTIMES names no .exe\n");
        std::io::stderr().write_all(why.as_bytes()).unwrap();
    }
    for entry in runtimes.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, command) = entry.split_once('=').expect("NAME=COMMAND LINE");
        if command.split_whitespace().next().is_some_and(|program| program.ends_with(".exe")) {
            eprintln!("{name}: {command}");
            test(name, command);
        }
    }
}

/// Returns the output of `stats` for a trace that must be complete.
#[track_caller]
fn complete(file: &str) -> Value {
    let stats = run(&["stats", file, "--json"]).well().json();
    assert_eq!(stats["end"], "complete", "{stats}");
    assert!(stats["events"].as_u64().unwrap() > 100, "{stats}");
    stats
}

fn path(place: &Place, name: &str) -> String {
    place.file(name).into_os_string().into_string().unwrap()
}

#[test]
fn info_and_env_print_the_process() {
    each(|name, command| {
        let runtime = Runtime::listening(command);
        let info = run(&["info", &runtime.process_id(), "--json"]).well().json();
        assert_eq!(info["process_id"], runtime.0.id(), "{name}: {info}");
        assert_eq!((&info["os"], &info["arch"]), (&"Windows".into(), &"x64".into()), "{name}: {info}");
        let program = command.split_whitespace().next().unwrap().rsplit(['/', '\\']).next().unwrap();
        assert!(info["command_line"].as_str().unwrap().contains(program), "{name}: {info}");
        let env = run(&["env", &runtime.process_id(), "--json"]).well().json();
        assert_eq!(env["environment"]["LAB_ODD_NAME"], "a=b=c and a \u{fc}", "{name}");
    });
}

#[test]
fn a_stopped_trace_is_complete() {
    each(|name, command| {
        let (runtime, place) = (Runtime::listening(command), Place::new());
        let file = path(&place, "out.nettrace");
        let traced = run(&["trace", &runtime.process_id(), "-o", &file, "--duration", "2s", "--json"]);
        let Ran { status, stderr, .. } = &traced;
        assert_eq!((status, stderr.as_str()), (&Some(0), ""), "{name}");
        assert_eq!(traced.json()["complete"], true, "{name}");
        complete(&file);
    });
}

#[test]
fn a_monitor_accepts_a_suspended_runtime() {
    each(|name, command| {
        let place = Place::new();
        let port = place.path("port");
        let short = port.to_str().unwrap().strip_prefix(r"\\.\pipe\").unwrap();
        let file = path(&place, "{pid}.nettrace");
        let args = ["monitor", "--json", "--listen", short, "--set", "SEEN=yes", "--trace", &file];
        let mut monitor = tool(&[&args[..], &["--duration", "2s"]].concat()).spawn().unwrap();
        let mut events = BufReader::new(monitor.stdout.take().unwrap());
        let mut next = || {
            let mut line = String::new();
            events.read_line(&mut line).unwrap();
            serde_json::from_str::<Value>(&line).unwrap_or_else(|e| panic!("{name}: {e}: {line:?}"))
        };
        let runtime = Runtime::start(command, &format!("{short},suspend"));
        for expected in ["arrived", "set", "tracing", "resumed"] {
            let event = next();
            assert_eq!(event["event"], expected, "{name}: {event}");
            assert_eq!(event["process_id"], runtime.0.id(), "{name}: {event}");
        }
        let env = run(&["env", &runtime.process_id(), "--json"]).well().json();
        assert_eq!(env["environment"]["SEEN"], "yes", "{name}");
        let file = file.replace("{pid}", &runtime.process_id());
        let began = Instant::now();
        while !run(&["stats", &file]).text().contains("end:             complete") {
            assert!(began.elapsed() < tool::HANGS, "{name}: the trace does not end");
            thread::sleep(Duration::from_millis(100));
        }
        complete(&file);
        drop(runtime);
        assert_eq!(next()["event"], "left", "{name}");
        monitor.kill().unwrap();
        finish(monitor);
    });
}

#[test]
fn the_system_identifies_the_process_at_a_port() {
    each(|name, command| {
        let place = Place::new();
        let monitor = ipc_std::Monitor::bind(place.path("port")).unwrap();
        let (_, ports) = monitor.variable(true).unwrap();
        let runtime = Runtime::start(command, ports.to_str().unwrap());
        let Some(MonitorEvent::Arrived(arrived)) = monitor.next_event(tool::HANGS).unwrap() else {
            panic!("{name}: no runtime arrived")
        };
        assert_eq!(arrived.process_id, u64::from(runtime.0.id()), "{name}");
        assert_eq!(arrived.credentials.unwrap().process_id, runtime.0.id(), "{name}");
        monitor.client(arrived.runtime_cookie).resume().unwrap();
    });
}
