//! The file of `counters -o`, which is replaced after each interval.
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use crate::output::atomic_output::is_pipe;
use crate::output::atomic_output::{AtomicOutput, write_at_once};
use crate::output::output_file::OverwriteArgs;
use crate::run::Failure;

/// A file that always has one complete text, or a pipe or device that gets one text after the other.
pub(crate) struct TextFile {
    path: PathBuf,
    /// Whether an existing file can be replaced.
    overwrite: bool,
    /// Whether more texts follow the first one.
    #[cfg_attr(windows, expect(dead_code, reason = "only pipes of Unix are opened without waiting"))]
    is_live: bool,
    is_written: bool,
}

impl TextFile {
    /// Fails if the file exists, and cannot be replaced, or cannot be written.
    pub(crate) fn new(path: &Path, overwrite: &OverwriteArgs, is_live: bool) -> Result<Self, Failure> {
        AtomicOutput::check(path, overwrite)?;
        Ok(Self { path: path.to_owned(), overwrite: overwrite.overwrite, is_live, is_written: false })
    }

    /// Replaces the text. A pipe that no process reads gets none.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        let found = fs::metadata(&self.path);
        #[cfg(unix)]
        if found.as_ref().is_ok_and(is_pipe) {
            self.is_written |= pipe::write(&self.path, text.as_bytes(), !self.is_live)?;
            return Ok(());
        }
        // Each later text replaces a file of this command, and not one that has appeared since its start.
        write_at_once(&self.path, self.overwrite || (self.is_written && found.is_ok()), text.as_bytes())?;
        self.is_written = true;
        Ok(())
    }

    /// Writes the last text. Fails if the path is a pipe, and no process has read a text from it.
    pub(crate) fn finish(&mut self, text: &str) -> io::Result<()> {
        self.write(text)?;
        let unread = || io::Error::new(ErrorKind::NotConnected, "no process has read the pipe");
        if self.is_written { Ok(()) } else { Err(unread()) }
    }
}

#[cfg(unix)]
mod pipe {
    //! Pipes that no process reads, or a process that does not read, which would block the tool indefinitely.
    use core::time::Duration;
    use std::fs::File;
    use std::io::{self, ErrorKind, Write};
    use std::path::Path;
    use std::thread;
    use std::time::Instant;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;

    /// The time until a pipe has a reader, and until that has read a text.
    const PATIENCE: Duration = Duration::from_secs(10);
    const TICK: Duration = Duration::from_millis(20);

    /// Writes a text. Returns `false` if no process reads the pipe, also after a moment if the call `waits`.
    pub(super) fn write(path: &Path, mut text: &[u8], waits: bool) -> io::Result<bool> {
        let began = Instant::now();
        let left = || PATIENCE.saturating_sub(began.elapsed());
        let mut pipe = loop {
            match open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
                Err(Errno::NXIO) if waits && !left().is_zero() => thread::sleep(TICK),
                Err(Errno::NXIO) => return Ok(false),
                pipe => break File::from(pipe?),
            }
        };
        while !text.is_empty() {
            match pipe.write(text) {
                Ok(n) => text = text.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // The reader wants no more of this text.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => break,
                Err(e) if e.kind() == ErrorKind::WouldBlock && !left().is_zero() => {
                    let timeout = Timespec::try_from(left()).unwrap_or_default();
                    match poll(&mut [PollFd::new(&pipe, PollFlags::OUT)], Some(&timeout)) {
                        Err(Errno::INTR) | Ok(_) => {}
                        Err(e) => return Err(e.into()),
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "the reader of the pipe does not read"));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}
