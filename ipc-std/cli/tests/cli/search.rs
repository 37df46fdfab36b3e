//! Helpers for tests of `find`, `ps` and `clean`: processes, directories and namespaces.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tool::{self, Killed, Ran, TOOL, finish, program, tool, until_some};

/// A deadline that the tool never reaches in a test.
pub(crate) const LONG: &str = "60s";

/// Runs the tool with this `TMPDIR`.
pub(crate) fn run_in(directory: &Path, args: &[&str]) -> Ran {
    finish(tool(args).env("TMPDIR", directory).spawn().unwrap())
}

/// The output of `find` for a process that it does not find: the reason that the test expects, the error, and all
/// steps.
#[derive(Debug)]
pub(crate) struct NotFound {
    pub(crate) reason: Value,
    pub(crate) error: Value,
    pub(crate) all: Value,
}

/// Runs `find` with this `TMPDIR` for a process that it does not find, and checks the exit status, kind and reason.
#[track_caller]
pub(crate) fn not_found(
    directory: &Path,
    process_id: u32,
    status: i32,
    kind: &str,
    reason: &str,
) -> NotFound {
    not_found_by(tool(&[]).env("TMPDIR", directory), process_id, status, kind, reason)
}

/// As [`not_found`], with this command of the tool.
#[track_caller]
pub(crate) fn not_found_by(
    command: &mut Command,
    process_id: u32,
    status: i32,
    kind: &str,
    reason: &str,
) -> NotFound {
    let process_id = process_id.to_string();
    // The deadline is expected to pass only for a runtime that does not respond.
    let timeout = if kind == "timeout" { "1s" } else { LONG };
    let ran = finish(command.args(["find", "--json", "--timeout", timeout, &process_id]).spawn().unwrap());
    assert_eq!(ran.status, Some(status), "{ran:?}");
    let (all, error) = (ran.json(), ran.error());
    assert_eq!(error["kind"], kind, "{ran:?}");
    assert_eq!(all["found"], Value::Null);
    let reasons = all["steps"].as_array().unwrap().iter().map(|step| &step["reason"]);
    let found = reasons.clone().find(|found| found["reason"] == reason);
    let reason = found.unwrap_or_else(|| panic!("no {reason} in {all}")).clone();
    let sentence = reason["sentence"].as_str().unwrap();
    assert!(error["error"].as_str().unwrap().contains(sentence), "{error} does not begin with {sentence}");
    NotFound { reason, error, all }
}

impl NotFound {
    /// Checks that the message contains all these words.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        let sentence = self.error["error"].as_str().unwrap();
        words.iter().for_each(|words| assert!(sentence.contains(words), "{words:?} in {sentence:?}"));
        self
    }
}

/// Returns the row of `ps` for a socket.
#[track_caller]
pub(crate) fn row(directory: &Path, socket: &Path) -> Value {
    row_within(directory, socket, LONG)
}

/// Returns the row of `ps` for a socket, with this deadline.
#[track_caller]
pub(crate) fn row_within(directory: &Path, socket: &Path, timeout: &str) -> Value {
    let ran = run_in(directory, &["ps", "--why", "--json", "--timeout", timeout]).well();
    let row = ran.lines().into_iter().find(|row| row["socket"] == socket.to_str().unwrap());
    row.unwrap_or_else(|| panic!("no row for {socket:?}: {ran:?}"))
}

/// A process that is not a runtime, killed when it is dropped.
pub(crate) struct Idle(Killed);

impl Idle {
    pub(crate) fn start() -> Self {
        Self::of(&mut Command::new("cat"))
    }
    pub(crate) fn of(command: &mut Command) -> Self {
        Self(Killed(tool::started(command.stdin(Stdio::piped()).stdout(Stdio::null()))))
    }
    pub(crate) fn id(&self) -> u32 {
        self.0.0.id()
    }
    /// Returns the path of a socket of the process, whose start time is `later` ticks after the real one.
    pub(crate) fn socket(&self, directory: &Path, later: u64) -> PathBuf {
        directory.join(format!("dotnet-diagnostic-{}-{}-socket", self.id(), started(self.id()) + later))
    }
}

/// Returns the start time of a process: field 22 of its `stat`.
pub(crate) fn started(process_id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

/// Sets the modification time of a file.
pub(crate) fn touch(path: &Path, when: &str) {
    assert!(Command::new("touch").args(["-d", when]).arg(path).status().unwrap().success());
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Copies a program, in another process.
///
/// If this process wrote the file, a child that another thread starts could inherit the open descriptor. The program
/// could then not be started.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

/// Returns a command of the tool as a user without privileges: another user if the test runs as root, else the same.
pub(crate) fn powerless(directory: &Path) -> Command {
    /// The user `nobody` of Debian; any ordinary user is suitable.
    const NOBODY: u32 = 65534;
    if !is_root() {
        let mut command = tool(&[]);
        command.env("TMPDIR", directory);
        return command;
    }
    // The user may have no permission for the directory of the tool.
    let copy = directory.join("tool");
    copy_program(Path::new(TOOL), &copy);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(copy);
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env("TMPDIR", directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn piped(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns an `unshare` command for these namespaces, or `None` without permission to create them. Without root it also
/// creates a user namespace.
pub(crate) fn unshare(namespaces: &[&str]) -> Option<Command> {
    let mut command = program("unshare");
    if !is_root() {
        command.arg("-r");
    }
    command.args(namespaces);
    let mut attempt = Command::new("unshare");
    attempt.args(command.get_args()).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    if attempt.status().is_ok_and(|status| status.success()) {
        return Some(piped(command));
    }
    eprintln!("NOT RUN: no permission to create namespaces here: unshare {namespaces:?}");
    None
}

/// Returns an `unshare` command for a namespace of processes, which end with it.
pub(crate) fn unshare_processes() -> Option<Command> {
    unshare(&["-p", "-f", "-m", "--mount-proc", "--kill-child"])
}

/// Returns a command for a program that sees no other process, only the sockets in its `TMPDIR`. Without permission to
/// create namespaces it sees all processes of the machine, as usual.
pub(crate) fn alone(path: &str) -> Command {
    let Some(mut command) = unshare_processes() else { return piped(program(path)) };
    command.arg(path);
    command
}

/// Returns the only child of a process.
pub(crate) fn child_of(process_id: u32) -> u32 {
    let children = format!("/proc/{process_id}/task/{process_id}/children");
    until_some("the process never has a child", || fs::read_to_string(&children).unwrap().trim().parse().ok())
}
