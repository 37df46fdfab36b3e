//! Tests of `find` and `ps --why`: each reason why a runtime is not found, and its message. Each fake runtime has its
//! own process.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use ipc_testkit::{FakeRuntime, Profile};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::search::*;
use crate::tool::{FakeProcess, TOOL, dead_socket, finish, tool, until};

#[test]
fn a_socket_in_the_tmpdir_of_the_process_is_found() {
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
        "1 socket with its process id in ",
        "requested process information at ",
        "found: the runtime at ",
    ];
    assert_eq!(text.lines().count(), steps.len(), "{text}");
    text.lines().zip(steps).for_each(|(line, step)| assert!(line.starts_with(step), "{text}"));
    assert_eq!(row(ours.path(), &runtime.socket)["status"], "ok");
    run_in(ours.path(), &["info", &pid]).well();
}

#[test]
fn a_socket_in_a_relative_tmpdir_is_found() {
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
    // The `TMPDIR` of the tool may be relative, too.
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
    until("the process never ends", || fs::read_to_string(&stat).unwrap().contains(") Z "));
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
        let why = why.says(&["switched off", &format!("{variable}={value}"), "restart it without"]);
        assert_eq!((&why.reason["variable"], &why.reason["value"]), (&json!(variable), &json!(value)));
    }
    // .NET 10 ignores an empty variable and reads the next one. A value that is not a number disables nothing.
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
    assert_eq!(why.reason["searched"], json!([theirs.path(), ours.path()]));
    assert_eq!(why.reason["runtime_loaded"], false);
    assert_eq!(why.reason["runtime_listens"], Value::Null);
    why.says(&["no diagnostic socket in", "no .NET runtime in its memory", "not a .NET process"]);
}

