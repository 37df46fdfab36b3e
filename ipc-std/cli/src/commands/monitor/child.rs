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
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, kill_process, waitid, waitpid,
};
#[cfg(unix)]
use rustix::termios::tcgetpgrp;

use super::notice::{Notice, Notifier};
use crate::run::Failure;
#[cfg(unix)]
use crate::run::threads::lock;
use crate::run::threads::spawn;

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
        // From here on, a process whose parent has ended becomes a child of the tool. On failure, as on other systems,
        // the tool only does not wait for such processes.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let child = monitor.spawn(command, suspend)?;
        #[cfg(unix)]
        let id = Arc::new(ProcessId(Mutex::new(Some(Pid::from_child(&child)))));
        spawn("command", {
            #[cfg(unix)]
            let id = Arc::clone(&id);
            move || {
                #[cfg(unix)]
                id.wait_for_all(&notifier);
                #[cfg(windows)]
                notifier.send(Notice::Ended({ child }.wait()));
                notifier.send(Notice::AllEnded);
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
        if let (Some(id), Some(signal)) = (*id, signal) {
            // An error means that the command has just ended.
            if !by_terminal {
                let _ = kill_process(id, signal);
            }
            // A command that is stopped gets the signal only when it continues.
            let _ = kill_process(id, Signal::CONT);
        }
    }
    /// Does nothing: the console has sent the event to the command as well.
    #[cfg(windows)]
    pub(super) const fn signal(&self, _: i32) {}

    /// Returns whether the system has stopped the command, as for Ctrl-Z.
    #[cfg(unix)]
    pub(super) fn is_stopped(&self) -> bool {
        // Without a wait and without a change: a command that continues is no longer reported.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.id.lock().is_some_and(|id| matches!(waitid(WaitId::Pid(id), options), Ok(Some(_))))
    }
    /// Returns `false`: nothing stops a command.
    #[cfg(windows)]
    pub(super) const fn is_stopped(&self) -> bool {
        false
    }
}

#[cfg(unix)]
impl ProcessId {
    fn lock(&self) -> MutexGuard<'_, Option<Pid>> {
        lock(&self.0)
    }

    /// Waits until all children of the tool have ended: the command, whose status it sends, and its descendants, which
    /// become children of the tool when their parents end.
    fn wait_for_all(&self, notifier: &Notifier) {
        loop {
            // The system keeps the id of a process that has ended until the process is waited for without this option.
            let ended = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if ended.is_err_and(|e| e != Errno::INTR) {
                return; // There are no children.
            }
            if let Some(status) = self.release(None) {
                notifier.send(Notice::Ended(Ok(status)));
            }
        }
    }

    /// Releases the id of a child that has ended: of this one, or of any. Returns the status if it is the command, whose
    /// id is forgotten before another process can have it: while it is locked, no signal is sent to it.
    fn release(&self, child: Option<Pid>) -> Option<ExitStatus> {
        let mut id = self.lock();
        let (process, status) = waitpid(child, WaitOptions::NOHANG).ok()??;
        let is_command = id.take_if(|id| *id == process).is_some();
        is_command.then(|| ExitStatus::from_raw(status.as_raw()))
    }
}

/// Returns the exit status of a command as a shell shows it: 128 + N after signal N.
pub(in crate::commands) fn exit_code(status: ExitStatus) -> ExitCode {
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
        let pid = Pid::from_child(&Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap());
        let id = ProcessId(Mutex::new(Some(pid)));
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        // Signal 0 succeeds: the process has ended, but the system keeps its id until the second wait.
        assert_eq!((*id.lock(), test_kill_process(pid)), (Some(pid), Ok(())));
        assert_eq!(id.release(Some(pid)).unwrap().code(), Some(3));
        assert_eq!(*id.lock(), None);
    }

    #[test]
    fn another_process_is_not_the_command() {
        let [command, other] =
            ["sleep 60", "exit 3"].map(|line| Command::new("sh").args(["-c", line]).spawn());
        let [mut command, other] = [command.unwrap(), other.unwrap()];
        let id = ProcessId(Mutex::new(Some(Pid::from_child(&command))));
        let other = Pid::from_child(&other);
        waitid(WaitId::Pid(other), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert_eq!(id.release(Some(other)), None);
        assert_eq!(*id.lock(), Some(Pid::from_child(&command)));
        command.kill().unwrap();
        command.wait().unwrap();
    }
}
