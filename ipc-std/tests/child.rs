//! The pipes of a child process as a transport. The program is its own relay: `child relay SOCKET`.
#![allow(clippy::indexing_slicing, reason = "a test fails by panicking")]
#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("relay") => unix::relay(&arguments[2]),
        // `cargo nextest` or an editor requests the list of tests, which is empty.
        Some("--list") => {}
        _ => {
            // This one counts what the process has, so it is the first.
            #[cfg(target_os = "linux")]
            unix::nothing_of_this_process_stays();
            unix::everything_works();
            unix::a_failed_program_is_named();
            unix::a_silent_program_is_killed_and_reaped();
            unix::a_program_that_fails_within_a_trace_is_named();
            unix::a_greeting_is_quoted();
            println!("6 passed, 0 failed");
        }
    }
}

#[cfg(unix)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod unix {
    use core::time::Duration;
    use std::io::{self, Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use ipc_proto::SessionEnd;
    use ipc_proto::types::{EventLevel, Provider};
    use ipc_std::{Client, Error, Phase, Stream, Timeouts, TraceConfig};
    use ipc_testkit::{FakeRuntime, Profile};

    const HANGS: Duration = Duration::from_secs(60);

    /// Copies standard input to a socket, and the socket to standard output.
    pub(super) fn relay(path: &str) {
        let mut to_runtime = UnixStream::connect(path).unwrap();
        let mut from_runtime = to_runtime.try_clone().unwrap();
        std::thread::spawn(move || {
            let _ = io::copy(&mut io::stdin(), &mut to_runtime);
            let _ = to_runtime.shutdown(Shutdown::Write);
        });
        let mut buf = [0; 4096];
        while let Ok(n @ 1..) = from_runtime.read(&mut buf) {
            let mut stdout = io::stdout();
            if stdout.write_all(&buf[..n]).and_then(|()| stdout.flush()).is_err() {
                return;
            }
        }
    }

    fn relayed(path: &Path) -> Client {
        let path = path.to_owned();
        Client::over("the pod", move |_| {
            Stream::child(Command::new(std::env::current_exe()?).arg("relay").arg(&path))
        })
    }

    pub(super) fn everything_works() {
        let runtime = FakeRuntime::start(Profile { version: 7, ..Profile::net8() }).unwrap();
        let client = relayed(runtime.path());
        assert_eq!(client.process_info().unwrap().command_line, "/app/Fake --of-a runtime");
        client.set_environment_variable("A", Some("1")).unwrap();
        assert_eq!(client.environment().unwrap().get("A").unwrap(), "1");
        let (level, arguments) = (EventLevel::VERBOSE, "".into());
        let providers = [Provider { keywords: u64::MAX, level, name: "Lab-Workload".into(), arguments }];
        let mut session = client.start_tracing(&TraceConfig::new(&providers)).unwrap();
        session.stop();
        assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete);
        let session = client.start_tracing(&TraceConfig::new(&providers)).unwrap();
        session.stopper().cancel();
        assert!(io::copy(&mut { session }, &mut io::sink()).is_err());
    }

    pub(super) fn a_failed_program_is_named() {
        let client = Client::over("the host", |_| {
            Stream::child(Command::new("sh").args(["-c", "exit 3"]).stderr(Stdio::null()))
        });
        let error = client.resume().unwrap_err().to_string();
        assert!(error.starts_with("the host: ") && error.contains("sh ended with exit status: 3"), "{error}");
    }

    fn shell(script: &str) -> Client {
        let script = script.to_owned();
        Client::over("the host", move |_| {
            Stream::child(Command::new("sh").args(["-c", &script]).stderr(Stdio::null()))
        })
    }

    pub(super) fn a_program_that_fails_within_a_trace_is_named() {
        const STARTED: &str = r"printf 'DOTNET_IPC_V1\0\034\0\377\0\0\0\1\0\0\0\0\0\0\0Nettrace'";
        let providers =
            [Provider { keywords: 1, level: EventLevel::VERBOSE, name: "A".into(), arguments: "".into() }];
        for (end, expected) in [("exit 3", "exit status: 3"), ("kill -9 $$", "signal: 9 (SIGKILL)")] {
            let client = shell(&format!("{STARTED}; {end}"));
            let mut session = client.start_tracing(&TraceConfig::new(&providers)).unwrap();
            let mut stream = Vec::new();
            let error = io::copy(&mut session, &mut stream).unwrap_err().to_string();
            let expected = format!("the host: reading the trace failed: sh ended with {expected}");
            assert_eq!((error, stream.as_slice()), (expected, &b"Nettrace"[..]));
            assert_eq!(session.end(), Some(SessionEnd::CutOff));
        }
        // The end of a program without a failure is the end of the stream.
        let mut session = shell(STARTED).start_tracing(&TraceConfig::new(&providers)).unwrap();
        assert_eq!(io::copy(&mut session, &mut io::sink()).unwrap(), 8);
        assert_eq!(session.end(), Some(SessionEnd::CutOff));
    }

    pub(super) fn a_greeting_is_quoted() {
        let error = shell("echo 'Last login: Mon'; exec cat").resume().unwrap_err().to_string();
        assert!(error.contains(r#"(at byte 0): "Last login: Mon"#), "{error}");
    }

    /// Returns the number of descriptors and of threads of this process.
    #[cfg(target_os = "linux")]
    fn resources() -> (usize, usize) {
        let count = |directory| std::fs::read_dir(directory).unwrap().count();
        (count("/proc/self/fd"), count("/proc/self/task"))
    }

    /// Waits until `is_true`.
    #[cfg(target_os = "linux")]
    fn wait(text: &str, is_true: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_true() {
            assert!(begin.elapsed() < HANGS, "{text}: {:?}", resources());
            std::thread::yield_now();
        }
    }

    /// Whatever a program does or leaves behind, no thread, descriptor or child process of this process stays.
    #[cfg(target_os = "linux")]
    pub(super) fn nothing_of_this_process_stays() {
        let limit = Duration::from_millis(100);
        let timeouts = Timeouts { call: limit, stop: limit, ..Timeouts::default() };
        let before = resources();
        for script in [
            "exit 0",
            "exit 3",
            "exec cat >/dev/null",
            "exec sleep 1000",
            // The output ends, but the program lives.
            "exec >&-; exec sleep 1000",
            "exec <&-; exec sleep 1000",
            // The shell has a child, which stays and has the pipes.
            "sleep 100; true",
            "sleep 100 & exit 0",
            "sleep 100 & exec sleep 1000",
            "(trap '' HUP TERM PIPE; sleep 100); true",
        ] {
            let client = shell(script).with_timeouts(timeouts);
            client.resume().unwrap_err();
            wait(script, || resources() == before);
            // A stream that nothing was read from.
            drop(client.connect().unwrap());
            wait(script, || resources() == before);
        }
        // A relay that has a wrapper ends at the end of its input.
        let runtime = FakeRuntime::start(Profile::net8()).unwrap();
        let path = runtime.path().display().to_string();
        let before = resources();
        let program = std::env::current_exe().unwrap().display().to_string();
        let client = shell(&format!("'{program}' relay '{path}'; true"));
        client.process_info().unwrap();
        wait("a relay", || resources().1 <= before.1);
        wait("the relay", || {
            let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
            !processes.any(|process| {
                let command_line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                command_line.starts_with(program.as_bytes())
                    && String::from_utf8_lossy(&command_line).contains(&path)
            })
        });
    }

    pub(super) fn a_silent_program_is_killed_and_reaped() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let script = format!("echo $$ > '{}'; exec sleep 1000", file.display());
        let timeouts = Timeouts { call: Duration::from_secs(1), ..Timeouts::default() };
        let client =
            Client::over("the host", move |_| Stream::child(Command::new("sh").args(["-c", &script])));
        let error = client.with_timeouts(timeouts).resume().unwrap_err();
        assert!(matches!(error, Error::Timeout { phase: Phase::AwaitingAnswer, .. }), "{error}");
        let process_id = std::fs::read_to_string(&file).unwrap();
        let process = Path::new("/proc").join(process_id.trim());
        let begin = Instant::now();
        while process.exists() {
            assert!(begin.elapsed() < HANGS, "process {process_id} is neither killed nor reaped");
            std::thread::yield_now();
        }
    }
}
