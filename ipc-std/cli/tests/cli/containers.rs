//! Tests of `find` and `ps` for runtimes in other namespaces, hidden by hidepid, or with unresponsive file systems.

use std::fs::{self};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::search::*;
use crate::tool::{FakeProcess, Ran, TOOL, finish};

/// Only one test scans at a time: a scan of all processes waits for each file system that does not respond, and delays
/// other scans of it.
static SCANS: Mutex<()> = Mutex::new(());

#[test]
fn a_runtime_in_separate_namespaces_is_found() {
    let _alone = SCANS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut command) = unshare_processes() else { return };
    let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // The TMPDIR of the runtime exists only in its mount namespace. Seen from outside, the link leads out of its root
    // or to nothing.
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
    assert!(text.contains("has id 1 in its own PID namespace"), "{text}");
    run_in(ours.path(), &["info", &pid.to_string()]).well();
    run_in(ours.path(), &["resume", &pid.to_string()]).well();
    let row = row(ours.path(), Path::new(found["found"]["socket"].as_str().unwrap()));
    assert_eq!((&row["process_id"], &row["status"]), (&json!(pid), &json!("ok")));
}

#[test]
fn a_runtime_in_a_pid_namespace_with_shared_files_is_found() {
    let _alone = SCANS.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a /proc of its own, the runtime reads the start time of process 1 of the host. So the name of its socket
    // is wrong.
    let Some(mut command) = unshare(&["-p", "-f"]) else { return };
    let directory = TempDir::new().unwrap();
    command.args([TOOL, "fake-runtime"]).env("TMPDIR", directory.path());
    let runtime = FakeProcess::of(command);
    assert_eq!(runtime.local_process_id, 1);
    let pid = child_of(runtime.id());
    let found = run_in(directory.path(), &["find", &pid.to_string(), "--json"]).well().json();
    assert_eq!(found["found"]["socket"], json!(runtime.socket));
    run_in(directory.path(), &["info", &pid.to_string()]).well();
    // The tool does not identify the runtime as process 1 of the host.
    let rows = run_in(directory.path(), &["ps", "--json", "--timeout", "60s"]).well().lines();
    let of_it: Vec<_> = rows.iter().filter(|row| row["socket"] == json!(runtime.socket)).collect();
    assert_eq!(of_it.len(), 1, "{rows:?}");
    assert_eq!((&of_it[0]["process_id"], &of_it[0]["status"]), (&json!(pid), &json!("ok")));
}

/// Runs a shell script as process 1 of a container, with the tool as its `$0` and the volume for sockets as its `$1`.
/// The script does not see the processes of other containers.
fn in_container(volume: &Path, tmpdir: &Path, script: &str) -> Ran {
    let mut command = unshare_processes().unwrap();
    command.args(["sh", "-c", script, TOOL]).arg(volume).env("TMPDIR", tmpdir);
    finish(command.spawn().unwrap())
}

/// Starts a runtime in a container of its own, as process 1 or as a child of process 1.
fn runtime_in_a_container(volume: &Path, name: &str, is_child: bool) -> Option<FakeProcess> {
    let program = volume.join(name);
    std::os::unix::fs::symlink(TOOL, &program).unwrap();
    let mut command = unshare_processes()?;
    let script = if is_child { "\"$0\" fake-runtime; true" } else { "exec \"$0\" fake-runtime" };
    command.args(["sh", "-c", script]).arg(program).env("TMPDIR", volume);
    Some(FakeProcess::of(command))
}

