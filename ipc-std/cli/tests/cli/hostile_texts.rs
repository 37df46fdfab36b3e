//! No text that another program wrote controls a terminal, whichever command shows it.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ipc_proto::{Code, HResult};
use ipc_testkit::{FakeRuntime, Profile, Response};

use crate::tool::terminal::OnTerminal;
use crate::tool::{dead_socket, tool};

/// Reverses the direction of text, begins two sequences of a terminal, and rings the bell. It has as many characters as
/// `Contoso`.
const HOSTILE: &str = "\u{202e}\u{1b}]\u{9b}0;\u{7}";

/// A command with arguments, in which a name in capital letters stands for a hostile one.
type Run = (&'static str, &'static [&'static str]);

/// Each command, with the arguments that make it show texts of others.
const RUNS: &[Run] = &[
    ("ps", &["--wide"]),
    ("ps", &["--why"]),
    ("find", &["999999999"]),
    ("find", &["TEXT"]),
    ("clean", &["--dry-run"]),
    ("clean", &["--yes", "--json"]),
    ("info", &["--socket", "SOCKET"]),
    ("info", &["--socket", "SOCKET", "--json"]),
    ("info", &["--name", "TEXT"]),
    ("env", &["--socket", "SOCKET"]),
    ("env", &["--socket", "SOCKET", "--json"]),
    ("trace", &["--socket", "SOCKET", "-o", "OUTPUT.nettrace", "--duration", "100ms"]),
    ("trace", &["--socket", "SOCKET", "-o", "MISSING/a"]),
    ("trace", &["--socket", "SOCKET", "--provider", "TEXT:x"]),
    ("stack", &["--socket", "SOCKET"]),
    ("top", &["--socket", "SOCKET", "--duration", "1s"]),
    ("counters", &["COUNTERS"]),
    ("counters", &["COUNTERS", "--csv"]),
    ("counters", &["COUNTERS", "--json"]),
    ("counters", &["COUNTERS", "--format", "prometheus"]),
    ("counters", &["COUNTERS", "--format", "otlp-json"]),
    ("counters", &["COUNTERS", "TEXT"]),
    ("counters", &["--socket", "SOCKET", "TEXT", "--duration", "100ms"]),
    ("eventpipe-env", &["-o", "TEXT"]),
    ("eventpipe-env", &["-o", "TEXT", "--json"]),
    ("list-profiles", &["TEXT"]),
    ("dump", &["--socket", "SOCKET", "-o", "OUTPUT.dmp"]),
    ("set-env", &["--socket", "SOCKET", "TEXT", "TEXT"]),
    ("perf-map", &["--socket", "SOCKET", "TEXT"]),
    ("startup-hook", &["--socket", "SOCKET", "MISSING", "--force"]),
    ("attach-profiler", &["--socket", "SOCKET", "TEXT", "MISSING"]),
    ("startup-profiler", &["--socket", "SOCKET", "TEXT", "MISSING"]),
    ("resume", &["--socket", "MISSING"]),
    ("monitor", &["--listen", "MISSING/socket"]),
    ("monitor", &["--", "MISSING"]),
    ("demo", &["TEXT"]),
    ("fake-runtime", &["--dir", "MISSING"]),
    ("events", &["TRACE"]),
    ("events", &["TRACE", "--json"]),
    ("events", &["TRACE", "--stacks"]),
    ("events", &["TRACE", "--columns", "TEXT"]),
    ("events", &["TRACE", "--count-by", "MethodNamespace"]),
    ("events", &["MISSING"]),
    ("events", &["--socket", "SOCKET", "--duration", "100ms", "--until", "TEXT"]),
    ("stats", &["COUNTERS"]),
    ("stats", &["MISSING"]),
    ("report", &["TRACE"]),
    ("report", &["TRACE", "--tree"]),
    ("report", &["TRACE", "--event", "TEXT"]),
    ("flame", &["TRACE", "-o", "OUTPUT.html"]),
    ("flame", &["TRACE", "-o", "TERMINAL", "--format", "folded"]),
    ("flame", &["TRACE", "-o", "-", "--format", "folded"]),
    ("requests", &["REQUESTS", "--json"]),
    ("gc", &["MISSING"]),
    ("gc", &["COUNTERS"]),
    ("heap", &["TRACE"]),
    ("heap", &["TRACE", "--type", "TEXT"]),
    ("jit", &["COMPILATIONS"]),
    ("jit", &["COMPILATIONS", "--csv"]),
    ("jit", &["MISSING"]),
    ("locks", &["TRACE"]),
    ("diagnose", &["TRACE"]),
    ("rewrite", &["TRACE", "-o", "OUTPUT.copy"]),
    ("rewrite", &["TRACE", "-o", "TERMINAL"]),
    ("decode", &["MISSING"]),
    ("conformance", &["--socket", "MISSING"]),
    ("completions", &["TEXT"]),
    ("man", &["TRACE"]),
];

/// The runs that show no hostile text.
const SILENT: &[Run] = &[
    ("find", &["999999999"]),
    ("flame", &["TRACE", "-o", "TERMINAL", "--format", "folded"]),
    ("flame", &["TRACE", "-o", "-", "--format", "folded"]),
    ("rewrite", &["TRACE", "-o", "TERMINAL"]),
];

/// Hostile files and processes.
struct Hostile {
    _folder: tempfile::TempDir,
    /// A folder with a hostile name.
    path: PathBuf,
    runtime: FakeRuntime,
}

/// Returns a recorded trace with hostile texts instead of these.
fn hostile_trace(name: &str, word: &str) -> Vec<u8> {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mut trace =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)).unwrap();
    let (word, hostile) = (utf16(word), utf16(HOSTILE));
    let mut found = 0;
    for at in 0..trace.len() - word.len() {
        if trace[at..].starts_with(&word) {
            trace[at..at + word.len()].copy_from_slice(&hostile[..word.len()]);
            found += 1;
        }
    }
    assert!(found > 0, "{name} does not contain {word:?}");
    trace
}

