//! Tests of the rows and the width of `ps`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ipc_testkit::{FakeRuntime, Fault, Profile};
use serde_json::Value;
use tempfile::TempDir;

use crate::search::{LONG, alone, run_in};
use crate::tool::{Ran, TOOL, dead_socket, finish, tool};

/// Runs `ps` with this directory as `TMPDIR`, where no other runtime of the machine delays it.
fn ps(directory: &Path, args: &[&str]) -> Ran {
    finish(alone(TOOL).arg("ps").args(args).env("TMPDIR", directory).spawn().unwrap())
}

/// Returns the rows of `ps` for sockets in this directory.
fn ps_rows(directory: &Path, args: &[&str]) -> Vec<Value> {
    rows_in(directory, ps(directory, &[&["--json"], args].concat()))
}

/// Returns the rows for sockets in this directory. Other runtimes on the machine are ignored.
fn rows_in(directory: &Path, ran: Ran) -> Vec<Value> {
    let mut rows = ran.well().lines();
    let directory = directory.to_str().unwrap();
    rows.retain(|row| row["socket"].as_str().is_some_and(|socket| socket.starts_with(directory)));
    rows
}

/// Ids that no process on this machine has, like those of processes in a container that shares the directory. Each test
/// has its own: `ps` also searches the `TMPDIR` of other processes, such as the `ps` of another test.
const IDS: [u32; 4] = [4_000_000_001, 4_000_000_002, 4_000_000_003, 4_000_000_004];

#[test]
fn ps_lists_every_runtime() {
    let directory = TempDir::new().unwrap();
    let start = |process_id, profile| {
        FakeRuntime::start_in(directory.path(), Profile { process_id, ..profile }).unwrap()
    };
    let well = start(IDS[0], Profile::net9());
    let _old = start(IDS[1], Profile::net31());
    let broken = start(IDS[2], Profile::net10());
    broken.set_fault(Fault::Garbage(vec![b'?'; 20]));
    let dead = directory.path().join(format!("dotnet-diagnostic-{}-1-socket", IDS[3]));
    dead_socket(&dead);
    File::create(directory.path().join("dotnet-diagnostic-4000000005-1-socket")).unwrap();

    let rows = ps_rows(directory.path(), &["--timeout", LONG]);
    let row = |pid: u32| rows.iter().find(|row| row["process_id"] == pid).unwrap();
    let statuses = IDS[..3].iter().map(|pid| row(*pid)["status"].as_str().unwrap());
    assert!(statuses.eq(["ok", "refused", "protocol"]), "{rows:?}");
    assert_eq!(rows.len(), 3);
    assert_eq!(row(IDS[0])["socket"], well.path().to_str().unwrap());
    assert_eq!(row(IDS[0])["clr_product_version"], "9.0.20");
    let keys: Vec<_> = row(IDS[0]).as_object().unwrap().keys().collect();
    assert_eq!(keys[..4], ["process_id", "socket", "status", "runtime_cookie"]);
    let keys: Vec<_> = row(IDS[2]).as_object().unwrap().keys().collect();
    assert_eq!(keys, ["process_id", "socket", "status"]);

    let rows = ps_rows(directory.path(), &["--why", "--timeout", LONG]);
    let statuses =
        rows.iter().map(|row| (row["process_id"].as_u64().unwrap(), row["status"].as_str().unwrap()));
    let statuses: std::collections::BTreeMap<_, _> = statuses.collect();
    let expected = ["ok", "refused", "protocol", "no_listener", "not_found"];
    assert!(statuses.into_iter().eq((4_000_000_001..).zip(expected)), "{rows:?}");

    let text = ps(directory.path(), &["--timeout", LONG]).well().into_text();
    let line =
        |text: &str| text.lines().find(|line| line.contains(&format!(" {} ", IDS[0]))).unwrap().to_owned();
    assert!(line(&text).contains(" 9.0.20 ") && line(&text).ends_with("/app/Fake --of-a runtime"), "{text}");
    assert!(!text.contains("4000000004"), "{text}");
    let wide = ps(directory.path(), &["--timeout", LONG, "--wide"]).well().into_text();
    assert!(line(&wide).contains(" ok ") && line(&wide).contains(well.path().to_str().unwrap()), "{wide}");
}

#[test]
fn ps_lists_a_silent_runtime() {
    let directory = TempDir::new().unwrap();
    let profile = Profile { process_id: 4_000_000_011, ..Profile::net10() };
    let silent = FakeRuntime::start_in(directory.path(), profile).unwrap();
    silent.set_fault(Fault::Silent);
    let rows = ps_rows(directory.path(), &["--timeout", "300ms"]);
    assert_eq!(rows[0]["status"], "timeout");
    let keys: Vec<_> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["process_id", "socket", "status"]);
}

