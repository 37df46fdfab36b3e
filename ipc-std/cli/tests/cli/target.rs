//! How the command line names a runtime: `--name`, and paths that are network addresses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use ipc_testkit::{FakeRuntime, Profile};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{FakeProcess, Ran, TOOL, finish, tool};

/// Starts a fake runtime whose process has this name.
fn named(directory: &Path, name: &str) -> FakeProcess {
    let program = directory.join(name);
    if !program.exists() {
        symlink(TOOL, &program).unwrap();
    }
    let mut command = Command::new(program);
    command.arg("fake-runtime").env("TMPDIR", directory).stdout(std::process::Stdio::piped());
    FakeProcess::of(command)
}

fn run_in(directory: &Path, args: &[&str]) -> Ran {
    // A busy machine needs longer than the default timeout.
    finish(tool(args).args(["--timeout", "1m"]).env("TMPDIR", directory).spawn().unwrap())
}

#[test]
fn name_is_exact_or_else_a_unique_prefix() {
    let directory = TempDir::new().unwrap();
    // Other tests run fake runtimes at the same time, with other names.
    let short = named(directory.path(), "face-app");
    let long = named(directory.path(), "face-app-worker");
    let process_id = |name: &str| -> Value {
        run_in(directory.path(), &["info", "--name", name, "--json"]).well().json()["process_id"].clone()
    };
    assert_eq!(process_id("face-app"), short.local_process_id, "an exact name");
    assert_eq!(process_id("Face-App"), short.local_process_id, "case is ignored");
    assert_eq!(process_id("face-app-w"), long.local_process_id, "a unique prefix");
    assert_eq!(process_id("face-app-worker"), long.local_process_id);
    run_in(directory.path(), &["set-env", "--name", "face-app-w", "A", "b"]).well();
    run_in(directory.path(), &["find", "--name", "face-app-w"]).well();
    run_in(directory.path(), &["events", "--name", "face-app-w", "--duration", "0"]).well();

    let ran = run_in(directory.path(), &["info", "--name", "face-ap", "--json"]);
    assert_eq!((ran.status, &ran.error()["kind"]), (Some(3), &json!("not_found")), "{ran:?}");
    let error = ran.error()["error"].to_string();
    for words in
        ["2 processes", &format!("{} face-app,", short.id()), &format!("{} face-app-worker", long.id())]
    {
        assert!(error.contains(words), "{words}: {error}");
    }
    run_in(directory.path(), &["info", "--name", "face-nothing"]).fails(3, "no .NET process has the name");
    let second = named(directory.path(), "face-app");
    run_in(directory.path(), &["info", "--name", "face-app"]).fails(3, &second.id().to_string());
}

/// If the system does not know the name of a runtime, the tool requests the name from the runtime.
#[test]
fn the_wire_log_has_the_search_for_a_name() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeRuntime::start_in(directory.path(), Profile::net10()).unwrap();
    fs::rename(runtime.path(), directory.path().join("dotnet-diagnostic-4000000006-1-socket")).unwrap();
    let log = directory.path().join("log");
    let args = ["find", "--name", "face-nothing", "--wire-log", log.to_str().unwrap()];
    run_in(directory.path(), &args).fails(3, "no .NET process has the name");
    assert!(fs::read_to_string(log).unwrap().contains("\"sent\""));
}

#[test]
fn a_runtime_is_named_once() {
    for args in [
        &["info", "1", "--name", "a"][..],
        &["info", "--socket", "a", "--name", "a"],
        &["find"],
        &["set-env", "--socket", "a", "--name", "a", "A", "b"],
    ] {
        assert_eq!(run_in(Path::new("/tmp"), args).status, Some(2), "{args:?}");
    }
}

/// Network addresses are valid names of files, but a user never means a file by them.
#[test]
fn network_addresses_are_refused() {
    let directory = TempDir::new().unwrap();
    for args in [
        &["monitor", "--listen", "127.0.0.1:9000"][..],
        &["fake-runtime", "--port", "127.0.0.1:9000,suspend"],
        &["info", "--socket", "localhost:9000"],
        &["monitor", "--listen", "tcp://127.0.0.1:9000"],
    ] {
        let mut command = tool(args);
        let ran = finish(command.current_dir(directory.path()).spawn().unwrap());
        assert_eq!(ran.status, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("is a network address"), "{ran:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{args:?} created a file");
    }
}
