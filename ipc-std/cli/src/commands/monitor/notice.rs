//! Messages to the main thread of `monitor`.
use std::io;
use std::process::ExitStatus;
use std::sync::mpsc;

use ipc_std::MonitorWaker;

/// A message to the main thread.
#[derive(Debug)]
pub(super) enum Notice {
    Signal(i32),
    /// The command has ended.
    Ended(io::Result<ExitStatus>),
    /// The descendants of the command have ended, too.
    AllEnded,
    /// A thread for a runtime has ended.
    Idle,
}

/// Sends messages to the main thread, which waits for events of the monitor.
#[derive(Debug, Clone)]
pub(super) struct Notifier {
    pub(super) sender: mpsc::Sender<Notice>,
    pub(super) waker: MonitorWaker,
}

impl Notifier {
    pub(super) fn send(&self, notice: Notice) {
        // An error means that the tool is ending: the receiver no longer exists.
        let _ = self.sender.send(notice);
        self.waker.wake();
    }
}
