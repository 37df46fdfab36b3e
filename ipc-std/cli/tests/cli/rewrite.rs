//! `dotnet-ipc rewrite`: copies of every recorded trace and of parts of one, and files that cannot be written.

use std::fs::{self, File, Permissions};
use std::io::Write;
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;

use nettrace::{self, Event, Metadata, SequencePoint, Stack, ThreadSequence, TraceWriter, Version};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::tool::{finish, run, run_with, tool, until};
use crate::traces::{expected_end, kinds, path, put, traces};

/// Returns a directory, and the path of a file in it.
fn output() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out.nettrace").to_str().unwrap().to_owned();
    (directory, file)
}

#[track_caller]
fn only_file(directory: &tempfile::TempDir, name: Option<&str>) {
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files, name.into_iter().collect::<Vec<_>>());
}

#[test]
fn rewriting_every_trace() {
    for (path, expected) in traces() {
        let (_, status) = expected_end(&expected);
        let source = run(&["stats", &path, "--json"]).json();
        for format in ["4", "6"] {
            let (directory, file) = output();
            let ran = run(&["rewrite", &path, "-o", &file, "--format", format, "--json"]);
            assert_eq!(ran.status, Some(status), "{path}: {ran:?}");
            let summary = ran.json();
            assert_eq!((&summary["events"], &summary["kept"]), (&expected["events"], &expected["events"]));
            assert_eq!(summary["complete"], json!(status == 0));
            assert_eq!(summary["bytes"], fs::metadata(&file).unwrap().len());
            only_file(&directory, Some("out.nettrace"));
            let stats = run(&["stats", &file, "--json"]).well().json();
            assert_eq!(stats["version"].to_string(), format);
            assert_eq!((&stats["events"], &stats["lost"]), (&expected["events"], &source["lost"]), "{path}");
            assert_eq!(kinds(&stats), kinds(&expected), "{path}");
        }
        // The copy of a trace that a runtime wrote has the same bytes.
        if path.contains("/gen-") && expected["version"] == 4 {
            let (_directory, file) = output();
            let ran = run(&["rewrite", &path, "-o", &file, "--format", "4"]);
            assert_eq!(ran.status, Some(0));
            assert!(fs::read(&file).unwrap() == fs::read(&path).unwrap(), "{path}");
        }
    }
}

/// Returns how many events a copy has that are not kept because they name code.
fn in_time(summary: &Value) -> usize {
    let [kept, names] = ["kept", "names"].map(|key| summary[key].as_u64().unwrap());
    usize::try_from(kept - names).unwrap()
}

