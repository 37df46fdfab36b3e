//! Files of `dotnet-ipc flame` against the readers and schemas of other projects.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::tool::{Ran, finish, run, which};
use crate::traces::{analysed, path};

/// Traces of one process and of several.
fn traces() -> [String; 2] {
    [analysed("net10-startup.nettrace"), path("gen-v6-onecollect-small.nettrace")]
}

fn finished(command: &mut Command) -> Ran {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().unwrap())
}

/// Writes a file for each trace, format and clock, and returns its name with the clock.
fn files(directory: &Path, formats: &[&str], clocks: &[&'static str]) -> Vec<(String, String, &'static str)> {
    let mut files = Vec::new();
    for trace in traces() {
        for format in formats {
            for clock in clocks {
                let file = directory.join(files.len().to_string()).to_str().unwrap().to_owned();
                // A trace of the operating system has no thread time.
                let ran = run(&["flame", &trace, "-o", &file, "--format", format, clock]);
                if ran.status == Some(0) {
                    files.push((file, trace.clone(), *clock));
                }
            }
        }
    }
    assert!(files.len() > clocks.len() * formats.len());
    files
}

#[test]
#[ignore = "needs Node, ajv and speedscope, which `.ci/run readers` installs"]
fn files_of_speedscope_have_its_schema() {
    let directory = TempDir::new().unwrap();
    let formats = ["speedscope"];
    let files = files(directory.path(), &formats, &["--wall", "--thread-time", "--event=all"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chromium/schema.mjs");
    let tools = std::env::var_os("READER_TOOLS").unwrap();
    let mut node = Command::new(which("node"));
    node.arg(&script).arg(&tools).args(files.iter().map(|(file, _, _)| file));
    finished(&mut node).well();
    // The check notices a file that has another form.
    let wrong = directory.path().join("wrong");
    fs::write(&wrong, r#"{"profiles":[{"type":"sampled"}]}"#).unwrap();
    let mut node = Command::new(which("node"));
    assert_eq!(finished(node.arg(&script).arg(&tools).arg(&wrong)).status, Some(1));
}

/// pprof checks that all references of a file lead somewhere, and prints its samples.
#[test]
#[ignore = "needs Go, which `.ci/run readers` installs"]
fn pprof_reads_its_files() {
    let directory = TempDir::new().unwrap();
    for (file, trace, clock) in
        files(directory.path(), &["pprof"], &["--wall", "--thread-time", "--event=all"])
    {
        let ran = finished(Command::new(which("go")).args(["tool", "pprof", "-raw", &file]));
        assert_eq!(ran.status, Some(0), "{ran:?}");
        let samples = ran.text().split_once("Samples:\n").unwrap().1.split_once("Locations\n").unwrap().0;
        let value = |line: &str| line.split_once(": ")?.0.trim().parse::<u64>().ok();
        let total: u64 = samples.lines().filter_map(value).sum();
        let report = run(&["report", &trace, clock, "--json"]).json();
        assert_eq!(report["total"], total, "{trace} {clock}");
        let has_processes = samples.contains("process:[");
        assert_eq!(has_processes, trace.contains("onecollect"), "{samples}");
    }
}
