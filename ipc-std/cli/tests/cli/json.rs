//! The JSON of all commands, which programs read: it stays the same to the byte.
//!
//! `testdata/json/commands.txt` has command lines, which run in `testdata`. The indented lines below one have the exit
//! status of the command with `--json`, and what it writes, or the SHA-256 of a long text. A word in capitals stands for
//! a path or a number that differs in each run, and `< FOLDER` for the messages in it as standard input. `BLESS=1 cargo test -p dotnet-ipc --test cli json` writes the results.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ipc_proto::types::Status;
use ipc_proto::{Code, Guid};
use ipc_testkit::{FakeRuntime, Profile, Response};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::tool::{FakeProcess, TOOL, dead_socket, finish, run, tool};

/// The most bytes of an output that is in the record as it is.
const SHORT: usize = 600;

/// The commands with fields that differ in each run: the fields, with the text after their values.
const UNSTEADY: [(&str, &[(&str, &str)]); 8] = [
    ("trace", &[("seconds", ",")]),
    ("top", &[("system_cores", ",")]),
    ("ps", &[("runtime_cookie", ",")]),
    ("find", &[("runtime_cookie", "}"), ("step", ",\"reason\"")]),
    ("clean", &[("owner", ",")]),
    ("monitor", &[("process_id", ","), ("runtime_cookie", ",")]),
    ("fake-runtime", &[("process_id", ","), ("socket", "}")]),
    ("demo", &[("lines", "]")]),
];

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Starts a runtime that sends the same trace in each session and, since .NET 5, accepts each control command.
fn runtime(directory: &Path, profile: Profile) -> FakeRuntime {
    let profile = Profile { process_id: 4242, runtime_cookie: Guid([7; 16]), ..profile };
    let accepts = !profile.suspended && profile.version >= 5;
    let runtime = FakeRuntime::start_in(directory, profile).unwrap();
    if accepts {
        for code in [0x0101, 0x0102, 0x0103, 0x0301, 0x0302, 0x0403, 0x0405, 0x0406, 0x0407] {
            runtime.on(Code(code), |_| Response::ok(&Status::OK));
        }
    }
    let trace = fs::read(testdata().join("analysis/net10-startup.nettrace")).unwrap();
    for code in if accepts { 0x0202..=0x0207 } else { 0x0202..=0x0203 } {
        let trace = trace.clone();
        runtime.on(Code(code), move |_| Response::Trace(trace.clone()));
    }
    runtime
}

/// Runs a command line. Returns its exit status and its output without what differs in each run.
fn result(line: &str) -> (Option<i32>, String) {
    let command = line.split(' ').next().unwrap();
    let directory = TempDir::new().unwrap();
    // The words and their texts. A text that is a part of another one follows it.
    let mut words = vec![("TOOL", TOOL.to_owned())];
    let mut runtimes = Vec::new();
    for (word, profile) in [
        ("SOCKET", Profile::net10()),
        ("SUSPENDED", Profile { suspended: true, ..Profile::net10() }),
        ("OLD", Profile::net31()),
    ] {
        if line.contains(word) {
            let runtime = runtime(directory.path(), profile);
            words.push((word, runtime.path().to_str().unwrap().to_owned()));
            runtimes.push(runtime);
        }
    }
    let process = matches!(command, "ps" | "find" | "clean").then(|| FakeProcess::start(directory.path()));
    if let Some(process) = &process {
        dead_socket(&directory.path().join("dotnet-diagnostic-4194305-1-socket"));
        words.push(("PROCESS", process.socket.to_str().unwrap().to_owned()));
        words.push(("PID", process.id().to_string()));
    }
    words.push(("DIR", directory.path().to_str().unwrap().to_owned()));

    let (arguments, folder) = line.split_once(" < ").unwrap_or((line, ""));
    let arguments = words.iter().fold(arguments.to_owned(), |line, (word, text)| line.replace(word, text));
    let arguments = shlex::split(&arguments).unwrap();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut command_line = tool(&[&["--json"], &arguments[..]].concat());
    if !folder.is_empty() {
        let input = directory.path().join("input");
        fs::write(&input, messages(folder)).unwrap();
        command_line.stdin(File::open(input).unwrap());
    }
    let ran = finish(command_line.current_dir(testdata()).env("TMPDIR", directory.path()).spawn().unwrap());

    let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &ran.stderr;
    let mut text = words.iter().fold(text, |text, (word, of)| match *word {
        "PID" => text.replace(&format!(":{of},"), ":PID,").replace(&format!("process {of} "), "process PID "),
        _ => text.replace(of, word),
    });
    let unsteady = UNSTEADY.iter().find(|(name, _)| *name == command);
    unsteady.iter().flat_map(|(_, fields)| *fields).for_each(|(field, end)| text = masked(&text, field, end));
    if command == "ps" {
        // The system has other processes.
        let mut lines: Vec<_> =
            text.lines().filter(|line| line.contains("PROCESS") || line.contains("DIR")).collect();
        lines.sort_unstable();
        text = lines.join("\n");
    }
    (ran.status, text)
}