#[test]
fn a_part_of_a_trace() {
    let source = path("gen-net10-small-mixed.nettrace");
    let all = run(&["events", &source, "--json"]).well().lines();
    let time = |event: &Value| event["time_ns"].as_i64().unwrap();
    let mut times: Vec<i64> = all.iter().map(time).collect();
    times.sort_unstable();
    let (from, to) = (times[100], times[300]);
    let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    // Events at exactly the times of `--from` and `--to` are kept.
    let (directory, file) = output();
    let provider = "Microsoft-Windows-DotNETRuntime";
    let args = ["--from", &seconds(from), "--to", &seconds(to), "--only", provider];
    let ran = run(&[&["rewrite", &source, "-o", &file], &args[..]].concat());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let expected: Vec<&Value> = all
        .iter()
        .filter(|event| (from..=to).contains(&time(event)) && event["provider"] == provider)
        .collect();
    assert!(expected.len() > 5 && expected.len() < 201, "{}", expected.len());
    let kept = run(&["events", &file, "--json"]).well().lines();
    assert_eq!(kept.iter().collect::<Vec<_>>(), expected);
    assert_eq!(run(&["stats", &file, "--json"]).well().json()["lost"], 0);

    // The same with dates: the trace began at 22:15:25.571.
    let stats: Value = serde_json::from_slice(&fs::read(format!("{source}.json")).unwrap()).unwrap();
    let utc: Vec<u64> =
        stats["trace"]["sync_utc"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let at = |second: u64, nanosecond: u64| {
        format!(
            "{}-{:02}-{:02}T{:02}:{:02}:{second:02}.{nanosecond:09}Z",
            utc[0], utc[1], utc[3], utc[4], utc[5]
        )
    };
    let cut = 1_200_000_000_u64;
    let (second, nanosecond) =
        (utc[6] + (utc[7] * 1_000_000 + cut) / 1_000_000_000, (utc[7] * 1_000_000 + cut) % 1_000_000_000);
    assert!(second < 60);
    for (option, keeps) in
        [("--from", (|ns, cut| ns >= cut) as fn(i64, i64) -> bool), ("--to", |ns, cut| ns <= cut)]
    {
        let ran =
            run(&["rewrite", &source, "-o", &file, "--overwrite", option, &at(second, nanosecond), "--json"])
                .well();
        let expected = times.iter().filter(|ns| keeps(**ns, i64::try_from(cut).unwrap())).count();
        assert!(expected > 0 && expected < times.len());
        assert_eq!(in_time(&ran.json()), expected);
    }
    for option in ["--from", "--to"] {
        let kept = if option == "--to" { 0 } else { times.len() };
        let ran =
            run(&["rewrite", &source, "-o", &file, "--overwrite", option, "1999-01-01T00:00:00Z", "--json"])
                .well();
        assert_eq!(in_time(&ran.json()), kept);
    }
    only_file(&directory, Some("out.nettrace"));
}

#[test]
fn command_lines_are_stripped() {
    let source = path("gen-net10-lab-small.nettrace");
    let command_line = |file: &str| {
        let events =
            run(&["events", file, "--json", "--only", "Microsoft-DotNETCore-EventPipe/1"]).well().lines();
        events[0]["fields"]["CommandLine"].as_str().unwrap().to_owned()
    };
    let secret = command_line(&source);
    assert!(!secret.is_empty());
    let (_directory, file) = output();
    let ran = run(&["rewrite", &source, "-o", &file, "--strip-command-line"]);
    assert_eq!(ran.status, Some(0));
    assert!(ran.stderr.contains("(142 of 142 events, command lines removed: 1) to "), "{ran:?}");
    assert_eq!(command_line(&file), "");
    let utf16: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let holds = |file: &str| fs::read(file).unwrap().windows(utf16.len()).any(|bytes| bytes == utf16);
    assert!(holds(&source) && !holds(&file));
}

#[test]
fn an_existing_file_is_replaced_only_with_overwrite() {
    let source = path("gen-net10-lab-small.nettrace");
    let (directory, file) = output();
    fs::write(&file, "before").unwrap();
    let ran = run(&["rewrite", &source, "-o", &file, "--json"]);
    assert_eq!((ran.status, &ran.error()["kind"]), (Some(1), &json!("io")), "{ran:?}");
    assert!(ran.error()["hint"].as_str().unwrap().contains("--overwrite"));
    assert_eq!(fs::read(&file).unwrap(), b"before");
    run(&["rewrite", &source, "-o", &file, "--overwrite", "--json"]).well();
    assert!(fs::read(&file).unwrap() == fs::read(&source).unwrap());
    only_file(&directory, Some("out.nettrace"));
}

#[test]
fn rewriting_through_pipes() {
    let source = fs::read(path("gen-net10-lab-small.nettrace")).unwrap();
    let mut child = tool(&["rewrite", "-", "-o", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = source.clone();
    thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == source);
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("Wrote 10.89 kB (142 of 142 events) to "));
}

#[test]
#[cfg(unix)]
fn a_failure_leaves_the_file_unchanged() {
    let source = path("gen-net10-lab-small.nettrace");
    let (directory, file) = output();
    fs::write(&file, "before").unwrap();
    let garbage = directory.path().join("garbage");
    fs::write(&garbage, "garbage").unwrap();
    for (input, output, status) in [
        ("/nowhere/x", file.as_str(), 1),
        (garbage.to_str().unwrap(), &file, 6),
        ("/dev/null", &file, 6),
        (&source, "/nowhere/x", 1),
        (&source, "/dev/full", 1),
    ] {
        let ran = run(&["rewrite", input, "-o", output, "--overwrite"]);
        assert_eq!((ran.status, ran.stderr.lines().count()), (Some(status), 1), "{input} {output}: {ran:?}");
    }
    fs::remove_file(&garbage).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"before");
    for args in [&["--format", "5"][..], &["--from", "yesterday"], &["--only", "A/-1"]] {
        assert_eq!(
            run(&[&["rewrite", &source, "-o", &file, "--overwrite"], args].concat()).status,
            Some(2),
            "{args:?}"
        );
    }
    only_file(&directory, Some("out.nettrace"));

    // A signal interrupts the command. Each signal that ends the tool removes the file.
    for signal in [Signal::TERM, Signal::QUIT, Signal::INT, Signal::HUP] {
        let mut child =
            tool(&["rewrite", "-", "-o", &file, "--overwrite"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&fs::read(&source).unwrap()[..6000]).unwrap();
        until("the temporary file never appeared", || fs::read_dir(directory.path()).unwrap().count() >= 2);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ran = finish(child);
        drop(stdin);
        assert_eq!(ran.status, None);
        only_file(&directory, Some("out.nettrace"));
        assert_eq!(fs::read(&file).unwrap(), b"before");
    }

    // The output is the input itself, through a link.
    fs::copy(&source, &file).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let ran =
        run(&["rewrite", &file, "-o", link.to_str().unwrap(), "--overwrite", "--only", "Lab-Workload/1"]);
    assert_eq!(ran.status, Some(0));
    assert!(link.is_symlink());
    assert_eq!(run(&["stats", &file, "--json"]).well().json()["events"], 12);
}

/// A file is created at the target of a link, and an existing file keeps its mode.
#[test]
#[cfg(unix)]
fn links_and_permissions_are_preserved() {
    let source = path("gen-net10-lab-small.nettrace");
    let (directory, file) = output();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let (link, next) = (directory.path().join("link"), inner.join("next"));
    std::os::unix::fs::symlink("inner/next", &link).unwrap();
    std::os::unix::fs::symlink("../out.nettrace", &next).unwrap();
    let rewrite = || {
        assert_eq!(run(&["rewrite", &source, "-o", link.to_str().unwrap(), "--overwrite"]).status, Some(0))
    };
    rewrite();
    assert!(link.is_symlink() && next.is_symlink());
    assert!(fs::read(&file).unwrap() == fs::read(&source).unwrap());
    // At most one of these modes is affected by the umask.
    for mode in [0o666, 0o640] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        rewrite();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
    }
    // A circle of links is an error.
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("link", &file).unwrap();
    assert_eq!(run(&["rewrite", &source, "-o", &file]).status, Some(1));
}

