//! A full disk, a limit of files and a lack of memory leave one sentence, an exit status and no temporary file, and an
//! output without a reader is not the arrival of an event.
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Profile, Response};

use crate::tool::{Ran, TOOL, finish, program, run, tool};
use crate::traces::analysed;

/// A running process, and a folder for outputs.
struct Lab {
    runtime: FakeRuntime,
    folder: tempfile::TempDir,
}

fn startup() -> String {
    analysed("net10-startup.nettrace")
}

impl Lab {
    fn new() -> Self {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        let trace = fs::read(startup()).unwrap();
        for code in 0x0202..=0x0206 {
            let trace = trace.clone();
            runtime.on(Code(code), move |_| Response::Trace(trace.clone()));
        }
        Self { runtime, folder: tempfile::tempdir().unwrap() }
    }

    /// Replaces the words `SOCKET`, `TRACE`, `COUNTERS` and `OUT` of a command line, which is divided at spaces.
    fn args(&self, command: &str) -> Vec<String> {
        let counters = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters");
        let path = |path: PathBuf| path.to_str().unwrap().to_owned();
        let word = |word: &str| match word {
            "SOCKET" => path(self.runtime.path().to_owned()),
            "TRACE" => startup(),
            "COUNTERS" => path(counters.join("net10-shared.nettrace")),
            _ if word.starts_with("OUT") => path(self.folder.path().join(word)),
            _ => word.to_owned(),
        };
        command.split(' ').map(word).collect()
    }

    /// Returns a command that runs the tool in a shell, after this part of a script.
    fn limited(&self, script: &str, command: &str) -> Command {
        let mut shell = program("sh");
        shell.args(["-c", &format!("ulimit -c 0; {script}; exec \"$0\" \"$@\""), TOOL]);
        shell.args(self.args(command)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }

    /// Returns the files in the folder.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut files: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect();
        files.sort();
        files
    }
}

/// Commands whose results are on standard output.
const TO_STDOUT: &[&str] = &[
    "--help",
    "--version",
    "events --help",
    "ps",
    "ps --json",
    "info --socket SOCKET",
    "env --socket SOCKET",
    "stack --socket SOCKET",
    "top --socket SOCKET --duration 100ms",
    "counters COUNTERS",
    "counters COUNTERS --csv",
    "counters COUNTERS --json",
    "counters COUNTERS --format prometheus",
    "counters COUNTERS --format otlp-json",
    "eventpipe-env",
    "list-profiles",
    "events TRACE",
    "events TRACE --json",
    "events TRACE --count-by name",
    "events --socket SOCKET --profile dotnet-sampled-thread-time",
    "trace --socket SOCKET -o - --duration 100ms",
    "stats TRACE",
    "report TRACE",
    "flame TRACE -o - --format folded",
    "flame TRACE -o - --format html",
    "jit TRACE --csv",
    "diagnose TRACE",
    "rewrite TRACE -o -",
    "completions bash",
    "demo",
    "fake-runtime",
    "find 1",
    "decode 444f544e45545f4950435f56310014000400000000",
];

