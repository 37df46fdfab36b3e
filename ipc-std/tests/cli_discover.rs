//! `find`, `ps --why` and `clean`: every reason for which a runtime is not found is made to happen, and its sentence is
//! read. The runtimes are fake ones, in processes of their own; some in namespaces of their own.
#![cfg(all(target_os = "linux", feature = "cli"))]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

mod tool;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ipc_std::discover;
use ipc_std::fake::{FakeRuntime, Profile};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{FakeProcess, HANGS, Ran, TOOL, finish, tool};

/// Runs the tool as somebody with this `TMPDIR`.
fn run_in(directory: &Path, args: &[&str]) -> Ran {
    finish(tool(args).env("TMPDIR", directory).spawn().unwrap())
}

/// What `find` says of a process to somebody with this `TMPDIR`: the most telling reason, and how it ended.
#[derive(Debug)]
struct NotFound {
    reason: Value,
    error: Value,
    all: Value,
}

#[track_caller]
fn not_found(directory: &Path, process_id: u32, status: i32, kind: &str, reason: &str) -> NotFound {
    not_found_by(tool(&[]).env("TMPDIR", directory), process_id, status, kind, reason)
}

/// The same, by a tool that is run in some way.
#[track_caller]
fn not_found_by(command: &mut Command, process_id: u32, status: i32, kind: &str, reason: &str) -> NotFound {
    let process_id = process_id.to_string();
    let ran = finish(command.args(["find", "--json", "--timeout", "1s", &process_id]).spawn().unwrap());
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
    /// Whether the sentence has all these words.
    #[track_caller]
    fn says(self, words: &[&str]) -> Self {
        let sentence = self.error["error"].as_str().unwrap();
        words.iter().for_each(|words| assert!(sentence.contains(words), "{words:?} in {sentence:?}"));
        self
    }
}

/// The row that `ps` has for a socket.
#[track_caller]
fn row(directory: &Path, socket: &Path) -> Value {
    let ran = run_in(directory, &["ps", "--why", "--json", "--timeout", "1s"]).well();
    let row = ran.lines().into_iter().find(|row| row["socket"] == socket.to_str().unwrap());
    row.unwrap_or_else(|| panic!("no row for {socket:?}: {ran:?}"))
}

/// A process that is no runtime, until it is dropped.
struct Idle(Child);

