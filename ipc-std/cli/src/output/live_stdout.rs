//! Standard output of a command with a session: [`SessionOutput`] writes it.
use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;

use super::direct_stdout::{cannot_write, unbuffered_stdout};
use super::session_output::{Batches, Refusal, SessionOutput};
use crate::run::Failure;
use crate::run::threads::lock;

/// Standard output, after [`begin`](Self::begin). A write never waits for the reader of the output: it fails if too many
/// bytes wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveStdout;

#[derive(Debug)]
enum State {
    /// There is no session.
    Unused,
    Writing(SessionOutput<io::Result<()>>),
    Closed(ErrorKind, String),
}

static STATE: Mutex<State> = Mutex::new(State::Unused);

impl LiveStdout {
    /// From here on, a thread writes the results to standard output.
    pub(crate) fn begin() -> Result<Self, Failure> {
        let mut state = lock(&STATE);
        if let State::Unused = &*state {
            let mut file = unbuffered_stdout()?;
            let write = move |batches: &mut Batches| {
                while let Some(bytes) = batches.next() {
                    file.write_all(bytes)?;
                }
                Ok(())
            };
            *state = State::Writing(SessionOutput::spawn("stdout", write)?);
        }
        Ok(Self)
    }

    /// Returns standard output if [`begin`](Self::begin) was called.
    pub(crate) fn get() -> Option<Self> {
        (!matches!(*lock(&STATE), State::Unused)).then_some(Self)
    }

    /// Waits until everything is written. A reader that closed the pipe wants no more, which is not an error.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.end() {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(cannot_write(&e)),
            _ => Ok(()),
        }
    }

    /// Waits until everything is written.
    pub(crate) fn end(self) -> io::Result<()> {
        let mut state = lock(&STATE);
        state.end();
        state.error().map_or(Ok(()), Err)
    }
}

impl State {
    /// Waits until the thread has written everything.
    fn end(&mut self) {
        match core::mem::replace(self, Self::Unused) {
            Self::Writing(output) => match output.finish(None) {
                Ok(Ok(())) => {}
                Ok(Err(e)) => self.close(&e),
                Err(stalled) => self.close(&stalled.into()),
            },
            closed => *self = closed,
        }
    }

    fn close(&mut self, e: &io::Error) {
        *self = Self::Closed(e.kind(), e.to_string());
    }

    fn error(&self) -> Option<io::Error> {
        match self {
            // The message of a closed pipe is that of its kind.
            Self::Closed(ErrorKind::BrokenPipe, _) => Some(ErrorKind::BrokenPipe.into()),
            Self::Closed(kind, message) => Some(io::Error::new(*kind, message.clone())),
            Self::Unused | Self::Writing(_) => None,
        }
    }

    /// Closes the output if it takes no more bytes.
    fn check(&mut self, result: Result<(), Refusal>) -> io::Result<()> {
        match result {
            Ok(()) => {}
            Err(Refusal::Stalled(stalled)) => self.close(&stalled.into()),
            Err(Refusal::Ended) => self.end(),
        }
        self.error().map_or(Ok(()), Err)
    }
}

impl Write for LiveStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&STATE);
        let result = match &*state {
            State::Writing(output) => output.pass(bytes),
            State::Closed(..) => Ok(()),
            State::Unused => return Err(ErrorKind::NotConnected.into()),
        };
        state.check(result).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut state = lock(&STATE);
        let result = if let State::Writing(output) = &*state { output.check() } else { Ok(()) };
        state.check(result)
    }
}