impl Hostile {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(HOSTILE);
        fs::create_dir(&path).unwrap();
        for (name, recorded, word) in [
            ("TRACE", "sick/deadlock.nettrace", "Contoso"),
            ("REQUESTS", "sick/asynchang.nettrace", "Contoso"),
            ("COMPILATIONS", "analysis/net10-compilations.nettrace", "Work"),
            ("COUNTERS", "counters/net10-shared.nettrace", "Lab"),
        ] {
            fs::write(path.join(name), hostile_trace(recorded, word)).unwrap();
        }
        dead_socket(&path.join("dotnet-diagnostic-999999998-1-socket"));
        let profile = Profile {
            command_line: format!("{HOSTILE} {HOSTILE}"),
            environment: vec![format!("A={HOSTILE}"), HOSTILE.to_owned()],
            ..Profile::net10()
        };
        let runtime = FakeRuntime::start_in(&path, profile).unwrap();
        let trace = fs::read(path.join("TRACE")).unwrap();
        for code in 0x0202..=0x0206 {
            let trace = trace.clone();
            runtime.on(Code(code), move |_| Response::Trace(trace.clone()));
        }
        runtime.on(Code(0x0103), |_| Response::Refuse(HResult::FAIL));
        Self { _folder: folder, path, runtime }
    }

    /// Returns an argument of the table.
    fn arg(&self, arg: &str) -> String {
        let path = |name: &str| self.path.join(name).to_str().unwrap().to_owned();
        match arg {
            "SOCKET" => self.runtime.path().to_str().unwrap().to_owned(),
            "TERMINAL" => "/dev/tty".to_owned(),
            _ if arg.starts_with("TEXT") => arg.replace("TEXT", HOSTILE),
            _ if arg.starts_with(char::is_uppercase) => path(arg),
            _ => arg.to_owned(),
        }
    }

    /// Runs the tool on a terminal, and returns the bytes that the terminal receives.
    fn run(&self, command: &str, args: &[String]) -> String {
        let mut setsid = crate::tool::program("setsid");
        let tool = tool(&[command]);
        setsid.args(["--ctty", "--wait"]).arg(tool.get_program()).arg(command).args(args);
        setsid.env("TMPDIR", &self.path).env_remove("HOME").env_remove("XDG_CACHE_HOME");
        let (_, output) = OnTerminal::of(setsid, 100).rest();
        String::from_utf8(output).unwrap_or_else(|e| panic!("{command} {args:?}: {e}"))
    }
}