impl Idle {
    fn start() -> Self {
        Self::of(&mut Command::new("cat"))
    }
    fn of(command: &mut Command) -> Self {
        Self(tool::started(command.stdin(Stdio::piped()).stdout(Stdio::null())))
    }
    fn id(&self) -> u32 {
        self.0.id()
    }
    /// What a socket of it would be called, `later` than it started.
    fn socket(&self, directory: &Path, later: u64) -> PathBuf {
        directory.join(format!("dotnet-diagnostic-{}-{}-socket", self.id(), started(self.id()) + later))
    }
}
impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Field 22 of its `stat`.
fn started(process_id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

/// A socket that nobody listens at.
fn dead_socket(path: &Path) {
    drop(UnixListener::bind(path).unwrap());
}

/// As if it had been made then.
fn touch(path: &Path, when: &str) {
    assert!(Command::new("touch").args(["-d", when]).arg(path).status().unwrap().success());
}

fn until<T>(mut so: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        match so() {
            Some(so) => return so,
            None => assert!(begin.elapsed() < HANGS, "it never came"),
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// In another process: while a thread of ours has a program open to write it, a child of another may keep it open, and
/// it cannot be started.
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

/// The tool run by a user who may do nothing: another one if we are root, else ourselves.
fn powerless(directory: &Path) -> Command {
    /// Debian's `nobody`; any would do.
    const NOBODY: u32 = 65534;
    if !is_root() {
        let mut command = tool(&[]);
        command.env("TMPDIR", directory);
        return command;
    }
    // It may lie where they may not go.
    let copy = directory.join("tool");
    copy_program(Path::new(TOOL), &copy);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(copy);
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env("TMPDIR", directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `unshare` with these namespaces, if we may make them: as root, or in a user namespace.
fn unshare(namespaces: &[&str]) -> Option<Command> {
    let mut command = Command::new("unshare");
    if !is_root() {
        command.arg("-r");
    }
    command.args(namespaces).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut attempt = Command::new("unshare");
    attempt.args(command.get_args()).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    if attempt.status().is_ok_and(|status| status.success()) {
        return Some(command);
    }
    eprintln!("NOT RUN: no permission to make namespaces here: unshare {namespaces:?}");
    None
}

/// The one child of a process.
fn child_of(process_id: u32) -> u32 {
    let children = format!("/proc/{process_id}/task/{process_id}/children");
    until(|| fs::read_to_string(&children).unwrap().trim().parse().ok())
}

#[test]
fn in_its_own_tmpdir() {
    let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let runtime = FakeProcess::start(theirs.path());
    let pid = runtime.id().to_string();
    let found = run_in(ours.path(), &["find", &pid, "--json"]).well().json();
    let (local, socket) = (&found["found"]["local_process_id"], &found["found"]["socket"]);
    assert_eq!((local, socket), (&json!(runtime.id()), &json!(runtime.socket)));
    let text = run_in(ours.path(), &["find", &pid]).well().into_text();
    let steps = [
        "process ",
        "its environment has TMPDIR=",
        "a socket of it in ",
        "who listens at ",
        "found: it answers at ",
    ];
    assert_eq!(text.lines().count(), steps.len(), "{text}");
    text.lines().zip(steps).for_each(|(line, step)| assert!(line.starts_with(step), "{text}"));
    assert_eq!(row(ours.path(), &runtime.socket)["status"], "ok");
    run_in(ours.path(), &["info", &pid]).well();
}

#[test]
fn in_a_tmpdir_that_is_relative() {
    let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::create_dir(theirs.path().join("below")).unwrap();
    let mut command = tool(&["fake-runtime"]);
    command.current_dir(theirs.path()).env("TMPDIR", "below");
    let runtime = FakeProcess::of(command);
    let pid = runtime.id().to_string();
    let found = run_in(ours.path(), &["find", &pid, "--json"]).well().json();
    let socket = Path::new("/proc").join(&pid).join("cwd").join(&runtime.socket);
    assert_eq!(found["found"]["socket"], json!(socket));
    run_in(ours.path(), &["info", &pid]).well();
    // Ours may be, too.
    let mut command = tool(&["info", &pid]);
    finish(command.current_dir(theirs.path()).env("TMPDIR", "below").spawn().unwrap()).well();
}

#[test]
fn no_process() {
    let directory = TempDir::new().unwrap();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    not_found(directory.path(), gone.id(), 3, "not_found", "no_process").says(&["there is no such process"]);
}

#[test]
fn ended() {
    let directory = TempDir::new().unwrap();
    let mut child = Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    until(|| fs::read_to_string(&stat).unwrap().contains(") Z ").then_some(()));
    not_found(directory.path(), child.id(), 3, "not_found", "ended").says(&["it has ended"]);
    child.wait().unwrap();
}

#[test]
fn diagnostics_off() {
    let directory = TempDir::new().unwrap();
    for (variable, value) in [
        ("DOTNET_EnableDiagnostics", "0"),
        ("DOTNET_EnableDiagnostics_IPC", "0x0"),
        ("COMPlus_EnableDiagnostics", "00"),
        ("COMPlus_EnableDiagnostics_IPC", "0"),
        ("DOTNET_EnableDiagnostics", "0X0"),
        ("DOTNET_EnableDiagnostics", "0x"),
        ("DOTNET_EnableDiagnostics", " 0z"),
    ] {
        let idle = Idle::of(Command::new("cat").env(variable, value));
        let why = not_found(directory.path(), idle.id(), 3, "not_found", "diagnostics_off");
        let why = why.says(&["switched off", &format!("{variable}={value}"), "start it without"]);
        assert_eq!((&why.reason["variable"], &why.reason["value"]), (&json!(variable), &json!(value)));
    }
    // What is empty is as if it were not there. What is no number is not, and switches nothing off: as .NET 10 has it.
    for (value, reason) in [("", "diagnostics_off"), ("off", "no_socket"), ("1", "no_socket")] {
        let mut both = Command::new("cat");
        both.env("DOTNET_EnableDiagnostics", value).env("COMPlus_EnableDiagnostics", "0");
        not_found(directory.path(), Idle::of(&mut both).id(), 3, "not_found", reason);
    }
}

#[test]
fn no_socket() {
    let (ours, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let idle = Idle::of(Command::new("cat").env("TMPDIR", theirs.path()));
    let why = not_found(ours.path(), idle.id(), 3, "not_found", "no_socket");
    assert_eq!(why.reason["looked_in"], json!([theirs.path(), ours.path()]));
    assert_eq!(why.reason["runtime_loaded"], false);
    why.says(&["no diagnostic socket in", "no .NET runtime is seen", "no .NET process"]);
}

#[test]
fn no_socket_of_what_has_a_runtime() {
    let directory = TempDir::new().unwrap();
    for (name, words) in [
        ("libcoreclr.so", "a .NET runtime is loaded"),
        ("libmonosgen-2.0.so", "a .NET runtime is loaded"),
        ("memfd:doublemapper", "a .NET runtime is loaded"),
        ("memfd:dotnet_ipc_created", "somebody deleted it"),
    ] {
        // What counts is the name of what is mapped.
        let program = directory.path().join(name);
        copy_program(&tool::which("cat"), &program);
        let idle = Idle::of(&mut Command::new(&program));
        let maps = format!("/proc/{}/maps", idle.id());
        until(|| fs::read_to_string(&maps).unwrap().contains(name).then_some(()));
        let why =
            not_found(directory.path(), idle.id(), 3, "not_found", "no_socket").says(&[words, "new start"]);
        assert_eq!(why.reason["runtime_loaded"], true, "{why:?}");
        // It has a row though it has no socket.
        let rows = run_in(directory.path(), &["ps", "--why", "--json"]).well().lines();
        let row = rows.iter().find(|row| row["process_id"] == idle.id()).unwrap();
        assert_eq!((&row["status"], &row["socket"]), (&json!("not_found"), &Value::Null));
        assert_eq!(row["reasons"][0]["reason"], "no_socket");
        let rows = run_in(directory.path(), &["ps", "--json"]).well().lines();
        assert!(rows.iter().all(|row| row["process_id"] != idle.id()));
        let text = run_in(directory.path(), &["ps", "--why"]).well().into_text();
        let line = format!("process {} cannot be asked: it has no diagnostic socket", idle.id());
        assert!(text.lines().any(|text| text.starts_with(&line)), "{text}");
    }
}

#[test]
fn tmpdir_too_long() {
    let directory = TempDir::new().unwrap();
    let long = directory.path().join("x".repeat(80));
    fs::create_dir(&long).unwrap();
    let idle = Idle::of(Command::new("cat").env("TMPDIR", &long));
    let why = not_found(directory.path(), idle.id(), 3, "not_found", "tmpdir_too_long");
    let name = idle.socket(Path::new(""), 0).to_str().unwrap().len();
    assert_eq!(why.reason["limit"], 107 - 1 - name);
    why.says(&["too long", "start it with one of at most"]);
}

#[test]
fn a_path_that_is_too_long_is_reached_all_the_same() {
    let directory = TempDir::new().unwrap();
    let short = directory.path().join("short");
    fs::create_dir(&short).unwrap();
    let runtime = FakeProcess::start(&short);
    let long = directory.path().join("x".repeat(100));
    fs::rename(&short, &long).unwrap();
    let socket = long.join(runtime.socket.file_name().unwrap());
    let pid = runtime.id().to_string();
    // Where its environment says there is nothing now, which harms nobody.
    let found = run_in(&long, &["find", &pid, "--json"]).well().json();
    assert_eq!(found["found"]["socket"], json!(socket));
    run_in(&long, &["info", &pid]).well();
    run_in(&long, &["info", "--socket", socket.to_str().unwrap()]).well();

    // There has to be a /proc for that.
    let Some(mut without_proc) = unshare(&["-m"]) else { return };
    let script = "mount -t tmpfs none /proc && exec \"$0\" info --json --socket \"$1\"";
    let ran = finish(without_proc.args(["sh", "-c", script, TOOL]).arg(&socket).spawn().unwrap());
    let error = ran.fails(3, "longer than the 107 bytes").error();
    assert_eq!(error["kind"], "not_found");
    let script = "mount -t tmpfs none /proc && exec \"$0\" ps --why --json";
    let mut without_proc = unshare(&["-m"]).unwrap();
    let ran =
        finish(without_proc.args(["sh", "-c", script, TOOL]).env("TMPDIR", &long).spawn().unwrap()).well();
    let rows = ran.lines();
    let row = rows.iter().find(|row| row["socket"] == json!(socket)).unwrap();
    assert_eq!(row["reasons"][0]["reason"], "path_too_long");
    assert_eq!(row["reasons"][0]["limit"], 107);
    assert!(row["why"].as_str().unwrap().contains("shorter TMPDIR"), "{row}");
}

#[test]
fn what_may_not_be_looked_at() {
    let directory = TempDir::new().unwrap();
    let idle = Idle::start();
    // Of an ordinary user, the first process may not be looked at.
    let target = if is_root() { idle.id() } else { 1 };
    let why = not_found_by(&mut powerless(directory.path()), target, 3, "permission", "unreadable");
    assert_eq!(why.reason["path"], format!("/proc/{target}/environ"));
    assert_eq!((&why.reason["owner"], &why.reason["mode"]), (&json!(0), &json!("0400")));
    assert_ne!(why.reason["own_user"], 0);
    let reasons = why.all["steps"].as_array().unwrap().iter().map(|step| &step["reason"]["reason"]);
    assert!(reasons.clone().any(|reason| reason == "no_socket"), "it is looked for all the same: {why:?}");
    why.says(&[
        "cannot be looked at",
        "belongs to user 0",
        "and we are user",
        "be the user who runs the process, or root",
    ]);
}

#[test]
fn no_permission() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    fs::set_permissions(&runtime.socket, fs::Permissions::from_mode(0o000)).unwrap();
    let why = not_found_by(&mut powerless(directory.path()), runtime.id(), 3, "permission", "permission");
    assert_eq!((&why.reason["path"], &why.reason["by"]), (&json!(runtime.socket), &json!(runtime.socket)));
    assert_eq!((&why.reason["mode"], &why.reason["errno"]), (&json!("0000"), &json!(13)));
    why.says(&["no permission to connect to", "with mode 0000, and we are user", "root"]);
    let mut command = powerless(directory.path());
    let ran = finish(command.args(["info", "--json", "--socket"]).arg(&runtime.socket).spawn().unwrap());
    let error = ran.fails(3, "no permission").error();
    assert_eq!(error["kind"], "permission");
    assert!(error["hint"].as_str().unwrap().contains("root"), "{error}");
    let ran = finish(powerless(directory.path()).args(["ps", "--json"]).spawn().unwrap()).well();
    let rows = ran.lines();
    let row = rows.iter().find(|row| row["socket"] == json!(runtime.socket)).unwrap();
    assert_eq!(row["status"], "permission");
}

#[test]
fn a_directory_may_be_in_the_way() {
    let directory = TempDir::new().unwrap();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let runtime = FakeProcess::start(&inner);
    let mut command = powerless(directory.path());
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o600)).unwrap();
    let ran = finish(command.args(["info", "--socket"]).arg(&runtime.socket).spawn().unwrap());
    let by = format!("{} belongs to user", inner.display());
    ran.fails(3, &by).fails(3, "with mode 0600");
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_directory_that_cannot_be_listed_is_looked_into() {
    let directory = TempDir::new().unwrap();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let runtime = FakeProcess::start(&inner);
    let mut command = powerless(directory.path());
    // Others may connect to what they know the name of.
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o711)).unwrap();
    fs::set_permissions(&runtime.socket, fs::Permissions::from_mode(0o666)).unwrap();
    if !is_root() {
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o300)).unwrap();
    }
    let ran =
        finish(command.env("TMPDIR", &inner).args(["info", &runtime.id().to_string()]).spawn().unwrap());
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).unwrap();
    ran.well();
}

