//! `ChildPipes`: the pipes of a child process as a connection.
use core::time::Duration;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::worker::Interrupt;
use crate::sys::PipePair;

/// The standard output of a child process, which is one half of a connection. Dropping it ends and reaps the child.
pub(super) struct ChildPipes {
    /// The pipes. The input is closed before the child is killed: the end of its input is the polite end of a program.
    /// The programs that the child has started see this end, too.
    pipes: Option<Arc<PipePair>>,
    child: Child,
    program: String,
}

/// The standard input of a child process, which is the other half.
pub(super) struct ChildInput(Arc<PipePair>);

impl ChildPipes {
    /// Starts the program; returns both halves of the connection, and a function that ends their waits.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Self, ChildInput, Interrupt)> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut this = Self { pipes: None, child, program };
        let (Some(stdin), Some(stdout)) = (this.child.stdin.take(), this.child.stdout.take()) else {
            return Err(io::Error::other("a child process without pipes"));
        };
        let pipes = Arc::new(PipePair::new(stdin, stdout)?);
        this.pipes = Some(Arc::clone(&pipes));
        let input = ChildInput(Arc::clone(&pipes));
        Ok((this, input, Box::new(move || pipes.close())))
    }

    fn pipes(&self) -> io::Result<&PipePair> {
        self.pipes.as_deref().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns the error of a child that ended with a failure. Its message is on its standard error.
    fn failure(&mut self) -> Option<io::Error> {
        /// The time that a process needs to end after it has closed its output.
        const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if !status.success() => {
                    return Some(io::Error::other(format!("{} ended with {status}", self.program)));
                }
                Ok(None) if begin.elapsed() < EXIT_TIMEOUT => thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }
}

impl Read for ChildPipes {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.pipes()?.read(buf)? {
            0 => self.failure().map_or(Ok(0), Err),
            n => Ok(n),
        }
    }
}

impl Write for ChildInput {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ChildPipes {
    fn drop(&mut self) {
        self.pipes.iter().for_each(|pipes| pipes.close_input());
        // `kill` fails if the child has ended, which is the intended state.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