#[test]
fn a_process_with_a_runtime_but_no_socket() {
    let directory = TempDir::new().unwrap();
    let unknown = "before .NET 11 it is unknown whether that listens";
    for (name, text, listens) in [
        ("libcoreclr.so", unknown, None),
        ("Microsoft.NETCore.App/10.0.12/libcoreclr.so", unknown, None),
        ("libmonosgen-2.0.so", unknown, None),
        ("memfd:doublemapper", unknown, None),
        ("Microsoft.NETCore.App/11.0.0/libcoreclr.so", "its runtime does not listen", Some(false)),
        ("Microsoft.NETCore.App/12.0.0-preview.1/libcoreclr.so", "diagnostics are switched off", Some(false)),
        ("memfd:dotnet_ipc_created", "although it made one and listens", Some(true)),
    ] {
        // Discovery compares only the end of the path of the mapped file.
        let program = directory.path().join(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        copy_program(&crate::tool::which("cat"), &program);
        let idle = Idle::of(&mut Command::new(&program));
        let maps = format!("/proc/{}/maps", idle.id());
        until("the file is never mapped", || fs::read_to_string(&maps).unwrap().contains(name));
        let why =
            not_found(directory.path(), idle.id(), 3, "not_found", "no_socket").says(&[text, "restarted"]);
        assert_eq!(why.reason["runtime_loaded"], true, "{why:?}");
        assert_eq!(why.reason["runtime_listens"], json!(listens), "{why:?}");
        // The process has a row although it has no socket.
        let rows = run_in(directory.path(), &["ps", "--why", "--json", "--timeout", LONG]).well().lines();
        let row = rows.iter().find(|row| row["process_id"] == idle.id()).unwrap();
        assert_eq!((&row["status"], &row["socket"]), (&json!("not_found"), &Value::Null));
        assert_eq!(row["reasons"][0]["reason"], "no_socket");
        let rows = run_in(directory.path(), &["ps", "--json", "--timeout", LONG]).well().lines();
        assert!(rows.iter().all(|row| row["process_id"] != idle.id()));
        let text = run_in(directory.path(), &["ps", "--why", "--timeout", LONG]).well().into_text();
        let line = format!("process {} cannot be used: it has no diagnostic socket", idle.id());
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
    why.says(&["too long", "restart it with one of at most"]);
}

#[test]
fn a_path_that_is_too_long_is_reached_through_an_alias() {
    let directory = TempDir::new().unwrap();
    let short = directory.path().join("short");
    fs::create_dir(&short).unwrap();
    let runtime = FakeProcess::start(&short);
    let long = directory.path().join("x".repeat(100));
    fs::rename(&short, &long).unwrap();
    let socket = long.join(runtime.socket.file_name().unwrap());
    let pid = runtime.id().to_string();
    // The directory in the runtime's environment no longer exists. The search in the tool's own `TMPDIR` finds the
    // socket.
    let found = run_in(&long, &["find", &pid, "--json"]).well().json();
    assert_eq!(found["found"]["socket"], json!(socket));
    run_in(&long, &["info", &pid]).well();
    run_in(&long, &["info", "--socket", socket.to_str().unwrap()]).well();

    // The connection to a long path requires /proc.
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
fn an_unreadable_environment_is_a_reason() {
    let directory = TempDir::new().unwrap();
    let idle = Idle::start();
    // An ordinary user cannot read the environment of process 1.
    let target = if is_root() { idle.id() } else { 1 };
    let why = not_found_by(&mut powerless(directory.path()), target, 3, "permission", "unreadable");
    assert_eq!(why.reason["path"], format!("/proc/{target}/environ"));
    assert_eq!((&why.reason["owner"], &why.reason["mode"]), (&json!(0), &json!("0400")));
    assert_ne!(why.reason["own_user"], 0);
    let reasons = why.all["steps"].as_array().unwrap().iter().map(|step| &step["reason"]["reason"]);
    assert!(reasons.clone().any(|reason| reason == "no_socket"), "the search continues: {why:?}");
    why.says(&[
        "cannot be read",
        "belongs to user 0",
        "this is user",
        "run as the user of the process or as root",
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
    why.says(&["no permission to connect to", "has mode 0000, this is user", "root"]);
    let mut command = powerless(directory.path());
    let ran = finish(command.args(["info", "--json", "--socket"]).arg(&runtime.socket).spawn().unwrap());
    let error = ran.fails(3, "no permission").error();
    assert_eq!(error["kind"], "permission");
    assert!(error["hint"].as_str().unwrap().contains("root"), "{error}");
    let ran =
        finish(powerless(directory.path()).args(["ps", "--json", "--timeout", LONG]).spawn().unwrap()).well();
    let rows = ran.lines();
    let row = rows.iter().find(|row| row["socket"] == json!(runtime.socket)).unwrap();
    assert_eq!(row["status"], "permission");
}

#[test]
fn a_directory_without_search_permission_is_reported() {
    let directory = TempDir::new().unwrap();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let runtime = FakeProcess::start(&inner);
    let mut command = powerless(directory.path());
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o600)).unwrap();
    let ran = finish(command.args(["info", "--socket"]).arg(&runtime.socket).spawn().unwrap());
    let by = format!("{} belongs to user", inner.display());
    ran.fails(3, &by).fails(3, "has mode 0600");
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_directory_that_cannot_be_listed_is_searched_by_name() {
    let directory = TempDir::new().unwrap();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let runtime = FakeProcess::start(&inner);
    let mut command = powerless(directory.path());
    // Other users may connect to a socket whose name they know.
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
    why.says(&["no process listens at", "restart the process"]);
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
    why.says(&["an earlier process with this id", "remove it"]);

    let gone = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&gone);
    let row = row(directory.path(), &gone);
    assert_eq!((&row["status"], &row["reasons"][0]["started"]), (&json!("no_listener"), &Value::Null));
    assert!(row["why"].as_str().unwrap().contains("whose process has ended"), "{row}");
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
    why.says(&["another process listens at", &format!("process {}", std::process::id()), "nothing was sent"]);
    let ran = run_in(directory.path(), &["set-env", &idle.id().to_string(), "SECRET", "1"]);
    ran.fails(3, "another process listens");
    drop(idle);
    for _ in 0..2 {
        assert_eq!(received(&listener), b"");
    }
}

/// Returns the bytes of the next connection.
fn received(listener: &UnixListener) -> Vec<u8> {
    let (mut stream, mut received) = (listener.accept().unwrap().0, Vec::new());
    stream.read_to_end(&mut received).unwrap();
    received
}

/// Returns the listener of a runtime, as a child has it that the runtime has forked: the system reports the runtime as
/// the process that listens, also after its end.
fn inherited_listener(runtime: &FakeProcess) -> UnixListener {
    let pid = Pid::from_raw(runtime.id().try_into().unwrap()).unwrap();
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let files = fs::read_dir(format!("/proc/{}/fd", runtime.id())).unwrap();
    let numbers = files.map(|file| file.unwrap().file_name().to_str().unwrap().parse().unwrap());
    let mut copies = numbers.filter_map(|number| {
        let copy = rustix::process::pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?;
        rustix::net::sockopt::socket_acceptconn(&copy).is_ok_and(|listens| listens).then(|| copy.into())
    });
    copies.next().unwrap()
}

fn is_removed_by_clean(socket: &Path) -> bool {
    let ran = run_in(socket.parent().unwrap(), &["clean", "--yes"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    !socket.exists()
}

#[test]
fn a_listener_that_another_process_inherited() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let (id, socket) = (runtime.id(), runtime.socket.clone());
    let listener = inherited_listener(&runtime);
    runtime.crash();
    let why = not_found(directory.path(), id, 3, "not_found", "inherited");
    assert_eq!((&why.reason["path"], &why.reason["started"]), (&json!(socket), &Value::Null));
    why.says(&["whose process has ended", "nothing was sent", "end the process that inherited"]);
    let ran = run_in(directory.path(), &["resume", &id.to_string()]);
    ran.fails(3, "nothing was sent");
    let row = row(directory.path(), &socket);
    assert_eq!((&row["status"], &row["reasons"][0]["reason"]), (&json!("not_found"), &json!("inherited")));
    for _ in 0..3 {
        assert_eq!(received(&listener), b"");
    }
    // A process listens, so the socket stays until that process ends.
    assert!(!is_removed_by_clean(&socket));
    drop(listener);
    assert!(is_removed_by_clean(&socket));
}

/// A process has the id of a runtime that has ended: its start time is another one than that in the name of the socket.
#[test]
fn a_listener_of_an_earlier_process_with_the_same_id() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let listener = inherited_listener(&runtime);
    let pid = runtime.id().to_string();
    let earlier = directory.path().join(format!("dotnet-diagnostic-{pid}-2-socket"));
    fs::rename(&runtime.socket, &earlier).unwrap();
    runtime.signal(Signal::STOP);
    let why = not_found(directory.path(), runtime.id(), 3, "not_found", "inherited");
    let started = started(runtime.id());
    assert_eq!((&why.reason["key"], &why.reason["started"]), (&json!(2), &json!(started)));
    why.says(&["an earlier process with this id", "nothing was sent", "end the process that inherited"]);
    run_in(directory.path(), &["set-env", &pid, "SECRET", "1"]).fails(3, "nothing was sent");
    assert_eq!(row(directory.path(), &earlier)["reasons"][0]["reason"], "inherited");
    for _ in 0..3 {
        assert_eq!(received(&listener), b"");
    }
    assert!(!is_removed_by_clean(&earlier));
    // `--socket` accepts any listener.
    runtime.signal(Signal::CONT);
    run_in(directory.path(), &["info", "--socket", earlier.to_str().unwrap()]).well();
    // A runtime that cannot read its start time writes 0.
    fs::rename(&earlier, directory.path().join(format!("dotnet-diagnostic-{pid}-0-socket"))).unwrap();
    run_in(directory.path(), &["info", &pid]).well();
}

#[test]
fn an_impostor_beside_the_real_socket_is_not_a_runtime() {
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
    assert_eq!((&why.reason["reported"], &why.reason["expected"]), (&json!(4_000_000_001_u32), &json!(own)));
    why.says(&["reports process id 4000000001 instead of"]);
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
    why.says(&["timed out", "while waiting for the response"]);
    assert_eq!(row_within(directory.path(), &runtime.socket, "1s")["status"], "timeout");
}

#[test]
fn the_socket_with_the_start_time_of_the_process_wins() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let pid = runtime.id().to_string();
    let newer = directory.path().join(format!("dotnet-diagnostic-{pid}-1-socket"));
    dead_socket(&newer);
    touch(&newer, "2040-01-01");
    run_in(directory.path(), &["info", &pid]).well();
    // Without a start time in the name, the process responds itself; the other socket is one more step.
    fs::rename(&runtime.socket, directory.path().join(format!("dotnet-diagnostic-{pid}-0-socket"))).unwrap();
    let found = run_in(directory.path(), &["find", &pid, "--json"]).well().json();
    assert!(found["found"]["socket"].as_str().unwrap().ends_with("-0-socket"), "{found}");
    run_in(directory.path(), &["info", &pid]).well();
}

/// Returns the path of a router's socket for a process that started `before` seconds ago.
pub(crate) fn router(directory: &Path, process_id: u32, before: u64) -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    directory.join(format!("dotnet-diagnostic-dsrouter-{process_id}-{}-socket", now - before))
}

#[test]
fn dsrouter() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let find = || run_in(directory.path(), &["find", &runtime.id().to_string(), "--json"]).well().json();
    assert_eq!(find()["found"]["router"], false);
    // Two names of one file have the same age. The time in the first name is an hour before the start of the process.
    let earlier = router(directory.path(), runtime.id(), 3_600);
    fs::hard_link(&runtime.socket, &earlier).unwrap();
    assert_eq!(find()["found"]["router"], false);
    fs::remove_file(&earlier).unwrap();
    let router = router(directory.path(), runtime.id(), 0);
    fs::hard_link(&runtime.socket, &router).unwrap();
    assert_eq!((&find()["found"]["router"], &find()["found"]["socket"]), (&json!(true), &json!(router)));
    // A router's socket is ignored if it is older than the process's own socket, or if there is no such socket.
    fs::remove_file(&router).unwrap();
    dead_socket(&router);
    touch(&router, "2001-01-01");
    assert_eq!(find()["found"]["router"], false);
    fs::remove_file(&router).unwrap();
    fs::rename(&runtime.socket, &router).unwrap();
    not_found(directory.path(), runtime.id(), 3, "not_found", "no_socket");
    // `ps` shows it anyway: a router responds for any process.
    assert_eq!(row(directory.path(), &router)["status"], "ok");
}