#[test]
fn no_listener() {
    let directory = TempDir::new().unwrap();
    let idle = Idle::start();
    let socket = idle.socket(directory.path(), 0);
    dead_socket(&socket);
    let why = not_found(directory.path(), idle.id(), 3, "no_listener", "no_listener");
    assert_eq!(why.reason["path"], json!(socket));
    why.says(&["nobody listens at", "start it again"]);
    assert_eq!(row(directory.path(), &socket)["status"], "no_listener");
}

#[test]
fn stale() {
    let directory = TempDir::new().unwrap();
    let idle = Idle::start();
    let socket = idle.socket(directory.path(), 7);
    dead_socket(&socket);
    let why = not_found(directory.path(), idle.id(), 3, "no_listener", "stale");
    let started = started(idle.id());
    assert_eq!((&why.reason["key"], &why.reason["started"]), (&json!(started + 7), &json!(started)));
    why.says(&["left of an earlier process with this id", "remove it"]);

    let gone = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&gone);
    let row = row(directory.path(), &gone);
    assert_eq!((&row["status"], &row["reasons"][0]["started"]), (&json!("no_listener"), &Value::Null));
    assert!(row["why"].as_str().unwrap().contains("left of a process that is gone"), "{row}");
}

#[test]
fn impostor() {
    let directory = TempDir::new().unwrap();
    let idle = Idle::start();
    let socket = idle.socket(directory.path(), 0);
    let listener = UnixListener::bind(&socket).unwrap();
    let why = not_found(directory.path(), idle.id(), 3, "not_found", "impostor");
    assert_eq!(why.reason["peer_process_id"], std::process::id());
    assert_eq!(why.reason["peer_user_id"], rustix::process::getuid().as_raw());
    why.says(&["somebody else listens at", &format!("process {}", std::process::id()), "nothing was sent"]);
    let ran = run_in(directory.path(), &["set-env", &idle.id().to_string(), "SECRET", "1"]);
    ran.fails(3, "somebody else listens");
    drop(idle);
    for _ in 0..2 {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut received).unwrap();
        assert_eq!(received, b"");
    }
}

