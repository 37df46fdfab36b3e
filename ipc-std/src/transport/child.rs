//! `ChildPipes`: the pipes of a child process as a connection.
use core::time::Duration;
use std::io::{self, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::worker::Interrupt;

/// The standard output of a child process, which is one half of a connection. Dropping it ends and reaps the child.
pub(super) struct ChildPipes {
    child: SharedChild,
    program: String,
    stdout: ChildStdout,
    has_received: bool,
}

#[derive(Clone)]
struct SharedChild(Arc<Mutex<Child>>);

impl ChildPipes {
    /// Starts the program; returns both halves of the connection.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Self, ChildStdin)> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a child process without pipes"));
        };
        let child = SharedChild(Arc::new(Mutex::new(child)));
        Ok((Self { child, program, stdout, has_received: false }, stdin))
    }

    /// Returns a function that ends a wait for the child by killing the child.
    pub(super) fn interrupt(&self) -> Interrupt {
        let child = self.child.clone();
        Box::new(move || child.kill())
    }

    /// Returns the error of a child that failed before it sent anything. The message of the child is on its standard
    /// error.
    fn failure(&self) -> Option<io::Error> {
        /// The time that a process needs to end after it has closed its output.
        const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
        let begin = Instant::now();
        loop {
            match self.child.lock().try_wait() {
                Ok(Some(status)) if !status.success() => {
                    return Some(io::Error::other(format!("{} ended with {status}", self.program)));
                }
                Ok(None) if begin.elapsed() < EXIT_TIMEOUT => thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }
}

impl SharedChild {
    fn lock(&self) -> MutexGuard<'_, Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self) {
        // `kill` fails if the child has ended, which is the intended state.
        let _ = self.lock().kill();
    }
}

impl Read for ChildPipes {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.stdout.read(buf)?;
        if n == 0 && !self.has_received {
            self.failure().map_or(Ok(0), Err)
        } else {
            self.has_received = true;
            Ok(n)
        }
    }
}

impl Drop for ChildPipes {
    fn drop(&mut self) {
        self.child.kill();
        let _ = self.child.lock().wait();
    }
}
