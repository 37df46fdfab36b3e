//! Peers that do not go on, and outputs that take nothing: each wait has a limit, and two signals end it.

use core::time::Duration;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::tool::{TOOL, finish, is_stopped, program, run, tool, until};
use crate::traces::made;

const STOP_TRACING: Code = Code(0x0201);
/// The commands that start a session.
const COLLECT_TRACING: [Code; 5] = [Code(0x0202), Code(0x0203), Code(0x0204), Code(0x0205), Code(0x0207)];

/// Every command that records a process, with a short session.
const RECORDING: [&[&str]; 12] = [
    &["trace", "-o", "/dev/null"],
    &["events"],
    &["counters"],
    &["top"],
    &["report"],
    &["flame", "--format", "folded", "-o", "-"],
    &["requests"],
    &["gc"],
    &["jit"],
    &["locks"],
    &["diagnose"],
    &["trace", "-o", "/dev/null", "--names-first"],
];

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

pub(crate) fn has_stop(runtime: &FakeRuntime) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(STOP_TRACING))
}

/// Starts a runtime whose sessions never end.
fn endless() -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in COLLECT_TRACING {
        runtime.on(code, |_| Response::Trace(made(&[])));
    }
    runtime.set_fault(Fault::StallStream(100));
    runtime
}

/// Without the second signal, the tool would wait for the limits of the Stop, and end with status 4.
#[test]
fn two_signals_end_every_wait_for_a_stop() {
    for command in RECORDING {
        let runtime = endless();
        let session = ["--duration", "200ms", "--socket", runtime.path().to_str().unwrap()];
        let mut child = tool(&[command, &session].concat()).spawn().unwrap();
        until("the session is never stopped", || has_stop(&runtime));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        signal(&child, Signal::TERM);
        let waits = "waiting for the process to end its session: 2m at most, and 10s without data; a second signal \
                     gives up";
        assert!(lines.any(|line| line.unwrap().contains(waits)), "{command:?}");
        signal(&child, Signal::TERM);
        assert_eq!(finish(child).status, None, "{command:?}");
    }
}

/// A command that has no session ends at the first signal.
#[test]
fn one_signal_ends_every_wait_for_an_answer() {
    let directory = TempDir::new().unwrap();
    let dump = directory.path().join("x.dmp");
    let commands: [&[&str]; 9] = [
        &["info"],
        &["env"],
        &["dump", "-o", dump.to_str().unwrap()],
        &["set-env", "NAME", "VALUE"],
        &["perf-map", "on"],
        &["resume"],
        &["stack"],
        &["counters", "list"],
        &["conformance"],
    ];
    for command in commands.into_iter().chain(RECORDING) {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        runtime.set_fault(Fault::Silent);
        let socket = ["--socket", runtime.path().to_str().unwrap()];
        let child = tool(&[command, &socket].concat()).spawn().unwrap();
        until(&format!("{command:?}: no request arrives"), || !runtime.requests().is_empty());
        signal(&child, Signal::TERM);
        assert_eq!(finish(child).status, None, "{command:?}");
    }
}

/// The three requests have one deadline together: the process information for the name of the file, the session, and
/// the resumption.
#[test]
fn several_requests_of_a_command_have_one_deadline() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(Fault::Delay(Duration::from_millis(700)));
    let mut trace = tool(&["trace", "--timeout", "1s", "--socket", runtime.path().to_str().unwrap()]);
    let ran = finish(trace.current_dir(directory.path()).spawn().unwrap());
    assert_eq!(ran.status, Some(4), "{ran:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "a file remains");
}

/// A reader that takes nothing costs at most 64 MiB and the session.
#[test]
fn a_reader_that_takes_nothing_ends_the_trace() {
    // A runtime sends all bytes but the last one. What they mean does not matter here.
    let mut stream = made(&[]);
    stream.resize(100 << 20, 0);
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in COLLECT_TRACING {
        let stream = stream.clone();
        runtime.on(code, move |_| Response::Trace(stream.clone()));
    }
    let socket = runtime.path().to_str().unwrap();
    // The threads of a runtime that blocks do not wait for the reader either.
    for mode in ["drop", "block"] {
        let before = runtime.requests().len();
        let args = ["trace", "-o", "-", "--buffering", mode, "--socket", socket];
        let mut child = tool(&args).spawn().unwrap();
        let mut stdout = child.stdout.take();
        let ran = finish(child);
        drop(stdout.take());
        assert_eq!(ran.status, Some(1), "{ran:?}");
        let stalled = "cannot write standard output: its reader took ";
        assert!(ran.stderr.contains(stalled) && ran.stderr.contains(" and then no more, and "), "{ran:?}");
        let requests = &runtime.requests()[before..];
        let has_stop = requests.iter().any(|request| request.code() == Some(STOP_TRACING));
        assert!(has_stop, "{mode}: the session is stopped");
    }
    run(&["info", "--socket", socket]).well();
}

/// A stopped command gets a signal only when it continues.
#[test]
fn a_stopped_command_does_not_block_the_monitor() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; kill -STOP $$; sleep 1000", file.display());
    let child = tool(&["monitor", "--", "sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    until("the command does not stop", || process_in(&file).is_some_and(is_stopped));
    signal(&child, Signal::TERM);
    assert_eq!(finish(child).status, Some(128 + 15));
}

/// Returns the process whose id is in a file.
fn process_in(file: &Path) -> Option<Pid> {
    Pid::from_raw(fs::read_to_string(file).ok()?.trim().parse().ok()?)
}

/// A command that is stopped does not end, and nothing else would end the monitor. No runtime connects here.
#[test]
fn a_stopped_command_does_not_outlast_the_duration() {
    let directory = TempDir::new().unwrap();
    for (name, options) in [("plain", &[][..]), ("json", &["--json"]), ("first", &["--first-only"])] {
        let file = directory.path().join(name);
        let script = format!("echo $$ > {0}.new; mv {0}.new {0}; kill -STOP $$; sleep 1000", file.display());
        let session = ["monitor", "--trace", "none", "--duration", "100ms"];
        let args = [&session, options, &["--", "sh", "-c", &script]].concat();
        // The command has copies of the outputs, and continues to exist.
        let child = tool(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(finish(child).status, Some(3), "{args:?}");
        let command = process_in(&file).unwrap();
        assert!(is_stopped(command));
        kill_process(command, Signal::KILL).unwrap();
    }
}

/// `monitor` raises its limit of open files, and its command has the old one.
#[test]
fn a_command_of_the_monitor_has_the_old_limit_of_files() {
    let script = "ulimit -S -n 64; exec \"$0\" monitor -- sh -c \"$1\"";
    let command = "while grep -q 'Max open files *64 ' /proc/$PPID/limits; do :; done; ulimit -S -n";
    let mut limited = program("sh");
    limited.args(["-c", script, TOOL, command]);
    let child = limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(finish(child).text(), "64\n");
}