#[test]
fn an_impostor_beside_the_real_one_is_no_runtime() {
    let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let runtime = FakeProcess::start(theirs.path());
    let trap = ours.path().join(runtime.socket.file_name().unwrap());
    let _listener = UnixListener::bind(&trap).unwrap();
    run_in(ours.path(), &["info", &runtime.id().to_string()]).well();
    let row = row(ours.path(), &trap);
    assert_eq!((&row["status"], &row["reasons"][0]["reason"]), (&json!("not_found"), &json!("impostor")));
}

#[test]
fn other_process() {
    let directory = TempDir::new().unwrap();
    let runtime =
        FakeRuntime::start_in(directory.path(), Profile { process_id: 4_000_000_001, ..Profile::net9() })
            .unwrap();
    let own = std::process::id();
    let socket = directory.path().join(format!("dotnet-diagnostic-{own}-{}-socket", started(own)));
    fs::rename(runtime.path(), &socket).unwrap();
    let why = not_found(directory.path(), own, 3, "not_found", "other_process");
    assert_eq!((&why.reason["told"], &why.reason["expected"]), (&json!(4_000_000_001_u32), &json!(own)));
    why.says(&["says it is process 4000000001, not"]);
}

#[test]
fn not_a_socket() {
    let directory = TempDir::new().unwrap();
    let idle = Idle::start();
    File::create(idle.socket(directory.path(), 0)).unwrap();
    let why = not_found(directory.path(), idle.id(), 3, "not_found", "not_a_socket");
    why.says(&["has the name of its socket, but is none", "remove it"]);
}

