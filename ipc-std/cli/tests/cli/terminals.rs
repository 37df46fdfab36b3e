//! The terminal belongs to the job in the foreground, and is left as it was.
use std::fs;
use std::path::Path;
use std::process::Command;

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Profile, Response};
use rustix::process::{Pid, Signal, kill_process};

use crate::stuck::has_stop;
use crate::tool::terminal::OnTerminal;
use crate::tool::{TOOL, finish, is_stopped, program, tool, until};
use crate::traces::analysed;

/// Each command with a screen, and a text on its screen.
const SCREENS: [(&[&str], &str); 2] =
    [(&["top", "--socket"], "FUNCTION"), (&["counters", "Lab-Counters", "--socket"], "Lab-Counters/poll")];

fn runtime(command: &str) -> FakeRuntime {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in [0x0203, 0x0204, 0x0205] {
        let response = match command {
            "counters" => Response::Replay(fs::read(folder.join("counters/net10-shared.nettrace")).unwrap()),
            _ => Response::Trace(fs::read(analysed("net10-startup.nettrace")).unwrap()),
        };
        runtime.on(Code(code), move |_| response.clone());
    }
    runtime
}

/// Waits until the shell has started the tool. Returns its process id.
fn started(terminal: &mut OnTerminal) -> Pid {
    terminal.wait_for("pid ");
    Pid::from_raw(terminal.wait_for("\r\n").parse().unwrap()).unwrap()
}

/// `timeout` makes the tool a job in the background, which the system would stop for changing the terminal.
#[test]
fn a_job_in_the_background_writes_lines() {
    for (args, text) in SCREENS {
        let runtime = runtime(args[0]);
        let socket = runtime.path().to_str().unwrap();
        let script = r#"timeout 300 "$TOOL" "$@"; echo "ended $?""#;
        let args = [args, &[socket, "--duration", "1s"]].concat();
        let mut terminal = OnTerminal::shell("-c", script, &args);
        let lines = terminal.wait_for("ended 0");
        assert!(lines.contains(text) && !lines.contains('\x1b'), "{lines}");
    }
}

