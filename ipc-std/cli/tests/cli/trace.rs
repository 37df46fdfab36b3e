//! `dotnet-ipc trace`: how a recording starts and ends, its file, and its request to the runtime.

use std::fs;
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ipc_proto::{Code, HResult};
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

#[cfg(unix)]
use crate::tool::terminal::OnTerminal;
use crate::tool::{Ran, TOOL, finish, program, run, tool, unhex, until};
use crate::traces::{expected_end, lossy, made, path, traces};

const COLLECT_TRACING_2: Code = Code(0x0203);
const COLLECT_TRACING_6: Code = Code(0x0207);
const RESUME_RUNTIME: Code = Code(0x0401);
const STOP_TRACING: Code = Code(0x0201);

/// Runs a command for the runtime at `socket`.
fn ask(socket: &Path, args: &[&str]) -> Ran {
    run(&[args, &["--socket", socket.to_str().unwrap()]].concat())
}

/// Returns a trace with one event, and with a block of an unknown kind that is larger than any buffer on the way.
fn stream() -> Vec<u8> {
    const LEN: u32 = 1_000_000;
    let mut stream = made(&[]);
    let end = stream.pop().unwrap();
    stream.extend(b"\x05\x05\x01\x02\0\0\0\0\0\0\0\x05\0\0\0Novel\x06\x0e");
    stream.extend(LEN.to_le_bytes());
    stream.extend((0..LEN).map(|i| (i ^ (i >> 8)).to_le_bytes()[0]));
    stream.extend([6, end]);
    stream
}

/// Starts a runtime that sends this stream as the trace of every session.
fn traced(profile: Profile, stream: Vec<u8>) -> FakeRuntime {
    let runtime = FakeRuntime::start(profile).unwrap();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Trace(stream.clone()));
    runtime
}

fn asked(runtime: &FakeRuntime, code: Code) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(code))
}

/// Returns a directory, and the path of a trace in it.
fn output() -> (TempDir, PathBuf, String) {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.nettrace");
    let text = file.to_str().unwrap().to_owned();
    (directory, file, text)
}

#[test]
fn a_trace_ends_with_its_duration() {
    let runtime = traced(Profile::net10(), stream());
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--duration", "0.2", "--json"]).well();
    assert!(fs::read(&file).unwrap() == stream());
    let summary = ran.json();
    let keys: Vec<_> = summary.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["file", "bytes", "events", "lost", "seconds", "complete", "session_id", "command"]);
    assert_eq!((&summary["file"], &summary["bytes"]), (&json!(path), &json!(stream().len())));
    assert_eq!((&summary["complete"], &summary["command"]), (&json!(true), &json!("CollectTracing2")));
    assert_eq!((&summary["events"], &summary["lost"]), (&json!(1), &json!(0)));
    assert!(summary["seconds"].as_f64().unwrap() >= 0.2 && summary["session_id"].is_u64());
}

#[test]
fn an_existing_file_is_replaced_only_with_overwrite() {
    let runtime = traced(Profile::net10(), stream());
    let (_directory, file, path) = output();
    fs::write(&file, vec![7; 2_000_000]).unwrap();
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--duration", "0", "--json"]);
    assert_eq!((ran.status, &ran.error()["kind"]), (Some(1), &json!("io")), "{ran:?}");
    assert!(ran.error()["hint"].as_str().unwrap().contains("--overwrite"));
    assert_eq!(fs::read(&file).unwrap(), vec![7; 2_000_000]);
    assert!(!asked(&runtime, COLLECT_TRACING_2));

    let ran = ask(runtime.path(), &["trace", "-o", &path, "--duration", "0", "--overwrite"]);
    assert_eq!((ran.status, ran.text(), ran.stderr.lines().count()), (Some(0), "", 1), "{ran:?}");
    assert!(fs::read(&file).unwrap() == stream(), "the old contents were longer");
    let line = ran.stderr.trim_end();
    assert!(line.starts_with("Wrote 1.00 MB (") && line.ends_with(&path), "{line}");
    assert!(line.contains(" s, 1 events, 0 lost) to "), "{line}");
}