#[test]
fn unanswered() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    runtime.signal(Signal::STOP);
    let why = not_found(directory.path(), runtime.id(), 4, "timeout", "unanswered");
    why.says(&["timed out", "while waiting for an answer"]);
    assert_eq!(row(directory.path(), &runtime.socket)["status"], "timeout");
}

#[test]
fn of_several_sockets_its_own_wins() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let pid = runtime.id().to_string();
    let newer = directory.path().join(format!("dotnet-diagnostic-{pid}-1-socket"));
    dead_socket(&newer);
    touch(&newer, "2040-01-01");
    run_in(directory.path(), &["info", &pid]).well();
    // What says nothing of when it started, and is newer, is asked where its own is gone: the process answers.
    fs::rename(&runtime.socket, directory.path().join(format!("dotnet-diagnostic-{pid}-2-socket"))).unwrap();
    let found = run_in(directory.path(), &["find", &pid, "--json"]).well().json();
    let reasons: Vec<_> =
        found["steps"].as_array().unwrap().iter().map(|step| &step["reason"]["reason"]).collect();
    assert!(reasons.contains(&&json!("stale")), "{found}");
    assert!(found["found"]["socket"].as_str().unwrap().ends_with("-2-socket"), "{found}");
    run_in(directory.path(), &["info", &pid]).well();
}

#[test]
fn in_namespaces_of_its_own() {
    let Some(mut command) = unshare(&["-p", "-f", "-m", "--mount-proc"]) else { return };
    let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // Its TMPDIR exists for nobody else, and it is a link that would lead out of its root, or nowhere.
    let script = "mount -t tmpfs none \"$1\" && mkdir \"$1/real\" && ln -s \"$1/real\" \"$1/link\" && \
                  TMPDIR=$1/link exec \"$0\" fake-runtime";
    command.args(["sh", "-c", script, TOOL]).arg(theirs.path());
    let runtime = FakeProcess::of(command);
    assert_eq!(runtime.local_process_id, 1);
    let pid = child_of(runtime.id());
    let found = run_in(ours.path(), &["find", &pid.to_string(), "--json"]).well().json();
    assert_eq!(found["found"]["local_process_id"], 1, "{found}");
    let through = format!("/proc/{pid}/root{}/link/dotnet-diagnostic-1-", theirs.path().display());
    assert!(found["found"]["socket"].as_str().unwrap().starts_with(&through), "{found}");
    let text = run_in(ours.path(), &["find", &pid.to_string()]).well().into_text();
    assert!(text.contains("in a PID namespace where it is process 1"), "{text}");
    run_in(ours.path(), &["info", &pid.to_string()]).well();
    run_in(ours.path(), &["resume", &pid.to_string()]).well();
    let row = row(ours.path(), Path::new(found["found"]["socket"].as_str().unwrap()));
    assert_eq!((&row["process_id"], &row["status"]), (&json!(pid), &json!("ok")));
}

#[test]
fn in_a_pid_namespace_with_our_files() {
    // Without a /proc of its own it reads the start time of our first process, and its socket's name is wrong.
    let Some(mut command) = unshare(&["-p", "-f"]) else { return };
    let directory = TempDir::new().unwrap();
    command.args([TOOL, "fake-runtime"]).env("TMPDIR", directory.path());
    let runtime = FakeProcess::of(command);
    assert_eq!(runtime.local_process_id, 1);
    let pid = child_of(runtime.id());
    let found = run_in(directory.path(), &["find", &pid.to_string(), "--json"]).well().json();
    assert_eq!(found["found"]["socket"], json!(runtime.socket));
    run_in(directory.path(), &["info", &pid.to_string()]).well();
    // And nobody takes it for our first process.
    let rows = run_in(directory.path(), &["ps", "--json"]).well().lines();
    let of_it: Vec<_> = rows.iter().filter(|row| row["socket"] == json!(runtime.socket)).collect();
    assert_eq!(of_it.len(), 1, "{rows:?}");
    assert_eq!((&of_it[0]["process_id"], &of_it[0]["status"]), (&json!(pid), &json!("ok")));
}

#[test]
fn nobody_is_there() {
    let Some(mut command) = unshare(&["-p", "-f", "-m", "--mount-proc"]) else { return };
    let directory = TempDir::new().unwrap();
    let ran = finish(command.args([TOOL, "ps"]).env("TMPDIR", directory.path()).spawn().unwrap());
    assert_eq!((ran.status, ran.text()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("note: no .NET runtime is found"), "{ran:?}");
    let mut command = unshare(&["-p", "-f", "-m", "--mount-proc"]).unwrap();
    let ran = finish(command.args([TOOL, "ps", "--json"]).env("TMPDIR", directory.path()).spawn().unwrap());
    assert_eq!(ran.well().text(), "");
}

/// A name of a router's socket, of a process that started so many seconds before this one.
fn router(directory: &Path, process_id: u32, before: u64) -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    directory.join(format!("dotnet-diagnostic-dsrouter-{process_id}-{}-socket", now - before))
}