#[test]
fn a_squatter_does_not_hide_the_real_socket() {
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
        // The tool does not connect to a socket of another user, not even to identify the peer.
        std::os::unix::fs::chown(&squat, Some(65534), None).unwrap();
        fs::remove_file(&runtime.socket).unwrap();
        not_found(directory.path(), runtime.id(), 3, "not_found", "foreign").says(&["belongs to user 65534"]);
    }
}

#[test]
fn no_tmpdir() {
    let directory = TempDir::new().unwrap();
    let nowhere = directory.path().join("nowhere");
    let idle = Idle::of(Command::new("cat").env("TMPDIR", &nowhere));
    let why = not_found(directory.path(), idle.id(), 3, "not_found", "no_tmpdir");
    assert_eq!(why.reason["path"], json!(nowhere));
    why.says(&["does not exist", "restart the process"]);
}

#[test]
fn a_tmpdir_that_the_user_cannot_write() {
    use std::os::unix::process::CommandExt as _;
    if !is_root() {
        return; // Only root starts a process of another user.
    }
    let directory = TempDir::new().unwrap();
    // The mark of a loaded runtime.
    let program = directory.path().join("libcoreclr.so");
    copy_program(&crate::tool::which("cat"), &program);
    let tmpdir = directory.path().join("d");
    fs::create_dir(&tmpdir).unwrap();
    for path in [directory.path(), &*tmpdir] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let idle = Idle::of(Command::new(&program).env("TMPDIR", &tmpdir).uid(1654).gid(1654));
    let maps = format!("/proc/{}/maps", idle.id());
    until("the file is never mapped", || fs::read_to_string(&maps).unwrap().contains("libcoreclr"));
    let why = not_found(directory.path(), idle.id(), 3, "not_found", "unwritable");
    assert_eq!(why.reason["path"], json!(tmpdir));
    why.says(&["not writable for user 1654 (owner 0, mode 0755)", "set TMPDIR"]);
}