#[test]
fn without_a_name_the_file_is_named_after_the_process() {
    let runtime = traced(Profile { process_id: 4242, ..Profile::net10() }, stream());
    let directory = TempDir::new().unwrap();
    let socket = runtime.path().to_str().unwrap();
    let mut command = tool(&["trace", "--socket", socket, "--duration", "0", "--json"]);
    let ran = finish(command.current_dir(directory.path()).spawn().unwrap()).well();
    let files: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    let [name] = &*files else { panic!("{files:?}") };
    assert_eq!(ran.json()["file"], name.to_str().unwrap());
    let parts: Vec<&str> = name.to_str().unwrap().split('_').collect();
    let [program, process_id, date, time] = &*parts else { panic!("{parts:?}") };
    assert_eq!((*program, *process_id, date.len()), ("Fake", "4242", 8));
    assert_eq!((time.len(), &time[6..]), (15, ".nettrace"));
    assert!(date.chars().chain(time[..6].chars()).all(|c| c.is_ascii_digit()), "{name:?}");
}

#[test]
fn events_are_counted_while_they_are_recorded() {
    for (path, expected) in traces() {
        // Only traces that a runtime sent, with their end.
        if !path.contains("/gen-") || expected["version"] != 4 || expected_end(&expected).0 != "complete" {
            continue;
        }
        let runtime = traced(Profile::net8(), fs::read(&path).unwrap());
        let (_directory, _, output) = output();
        let ran = ask(runtime.path(), &["trace", "-o", &output, "--duration", "0", "--json"]).well();
        let counts = ran.json();
        assert_eq!([&counts["events"], &counts["lost"]], [&expected["events"], &json!(0)], "{path}");
        assert_eq!(expected["dropped_strict"], 0, "{path}");
    }
}

#[test]
fn lost_events_are_reported_with_advice() {
    let runtime = traced(Profile::net8(), lossy());
    let (_directory, file, path) = output();
    let args = ["trace", "-o", &path, "--duration", "0", "--buffer", "3"];
    let ran = ask(runtime.path(), &args);
    let [line, note] = &*ran.stderr.lines().collect::<Vec<_>>() else { panic!("{ran:?}") };
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(line.contains(" s, 3 events, 6 lost) to "), "{line}");
    let advice = "they were larger than 64 KiB, which no runtime records";
    assert!(note.starts_with("note: 6 of 9 events were lost") && note.ends_with(advice), "{note}");
    assert!(fs::read(&file).unwrap() == lossy());

    let ran = ask(runtime.path(), &[&args[..], &["--overwrite", "--json"]].concat());
    let counts = ran.json();
    assert_eq!(
        [&counts["events"], &counts["lost"], &counts["complete"]],
        [&json!(3), &json!(6), &json!(true)]
    );
    assert!(ran.error()["note"].as_str().unwrap().ends_with(advice), "{ran:?}");
}

#[test]
fn a_trace_that_cannot_be_parsed_is_recorded_in_full() {
    let garbage = b"garbage ".repeat(20_000);
    for stream in [[&garbage[..], &stream()].concat(), [&stream()[..40], &garbage, b"\x06\x01"].concat()] {
        let runtime = traced(Profile::net8(), stream.clone());
        let (_directory, file, path) = output();
        let ran = ask(runtime.path(), &["trace", "-o", &path, "--duration", "0.2", "--json"]);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        assert!(fs::read(&file).unwrap() == stream);
        let summary = ran.json();
        assert_eq!((&summary["bytes"], &summary["complete"]), (&json!(stream.len()), &json!(true)));
        assert!(summary["events"].is_null() && summary["lost"].is_null(), "{summary}");
        let note = ran.error()["note"].as_str().unwrap().to_owned();
        assert!(note.starts_with("the events cannot be counted: the trace is corrupt at byte"), "{note}");
    }
}

#[test]
#[cfg(unix)]
fn a_trace_ends_with_a_signal() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let runtime = traced(Profile::net8(), stream());
        let (_directory, file, path) = output();
        let socket = runtime.path().to_str().unwrap();
        let child = tool(&["trace", "--json", "-o", &path, "--socket", socket]).spawn().unwrap();
        until("the file never has its bytes", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(finish(child).well().json()["complete"], true);
        assert!(fs::read(&file).unwrap() == stream());
    }
}