#[test]
fn dsrouter() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let find = || run_in(directory.path(), &["find", &runtime.id().to_string(), "--json"]).well().json();
    assert_eq!(find()["found"]["router"], false);
    // One file by two names is as new as itself.
    let earlier = router(directory.path(), runtime.id(), 3_600);
    fs::hard_link(&runtime.socket, &earlier).unwrap();
    assert_eq!(find()["found"]["router"], false);
    fs::remove_file(&earlier).unwrap();
    let router = router(directory.path(), runtime.id(), 0);
    fs::hard_link(&runtime.socket, &router).unwrap();
    assert_eq!((&find()["found"]["router"], &find()["found"]["socket"]), (&json!(true), &json!(router)));
    // An older one does not count, and one that has no process's own beside it neither.
    fs::remove_file(&router).unwrap();
    dead_socket(&router);
    touch(&router, "2001-01-01");
    assert_eq!(find()["found"]["router"], false);
    fs::remove_file(&router).unwrap();
    fs::rename(&runtime.socket, &router).unwrap();
    not_found(directory.path(), runtime.id(), 3, "not_found", "no_socket");
    // But it is shown: it answers for whomever.
    assert_eq!(row(directory.path(), &router)["status"], "ok");
}

/// What is left in a directory.
fn files(directory: &Path) -> Vec<String> {
    let names =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn cleaning() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let live = FakeProcess::start(directory.path());
    let crashed = FakeProcess::start(directory.path());
    let stale = crashed.socket.clone();
    crashed.crash();
    let key = stale.to_str().unwrap().rsplit('-').nth(1).unwrap().to_owned();
    let id = stale.to_str().unwrap().rsplit('-').nth(2).unwrap().to_owned();
    for end in ["in", "out"] {
        let pipe = path(&format!("clr-debug-pipe-{id}-{key}-{end}"));
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let idle = Idle::start();
    let reused = idle.socket(directory.path(), 9);
    dead_socket(&reused);
    let router = path("dotnet-diagnostic-dsrouter-4000000001-1-socket");
    dead_socket(&router);
    // These are not proven, or not ours to judge: a process that may be about to listen, a file, somebody who listens.
    let about_to_listen = idle.socket(directory.path(), 0);
    dead_socket(&about_to_listen);
    File::create(path("dotnet-diagnostic-4000000002-1-socket")).unwrap();
    let unseen = path("dotnet-diagnostic-4000000003-1-socket");
    let _listener = UnixListener::bind(&unseen).unwrap();
    let before = files(directory.path());

    let ran = run_in(directory.path(), &["clean", "--dry-run"]).well();
    let mut shown: Vec<_> = ran.text().lines().collect();
    shown.sort_unstable();
    let mut expected = [&stale, &reused, &router].map(|path| format!("stale {}", path.display())).to_vec();
    expected.extend(
        ["in", "out"]
            .map(|end| format!("  and {}", path(&format!("clr-debug-pipe-{id}-{key}-{end}")).display())),
    );
    expected.sort();
    assert_eq!(shown, expected);
    let ran = run_in(directory.path(), &["clean"]);
    assert_eq!((ran.status, ran.text().lines().count()), (Some(2), 5), "{ran:?}");
    assert!(ran.stderr.contains("nothing was removed") && ran.stderr.contains("--yes"), "{ran:?}");
    run_in(directory.path(), &["clean", "--json"]).fails(2, "nothing was removed");
    assert_eq!(files(directory.path()), before);

    let ran = run_in(directory.path(), &["clean", "--yes", "--json"]).well();
    let mut removed: Vec<_> =
        ran.lines().iter().map(|line| line["removed"].as_array().unwrap().len()).collect();
    removed.sort_unstable();
    assert_eq!(removed, [1, 1, 3], "{ran:?}");
    let rest: Vec<_> = files(directory.path());
    let kept =
        [live.socket.as_path(), &about_to_listen, &path("dotnet-diagnostic-4000000002-1-socket"), &unseen];
    let mut kept = kept.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    kept.sort();
    assert_eq!(rest, kept);
    let ran = run_in(directory.path(), &["clean"]);
    assert_eq!(
        (ran.status, ran.text(), ran.stderr.as_str()),
        (Some(0), "", "note: there is nothing stale\n")
    );
    run_in(directory.path(), &["clean", "/nowhere"]).fails(1, "cannot look into /nowhere");
    dead_socket(&stale);
    let ran =
        run_in(directory.path(), &["clean", "--dry-run", directory.path().to_str().unwrap(), "/nowhere"]);
    assert_eq!(ran.text(), format!("stale {}\n", stale.display()), "{ran:?}");
    ran.fails(1, "cannot look into /nowhere");
}

#[test]
fn what_is_not_ours_is_not_cleaned() {
    if !is_root() {
        eprintln!("NOT RUN: only root can make what belongs to somebody else");
        return;
    }
    let directory = TempDir::new().unwrap();
    let stale = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&stale);
    let mut command = powerless(directory.path());
    let ran = finish(command.args(["clean", "--yes"]).spawn().unwrap());
    // They may not even try to connect, so nothing is proven.
    assert_eq!((ran.text(), ran.stderr.as_str()), ("", "note: there is nothing stale\n"));
    fs::set_permissions(&stale, fs::Permissions::from_mode(0o666)).unwrap();
    let mut command = powerless(directory.path());
    let ran = finish(command.args(["clean", "--yes"]).spawn().unwrap()).well();
    assert!(ran.text().contains("belongs to user 0"), "{ran:?}");
    assert!(stale.exists());
}

