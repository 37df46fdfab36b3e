//! Helpers that run the tool.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use core::time::Duration;
use std::ffi::OsStr;
#[cfg(unix)]
use std::io::{BufRead, BufReader};
use std::io::{Read, Write};
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
#[cfg(target_os = "linux")]
use std::sync::{Arc, Once};
use std::thread;
use std::time::Instant;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[cfg(unix)]
pub(crate) mod terminal;

/// The time after which a process counts as hanging.
pub(crate) const HANGS: Duration = Duration::from_secs(300);

/// Waits until `poll` returns a value.
#[track_caller]
pub(crate) fn until_some<T>(otherwise: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(begin.elapsed() < HANGS, "{otherwise}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the condition is true.
#[track_caller]
pub(crate) fn until(otherwise: &str, mut condition: impl FnMut() -> bool) {
    until_some(otherwise, || condition().then_some(()));
}

/// Decodes hexadecimal digits, between which there can be white space.
pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_dotnet-ipc");

/// Returns a command for a program that ignores no signal, although this process may.
///
/// `nohup` and `&` make a program ignore signals, and each program that it starts inherits that. A test that sends such a
/// signal would wait indefinitely.
pub(crate) fn program(path: impl AsRef<OsStr>) -> Command {
    #[cfg(target_os = "linux")]
    handle_ignored_signals();
    Command::new(path)
}

/// Handles the signals that this process ignores by a handler without an effect. The system resets a handled signal to
/// its default when a program starts, but not an ignored one.
#[cfg(target_os = "linux")]
fn handle_ignored_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    static HANDLED: Once = Once::new();
    HANDLED.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            if ignores(std::process::id(), signal) {
                signal_hook::flag::register(signal, Arc::default()).unwrap();
            }
        }
    });
}

/// Returns whether a process ignores a signal.
#[cfg(target_os = "linux")]
pub(crate) fn ignores(process_id: u32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(ignored, 16).unwrap() >> signal.wrapping_sub(1) & 1 == 1
}

/// Returns whether the system has stopped a process.
#[cfg(target_os = "linux")]
pub(crate) fn is_stopped(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

pub(crate) fn tool(args: &[&str]) -> Command {
    let mut command = program(TOOL);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Without these variables, the tool has no cache folder.
    for variable in ["HOME", "LOCALAPPDATA", "XDG_CACHE_HOME"] {
        command.env_remove(variable);
    }
    command
}

/// Starts a program and waits until its environment is readable, which is shortly after the start.
pub(crate) fn started(command: &mut Command) -> Child {
    let child = command.spawn().unwrap();
    let begin = Instant::now();
    while std::fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
        assert!(begin.elapsed() < HANGS, "the process has no environment");
        thread::yield_now();
    }
    child
}

/// Creates a socket whose process was killed.
///
/// A socket that this process closes is not dead yet: a child that another thread starts has a copy of each descriptor
/// until `exec`.
#[cfg(unix)]
pub(crate) fn dead_socket(path: &Path) {
    let process = FakeProcess::start(path.parent().unwrap());
    process.rename_socket(path);
    process.crash();
}

/// Returns the path of a program in `PATH`.
pub(crate) fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.exists()).unwrap()
}

/// A `fake-runtime` in its own process. Drop ends it.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct FakeProcess {
    child: Child,
    /// The process id in the PID namespace of the process.
    pub(crate) local_process_id: u32,
    pub(crate) socket: PathBuf,
}

#[cfg(unix)]
impl FakeProcess {
    /// Starts a `fake-runtime` with this `TMPDIR`.
    pub(crate) fn start(directory: &Path) -> Self {
        let mut command = tool(&["fake-runtime"]);
        command.env("TMPDIR", directory);
        Self::of(command)
    }
    /// Starts a command that runs `fake-runtime`.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        // The read ends when the process exits.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let fields: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let local_process_id = fields["process_id"].as_u64().unwrap().try_into().unwrap();
        Self { child, local_process_id, socket: fields["socket"].as_str().unwrap().into() }
    }
    /// Returns the process id of the started process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
    /// Gives the socket of the process another path in the same directory.
    pub(crate) fn rename_socket(&self, path: &Path) {
        std::fs::rename(&self.socket, path).unwrap();
    }
    /// Kills the process, so that its socket remains.
    pub(crate) fn crash(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
#[cfg(unix)]
impl Drop for FakeProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // A stopped process could not exit.
        let _ = kill_process(Pid::from_child(&self.child), Signal::CONT);
        let _ = self.child.wait();
    }
}