/// One diagnosis: a runtime that listens has read another environment than the one that the process was started with.
#[test]
fn a_runtime_that_listens_contradicts_its_environment() {
    let directory = TempDir::new().unwrap();
    let program = directory.path().join("memfd:dotnet_ipc_created");
    copy_program(&crate::tool::which("cat"), &program);
    let long = directory.path().join("d".repeat(100));
    fs::create_dir(&long).unwrap();
    for (variable, value) in [("DOTNET_EnableDiagnostics", "0"), ("TMPDIR", long.to_str().unwrap())] {
        let idle = Idle::of(Command::new(&program).env(variable, value));
        let maps = format!("/proc/{}/maps", idle.id());
        until("the file is never mapped", || {
            fs::read_to_string(&maps).unwrap().contains("dotnet_ipc_created")
        });
        let why = not_found(directory.path(), idle.id(), 3, "not_found", "no_socket");
        let why = why.says(&["it made one and listens", "in another TMPDIR or was deleted"]);
        assert!(!format!("{why:?}").contains("switched off"), "{why:?}");
        assert!(!format!("{why:?}").contains("too long"), "{why:?}");
    }
}

/// One diagnosis: a runtime that has made a socket cannot have started without the directory.
#[test]
fn a_tmpdir_that_was_renamed() {
    let directory = TempDir::new().unwrap();
    let (program, old) = (directory.path().join("memfd:dotnet_ipc_created"), directory.path().join("old"));
    copy_program(&crate::tool::which("cat"), &program);
    fs::create_dir(&old).unwrap();
    let idle = Idle::of(Command::new(&program).env("TMPDIR", &old));
    let maps = format!("/proc/{}/maps", idle.id());
    until("the file is never mapped", || fs::read_to_string(&maps).unwrap().contains("dotnet_ipc_created"));
    fs::rename(&old, directory.path().join("new")).unwrap();
    let why = not_found(directory.path(), idle.id(), 3, "not_found", "tmpdir_gone");
    assert_eq!(why.reason["path"], json!(old));
    let why = why.says(&["was removed or renamed", "the new path of the socket"]);
    assert!(!format!("{why:?}").contains("deleted"), "{why:?}");
}

