//! `Child`, the command that `monitor` starts, and its exit code.
#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
#[cfg(unix)]
use std::sync::{Arc, Mutex, MutexGuard};

use ipc_std::Monitor;
#[cfg(unix)]
use rustix::io::Errno;
#[cfg(unix)]
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process, waitid};
#[cfg(unix)]
use rustix::termios::tcgetpgrp;

use super::notice::{Notice, Notifier};
use crate::output::failure::Failure;
#[cfg(unix)]
use crate::output::threads::lock;
use crate::output::threads::spawn;

/// A command that was started.
pub(super) struct Child {
    #[cfg(unix)]
    id: Arc<ProcessId>,
    pub(super) name: String,
}

/// The process id of a command; `None` after its end, when the id can belong to another process.
#[cfg(unix)]
#[derive(Debug)]
struct ProcessId(Mutex<Option<Pid>>);

impl Child {
    pub(super) fn start(
        command: &mut Command,
        suspend: bool,
        monitor: &Monitor,
        notifier: Notifier,
    ) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = monitor.spawn(command, suspend)?;
        #[cfg(unix)]
        let id = Arc::new(ProcessId(Mutex::new(Some(Pid::from_child(&child)))));
        spawn("command", {
            #[cfg(unix)]
            let id = Arc::clone(&id);
            move || {
                #[cfg(unix)]
                id.forget_at_end();
                notifier.send(Notice::Ended(child.wait()));
            }
        })?;
        Ok(Self {
            #[cfg(unix)]
            id,
            name,
        })
    }

    /// Forwards a signal. If the tool runs in the foreground of a terminal, the terminal has sent Ctrl-C to the command
    /// as well.
    #[cfg(unix)]
    pub(super) fn signal(&self, signal: i32) {
        let signal = Signal::from_named_raw(signal);
        let by_terminal = signal == Some(Signal::INT)
            && File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()));
        // The id stays locked until the signal is sent, so that the signal cannot reach another process with this id.
        let id = self.id.lock();
        if let (Some(id), Some(signal), false) = (*id, signal, by_terminal) {
            // An error means that the command has just ended.
            let _ = kill_process(id, signal);
        }
    }
    /// Does nothing: the console has sent the event to the command as well.
    #[cfg(windows)]
    pub(super) const fn signal(&self, _: i32) {}
}

#[cfg(unix)]
impl ProcessId {
    fn lock(&self) -> MutexGuard<'_, Option<Pid>> {
        lock(&self.0)
    }

    /// Waits until the process ends, and forgets its id. The system keeps the id until the process is waited for again.
    fn forget_at_end(&self) {
        let Some(id) = *self.lock() else { return };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(id), options).is_err_and(|e| e == Errno::INTR) {}
        *self.lock() = None;
    }
}

/// Returns the exit status of a command as a shell shows it: 128 + N after signal N.
pub(super) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code();
    #[cfg(unix)]
    let code = code.or_else(|| status.signal().map(|signal| signal.saturating_add(128)));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use rustix::process::test_kill_process;

    use super::*;

    #[test]
    fn the_id_is_forgotten_before_the_system_releases_it() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let id = ProcessId(Mutex::new(Some(pid)));
        id.forget_at_end();
        assert_eq!(*id.lock(), None);
        // Signal 0 succeeds: the process has ended, but the system keeps its id until the second wait.
        assert_eq!(test_kill_process(pid), Ok(()));
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
}
