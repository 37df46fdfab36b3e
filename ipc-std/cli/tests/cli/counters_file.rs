//! `counters -o`: what happens to the file that is there, and to pipes.
use std::fs;
use std::path::Path;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};

use crate::counters::{recorded, running};
use crate::tool::{Ran, finish, run, tool, until};

/// Writes the counters of a trace to a file.
fn write(path: &Path, options: &[&str]) -> Ran {
    let trace = recorded("net8-meters.nettrace");
    let fixed = ["counters", &trace, "--format", "prometheus", "-o", path.to_str().unwrap()];
    run(&[&fixed[..], options].concat())
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_file_is_replaced_only_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.prom");
    write(&file, &[]).well();
    assert!(fs::read_to_string(&file).unwrap().starts_with("# HELP"));
    fs::write(&file, "old").unwrap();
    write(&file, &[]).fails(1, "exists already");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    write(&file, &["--overwrite"]).well();
    assert!(fs::read_to_string(&file).unwrap().starts_with("# HELP"));
    assert_eq!(names(folder.path()), ["m.prom"]);
}

/// A file that appears after the start is not one of this command.
#[cfg(unix)]
#[test]
fn a_file_that_appears_is_not_replaced() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), running());
    let file = folder.path().join("m.prom");
    let socket = runtime.path().to_str().unwrap();
    let fixed =
        ["counters", "--socket", socket, "Lab-Counters", "--format", "prometheus", "--interval", "1s"];
    let child = tool(&[&fixed[..], &["-o", file.to_str().unwrap()]].concat()).spawn().unwrap();
    until("no session starts", || !runtime.requests().is_empty());
    // The first text comes after an interval of a second.
    let created = fs::OpenOptions::new().write(true).create_new(true).open(&file);
    if created.is_err() {
        // The machine was so slow that the first text came before.
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        finish(child).well();
        return;
    }
    finish(child).fails(1, "exists already");
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
    assert_eq!(names(folder.path()), ["m.prom"]);
}

#[cfg(unix)]
#[test]
fn the_mode_stays() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    for expected in [0o600, 0o640, 0o666, 0o755] {
        let file = folder.path().join(format!("{expected:o}"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(expected)).unwrap();
        let owner = |path: &Path| fs::metadata(path).map(|found| (found.uid(), found.gid())).unwrap();
        let before = owner(&file);
        write(&file, &["--overwrite"]).well();
        assert_eq!((mode(&file), owner(&file)), (expected, before));
        assert!(fs::read_to_string(&file).unwrap().starts_with("# HELP"));
    }
    // Only root can give a file to another user.
    let file = folder.path().join("600");
    if std::os::unix::fs::chown(&file, Some(4_242), Some(4_243)).is_ok() {
        write(&file, &["--overwrite"]).well();
        let found = fs::metadata(&file).unwrap();
        assert_eq!((found.uid(), found.gid(), mode(&file)), (4_242, 4_243, 0o600));
    }
}

#[test]
fn what_cannot_be_written_is_found_at_the_start() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), running());
    let socket = runtime.path().to_str().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("missing/m.prom")] {
        let fixed = ["counters", "--socket", socket, "Lab-Counters", "--format", "prometheus"];
        run(&[&fixed[..], &["-o", path.to_str().unwrap()]].concat())
            .fails(1, &format!("cannot write {}", path.display()));
        assert!(runtime.requests().is_empty());
        write(&path, &["--overwrite"]).fails(1, "cannot write");
    }
    assert!(names(folder.path()).is_empty());
}

/// The interval has no text for a pipe without a reader. A reader that comes gets a whole one.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_blocks_nothing() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let (folder, runtime) = (tempfile::tempdir().unwrap(), running());
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (path, socket) = (pipe.to_str().unwrap(), runtime.path().to_str().unwrap());
    let fixed = ["counters", "--socket", socket, "Lab-Counters", "--format", "prometheus", "-o", path];
    // No process ever reads.
    let child = tool(&[&fixed[..], &["--duration", "2s"]].concat()).spawn().unwrap();
    finish(child).fails(1, "no process has read the pipe");
    // A signal ends the tool although no process reads.
    let before = runtime.requests().len();
    let child = tool(&fixed).spawn().unwrap();
    until("no session starts", || runtime.requests().len() > before);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    finish(child);
    // A reader gets a text and its end.
    let child = tool(&fixed).spawn().unwrap();
    let mut text = String::new();
    until("no text arrives", || {
        text = fs::read_to_string(&pipe).unwrap();
        text.contains("dotnet_lab_counters_poll{")
    });
    assert!(text.starts_with("# HELP") && text.ends_with('\n'), "{text}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    finish(child).well();
    // A trace is read once, so its text waits for a reader.
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    write(&pipe, &[]).well();
    assert!(reader.join().unwrap().starts_with("# HELP"));
}

/// A full disk leaves the text before, and no temporary file.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_does_not_fit_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.prom");
    fs::write(&file, "old").unwrap();
    let trace = recorded("net8-meters.nettrace");
    let mut command = crate::tool::program("sh");
    // The limit of the size of files stands for the disk: the write fails in the same way.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    command.args([
        "-c",
        script,
        crate::tool::TOOL,
        "counters",
        &trace,
        "--format",
        "prometheus",
        "--overwrite",
        "-o",
    ]);
    let found = command.arg(&file).output().unwrap();
    let error = String::from_utf8(found.stderr).unwrap();
    assert!(error.starts_with(&format!("error: cannot write {}", file.display())), "{error}");
    assert_eq!((found.status.code(), error.lines().count()), (Some(1), 1));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(names(folder.path()), ["m.prom"]);
}