/// A progress bar fills its line. The terminal echoes Ctrl-C as `^C` after it, which must not begin another line.
#[test]
#[cfg(unix)]
fn the_progress_leaves_room_for_the_echo_of_ctrl_c() {
    let runtime = traced(Profile::net8(), stream());
    let (_directory, _, path) = output();
    let args = ["trace", "-o", &path, "--socket", runtime.path().to_str().unwrap()];
    let mut terminal = OnTerminal::start(&args, 100);
    let before = terminal.wait_for("Recording: ");
    let child = terminal.child.take().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let after = terminal.wait_for("Wrote ");
    assert_eq!(finish(child).status, Some(0));
    let lines = console::strip_ansi_codes(&format!("{before}Recording: {after}")).into_owned();
    let columns = lines.split(['\r', '\n']).map(|line| line.chars().count());
    assert_eq!(columns.max(), Some(98), "{lines:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_ignored_signal_stays_ignored() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let trace =
        tool(&["trace", "-o", &path, "--timeout", "1s", "--socket", runtime.path().to_str().unwrap()]);
    // The shell makes the tool ignore HUP, as nohup does.
    let mut shell = program("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(trace.get_program()).args(trace.get_args());
    let child = shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the file never has its bytes", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // INT was the first signal that was not ignored: the tool waits for the end until the deadline. A second signal
    // would have ended it immediately.
    assert_eq!(finish(child).status, Some(4));
}

/// As shells without job control start `command &`.
#[test]
#[cfg(target_os = "linux")]
fn a_background_process_states_which_signal_ends_it() {
    let runtime = crate::counters::running();
    for command in [&["events"][..], &["counters"], &["monitor", "--", "true"]] {
        let socket = ["--socket", runtime.path().to_str().unwrap()];
        let socket = if command[0] == "monitor" { &[][..] } else { &socket };
        let command = tool(&[command, socket].concat());
        let mut shell = program("sh");
        shell
            .args(["-c", "trap '' INT; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args());
        let mut child =
            shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
        let note = notes.find_map(|note| note.ok().filter(|note| note.contains("ignores"))).unwrap();
        let kill = format!(
            "this process ignores Ctrl-C (SIGINT), as background commands of scripts do: `kill {}` ",
            child.id()
        );
        assert!(note.contains(&kill), "{note}");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_trace_ends_properly_if_the_runtime_cannot_be_resumed() {
    let runtime = traced(Profile::net8(), stream());
    runtime.on(Code(0x0401), |_| Response::Refuse(HResult::FAIL));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path]);
    assert_eq!(ran.status, Some(5), "{ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
    assert!(fs::read(&file).unwrap() == stream());
}

#[test]
#[cfg(unix)]
fn a_second_signal_ends_the_tool() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let socket = runtime.path().to_str().unwrap();
    let mut child = tool(&["trace", "-o", &path, "--socket", socket]).spawn().unwrap();
    until("the file never has its bytes", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    until("the command never arrives", || asked(&runtime, STOP_TRACING));
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(notes.any(|note| note.unwrap().contains("a second signal gives up")));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(finish(child).status, None);
    assert_eq!(fs::metadata(&file).unwrap().len(), 1000);
}

#[test]
#[cfg(unix)]
fn a_signal_before_the_trace_leaves_nothing() {
    for options in [&[][..], &["--names-first"]] {
        let runtime = FakeRuntime::start(Profile::net8()).unwrap();
        runtime.set_fault(Fault::Silent);
        let (_directory, file, path) = output();
        let socket = runtime.path().to_str().unwrap();
        let child = tool(&[&["trace", "-o", &path, "--socket", socket], options].concat()).spawn().unwrap();
        until("the command never arrives", || asked(&runtime, COLLECT_TRACING_2));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(finish(child).status, None);
        assert!(!file.exists(), "{options:?}");
    }
}

#[test]
fn a_trace_to_standard_output() {
    let runtime = traced(Profile::net8(), stream());
    let ran = ask(runtime.path(), &["trace", "-o", "-", "--duration", "200ms", "--json"]);
    assert_eq!(ran.status, Some(0));
    assert!(ran.stdout == stream());
    assert_eq!(ran.error()["file"], "-");
}

#[test]
#[cfg(unix)]
fn a_closed_pipe_stops_the_trace() {
    let runtime = traced(Profile::net8(), stream());
    let socket = runtime.path().to_str().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let mut command = tool(&["trace", "-o", "-", "--socket", socket]);
    let ran = finish(command.stdout(OwnedFd::from(theirs)).spawn().unwrap());
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("cannot write standard output"), "{ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
}

#[cfg(target_os = "linux")]
#[test]
#[cfg(unix)]
fn a_full_disk_stops_the_trace() {
    let runtime = traced(Profile::net8(), stream());
    let ran = ask(runtime.path(), &["trace", "-o", "/dev/full"]);
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("error: cannot write /dev/full"), "{ran:?}");
    assert!(ran.stderr.starts_with("Wrote 0 B ("), "only bytes in the file count: {ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
}

/// A disk that gets full during a write. Here, a limit for the length of files has this effect.
#[test]
#[cfg(unix)]
fn only_bytes_in_the_file_are_reported() {
    let runtime = traced(Profile::net8(), stream());
    let (_directory, file, path) = output();
    let script = "trap '' XFSZ; ulimit -f 9; exec \"$0\" \"$@\"";
    let socket = runtime.path().to_str().unwrap();
    let args = ["-c", script, TOOL, "trace", "-o", &path, "--json", "--socket", socket];
    let mut limited = Command::new("sh");
    limited.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = finish(limited.spawn().unwrap());
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(1), &json!("io")), "{ran:?}");
    let len = fs::metadata(&file).unwrap().len();
    assert!((1000..100_000).contains(&len), "{len}");
    assert_eq!((&ran.json()["bytes"], &ran.json()["complete"]), (&json!(len), &json!(false)));
    assert!(fs::read(&file).unwrap() == stream()[..usize::try_from(len).unwrap()]);
}

#[test]
fn a_name_that_is_too_long_is_named_as_the_reason() {
    let runtime = traced(Profile::net8(), stream());
    let (directory, ..) = output();
    let path = directory.path().join("x".repeat(300));
    let ran = ask(runtime.path(), &["trace", "-o", path.to_str().unwrap(), "--json"]);
    assert_eq!((ran.status, &ran.error()["kind"]), (Some(1), &json!("io")), "{ran:?}");
    #[cfg(unix)]
    assert!(ran.error()["hint"].as_str().unwrap().starts_with("choose a shorter path"), "{ran:?}");
}

#[test]
fn a_trace_that_cannot_be_written_is_not_started() {
    let runtime = traced(Profile::net8(), stream());
    let ran = ask(runtime.path(), &["trace", "-o", "/nowhere/x.nettrace"]);
    assert_eq!(ran.status, Some(1));
    // A connection without a request is possible.
    assert!(runtime.requests().iter().all(|request| request.bytes.is_empty()));
}

#[test]
fn a_session_that_every_runtime_refuses_is_not_requested() {
    let runtime = traced(Profile::net10(), stream());
    let (_directory, file, name) = output();
    let providers: Vec<String> = (0..1_001).map(|n| format!("P{n}")).collect();
    let wished: Vec<&str> = providers.iter().flat_map(|name| ["--provider", name]).collect();
    let socket = runtime.path().to_str().unwrap();
    let args = [&["trace", "--socket", socket, "-o", &name], &wished[..]].concat();
    let ran = run(&[&args[..], &["--json"]].concat());
    assert_eq!((ran.status, ran.text()), (Some(2), ""), "{ran:?}");
    let error = ran.error();
    assert_eq!((&error["kind"], &error["command"]), (&json!("usage"), &json!("CollectTracing2")));
    assert!(error["error"].as_str().unwrap().contains("is not sent"), "{ran:?}");
    // A connection without a request is possible.
    assert!(runtime.requests().iter().all(|request| request.bytes.is_empty()));
    assert!(!file.exists());
}

#[test]
fn a_trace_that_cannot_start_leaves_the_file_unchanged() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    runtime.on(COLLECT_TRACING_2, |_| Response::Refuse(HResult::FAIL));
    let (_directory, file, path) = output();
    assert_eq!(ask(runtime.path(), &["trace", "-o", &path]).status, Some(5));
    assert!(!file.exists());
    fs::write(&file, "of old").unwrap();
    assert_eq!(ask(runtime.path(), &["trace", "-o", &path, "--overwrite"]).status, Some(5));
    assert_eq!(fs::read(&file).unwrap(), b"of old");
}

#[test]
fn an_incomplete_trace_is_kept() {
    const ANSWER: usize = 28;
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::CloseAfter(ANSWER + 1000));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--json"]);
    assert_eq!(ran.status, Some(7), "{ran:?}");
    assert_eq!(fs::read(&file).unwrap(), stream()[..1000]);
    assert_eq!((&ran.json()["complete"], &ran.json()["bytes"]), (&json!(false), &json!(1000)));
    let error = ran.error();
    assert_eq!(error["kind"], "gone");
    assert!(error["error"].as_str().unwrap().starts_with("trace incomplete: the process exited"), "{error}");
}

#[test]
fn the_exit_of_the_process_ends_its_trace() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let session_id = [7; 8];
    let answer = [b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0", &session_id[..], &stream()].concat();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Raw(answer.clone()));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("note: the process exited"), "{ran:?}");
    assert!(fs::read(&file).unwrap() == stream());
}

#[test]
fn bytes_after_the_end_of_a_trace_are_no_exit() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let stream = [stream(), b"more".to_vec()].concat();
    let answer = [b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0", &[7; 8][..], &stream].concat();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Raw(answer.clone()));
    let (_directory, file, path) = output();
    let ran = ask(runtime.path(), &["trace", "-o", &path, "--json"]);
    assert_eq!((ran.status, &ran.json()["complete"]), (Some(0), &json!(true)), "{ran:?}");
    assert!(ran.stderr.contains("bytes follow the end") && !ran.stderr.contains("exited"), "{ran:?}");
    assert!(fs::read(&file).unwrap() == stream);
}

#[test]
fn a_trace_that_never_ends_is_a_timeout() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let args = ["trace", "-o", &path, "--duration", "0", "--overwrite", "--timeout"];
    // On a busy machine, the start can need more time than the first timeouts.
    let has_timed_out = |timeout| {
        let ran = ask(runtime.path(), &[&args[..], &[timeout]].concat());
        assert_eq!(ran.status, Some(4), "{ran:?}");
        ran.stderr.contains("the end of the trace")
    };
    assert!(["500ms", "5s", "1m"].into_iter().any(has_timed_out));
    assert_eq!(fs::metadata(&file).unwrap().len(), 1000);
}