#[test]
fn an_unreadable_directory_is_reported_by_ps() {
    let directory = TempDir::new().unwrap();
    let nowhere = directory.path().join("nowhere");
    let (path, why) = (nowhere.to_str().unwrap(), "cannot be read: No such file or directory");
    let ps = |args: &[&str]| {
        finish(
            alone(TOOL).args(["ps", "--timeout", LONG]).args(args).env("TMPDIR", &nowhere).spawn().unwrap(),
        )
    };
    let rows = ps(&["--why", "--json"]).well().lines();
    let row = rows.iter().find(|row| row["process_id"].is_null()).unwrap();
    assert_eq!((&row["status"], &row["socket"]), (&json!("not_found"), &Value::Null));
    assert_eq!(
        (&row["reasons"][0]["reason"], &row["reasons"][0]["path"]),
        (&json!("unreadable"), &json!(path))
    );
    assert!(row["why"].as_str().unwrap().contains(why), "{row}");
    let text = ps(&["--why"]).well().into_text();
    assert!(text.lines().any(|line| line.starts_with(path) && line.contains(why)), "{text}");
    // Without `--why` the output has no reasons.
    assert!(!ps(&["--json"]).well().text().contains("nowhere"));
}

#[test]
fn a_thread() {
    let directory = TempDir::new().unwrap();
    // The test itself runs in a thread whose id is not the process id.
    let link = fs::read_link("/proc/thread-self").unwrap();
    let thread: u32 = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let own = std::process::id();
    assert_ne!(thread, own);
    let why = not_found(directory.path(), thread, 3, "not_found", "thread");
    why.says(&[&format!("it is a thread of process {own}: use that")]);
}