#[test]
fn what_is_made_anew_is_not_cleaned() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&path);
    let stale = discover::stale(directory.path()).unwrap().pop().unwrap();
    fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    assert!(stale.remove().unwrap().is_empty());
    drop(listener);
    // It is dead again, but not the one that was proven.
    assert!(stale.remove().unwrap().is_empty() && path.exists());
    let stale = discover::stale(directory.path()).unwrap().pop().unwrap();
    assert_eq!(stale.remove().unwrap(), [path]);
    assert!(stale.remove().unwrap().is_empty());
}

#[test]
fn a_file_system_that_does_not_answer_holds_nobody_up() {
    let Some(mut command) = unshare(&["-m"]) else { return };
    if !Path::new("/dev/fuse").exists() || !is_root() {
        eprintln!("NOT RUN: no permission to mount a file system here");
        return;
    }
    let (mount, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let runtime = FakeProcess::start(ours.path());
    // Whoever mounted it has it open and says nothing. The shell's child has another environment at first.
    let script = "exec 3<>/dev/fuse; \
        mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 silent \"$1\" || exit 99; \
        TMPDIR=$1/x sleep 600 </dev/null >/dev/null 2>&1 & held=$!; \
        until tr '\\0' '\\n' </proc/$held/environ | grep -q \"^TMPDIR=$1/x\"; do :; done; \
        \"$0\" find $held --json --timeout 1s; found=$?; \
        \"$0\" ps --json --timeout 1s; kill $held; exit $found";
    let command = command.args(["sh", "-c", script, TOOL]).arg(mount.path()).env("TMPDIR", ours.path());
    let ran = finish(command.spawn().unwrap());
    if ran.status == Some(99) {
        eprintln!("NOT RUN: no FUSE here");
        return;
    }
    let lines = ran.lines();
    let reasons: Vec<_> =
        lines[0]["steps"].as_array().unwrap().iter().map(|step| &step["reason"]["reason"]).collect();
    assert!(reasons.contains(&&json!("unresponsive")), "{ran:?}");
    assert_eq!(ran.status, Some(4), "{ran:?}");
    // The others have their rows.
    let row = lines[1..].iter().find(|row| row["socket"] == json!(runtime.socket));
    assert_eq!(row.unwrap_or_else(|| panic!("{ran:?}"))["status"], "ok");
}

#[test]
fn a_squatter_keeps_nobody_from_the_real_one() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let pid = runtime.id().to_string();
    let squat = directory.path().join(format!("dotnet-diagnostic-{pid}-0-socket"));
    let _listeners = [squat.clone(), router(directory.path(), runtime.id(), 0)].map(|path| {
        let listener = UnixListener::bind(&path).unwrap();
        touch(&path, "2040-01-01");
        listener
    });
    run_in(directory.path(), &["info", &pid]).well();
    let found = run_in(directory.path(), &["find", &pid, "--json"]).well().json();
    assert_eq!(found["found"]["socket"], json!(runtime.socket), "{found}");
    if is_root() {
        // Nobody connects to what a third made, not even to see who it is.
        std::os::unix::fs::chown(&squat, Some(65534), None).unwrap();
        fs::remove_file(&runtime.socket).unwrap();
        not_found(directory.path(), runtime.id(), 3, "not_found", "foreign").says(&["made by user 65534"]);
    }
}

#[test]
fn hidden() {
    let Some(mut command) = unshare(&["-p", "-f", "-m"]).filter(|_| is_root()) else {
        eprintln!("NOT RUN: only root can be two users");
        return;
    };
    let directory = TempDir::new().unwrap();
    let _ = powerless(directory.path());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let script = "mount -t proc -o hidepid=2 proc /proc || exit 99; \
        mkfifo \"$1/hold\"; exec 3<>\"$1/hold\"; \
        setpriv --reuid 1000 --regid 1000 --clear-groups \"$0\" fake-runtime <&3 >\"$1/told\" & \
        until test -s \"$1/told\"; do :; done; chmod 666 \"$1\"/dotnet-diagnostic-*; \
        setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" find $! --json --timeout 5s; \
        rm \"$1\"/dotnet-diagnostic-*; \
        setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" find $! --json --timeout 5s; status=$?; kill $!; exit $status";
    let tool = directory.path().join("tool");
    command.args(["sh", "-c", script]).args([tool.as_path(), directory.path()]);
    let ran = finish(command.env("TMPDIR", directory.path()).spawn().unwrap());
    if ran.status == Some(99) {
        eprintln!("NOT RUN: no such mount here");
        return;
    }
    // Whose it is, is not known: that it is the process is enough.
    let lines = ran.lines();
    assert!(lines[0]["found"]["socket"].is_string(), "{ran:?}");
    assert_eq!(lines[0]["steps"][0]["reason"]["reason"], "hidden", "{ran:?}");
    assert_eq!(lines[1]["found"], Value::Null, "{ran:?}");
    assert!(ran.stderr.contains("hidden from us") && ran.stderr.contains("\"permission\""), "{ran:?}");
}