/// A row is written as soon as its runtime responds: JSON always, text on a terminal.
#[test]
fn rows_do_not_wait_for_a_silent_runtime() {
    let json: fn() -> Command = || {
        let mut command = alone(TOOL);
        command.args(["ps", "--json", "--timeout", LONG]);
        command
    };
    // `script` of util-linux creates a terminal.
    let terminal: fn() -> Command = || {
        let mut script = alone("script");
        script.args(["-qec", &format!("'{TOOL}' ps --timeout {LONG}"), "/dev/null"]);
        script
    };
    let has_script = Command::new("script").arg("--version").output().is_ok();
    if !has_script {
        eprintln!("NOT RUN: script(1) is not available here");
    }
    for command in [Some(json), has_script.then_some(terminal)].into_iter().flatten() {
        let directory = TempDir::new().unwrap();
        let start = |process_id| {
            let profile = Profile { process_id, ..Profile::net10() };
            FakeRuntime::start_in(directory.path(), profile).unwrap()
        };
        let _well = start(4_000_000_021);
        let silent = start(4_000_000_022);
        silent.set_fault(Fault::Silent);
        let mut child = command().env("TMPDIR", directory.path()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let row = lines.by_ref().find(|line| line.contains("4000000021")).unwrap();
        assert!(row.contains("10.0."), "{row}");
        // Without a request so far, the runtime would count as one that does not listen, which has no row.
        crate::tool::until("no request for the silent runtime", || !silent.requests().is_empty());
        // The silent runtime has not responded so far, and now closes the connection.
        drop(silent);
        let row = lines.by_ref().find(|line| line.contains("4000000022")).unwrap();
        assert!(!row.contains("timeout"), "{row}");
        lines.for_each(drop);
        assert!(child.wait().unwrap().success());
    }
}

/// `ps` truncates a command line that exceeds 80 columns.
#[test]
fn ps_fits_80_columns() {
    let directory = TempDir::new().unwrap();
    let command_line = format!("/app/{}", "long ".repeat(40));
    let clr_product_version = format!("10.0.0-{}", "preview.".repeat(20));
    let profile = Profile {
        process_id: 4_000_000_012,
        command_line: command_line.clone(),
        clr_product_version,
        ..Profile::net10()
    };
    let _runtime = FakeRuntime::start_in(directory.path(), profile).unwrap();
    let text = ps(directory.path(), &["--timeout", LONG]).well().into_text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let line = text.lines().find(|line| line.contains("4000000012")).unwrap();
    assert!(line.contains(" /app/long ") && line.ends_with('…'), "{text}");
    let wide = ps(directory.path(), &["--timeout", LONG, "--wide"]).well().into_text();
    assert!(wide.contains(command_line.trim_end()), "{wide}");
}

/// .NET Core 3.1 has no command that returns its command line.
#[test]
#[cfg(target_os = "linux")]
fn the_command_line_of_an_old_runtime_comes_from_the_system() {
    let directory = TempDir::new().unwrap();
    // More columns than a table can have.
    let name = "x".repeat(70_000);
    let (mut child, line) = fake_runtime(directory.path(), &["--runtime", "net31"], &name);
    let rows = rows_in(directory.path(), run_in(directory.path(), &["ps", "--json", "--timeout", LONG]));
    let row = rows.iter().find(|row| row["process_id"] == line["process_id"]).unwrap();
    assert_eq!(row["status"], "refused");
    let command_line = row["command_line"].as_str().unwrap();
    assert!(command_line.starts_with(&name) && command_line.ends_with("--runtime net31"), "{row}");
    assert_eq!(row["command_line_from"], "/proc");
    let text = run_in(directory.path(), &["ps", "--timeout", LONG]).well().into_text();
    let process_id = line["process_id"].to_string();
    let line = text.lines().find(|line| line.trim_start().starts_with(&process_id)).unwrap();
    assert!(line.contains("(refused)") && line.contains(" [/proc] x"), "{text}");
    let wide = run_in(directory.path(), &["ps", "--wide", "--timeout", LONG]).well().into_text();
    let end = format!(" [/proc] {command_line}");
    let line = wide.lines().find(|line| line.trim_start().starts_with(&process_id)).unwrap();
    assert!(line.ends_with(&end), "{wide}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts a fake runtime in a separate process, with `name` as its first argument. Returns the process and its first
/// line.
#[cfg(target_os = "linux")]
fn fake_runtime(directory: &Path, args: &[&str], name: &str) -> (Child, Value) {
    let mut command = tool(&[&["fake-runtime", "--dir", directory.to_str().unwrap()], args].concat());
    std::os::unix::process::CommandExt::arg0(&mut command, name);
    let mut child = command.env("TMPDIR", directory).stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // The fake runtime writes only one line.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}