#[test]
#[cfg(unix)]
fn a_stop_that_cannot_be_sent_is_an_error() {
    let runtime = traced(Profile::net8(), stream());
    runtime.set_fault(Fault::StallStream(1000));
    let (_directory, file, path) = output();
    let socket = runtime.path().to_str().unwrap();
    let child = tool(&["trace", "-o", &path, "--timeout", "2s", "--socket", socket]).spawn().unwrap();
    until("the file never has its bytes", || fs::metadata(&file).is_ok_and(|file| file.len() == 1000));
    fs::remove_file(runtime.path()).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ran = finish(child);
    assert_eq!(ran.status, Some(3), "{ran:?}");
    assert_eq!(fs::metadata(&file).unwrap().len(), 1000);
}

#[test]
fn a_suspended_runtime_is_resumed() {
    let (_directory, file, path) = output();
    let args = ["trace", "-o", &path, "--overwrite", "--duration", "200ms", "--json"];
    let runtime = traced(Profile { suspended: true, ..Profile::net8() }, stream());
    let ran = ask(runtime.path(), &[&args[..], &["--no-resume"]].concat());
    assert!(runtime.is_suspended());
    // A session that is stopped before the runtime is resumed has no bytes.
    assert_eq!((ran.status, ran.json()["bytes"].as_u64()), (Some(1), Some(0)), "{ran:?}");
    ask(runtime.path(), &args).well();
    assert!(!runtime.is_suspended());
    assert!(fs::read(&file).unwrap() == stream());

    let old = traced(Profile::net31(), stream());
    ask(old.path(), &args).well();
    assert!(asked(&old, RESUME_RUNTIME), "that it does not know the command is no error");
}

