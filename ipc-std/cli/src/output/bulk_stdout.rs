//! Standard output for many lines, which can be written while the next ones are formatted.
use core::ops::ControlFlow;
use std::io::{self, ErrorKind, Write};

use super::direct_stdout::{UnbufferedStdout, cannot_write, is_device, unbuffered_stdout};
use super::live_stdout::LiveStdout;
use crate::run::Failure;
use crate::run::worker::Worker;

/// Standard output, without the line buffer of [`io::Stdout`].
#[derive(Debug)]
pub(crate) enum BulkStdout {
    Direct(UnbufferedStdout),
    /// A thread writes the bytes, and returns the file and the result of writing.
    Background(Worker<(UnbufferedStdout, io::Result<()>)>),
    /// Standard output of a session.
    Live(LiveStdout),
    /// Writing has failed.
    Closed(io::Error),
}

impl BulkStdout {
    /// Opens standard output. With `in_background` a thread writes to a file or a pipe, which takes more memory and
    /// reports a failure later. A device gets bytes as soon as they are formatted: for the null device, to wake a thread
    /// takes longer than to write.
    pub(crate) fn open(in_background: bool) -> Result<Self, Failure> {
        let file = unbuffered_stdout()?;
        if !in_background || is_device() {
            return Ok(Self::Direct(file));
        }
        let write = |(file, result): &mut (UnbufferedStdout, io::Result<()>), batch: &[u8]| {
            *result = file.write_all(batch);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let worker = Worker::spawn("stdout", (file, Ok(())), write);
        worker.map(Self::Background).map_err(|e| cannot_write(&e))
    }

    /// Opens standard output for a session.
    pub(crate) fn live() -> Result<Self, Failure> {
        LiveStdout::begin().map(Self::Live)
    }

    /// Returns the number of bytes that are best written at once.
    pub(crate) const fn batch(&self) -> usize {
        match self {
            // A larger batch saves calls, but does not fit in the cache of a core, which costs more.
            Self::Direct(_) | Self::Live(_) | Self::Closed(_) => 64 << 10,
            // Larger, because each batch wakes the thread.
            Self::Background(_) => 256 << 10,
        }
    }

    /// Writes the bytes and removes them. After a failure they are only removed.
    pub(crate) fn write(&mut self, bytes: &mut Vec<u8>) {
        match self {
            // Also without bytes: writing earlier ones can have failed.
            Self::Live(stdout) => {
                if let Err(e) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
                    *self = Self::Closed(e);
                }
            }
            _ if bytes.is_empty() => {}
            Self::Direct(file) => {
                if let Err(e) = file.write_all(bytes) {
                    *self = Self::Closed(e);
                }
            }
            Self::Background(worker) => match worker.pass(core::mem::take(bytes)) {
                Some(empty) => *bytes = empty,
                None => self.join(),
            },
            Self::Closed(_) => {}
        }
        bytes.clear();
    }

    /// Returns whether writing has failed.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Waits until everything is written. A reader that closed the pipe wants no more, which is not an error.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.join();
        match self {
            Self::Closed(e) if e.kind() != ErrorKind::BrokenPipe => Err(cannot_write(e)),
            _ => Ok(()),
        }
    }

    /// Waits until the thread, if there is one, has written everything.
    fn join(&mut self) {
        // A placeholder, which is replaced at once.
        match core::mem::replace(self, Self::Closed(ErrorKind::Other.into())) {
            Self::Background(worker) => {
                *self = match worker.finish() {
                    Ok((file, Ok(()))) => Self::Direct(file),
                    Ok((_, Err(e))) | Err(e) => Self::Closed(e),
                };
            }
            Self::Live(stdout) => *self = stdout.end().map_or_else(Self::Closed, |()| Self::Live(stdout)),
            other => *self = other,
        }
    }
}