/// Returns the text of a screen without the sequences of the tool: they move the cursor, and set modes and attributes.
fn without_sequences(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut rest = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|c: char| !matches!(c, '0'..='9' | ';' | '?')).unwrap();
        assert!("hlmHJKABCDG".contains(&part[end..=end]), "{part:?}");
        rest.push_str(&part[end + 1..]);
    }
    rest
}

fn assert_harmless(text: &str, of: &str) {
    let is_harmful = |c: char| {
        (c.is_control() && !matches!(c, '\r' | '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let rest = without_sequences(text);
    assert!(!rest.contains(is_harmful), "{of}: {rest:?}");
}

#[test]
fn no_command_lets_a_text_control_the_terminal() {
    let names = crate::help::commands();
    // `man` is hidden.
    let names: BTreeSet<&str> = names.iter().map(String::as_str).chain(["man"]).collect();
    assert_eq!(RUNS.iter().map(|(command, _)| *command).collect::<BTreeSet<_>>(), names);

    let (hostile, mut unexpected) = (Hostile::new(), Vec::new());
    for (command, args) in RUNS {
        let args_of_run: Vec<String> = args.iter().map(|arg| hostile.arg(arg)).collect();
        let shown = hostile.run(command, &args_of_run);
        assert_harmless(&shown, &format!("{command} {args:?}"));
        let is_shown = shown.contains("\\u{202e}") || shown.contains("\\u202e");
        if is_shown == SILENT.contains(&(*command, args)) {
            unexpected.push(format!("{command} {args:?}: {shown:?}"));
        }
        let shown = hostile.run(command, &[format!("--{HOSTILE}")]);
        assert_harmless(&shown, command);
        assert!(shown.contains("\\u{202e}"), "{command}: {shown:?}");
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// A file is shown by its name, which can have any bytes but `/` and NUL.
#[test]
fn names_of_files_in_graphs() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sick/regex.nettrace");
    for (name, title) in [
        (b"<script>&\"' <title>".to_vec(), "&lt;script>&amp;"),
        (format!("a{HOSTILE}\u{1}\u{fffe}\n").into_bytes(), r"a\u{202e}\u{1b}]\u{9b}0;\u{7}\u{1}\u{fffe}\n"),
        (b"a\xff\x9bb".to_vec(), "a\u{fffd}\u{fffd}b"),
        (vec![b'a'; 250], "aaaa"),
    ] {
        let trace = folder.path().join(OsStr::from_bytes(&name));
        fs::copy(&recorded, &trace).unwrap();
        for format in ["html", "speedscope", "chromium", "firefox", "folded"] {
            let mut tool = tool(&["flame", "-o", "-", "--format", format, "--thread-time"]);
            let ran = crate::tool::finish(tool.arg(&trace).spawn().unwrap());
            assert_eq!(ran.status, Some(0), "{}", ran.stderr);
            let text = ran.into_text();
            let is_harmful = |c: char| c.is_control() && c != '\n' || c == '\u{202e}' || c == '\u{fffe}';
            assert!(!text.contains(is_harmful), "{format} {name:?}");
            match format {
                "html" => {
                    let text = text.replace("&gt;", ">");
                    assert!(text.contains(title) && !text.contains("<script>&"), "{format} {title}");
                }
                "folded" => {}
                _ => drop(serde_json::from_str::<serde_json::Value>(&text).unwrap()),
            }
        }
    }
}