#[test]
fn a_runtime_in_a_neighbouring_container_is_not_confused_with_a_process_here() {
    let directory = TempDir::new().unwrap();
    let Some(runtime) = runtime_in_a_container(directory.path(), "neighbour", false) else { return };
    assert_eq!(runtime.local_process_id, 1);
    // In this container, process 1 is the shell, with the same TMPDIR as the runtime or with another one. A fake
    // runtime reports an invented command line.
    let run_with = |tmpdir: &Path, args: &str| {
        in_container(directory.path(), tmpdir, &format!("TMPDIR=$1 \"$0\" {args}; exit $?"))
    };
    for tmpdir in [directory.path(), Path::new("/nowhere")] {
        let text = run_with(tmpdir, "ps --wide").well().into_text();
        let rows: Vec<Vec<_>> = text.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), 1, "{text}");
        assert_eq!(rows[0][..3], ["1", "ok", "Fake"], "{text}");
    }
    let run = |args: &str| run_with(directory.path(), args);
    let rows = run("ps --why --json").well().lines();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["process_id"], &rows[0]["status"]), (&json!(1), &json!("ok")));
    assert_eq!(rows[0]["socket"], json!(runtime.socket));
    run("info --name sh").fails(3, "no .NET process has the name sh");
    for target in ["1", "--name Fake"] {
        let found = run(&format!("find {target} --json")).well().json();
        assert_eq!(found["found"]["listener"], Value::Null, "{found}");
        assert_eq!(found["found"]["socket"], json!(runtime.socket), "{found}");
        let text = run(&format!("find {target}")).well().into_text();
        assert!(text.contains("in another PID namespace, so process 1 here is not it"), "{text}");
        run(&format!("info {target}")).well();
        run(&format!("set-env {target} A b")).well();
    }
    // On the host, both the runtime and process 1 are visible, and the socket belongs only to the runtime.
    let _alone = SCANS.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = run_in(directory.path(), &["ps", "--why", "--json", "--timeout", LONG]).well().lines();
    let of_it: Vec<_> = rows.iter().filter(|row| row["socket"] == json!(runtime.socket)).collect();
    let id = child_of(runtime.id());
    assert!(of_it.iter().any(|row| row["process_id"] == json!(id) && row["status"] == "ok"), "{rows:?}");
    assert!(of_it.iter().all(|row| row["process_id"] != json!(1)), "{rows:?}");
}

#[test]
fn runtimes_in_neighbouring_containers_are_found_by_any_process_id() {
    let directory = TempDir::new().unwrap();
    let Some(first) = runtime_in_a_container(directory.path(), "first", true) else { return };
    let id = first.local_process_id;
    assert_ne!(id, 1);
    // No process of the sidecar has this id.
    let run = |args: &str| in_container(directory.path(), directory.path(), &format!("exec \"$0\" {args}"));
    let found = run(&format!("find {id} --json")).well().json();
    assert_eq!(found["found"]["socket"], json!(first.socket), "{found}");
    assert_eq!(found["found"]["listener"], Value::Null, "{found}");
    run(&format!("info {id}")).well();
    // A second runtime has the same id: each has a row, and the name alone is not sufficient.
    let second = runtime_in_a_container(directory.path(), "second", true).unwrap();
    assert_eq!(second.local_process_id, id);
    let rows = run("ps --json").well().lines();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["process_id"] == json!(id) && row["status"] == "ok"), "{rows:?}");
    let ran = run("info --name Fake");
    let paths = [&first.socket, &second.socket].map(|socket| format!("{id} Fake at {}", socket.display()));
    ran.fails(3, &paths[0]);
    run("info --name Fake").fails(3, &paths[1]);
    // The process id alone is not sufficient either.
    let ran = run(&format!("find {id} --json"));
    assert_eq!((ran.status, &ran.json()["found"]), (Some(3), &Value::Null), "{ran:?}");
    run(&format!("set-env {id} A b")).fails(3, "choose one by its socket");
    run(&format!("info --socket {}", second.socket.display())).well();
}