/// A process that is killed when this is dropped, so that no failed test leaves it running.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The result of a run of the tool.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit status; `None` after a signal.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn text(&self) -> &str {
        core::str::from_utf8(&self.stdout).unwrap()
    }
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.stdout).unwrap()
    }
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
    /// Returns the JSON objects of the output, one per line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let line = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.text().lines().map(line).collect()
    }
    /// Returns the JSON object on standard error.
    pub(crate) fn error(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
    /// Returns the last JSON object on standard error. Notes may precede it.
    pub(crate) fn last_error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
    /// Asserts exit status 0 and an empty standard error. On a busy machine, the end after a signal can take more than the
    /// two seconds after which the tool says what it waits for.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        let mut errors = self.stderr.lines();
        let error = errors.find(|line| !line.contains("waiting for the process to end its session"));
        assert_eq!((self.status, error), (Some(0), None), "{self:?}");
        self
    }
    /// Asserts the exit status, and one line on standard error that contains the text.
    #[track_caller]
    pub(crate) fn fails(self, status: i32, text: &str) -> Self {
        assert_eq!((self.status, self.stderr.lines().count()), (Some(status), 1), "{self:?}");
        assert!(self.stderr.contains(text), "{text}: {self:?}");
        self
    }
}

#[cfg(windows)]
type Pid = u32;

/// Returns the result of `wait`, which waits for the process. Panics if the process hangs; on Unix, kills it first.
pub(crate) fn within<T: Send + 'static>(process: Pid, wait: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(wait()));
    let Ok(waited) = receive.recv_timeout(HANGS) else {
        #[cfg(unix)]
        kill_process(process, Signal::KILL).unwrap();
        panic!("{process:?} hangs");
    };
    waited
}

pub(crate) fn finish(mut child: Child) -> Ran {
    #[cfg(unix)]
    let process = Pid::from_child(&child);
    #[cfg(windows)]
    let process = child.id();
    within(process, move || {
        // `wait_with_output` of the standard library fails occasionally on Wine.
        let stderr = child.stderr.take();
        let stderr = thread::spawn(move || all(stderr));
        let stdout = all(child.stdout.take());
        let status = child.wait().unwrap().code();
        Ran { status, stdout, stderr: String::from_utf8(stderr.join().unwrap()).unwrap() }
    })
}

fn all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.map(|mut pipe| pipe.read_to_end(&mut bytes).unwrap());
    bytes
}

pub(crate) fn run(args: &[&str]) -> Ran {
    finish(spawn(&mut tool(args)))
}

/// Starts the command. Wine fails to start one of several hundred programs, without a fault of the program; so Windows
/// has five attempts.
fn spawn(command: &mut Command) -> Child {
    const INTERNAL_ERROR: i32 = 1359;
    let attempts = if cfg!(windows) { 5 } else { 1 };
    let mut spawned = command.spawn();
    for _ in 1..attempts {
        if spawned.as_ref().is_err_and(|e| e.raw_os_error() == Some(INTERNAL_ERROR)) {
            spawned = command.spawn();
        }
    }
    spawned.unwrap()
}

/// Runs the tool with this standard input.
pub(crate) fn run_with(args: &[&str], input: impl Into<Vec<u8>>) -> Ran {
    let mut child = spawn(tool(args).stdin(Stdio::piped()));
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.into());
    // Writing fails if the tool exits before it has read everything.
    thread::spawn(move || drop(stdin.write_all(&input)));
    finish(child)
}