#[test]
fn only_pipes_go_with_a_socket() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&socket);
    let [file, pipe, others] =
        ["in", "out", "x"].map(|end| directory.path().join(format!("clr-debug-pipe-4000000001-1-{end}")));
    for pipe in [&file, &pipe, &others] {
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let stale = discover::stale(directory.path()).unwrap().pop().unwrap();
    assert_eq!(stale.pipes, [file.clone(), pipe.clone()]);
    // It is no pipe any more once it was shown.
    fs::remove_file(&file).unwrap();
    fs::write(&file, "precious").unwrap();
    assert_eq!(stale.remove().unwrap(), [socket.clone(), pipe.clone()]);
    assert!(file.exists() && others.exists());
    if is_root() {
        // Nor is somebody else's.
        dead_socket(&socket);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::chown(&pipe, Some(65534), None).unwrap();
        assert!(discover::stale(directory.path()).unwrap().pop().unwrap().pipes.is_empty());
    }
}

#[test]
fn what_somebody_bound_through_another_layer_is_not_cleaned() {
    let Some(mut command) = unshare(&["-m"]) else { return };
    let base = TempDir::new().unwrap();
    // The upper directory of an overlay has the file, but who connects there finds nobody.
    let script = "cd \"$1\" && mount -t tmpfs none . && cd \"$1\" && mkdir lower upper work merged && \
        mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none merged || exit 99; \
        mkfifo hold; exec 3<>hold; unshare -p -f --kill-child --mount-proc \"$0\" fake-runtime --dir \"$PWD/merged\" <&3 >told & \
        until test -s told; do :; done; \
        \"$0\" clean --yes upper; test -S upper/dotnet-diagnostic-*; left=$?; kill -9 $!; exit $left";
    let ran = finish(command.args(["sh", "-c", script, TOOL]).arg(base.path()).spawn().unwrap());
    if ran.status == Some(99) {
        eprintln!("NOT RUN: no overlay here");
        return;
    }
    assert_eq!(ran.status, Some(0), "its socket is gone: {ran:?}");
    assert!(!ran.text().contains("removed"), "{ran:?}");
}

#[test]
fn no_tmpdir() {
    let directory = TempDir::new().unwrap();
    let nowhere = directory.path().join("nowhere");
    let idle = Idle::of(Command::new("cat").env("TMPDIR", &nowhere));
    let why = not_found(directory.path(), idle.id(), 3, "not_found", "no_tmpdir");
    assert_eq!(why.reason["path"], json!(nowhere));
    why.says(&["does not exist", "start the process again"]);
}

#[test]
fn what_ps_cannot_look_into() {
    let directory = TempDir::new().unwrap();
    let nowhere = directory.path().join("nowhere");
    let (path, why) = (nowhere.to_str().unwrap(), "cannot be looked at: No such file or directory");
    let rows = run_in(&nowhere, &["ps", "--why", "--json", "--timeout", "1s"]).well().lines();
    let row = rows.iter().find(|row| row["process_id"].is_null()).unwrap();
    assert_eq!((&row["status"], &row["socket"]), (&json!("not_found"), &Value::Null));
    assert_eq!(
        (&row["reasons"][0]["reason"], &row["reasons"][0]["path"]),
        (&json!("unreadable"), &json!(path))
    );
    assert!(row["why"].as_str().unwrap().contains(why), "{row}");
    let text = run_in(&nowhere, &["ps", "--why", "--timeout", "1s"]).well().into_text();
    assert!(text.lines().any(|line| line.starts_with(path) && line.contains(why)), "{text}");
    // Who does not ask why is not told.
    assert!(!run_in(&nowhere, &["ps", "--json", "--timeout", "1s"]).well().text().contains("nowhere"));
}

#[test]
fn a_thread() {
    let directory = TempDir::new().unwrap();
    // The test itself runs in one, whose process has another id.
    let link = fs::read_link("/proc/thread-self").unwrap();
    let thread: u32 = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let own = std::process::id();
    assert_ne!(thread, own);
    let why = not_found(directory.path(), thread, 3, "not_found", "thread");
    why.says(&[&format!("it is a thread of process {own}: ask that")]);
}