#[test]
fn an_empty_namespace_has_no_runtimes() {
    let Some(mut command) = unshare_processes() else { return };
    let directory = TempDir::new().unwrap();
    let ran = finish(command.args([TOOL, "ps"]).env("TMPDIR", directory.path()).spawn().unwrap());
    assert_eq!((ran.status, ran.text()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("note: no .NET process found"), "{ran:?}");
    let mut command = unshare_processes().unwrap();
    let ran = finish(command.args([TOOL, "ps", "--json"]).env("TMPDIR", directory.path()).spawn().unwrap());
    assert_eq!(ran.well().text(), "");
}

#[test]
fn a_process_hidden_by_hidepid_is_found_by_its_socket() {
    let Some(mut command) = unshare(&["-p", "-f", "-m"]).filter(|_| is_root()) else {
        eprintln!("NOT RUN: this test requires root to run as two users");
        return;
    };
    let directory = TempDir::new().unwrap();
    let _ = powerless(directory.path());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let script = "mount -t proc -o hidepid=2 proc /proc || exit 99; \
        mkfifo \"$1/hold\"; exec 3<>\"$1/hold\"; \
        setpriv --reuid 1000 --regid 1000 --clear-groups \"$0\" fake-runtime <&3 >\"$1/started\" & \
        until test -s \"$1/started\"; do :; done; chmod 666 \"$1\"/dotnet-diagnostic-*; \
        setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" find $! --json --timeout 60s; \
        rm \"$1\"/dotnet-diagnostic-*; \
        setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" find $! --json --timeout 60s; status=$?; kill $!; exit $status";
    let tool = directory.path().join("tool");
    command.args(["sh", "-c", script]).args([tool.as_path(), directory.path()]);
    let ran = finish(command.env("TMPDIR", directory.path()).spawn().unwrap());
    if ran.status == Some(99) {
        eprintln!("NOT RUN: /proc cannot be mounted with hidepid here");
        return;
    }
    // The owner of the process is unknown. The process id of the listener is sufficient.
    let lines = ran.lines();
    assert!(lines[0]["found"]["socket"].is_string(), "{ran:?}");
    assert_eq!(lines[0]["steps"][0]["reason"]["reason"], "hidden", "{ran:?}");
    assert_eq!(lines[1]["found"], Value::Null, "{ran:?}");
    assert!(ran.stderr.contains("the system hides it") && ran.stderr.contains("\"permission\""), "{ran:?}");
}

#[test]
fn a_file_system_that_does_not_respond_delays_no_other_runtime() {
    let Some(mut command) = unshare(&["-m"]) else { return };
    if !Path::new("/dev/fuse").exists() || !is_root() {
        eprintln!("NOT RUN: no permission to mount a file system here");
        return;
    }
    let _alone = SCANS.lock().unwrap_or_else(PoisonError::into_inner);
    let (mount, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let runtime = FakeProcess::start(ours.path());
    // The shell holds the mount's device open and never responds. Its child has another environment until it runs
    // `sleep`.
    let script = "exec 3<>/dev/fuse; \
        mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 silent \"$1\" || exit 99; \
        TMPDIR=$1/x sleep 600 </dev/null >/dev/null 2>&1 & held=$!; \
        until tr '\\0' '\\n' </proc/$held/environ | grep -q \"^TMPDIR=$1/x\"; do :; done; \
        \"$0\" find $held --json --timeout 1s; found=$?; \
        \"$0\" ps --json --timeout 20s; kill $held; exit $found";
    let command = command.args(["sh", "-c", script, TOOL]).arg(mount.path()).env("TMPDIR", ours.path());
    let ran = finish(command.spawn().unwrap());
    if ran.status == Some(99) {
        eprintln!("NOT RUN: FUSE is not available here");
        return;
    }
    let lines = ran.lines();
    let reasons: Vec<_> =
        lines[0]["steps"].as_array().unwrap().iter().map(|step| &step["reason"]["reason"]).collect();
    assert!(reasons.contains(&&json!("unresponsive")), "{ran:?}");
    assert_eq!(ran.status, Some(4), "{ran:?}");
    // `ps` lists the other runtimes.
    let row = lines[1..].iter().find(|row| row["socket"] == json!(runtime.socket));
    assert_eq!(row.unwrap_or_else(|| panic!("{ran:?}"))["status"], "ok");
}