/// Returns the request that starts a trace with these arguments.
fn request(runtime: &FakeRuntime, args: &[&str]) -> Vec<u8> {
    let (_directory, _, path) = output();
    let before = runtime.requests().len();
    let ran = ask(runtime.path(), &[&["trace", "-o", &path, "--duration", "0"], args].concat());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    runtime.requests()[before].bytes.clone()
}

/// Returns a message of the test data.
fn recorded(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/messages").join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines().flat_map(|line| unhex(line.split('#').next().unwrap())).collect()
}

#[test]
fn requests_are_those_of_dotnet_trace() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for (args, name) in [
        (&[][..], "CollectTracing2.default-profile.request.hex"),
        (&["--profile", "gc-verbose"], "CollectTracing2.gc-verbose.request.hex"),
        (&["--profile", "gc-collect"], "CollectTracing4.gc-collect.request.hex"),
        (&["--profile", "database"], "CollectTracing2.database.request.hex"),
        (
            &["--profile", "dotnet-common", "--profile", "dotnet-sampled-thread-time"],
            "CollectTracing2.default-profile.request.hex",
        ),
        (
            &["--profile", "dotnet-common,dotnet-sampled-thread-time"],
            "CollectTracing2.default-profile.request.hex",
        ),
        (
            &["--buffer", "16", "--provider", "Microsoft-Windows-DotNETRuntime:8001:verbose"],
            "CollectTracing2.clrevents.request.hex",
        ),
        (
            &["--buffer", "16", "--clr-events", "gc+exception", "--clr-event-level", "verbose"],
            "CollectTracing2.clrevents.request.hex",
        ),
        (
            &["--buffer", "16", "--provider", "Microsoft-Windows-DotNETRuntime:GC+exception:5"],
            "CollectTracing2.clrevents.request.hex",
        ),
        (
            &[
                "--no-rundown",
                "--provider",
                "Lab-Workload:0x10:5,System.Runtime:0:4:EventCounterIntervalSec=1;A=\"x;y\"",
            ],
            "CollectTracing2.quoted-arguments.request.hex",
        ),
        (
            &[
                "--no-rundown",
                "--provider",
                "Lab-Workload:0x10:5",
                "--provider",
                "System.Runtime:0:4:EventCounterIntervalSec=1;A=\"x;y\"",
            ],
            "CollectTracing2.quoted-arguments.request.hex",
        ),
        (
            &["--provider", "System.Diagnostics.Metrics:2::Metrics=Lab.Meter;SessionId=x"],
            "CollectTracing2.metrics.request.hex",
        ),
    ] {
        assert_eq!(request(&runtime, args), recorded(name), "{args:?}");
    }
}

