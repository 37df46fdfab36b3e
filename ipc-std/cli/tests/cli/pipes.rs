//! Tests of the tool on Windows, where runtimes listen at named pipes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::peer::Place;
use crate::tool::{finish, run, tool};

/// Starts the tool. Returns the process, its output and the first line of the output.
fn start(args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>, Value) {
    let mut child = tool(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let line = line(&mut stdout);
    (child, stdout, line)
}

fn line(stdout: &mut impl BufRead) -> Value {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
}

#[test]
fn a_runtime_is_found_by_its_process_id() {
    let (mut child, _stdout, fake) = start(&["fake-runtime", "--runtime", "net8"]);
    let process_id = fake["process_id"].to_string();
    assert_eq!(fake["socket"], format!(r"\\.\pipe\dotnet-diagnostic-{process_id}"));
    let info = run(&["info", &process_id, "--json"]).well().json();
    assert_eq!(info["clr_product_version"], "8.0.31");
    assert!(run(&["env", &process_id]).well().text().contains("HOME=/home/fake"));
    let place = Place::new();
    let file = place.file("out.nettrace").into_os_string().into_string().unwrap();
    let traced = run(&["trace", &process_id, "-o", &file, "--duration", "300ms", "--json"]).well().json();
    assert_eq!(traced["complete"], true);
    assert!(run(&["stats", &file]).well().text().contains("end:             complete"));
    // The fake runtime exits at the end of its input.
    drop(child.stdin.take());
    finish(child).well();
    run(&["info", &process_id]).fails(3, "there is no such process");
}

#[test]
fn a_missing_list_of_pipes_is_reported() {
    let text = run(&["ps", "--why"]).well().into_text();
    let is_reported = text.starts_with(r"\\.\pipe\ cannot be read: ");
    assert_eq!(is_reported, std::fs::read_dir(r"\\.\pipe\").is_err(), "{text}");
}

#[test]
fn a_process_without_a_runtime_has_no_pipe() {
    run(&["info", &std::process::id().to_string()]).fails(3, "has no diagnostic socket");
    run(&["info", "--socket", r"C:\a\file"]).fails(1, "not the name of a pipe");
}

#[test]
fn a_monitor_traces_from_the_first_event() {
    let place = Place::new();
    let port = place.path("port").into_os_string().into_string().unwrap();
    let short = port.strip_prefix(r"\\.\pipe\").unwrap();
    let file = place.file("{pid}.nettrace").into_os_string().into_string().unwrap();
    let args = ["monitor", "--json", "--listen", short, "--set", "SEEN=yes", "--trace", &file];
    // The duration counts from the start of the monitor. A runtime that arrives later is not traced, so it is long.
    let mut monitor = tool(&[&args[..], &["--duration", "5s"]].concat()).spawn().unwrap();
    let mut events = BufReader::new(monitor.stdout.take().unwrap());
    let (mut child, _stdout, fake) = start(&["fake-runtime", "--port", &format!("{short},suspend")]);
    for expected in ["arrived", "set", "tracing", "resumed"] {
        let event = line(&mut events);
        assert_eq!(
            (&event["event"], &event["process_id"]),
            (&expected.into(), &fake["process_id"]),
            "{event}"
        );
    }
    // The trace ends after the duration, and its file is complete then.
    assert_eq!(line(&mut events)["event"], "recorded");
    let file = file.replace("{pid}", &fake["process_id"].to_string());
    assert!(run(&["stats", &file]).text().contains("end:             complete"));
    drop(child.stdin.take());
    finish(child).well();
    // The tool ends with the trace, often before it can report that the runtime has left.
    assert!(monitor.wait().unwrap().success());
}

#[test]
fn a_monitor_reports_that_a_runtime_has_left() {
    let place = Place::new();
    let port = place.path("port").into_os_string().into_string().unwrap();
    let short = port.strip_prefix(r"\\.\pipe\").unwrap();
    let mut monitor = tool(&["monitor", "--json", "--listen", short]).spawn().unwrap();
    let mut events = BufReader::new(monitor.stdout.take().unwrap());
    let (mut child, _stdout, fake) = start(&["fake-runtime", "--port", &format!("{short},suspend")]);
    for expected in ["arrived", "resumed"] {
        assert_eq!(line(&mut events)["event"], expected);
    }
    drop(child.stdin.take());
    finish(child).well();
    let event = line(&mut events);
    assert_eq!((&event["event"], &event["process_id"]), (&"left".into(), &fake["process_id"]), "{event}");
    monitor.kill().unwrap();
    monitor.wait().unwrap();
}