#[test]
fn a_full_standard_output() {
    let lab = Lab::new();
    let mut wrong = Vec::new();
    for command in TO_STDOUT {
        let args = lab.args(command);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = finish(
            tool(&args).env("TMPDIR", lab.runtime.path().parent().unwrap()).stdout(full).spawn().unwrap(),
        );
        let errors = ran
            .stderr
            .lines()
            .filter(|line| !line.starts_with("note: ") && !line.starts_with("Wrote 0 B"))
            .collect::<Vec<_>>();
        let is_right = matches!(*errors, [error] if error.contains("No space left on device"));
        if ran.status != Some(1) || !is_right {
            wrong.push(format!("{command}: {ran:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Commands that write files, and the files that remain: of files that are useful in parts, the beginning.
const TO_FILES: &[(&str, &[&str])] = &[
    ("trace --socket SOCKET -o OUT --duration 100ms", &["OUT"]),
    ("flame TRACE -o OUT.html", &[]),
    ("flame TRACE -o OUT.folded", &[]),
    ("convert TRACE -o OUT.speedscope.json", &[]),
    ("convert TRACE -o OUT.pb.gz", &[]),
    ("rewrite TRACE -o OUT", &[]),
    ("counters COUNTERS --format prometheus -o OUT", &[]),
    ("info --socket SOCKET --wire-log OUT", &["OUT"]),
];

/// A limit of the length of files is a signal by default, which would end the tool without a word.
#[test]
fn a_limit_of_the_length_of_files() {
    for (command, files) in TO_FILES {
        let lab = Lab::new();
        let ran = finish(lab.limited("ulimit -f 0", command).spawn().unwrap());
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert!(ran.status == Some(1) && last.contains("File too large"), "{command}: {ran:?}");
        assert!(!last.contains("at path"), "the temporary file is named: {last}");
        assert_eq!(lab.files(), *files, "{command}");
    }
}

/// The temporary file of an output has a longer name.
#[test]
fn an_output_with_a_long_name() {
    let lab = Lab::new();
    let long = format!("OUT{}", "x".repeat(252));
    run(&lab.args(&format!("rewrite TRACE -o {long}")).iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(lab.files(), [long]);
    let command = format!("rewrite TRACE -o OUT{}", "x".repeat(253));
    let ran = run(&lab.args(&command).iter().map(String::as_str).collect::<Vec<_>>());
    assert!(ran.status == Some(1) && ran.stderr.contains("; choose a shorter path"), "{ran:?}");
}

#[test]
fn a_full_device() {
    for (command, _) in TO_FILES {
        let lab = Lab::new();
        let args: Vec<String> = lab.args(command);
        let full = |arg: &String| if arg.contains("OUT") { "/dev/full".to_owned() } else { arg.clone() };
        let mut args: Vec<String> = args.iter().map(full).collect();
        if let [name @ ("flame" | "convert"), ..] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            args = [&[name.to_owned()], &args[1..], &["--format".to_owned(), "folded".to_owned()]].concat();
        }
        let ran = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert!(ran.status == Some(1) && last.contains("No space left on device"), "{command}: {ran:?}");
    }
}

/// The exit status and the sentence of a run that had no memory, or the success of one that had enough.
fn assert_ended(ran: &Ran, of: &str) {
    let last = ran.stderr.lines().last().unwrap_or_default();
    match ran.status {
        Some(0) => {}
        Some(1) => assert!(last.starts_with("error: ") || last.starts_with("{\"error\":"), "{of}: {ran:?}"),
        _ => panic!("{of}: {ran:?}"),
    }
}

#[test]
fn a_lack_of_memory() {
    let mut failed = 0;
    for command in [
        "rewrite TRACE -o OUT",
        "rewrite TRACE -o OUT --json",
        "flame TRACE -o OUT.html",
        "convert TRACE -o OUT.pb.gz",
        "events TRACE --stacks",
        "report TRACE",
        "diagnose TRACE",
        "trace --socket SOCKET -o OUT --duration 100ms",
        "stack --socket SOCKET",
        "counters COUNTERS",
    ] {
        for megabytes in (24..120).step_by(24) {
            let lab = Lab::new();
            let limit = format!("ulimit -v {}", megabytes << 10);
            // With less memory than the program itself needs, the system does not start it.
            if finish(lab.limited(&limit, "--version").spawn().unwrap()).status != Some(0) {
                continue;
            }
            let ran = finish(lab.limited(&limit, command).spawn().unwrap());
            assert_ended(&ran, command);
            failed += u32::from(ran.status == Some(1));
            let files = lab.files();
            assert!(
                files.iter().all(|file| command.split(' ').any(|arg| arg == file)),
                "{command}: {files:?}"
            );
        }
    }
    assert!(failed > 0, "no run lacked memory");
}

/// A command after `&&` runs only if the condition held.
#[test]
fn a_closed_output_makes_no_condition_true() {
    for (is_live, command) in [
        (true, "counters --socket SOCKET Lab-Counters --until CONDITION"),
        (true, "counters --socket SOCKET Lab-Counters --until CONDITION --json"),
        (false, "counters COUNTERS --until CONDITION"),
        (false, "counters COUNTERS --until CONDITION --format prometheus"),
        (false, "events --socket SOCKET --until Microsoft-Windows-DotNETRuntime/9999"),
        (false, "events TRACE --until NoEvent/1"),
        (false, "events TRACE --until NoEvent/1 --count-by name"),
        (false, "trace --socket SOCKET -o - --until Microsoft-Windows-DotNETRuntime/9999"),
    ] {
        let lab = Lab::new();
        if is_live {
            let trace = fs::read(&lab.args("COUNTERS")[0]).unwrap();
            for code in [0x0203, 0x0204] {
                let trace = trace.clone();
                lab.runtime.on(Code(code), move |_| Response::Replay(trace.clone()));
            }
        }
        let mut args = lab.args(command);
        for arg in args.iter_mut().filter(|arg| *arg == "CONDITION") {
            *arg = "Lab-Counters/poll > 1000".to_owned();
        }
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = finish(tool(&args).stdout(OwnedFd::from(theirs)).spawn().unwrap());
        assert_eq!(ran.status, Some(4), "{command}: {ran:?}");
    }
}