#[test]
fn rundown_keywords_need_a_newer_runtime() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let (_directory, _, path) = output();
    let args = ["trace", "-o", &path, "--duration", "0", "--profile", "gc-collect"];
    let ran = ask(runtime.path(), &args);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("note: a rundown selected by keywords needs .NET 9"), "{ran:?}");
    let ran = ask(runtime.path(), &[&args[..], &["--no-rundown"]].concat());
    assert!(!ran.stderr.contains("note:"), "{ran:?}");
}

#[test]
fn unknown_keywords_and_levels_are_usage_errors() {
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    for (args, words) in [
        (&["--provider", &format!("{RUNTIME}:gc+nothing")][..], "unknown keyword \"nothing\""),
        (&["--provider", &format!("A,{RUNTIME}:gc:loud")], "unknown level \"loud\""),
        (&["--provider", "System.Runtime:gc"], "not hexadecimal"),
        (&["--provider", "A,"], "a provider needs a name"),
        (&["--clr-events", "gc,jit"], "unknown keyword \"gc,jit\""),
        (&["--clr-events", "gc", "--clr-event-level", "9"], "unknown level \"9\""),
        (&["--clr-event-level", "5"], "--clr-events"),
        (&["--rundown-keyword", "gc"], "not hexadecimal"),
    ] {
        run(&[&["trace", "1"], args].concat()).fails(2, words);
    }
}

#[test]
fn an_event_ends_the_trace() {
    let trace = fs::read(path("gen-net10-small-mixed.nettrace")).unwrap();
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let stream = trace.clone();
    runtime.on(Code(0x0203), move |_| Response::Trace(stream.clone()));
    let folder = tempfile::tempdir().unwrap();
    let (socket, file) = (runtime.path().to_str().unwrap(), folder.path().join("until.nettrace"));
    let args = ["trace", "--socket", socket, "-o", file.to_str().unwrap(), "--until"];
    // Without --duration, only the event ends the command: the fake runtime does not end the trace before it is
    // stopped.
    for until in [
        "Microsoft-Windows-DotNETRuntime/2",
        "Microsoft-Windows-DotNETRuntime/GCEnd",
        "microsoft-windows-dotnetruntime",
    ] {
        let ran = run(&[&args[..], &[until, "--overwrite"]].concat());
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert!(!ran.stderr.contains("exited"), "{}", ran.stderr);
        assert_eq!(fs::read(&file).unwrap(), trace);
    }
    // The trace is complete, but the command fails: a command after `&&` should run only after the event.
    fs::remove_file(&file).unwrap();
    let ran = run(&[&args[..], &["Microsoft-Windows-DotNETRuntime/9999", "--duration", "200ms"]].concat());
    let message = "error: 'Microsoft-Windows-DotNETRuntime/9999' did not arrive\n";
    assert!(ran.status == Some(4) && ran.stderr.ends_with(message), "{ran:?}");
    assert_eq!(fs::read(&file).unwrap(), trace);
    let ran = run(&[&args[..], &["Other", "--overwrite"]].concat());
    ran.fails(2, "the provider Other of --until is not enabled");
}

