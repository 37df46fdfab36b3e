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
        // The receiver no longer exists while the tool ends.
        let _ = self.sender.send(notice);
        self.waker.wake();
    }
}
