//! The tool, run by tests.
#![allow(dead_code, reason = "not every test needs all of it")]

use core::time::Duration;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Nothing here takes as long, unless it hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_dotnet-ipc");

pub(crate) fn tool(args: &[&str]) -> Command {
    let mut command = Command::new(TOOL);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A program that was started, once its environment can be seen: a moment later than that it was started.
pub(crate) fn started(command: &mut Command) -> Child {
    let child = command.spawn().unwrap();
    let begin = Instant::now();
    while std::fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
        assert!(begin.elapsed() < HANGS, "it has no environment");
        thread::yield_now();
    }
    child
}

/// Where a program is.
pub(crate) fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.exists()).unwrap()
}

/// `fake-runtime` in a process of its own, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct FakeProcess {
    child: Child,
    /// As it sees itself.
    pub(crate) local_process_id: u32,
    pub(crate) socket: PathBuf,
}

impl FakeProcess {
    /// In this directory, which is its `TMPDIR` too.
    pub(crate) fn start(directory: &Path) -> Self {
        let mut command = tool(&["fake-runtime"]);
        command.env("TMPDIR", directory);
        Self::of(command)
    }
    /// What this command starts, with `fake-runtime` in it.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        // It ends, at the latest, when the process does.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let local_process_id = told["process_id"].as_u64().unwrap().try_into().unwrap();
        Self { child, local_process_id, socket: told["socket"].as_str().unwrap().into() }
    }
    /// The process that was started.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
    /// Ends it so that it leaves its socket behind.
    pub(crate) fn crash(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
impl Drop for FakeProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It may be stopped.
        let _ = kill_process(Pid::from_child(&self.child), Signal::CONT);
        let _ = self.child.wait();
    }
}

/// What came of a run of the tool.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None` if a signal ended it.
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
    /// The objects of its output, one a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let line = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.text().lines().map(line).collect()
    }
    /// The object on standard error.
    pub(crate) fn error(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
    /// The last object on standard error, where notes may stand before it.
    pub(crate) fn last_error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
    /// As it has to be when all went well and there is nothing to remark.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert_eq!((self.status, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self
    }
    /// One line on standard error, with these words and this exit status.
    #[track_caller]
    pub(crate) fn fails(self, status: i32, words: &str) -> Self {
        assert_eq!((self.status, self.stderr.lines().count()), (Some(status), 1), "{self:?}");
        assert!(self.stderr.contains(words), "{words}: {self:?}");
        self
    }
}

#[cfg(windows)]
type Pid = u32;

/// What `wait` gives, which waits for a process; one that hangs is killed, where that is simple.
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
        // Not what the standard library has for both at once, which fails now and then on Wine.
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
    finish(tool(args).spawn().unwrap())
}

/// Runs it with this on standard input.
pub(crate) fn run_with(args: &[&str], input: impl Into<Vec<u8>>) -> Ran {
    let mut child = tool(args).stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.into());
    // One that has seen enough may be gone.
    thread::spawn(move || drop(stdin.write_all(&input)));
    finish(child)
}