#[test]
#[cfg(unix)]
fn a_closed_output_is_not_an_error() {
    let source = path("gen-net10-lab-small.nettrace");
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    finish(tool(&["rewrite", &source, "-o", "-"]).stdout(OwnedFd::from(theirs)).spawn().unwrap()).well();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = finish(tool(&["rewrite", &source, "-o", "-"]).stdout(full).spawn().unwrap());
    assert_eq!((ran.status, ran.stderr.lines().count()), (Some(1), 1), "{ran:?}");
}

/// Traces with very long records and very many threads.
#[test]
fn traces_that_no_runtime_writes() {
    const THREADS: u32 = 60_000;
    let (mut buf, mut trace) = (vec![0; 2_000_000], Vec::new());
    let mut writer = TraceWriter::new(&nettrace::Trace::new(Version::V4), &mut buf).unwrap();
    let (stack, payload) = ([1; 200_000], [2; 200_000]);
    let event = Event { metadata_id: 1, sequence: 1, stack_id: 1, sorted: true, ..Event::default() };
    put!(trace, writer.describe(&Metadata::new(1, "Demo", 7, "")));
    put!(trace, writer.stack(&Stack { id: 1, bytes: &stack }));
    put!(trace, writer.event(&Event { payload: &payload, ..event }));
    // Events that are removed, and one lost event of each thread.
    for thread in 1..=THREADS {
        put!(trace, writer.event(&Event { capture_thread: thread.into(), metadata_id: 0, ..event }));
    }
    put!(trace, writer.sequence_point(&SequencePoint::default()));
    for thread in 1..=THREADS {
        put!(trace, writer.thread_sequence(&ThreadSequence { thread: thread.into(), sequence: 2 }));
    }
    trace.extend_from_slice(&writer.finish());
    let (_directory, file) = output();
    for (args, kept) in
        [(&[][..], THREADS + 1), (&["--only", "Demo"], 1), (&["--only", "Demo", "--format", "6"], 1)]
    {
        let ran = run_with(&[&["rewrite", "-", "-o", &file, "--overwrite"], args].concat(), trace.clone());
        assert_eq!((ran.status, ran.stderr.lines().count()), (Some(0), 1), "{ran:?}");
        let stats = run(&["stats", &file, "--json"]).well().json();
        assert_eq!((&stats["events"], &stats["lost"]), (&json!(kept), &json!(THREADS)), "{args:?}");
        assert_eq!(stats["stacks"], 1);
    }
}
