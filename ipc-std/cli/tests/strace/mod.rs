//! The system calls of the tool, as `strace` reports them.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

const TOOL: &str = env!("CARGO_BIN_EXE_dotnet-ipc");

/// A system call: `name(arguments) = result`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    name: String,
    arguments: Vec<String>,
    result: String,
}

impl Call {
    /// Parses a line of `strace`. Returns `None` for a signal and for the exit of the process.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        if !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
            return None;
        }
        let (mut arguments, mut depth, mut quoted, mut escaped) = (vec![String::new()], 0, false, false);
        for (at, c) in rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = !quoted,
                _ if quoted => {}
                '(' | '[' | '{' => depth += 1,
                ')' if depth == 0 => {
                    let arguments = arguments.iter().map(|argument| argument.trim().to_owned()).collect();
                    let result = rest[at..].split_once("= ")?.1.to_owned();
                    return Some(Self { name: name.to_owned(), arguments, result });
                }
                ')' | ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    arguments.push(String::new());
                    continue;
                }
                _ => {}
            }
            arguments.last_mut().unwrap().push(c);
        }
        None
    }

    fn argument(&self, number: usize) -> &str {
        self.arguments.get(number).map_or("", String::as_str)
    }

    /// Returns whether libc or libstd makes the call for memory, random seeds or stacks. These calls differ between
    /// systems.
    fn is_housekeeping(&self) -> bool {
        const NAMES: [&str; 8] =
            ["brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "getrandom", "sigaltstack"];
        // A debug build of libstd makes this call before it closes a descriptor.
        let is_closing = self.name == "fcntl" && self.argument(1) == "F_GETFD";
        NAMES.contains(&self.name.as_str()) || is_closing
    }

    /// Returns whether the call waits without a timeout, regardless of its descriptors.
    fn waits_indefinitely(&self) -> bool {
        match self.name.as_str() {
            "poll" => self.argument(2).starts_with('-'),
            "epoll_wait" | "epoll_pwait" => self.argument(3).starts_with('-'),
            "ppoll" | "rt_sigtimedwait" => self.argument(2) == "NULL",
            "select" | "pselect6" => self.argument(4) == "NULL",
            "epoll_pwait2" => self.argument(3) == "NULL",
            "futex" => {
                let waits = ["FUTEX_WAIT", "FUTEX_LOCK_PI"].iter().any(|op| self.argument(1).starts_with(op));
                waits && self.argument(3) == "NULL"
            }
            "wait4" => !self.argument(2).contains("WNOHANG"),
            "waitid" => !self.argument(3).contains("WNOHANG"),
            "flock" => !self.argument(1).contains("LOCK_NB"),
            "fcntl" => self.argument(1).ends_with("SETLKW"),
            "pause" | "rt_sigsuspend" => true,
            _ => false,
        }
    }

    /// Returns whether the call may wait for the other end of its descriptor, if the descriptor can block.
    fn may_block(&self) -> bool {
        const TRANSFERS: [&str; 14] = [
            "connect", "accept", "accept4", "read", "readv", "recvfrom", "recvmsg", "recvmmsg", "write",
            "writev", "sendto", "sendmsg", "sendmmsg", "splice",
        ];
        let descriptor = self.argument(0);
        // Files do not block. The user chooses the files of standard output and standard error.
        let is_file = descriptor.contains("</") && !descriptor.starts_with("0<");
        let is_output = descriptor.starts_with("1<") || descriptor.starts_with("2<");
        let is_nonblocking = self.arguments.iter().any(|argument| argument.contains("MSG_DONTWAIT"));
        TRANSFERS.contains(&self.name.as_str()) && !is_file && !is_output && !is_nonblocking
    }

    /// Returns the descriptor that the call makes nonblocking.
    fn unblocks(&self) -> Option<&str> {
        match self.name.as_str() {
            "socket" | "accept4"
                if self.arguments.iter().any(|argument| argument.contains("SOCK_NONBLOCK")) =>
            {
                Some(&self.result)
            }
            "fcntl" if self.argument(1) == "F_SETFL" && self.argument(2).contains("O_NONBLOCK") => {
                Some(self.argument(0))
            }
            "ioctl" if self.argument(1) == "FIONBIO" && self.argument(2) == "[1]" => Some(self.argument(0)),
            _ => None,
        }
    }

    /// Returns the line of the list: the name, the objects and the flags, without values that depend on the kernel, the
    /// libc or addresses.
    fn listed(&self) -> String {
        const STAT: [&str; 5] = ["stat", "lstat", "fstat", "newfstatat", "statx"];
        let is_stat = STAT.contains(&self.name.as_str());
        let name = if is_stat { "stat" } else { &self.name };
        let mut line = name.to_owned();
        // Systems query the status of a file by different calls, with different flags, which the list omits.
        for argument in self.arguments.iter().take(if is_stat { 2 } else { usize::MAX }) {
            let is_number = argument.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
            let is_buffer =
                ["\"\"", "[...]", "0x", "NULL", "AT_FDCWD"].iter().any(|start| argument.starts_with(start));
            // A structure has values that differ between runs, such as times, except for the address of a socket.
            let is_struct = argument.starts_with('{') && !argument.contains("sun_path");
            if !is_number && !is_buffer && !is_struct {
                line.push(' ');
                line.push_str(&without_numbers(argument));
            }
        }
        if let Some(error) = self.result.strip_prefix("-1 ") {
            line.push_str(" = ");
            line.push_str(error.split(' ').next().unwrap_or_default());
        }
        line
    }
}

