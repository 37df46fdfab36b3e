//! `monitor`: listens on a diagnostic port, and sets up the runtimes that connect.
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::thread;

use ipc_std::Monitor;
use tempfile::TempDir;

use crate::output::live_stderr::LiveStderr;
use crate::output::live_stdout::LiveStdout;
use crate::process::descriptors;
use crate::run::signals;
use crate::run::{Failure, Globals};

mod args;
mod child;
mod event;
mod notice;
mod port;
mod trace_files;

pub(crate) use args::Args;
use child::Child;
pub(super) use child::exit_code;
use notice::{Notice, Notifier};
use port::Port;

/// Runs the port until it ends. Returns the exit status of COMMAND, or success without a COMMAND.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    if args.trace.is_none() && args.options.is_used() {
        return Err(Failure::usage("options of a trace need a file").with_hint("pass --trace FILE"));
    }
    if args.trace.as_deref().is_some_and(|file| file.as_os_str() == "-") {
        return Err(Failure::usage("--trace needs a file: standard output is in use"));
    }
    LiveStdout::begin()?;
    let stderr = LiveStderr::begin(globals.json)?;
    let ended = listen(args, globals, &stderr);
    match (stderr.finish(), ended) {
        (Ok(()), ended) => ended,
        // A report would wait for the reader of standard error again.
        (Err(_), Err(failure)) => Ok(failure.exit_code()),
        (Err(failure), Ok(ExitCode::SUCCESS)) => Ok(failure.exit_code()),
        (Err(_), status) => status,
    }
}

/// Runs the port, with notes on `stderr`.
fn listen(args: &Args, globals: &Globals, stderr: &LiveStderr) -> Result<ExitCode, Failure> {
    let plan = args.trace.as_ref().map(|_| args.options.plan()).transpose()?;
    let wire_log = args.connection.wire_log.open()?;
    let (path, directory) = port_path(args)?;
    let timeouts = args.connection.session_timeouts();
    let monitor = Monitor::bind(path)?.with_timeouts(timeouts).with_observer(wire_log.observer());
    // With --no-resume the variable does not suspend runtimes, because they would stay suspended.
    let suspend = !args.options.session.live.no_resume;
    let (name, value) = monitor.variable(suspend)?;

    let (sender, notices) = mpsc::channel();
    let notifier = Notifier { sender, waker: monitor.waker() };
    signals::handle({
        let (notifier, path) = (notifier.clone(), monitor.path().map(ToOwned::to_owned));
        let directory = directory.as_ref().map(|directory| directory.path().to_owned());
        let mut is_second = false;
        move |signal| {
            if core::mem::replace(&mut is_second, true) {
                // The tool ends even if the files cannot be removed.
                let _ = path.as_ref().map(std::fs::remove_file);
                let _ = directory.as_ref().map(std::fs::remove_dir);
                return false;
            }
            notifier.send(Notice::Signal(signal));
            true
        }
    })?;
    signals::ignored_note().iter().for_each(|note| globals.note(note));
    let child = match args.command.split_first() {
        Some((program, arguments)) => {
            if std::env::var("DOTNET_EnableDiagnostics").is_ok_and(|value| value == "0") {
                stderr.note("DOTNET_EnableDiagnostics=0 prevents runtimes from connecting")?;
            }
            let mut command = Command::new(program);
            Some(Child::start(command.args(arguments), suspend, &monitor, notifier.clone())?)
        }
        None => {
            stderr.note(&format!("runtimes connect with {name}={}", quoted(&value)))?;
            None
        }
    };
    // After the start of the command, which would inherit the limit.
    descriptors::raise_limit();
    let port = Port::new(args, globals, &monitor, stderr, plan, notifier);
    let status = thread::scope(|scope| {
        let status = port.run(scope, child, &notices);
        // After an error as well: the scope waits for the threads of the traces, which end then.
        port.end();
        status
    });
    let failure = port.into_failure().or_else(|| wire_log.check().err());
    match (status?, failure) {
        (Some(status), failure) if !status.success() || failure.is_none() => Ok(exit_code(status)),
        (_, Some(failure)) => Err(failure),
        (_, None) => Ok(ExitCode::SUCCESS),
    }
}

/// Quotes a value for a shell.
fn quoted(value: &OsStr) -> String {
    let value = value.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._,-+:@%=".contains(c);
    if value.chars().all(plain) { value.into_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

/// Returns the path of the port, and the temporary directory if there is one.
fn port_path(args: &Args) -> Result<(PathBuf, Option<TempDir>), Failure> {
    if let Some(path) = &args.listen {
        return Ok((path.clone(), None));
    }
    let directory = tempfile::Builder::new().prefix("dotnet-ipc-").tempdir();
    let directory = directory.map_err(|e| Failure::io("cannot create a temporary directory", &e))?;
    #[cfg(unix)]
    let path = directory.path().join("port");
    // Named pipes are in no directory. The name of the directory is unique, so it becomes the name of the pipe.
    #[cfg(windows)]
    let path = directory.path().file_name().unwrap_or_default().into();
    Ok((path, Some(directory)))
}
