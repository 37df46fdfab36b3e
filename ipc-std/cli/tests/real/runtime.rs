//! Starts real runtimes.
use core::time::Duration;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use crate::tool::{TOOL, program};

/// A runtime with its own `TMPDIR` and process group. The group is killed when this is dropped.
pub(crate) struct Runtime {
    pub(crate) name: String,
    pub(crate) directory: tempfile::TempDir,
    child: Child,
    /// The process of the runtime, which can be a child of the started process.
    pub(crate) process_id: u32,
    pub(crate) socket: PathBuf,
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A function that starts a runtime with these variables in its environment.
pub(crate) type Start<'s> = dyn Fn(&[(&str, &OsStr)]) -> Runtime + 's;

/// Calls `test` with a function that starts a runtime, for each runtime of `DOTNET_IPC_RUNTIMES` with its own program.
pub(crate) fn each_runtime(test: impl Fn(&Start<'_>)) {
    each_program(|name| !name.ends_with("-calls"), test);
}

/// Calls `test` with a function that starts a runtime, for each runtime of `DOTNET_IPC_RUNTIMES` whose name `is_wanted`.
pub(crate) fn each_program(is_wanted: impl Fn(&str) -> bool, test: impl Fn(&Start<'_>)) {
    let runtimes = std::env::var("DOTNET_IPC_RUNTIMES").unwrap_or_default();
    if runtimes.trim().is_empty() {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let why = "skipped, DOTNET_IPC_RUNTIMES names no runtimes; `.ci/run real` fetches some";
        // The test harness shows the output of `eprintln!` only for failed tests.
        std::io::stderr().write_all(format!("{test}: {why}\n").as_bytes()).unwrap();
        return;
    }
    for entry in runtimes.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, command) = entry.split_once('=').expect("NAME=COMMAND LINE");
        // Those of Windows are for tests/real_pipes.rs.
        if command.split_whitespace().next().is_some_and(|program| program.ends_with(".exe"))
            || !is_wanted(name)
        {
            continue;
        }
        test(&|variables| launch(name, command, variables));
    }
}

/// Calls `test` with each runtime of `DOTNET_IPC_RUNTIMES`.
pub(crate) fn with_runtimes(test: impl Fn(&Runtime)) {
    each_runtime(|start| {
        let mut runtime = start(&[]);
        runtime.wait_for_socket();
        eprintln!("{}: process {} at {}", runtime.name, runtime.process_id, runtime.socket.display());
        test(&runtime);
    });
}

fn launch(name: &str, command: &str, variables: &[(&str, &OsStr)]) -> Runtime {
    let directory = tempfile::tempdir().unwrap();
    let mut words = command.split_whitespace();
    let child = Command::new(words.next().expect("a command"))
        .args(words)
        .env("TMPDIR", directory.path())
        .env("LAB_ODD_NAME", "a=b=c and a ü")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|e| panic!("{name}: {command}: {e}"));
    Runtime { name: name.to_owned(), directory, child, process_id: 0, socket: PathBuf::new() }
}

impl Runtime {
    /// Waits until the runtime listens.
    pub(crate) fn wait_for_socket(&mut self) {
        let soon = Instant::now() + Duration::from_secs(30);
        while self.process_id == 0 {
            assert!(Instant::now() < soon, "{} creates no socket", self.name);
            assert!(!self.has_ended(), "{} ended", self.name);
            std::thread::sleep(Duration::from_millis(20));
            for entry in std::fs::read_dir(self.directory.path()).unwrap() {
                let path = entry.unwrap().path();
                let file_name = path.file_name().unwrap().to_str().unwrap();
                let number =
                    file_name.strip_prefix("dotnet-diagnostic-").and_then(|rest| rest.split('-').next());
                // The file exists shortly before the runtime listens.
                if let (Some(number), Ok(_)) = (number, UnixStream::connect(&path)) {
                    self.process_id = number.parse().unwrap();
                    self.socket = path;
                }
            }
        }
    }

    /// Kills the process group.
    pub(crate) fn kill(&mut self) {
        let _ = rustix::process::kill_process_group(self.group(), rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }

    /// Returns the process group.
    pub(crate) fn group(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Waits up to 10 seconds for the end of the process. Returns whether it has ended.
    pub(crate) fn ends_soon(&mut self) -> bool {
        let soon = Instant::now() + Duration::from_secs(10);
        while !self.has_ended() && Instant::now() < soon {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.has_ended()
    }

    /// Returns whether the program was compiled ahead of time. Such a program has no names of methods in its traces, and
    /// no samples before .NET 10.
    pub(crate) fn is_native(&self) -> bool {
        self.name.contains("aot")
    }

    /// Returns whether the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn dotnet_ipc(&self, args: &[&str]) -> Command {
        let mut command = program(TOOL);
        command.args(args).env("TMPDIR", self.directory.path()).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", self.directory.path());
        command
    }

    /// Runs the tool, and asserts its exit status.
    pub(crate) fn run(&self, args: &[&str], status: i32) -> Output {
        let output = self.dotnet_ipc(args).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{}: dotnet-ipc {args:?}: {error}", self.name);
        output
    }

    /// Starts `dotnet-ipc trace` with these options, and waits until its file has this number of bytes.
    pub(crate) fn start_trace(&self, options: &[&str], file: &Path, bytes: u64) -> Child {
        let pid = self.process_id.to_string();
        let args = [&["trace", &pid, "-o", file.to_str().unwrap()], options].concat();
        let mut child = self.dotnet_ipc(&args).stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::fs::metadata(file).map_or(0, |metadata| metadata.len()) < bytes {
            assert!(Instant::now() < deadline, "{}: the trace has no {bytes} bytes", self.name);
            assert!(child.try_wait().unwrap().is_none(), "{}: the trace ended", self.name);
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }

    /// Returns all bytes of the answer to a command without a payload.
    pub(crate) fn raw(&self, set: u8, id: u8) -> Vec<u8> {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // In one write: .NET Core 3.1 rejects a message that arrives in two pieces.
        stream.write_all(&[b"DOTNET_IPC_V1\0\x14\0".as_slice(), &[set, id, 0, 0]].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    /// Returns whether the runtime knows the command.
    pub(crate) fn knows(&self, set: u8, id: u8) -> bool {
        self.raw(set, id)[16..] != [0xff, 0xff, 0, 0, 0x85, 0x13, 0x13, 0x80]
    }
}