/// Removes the numbers, which differ between runs, from descriptors such as `3<socket:[12345]>` and `3</a/path>`.
fn without_numbers(argument: &str) -> String {
    let mut text = String::new();
    for piece in argument.split_inclusive('>') {
        match piece.split_once('<') {
            Some((before, object)) => {
                text.push_str(before.trim_end_matches(|c: char| c.is_ascii_digit()));
                text.push('<');
                match object.split_once(":[") {
                    Some((kind, _)) => text.extend([kind, ">"]),
                    None => text.push_str(object),
                }
            }
            None => text.push_str(piece),
        }
    }
    text
}

/// Returns the calls that wait, or may wait, without a deadline.
pub(crate) fn endless(calls: &[Call]) -> Vec<&Call> {
    let mut unblocked = BTreeSet::new();
    let is_endless = |call: &&Call| {
        unblocked.extend(call.unblocks().map(str::to_owned));
        call.waits_indefinitely() || call.may_block() && !unblocked.contains(call.argument(0))
    };
    calls.iter().filter(is_endless).collect()
}

/// Runs the tool under `strace` with `directory` as its `TMPDIR`. Panics if it has more than one thread or process.
fn trace(args: &[&str], directory: &Path) -> Vec<Call> {
    let output = tempfile::tempdir().unwrap();
    let ran = Command::new("strace")
        // One file for each thread; descriptors with their paths; no contents.
        .args(["-ff", "-y", "-s", "0", "-o"])
        .arg(output.path().join("calls"))
        .arg(TOOL)
        .args(args)
        .env("TMPDIR", directory)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("strace cannot be run ({e}); `.ci/run syscalls` installs it"));
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(
        !stderr.contains("PTRACE") && !stderr.contains("ptrace"),
        "strace has no permission to trace, as in a container without SYS_PTRACE: {stderr}"
    );
    assert!(ran.status.success(), "dotnet-ipc {args:?}: {stderr}");
    let files: Vec<_> =
        std::fs::read_dir(output.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("dotnet-ipc {args:?} has {} threads or processes", files.len()) };
    std::fs::read_to_string(file).unwrap().lines().filter_map(Call::parse).collect()
}

/// Returns all calls of `dotnet-ipc info` for the process, and their list. The `TMPDIR` of the process is the directory
/// of its socket. The list omits housekeeping and the calls before `main`, which `dotnet-ipc --version` makes too.
pub(crate) fn info(process_id: u32, socket: &Path) -> (Vec<Call>, String) {
    let ours = tempfile::tempdir().unwrap();
    let process_id = process_id.to_string();
    let calls = trace(&["info", &process_id], ours.path());
    let startup = trace(&["--version"], ours.path());
    let mut work = calls.iter().filter(|call| !call.is_housekeeping()).peekable();
    for start in startup.iter().filter(|call| !call.is_housekeeping()) {
        if work.next_if(|call| call.name == start.name).is_none() {
            break;
        }
    }
    let process = format!("/proc/{process_id}");
    let theirs = socket.parent().unwrap().to_str().unwrap();
    let names = [
        (socket.file_name().unwrap().to_str().unwrap(), "SOCKET"),
        (theirs, "THEIR-TMPDIR"),
        // The path relative to the root of the process.
        (theirs.trim_start_matches('/'), "THEIR-TMPDIR"),
        (ours.path().to_str().unwrap(), "OUR-TMPDIR"),
        (&process, "/proc/PID"),
    ];
    let mut lines: Vec<String> = work
        .map(|call| {
            let mut call = call.clone();
            for argument in &mut call.arguments {
                for (name, word) in names {
                    *argument = argument.replace(name, word);
                }
                // The file of the tool's own process.
                let ours = argument.split_once("/proc/").filter(|(_, rest)| {
                    rest.ends_with("/mountinfo>") && rest.starts_with(|c: char| c.is_ascii_digit())
                });
                if let Some((before, _)) = ours {
                    *argument = format!("{before}/proc/self/mountinfo>");
                }
                if *argument == process_id {
                    "PID".clone_into(argument);
                }
            }
            call.listed()
        })
        .collect();
    // The number of reads depends on the size of the file, so equal lines in a row become one.
    lines.dedup();
    (calls, lines.join("\n") + "\n")
}

/// The path of the expected list.
pub(crate) const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/strace/info.txt");

/// Asserts that all calls of `info` have a deadline and that its list is the expected one.
#[track_caller]
pub(crate) fn assert_expected(calls: &[Call], list: &str) {
    let endless = endless(calls);
    assert!(endless.is_empty(), "calls that may wait without a deadline: {endless:#?}");
    let expected = std::fs::read_to_string(LIST).unwrap_or_default();
    let hint = "`.ci/run bless` replaces it by the actual calls";
    assert!(list == expected, "the calls differ from {LIST}; {hint}:\n{list}");
}