/// A recording in the background has no line that changes.
#[test]
fn a_recording_in_the_background_shows_no_progress() {
    let (runtime, folder) = (runtime("top"), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.nettrace");
    let script = r#"timeout 300 "$TOOL" "$@"; echo "ended $?""#;
    let socket = runtime.path().to_str().unwrap();
    let args = ["trace", "--socket", socket, "-o", file.to_str().unwrap(), "--duration", "1s"];
    let mut terminal = OnTerminal::shell("-c", script, &args);
    let lines = terminal.wait_for("ended 0");
    assert!(lines.contains("Wrote ") && !lines.contains('\x1b'), "{lines}");
}

/// SIGTSTP and Ctrl-Z restore the terminal before the tool stops, and the screen returns with the tool.
#[test]
fn a_stopped_tool_leaves_the_terminal_as_it_was() {
    for ((args, text), is_key) in SCREENS.into_iter().flat_map(|screen| [(screen, false), (screen, true)]) {
        let runtime = runtime(args[0]);
        let script = r#"run "$@"; echo stopped; read line; fg; echo "ended $?""#;
        let mut terminal =
            OnTerminal::shell("-mc", script, &[args, &[runtime.path().to_str().unwrap()]].concat());
        let process = started(&mut terminal);
        terminal.wait_for(text);
        assert!(terminal.is_changed());
        if is_key {
            terminal.press("\x1a");
        } else {
            kill_process(process, Signal::TSTP).unwrap();
        }
        terminal.wait_for("\x1b[?1049l");
        terminal.wait_for("stopped");
        assert!(!terminal.is_changed() && is_stopped(process));
        terminal.press("\n");
        terminal.wait_for("\x1b[?1049h");
        terminal.wait_for(text);
        assert!(terminal.is_changed());
        terminal.press("q");
        terminal.wait_for("\x1b[?1049l");
        terminal.wait_for("ended 0");
        terminal.ends_unchanged();
    }
}

/// SIGSTOP gives no time to restore the terminal. In the background, the tool leaves it to the shell, and is not
/// stopped by the keys that are meant for the shell.
#[test]
fn a_tool_that_is_moved_to_the_background_continues() {
    for (args, text) in SCREENS {
        let runtime = runtime(args[0]);
        let script = r#"run "$@"; stty sane; echo stopped; read line; bg; read line; echo "got $line"; read line; fg; echo "ended $?""#;
        let mut terminal =
            OnTerminal::shell("-mc", script, &[args, &[runtime.path().to_str().unwrap()]].concat());
        let process = started(&mut terminal);
        terminal.wait_for(text);
        kill_process(process, Signal::STOP).unwrap();
        terminal.wait_for("stopped");
        terminal.press("\n");
        terminal.wait_for("\x1b[?1049l");
        terminal.press("abc\n");
        terminal.wait_for("got abc");
        assert!(!is_stopped(process));
        terminal.press("\n");
        terminal.wait_for("\x1b[?1049h");
        terminal.press("q");
        terminal.wait_for("\x1b[?1049l");
        terminal.wait_for("ended 0");
    }
}

/// A shell continues a job with its own modes of the terminal. A key can end the tool before its next drawing.
#[test]
fn a_key_after_a_tool_is_continued_leaves_the_terminal_as_it_was() {
    for (args, text) in SCREENS {
        let runtime = runtime(args[0]);
        let script = r#"run "$@"; echo "ended $?""#;
        let mut terminal =
            OnTerminal::shell("-mc", script, &[args, &[runtime.path().to_str().unwrap()]].concat());
        let process = started(&mut terminal);
        terminal.wait_for(text);
        kill_process(process, Signal::CONT).unwrap();
        terminal.press("q");
        terminal.wait_for("\x1b[?1049l");
        terminal.wait_for("ended 0");
        terminal.ends_unchanged();
    }
}

/// Returns the tool as the first program of the session of its terminal.
fn in_session(args: &[&str]) -> Command {
    let mut session = program("setsid");
    session.args(["--ctty", "--wait", TOOL]).args(args);
    session
}

/// No shell could continue the first program of a session, such as that of a container.
#[test]
fn a_tool_without_a_shell_is_not_stopped() {
    for (args, text) in SCREENS {
        let runtime = runtime(args[0]);
        let args = [args, &[runtime.path().to_str().unwrap()]].concat();
        let mut terminal = OnTerminal::of(in_session(&args), 100);
        terminal.wait_for(text);
        terminal.press("\x1a");
        // The key comes before these drawings.
        terminal.wait_for(text);
        terminal.wait_for(text);
        terminal.press("q");
        terminal.wait_for("\x1b[?1049l");
        terminal.ends_unchanged();
    }
}

/// The recording of a process ends before its output would fail.
#[test]
fn an_output_that_is_a_terminal_fails_before_the_recording() {
    let runtime = runtime("top");
    let socket = runtime.path().to_str().unwrap();
    for args in [&["flame", "--format", "folded"][..], &["counters", "--format", "prometheus"]] {
        let args = [args, &["--socket", socket, "-o", "/dev/tty"]].concat();
        let (status, output) = OnTerminal::of(in_session(&args), 100).rest();
        let output = String::from_utf8(output).unwrap();
        assert!(status == Some(1) && output.contains("it is a terminal"), "{args:?}: {output}");
    }
    assert!(runtime.requests().is_empty());
}

/// The terminal of the session disappears with a signal, and any other without one. A drawing can fail before the signal
/// arrives.
#[test]
fn a_tool_whose_terminal_disappears_ends() {
    for (args, text) in SCREENS {
        for (has_session, statuses) in [(true, &[0, 1][..]), (false, &[1])] {
            let runtime = runtime(args[0]);
            let args = [args, &[runtime.path().to_str().unwrap()]].concat();
            let command = if has_session { in_session(&args) } else { tool(&args) };
            let mut terminal = OnTerminal::of(command, 100);
            terminal.wait_for(text);
            let status = finish(terminal.hang_up()).status.unwrap();
            assert!(statuses.contains(&status), "{args:?}: {status}");
            until("the session never ends", || has_stop(&runtime));
        }
    }
}