/// Returns the messages of a folder, with their comments.
fn messages(folder: &str) -> String {
    let files = fs::read_dir(testdata().join(folder)).unwrap().map(|file| file.unwrap().path());
    let is_message = |path: &PathBuf| {
        let name = path.to_str().unwrap();
        name.ends_with(".hex") && !name.ends_with(".continuation.hex") && !name.ends_with(".frame.hex")
    };
    let mut files: Vec<_> = files.filter(is_message).collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Replaces the values of a field.
fn masked(text: &str, field: &str, end: &str) -> String {
    let name = format!("\"{field}\":");
    let mut parts = text.split(&name);
    let mut masked = parts.next().unwrap().to_owned();
    for part in parts {
        let rest = part.find(end).map_or("", |at| &part[at..]);
        masked.extend([&name, "_", rest]);
    }
    masked
}

/// Returns the lines of the record for a result.
fn recorded((status, text): (Option<i32>, String)) -> String {
    let mut record = format!("  exit status {}\n", status.unwrap());
    if text.len() > SHORT {
        let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        return record + &format!("  {} lines, SHA-256 {digest}\n", text.lines().count());
    }
    text.lines().for_each(|line| record.push_str(&format!("  {line}\n")));
    record
}

#[test]
fn each_command_writes_the_json_of_the_record() {
    let path = testdata().join("json/commands.txt");
    let record = fs::read_to_string(&path).unwrap();
    let mut lines = record.lines().peekable();
    let (mut written, mut differences, mut commands) = (String::new(), Vec::new(), Vec::new());
    while let Some(line) = lines.next() {
        written.push_str(&format!("{line}\n"));
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
            expected.push_str(&format!("{line}\n"));
        }
        if line.starts_with('#') {
            continue;
        }
        commands.push(line.split(' ').next().unwrap());
        let recorded = recorded(result(line));
        if recorded != expected {
            differences.push(format!("dotnet-ipc {line} --json\n{expected}is now\n{recorded}"));
        }
        written.push_str(&recorded);
    }
    // The rows of the help have two spaces, a name and further spaces.
    let help = run(&["help"]).well().into_text();
    let rows =
        help.lines().skip_while(|line| !line.starts_with("Usage")).take_while(|line| *line != "Examples:");
    let mut missing: Vec<_> = rows.filter_map(|row| row.strip_prefix("  ")?.split_once("  ")).collect();
    missing.retain(|(name, _)| !name.is_empty() && *name != "help");
    assert!(missing.len() >= 30, "{help}");
    missing.retain(|(name, _)| !commands.contains(name));
    assert!(missing.is_empty(), "commands without a line in {}: {missing:?}", path.display());
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, written).unwrap();
    } else {
        assert!(
            differences.is_empty(),
            "compare the output in `testdata` with that of an earlier build; BLESS=1 writes the new one:\n{}",
            differences.join("\n")
        );
    }
}