/// Starts a runtime of .NET 11, whose sessions send this trace.
fn net_11() -> FakeRuntime {
    let runtime =
        FakeRuntime::start(Profile { clr_product_version: "11.0.0".to_owned(), ..Profile::net10() }).unwrap();
    runtime.on(COLLECT_TRACING_6, |_| Response::Trace(stream()));
    runtime
}

/// `auto` blocks only where the buffer does not fill, and says what it does.
#[test]
fn automatic_buffering_says_what_it_does() {
    let (new, old) = (net_11(), traced(Profile::net10(), stream()));
    old.on(Code(0x0205), |_| Response::Trace(stream()));
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    for (runtime, args, mode, why) in [
        (&new, &["--profile", "gc-collect"][..], "block", "only collections are recorded"),
        (&new, &["--clr-events", "gc", "--no-rundown"], "block", "only collections are recorded"),
        (
            &new,
            &["--clr-events", "gc", "--clr-event-level", "5"],
            "drop",
            "more than collections is recorded",
        ),
        (
            &new,
            &["--clr-events", "gc", "--clr-event-level", "logalways"],
            "drop",
            "more than collections is recorded",
        ),
        (&new, &["--provider", RUNTIME], "drop", "more than collections is recorded"),
        (&new, &["--profile", "gc-collect,database"], "drop", "more than collections is recorded"),
        (&new, &[], "drop", "more than collections is recorded"),
        (&old, &["--profile", "gc-collect"], "drop", "blocking instead of dropping needs .NET 11"),
    ] {
        let (_directory, _, path) = output();
        let args = [&["trace", "-o", &path, "--duration", "0", "--buffering", "auto"], args].concat();
        let before = runtime.requests().len();
        let ran = ask(runtime.path(), &args);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        assert!(ran.stderr.contains(&format!("note: buffering is {mode}: {why}\n")), "{args:?}: {ran:?}");
        let blocks =
            runtime.requests()[before..].iter().any(|request| request.code() == Some(COLLECT_TRACING_6));
        assert_eq!(blocks, mode == "block" || why.contains("needs"), "{args:?}");
        let ran = ask(runtime.path(), &[&args[..], &["--json", "--overwrite"]].concat());
        assert_eq!(ran.json()["buffering"], mode, "{args:?}");
    }
    // The default drops without a note.
    let (_directory, _, path) = output();
    let ran = ask(new.path(), &["trace", "-o", &path, "--duration", "0", "--json"]);
    assert!(!format!("{ran:?}").contains("buffering"), "{ran:?}");
    let args = ["trace", "-o", &path, "--duration", "0", "--overwrite", "--buffering", "block"];
    assert!(!ask(new.path(), &args).stderr.contains("buffering"));
    ask(old.path(), &args).fails(5, "blocking instead of dropping needs .NET 11");
}

/// A stopped tool would make the threads of the process wait. Ctrl-Z ends the session instead.
#[test]
#[cfg(unix)]
fn a_session_that_blocks_ends_instead_of_stopping() {
    let runtime = net_11();
    let (_directory, file, path) = output();
    for (mode, code) in [("block", COLLECT_TRACING_6), ("auto", COLLECT_TRACING_6)] {
        let args = ["trace", "-o", &path, "--overwrite", "--profile", "gc-collect", "--buffering", mode];
        let child =
            tool(&[&args[..], &["--socket", runtime.path().to_str().unwrap()]].concat()).spawn().unwrap();
        until("the trace never starts", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        kill_process(Pid::from_child(&child), Signal::TSTP).unwrap();
        assert_eq!(finish(child).status, Some(0));
        assert!(asked(&runtime, code));
        assert!(fs::read(&file).unwrap() == stream());
        fs::remove_file(&file).unwrap();
    }
}
