//! The file or pipe that a trace is written to.
use core::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use ipc_proto::wire::to_u64;

use super::counter::EventCounter;
use crate::output::failure::Failure;
use crate::output::output_file::{OutputFile, OverwriteArgs};
use crate::output::stdout::{self, binary_stdout, is_stdout};

/// The file or pipe that a trace is written to, and the counts of what it has received.
#[derive(Debug)]
pub(crate) struct TraceOutput {
    /// `-` is standard output.
    path: PathBuf,
    file: File,
    /// The path, if the file did not exist before.
    created: Option<PathBuf>,
    is_regular: bool,
    /// Bytes that were written.
    bytes: u64,
    counter: EventCounter,
    has_failed: bool,
    is_closed: bool,
}

impl TraceOutput {
    /// Opens the file. An existing file keeps its contents until [`truncate`](Self::truncate).
    pub(crate) fn open(path: &Path, overwrite: &OverwriteArgs) -> Result<Self, Failure> {
        let is_stdout = is_stdout(path);
        let (file, created) = if is_stdout {
            (binary_stdout()?, None)
        } else {
            let output = OutputFile::open(path, overwrite)?;
            let created = output.created().map(Path::to_owned);
            (output.into_file(), created)
        };
        let is_regular = !is_stdout && file.metadata().is_ok_and(|metadata| metadata.is_file());
        Ok(Self {
            path: path.to_owned(),
            file,
            created,
            is_regular,
            bytes: 0,
            counter: EventCounter::new(),
            has_failed: false,
            is_closed: false,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn counter(&self) -> &EventCounter {
        &self.counter
    }

    pub(crate) const fn counter_mut(&mut self) -> &mut EventCounter {
        &mut self.counter
    }

    /// Returns the path, if the file did not exist before.
    pub(crate) fn created(&self) -> Option<&Path> {
        self.created.as_deref()
    }

    /// Removes the old contents of a file. Devices and pipes have none, and a file on standard output does not belong
    /// to the tool.
    pub(crate) fn truncate(&self) -> Result<(), Failure> {
        if self.is_regular { self.file.set_len(0).map_err(|e| self.failed(&e)) } else { Ok(()) }
    }

    /// Returns whether a write has failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns whether the reader of the pipe has closed it.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Writes bytes of the trace, and counts those that were written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.write_all(bytes);
        self.has_failed |= written.is_err();
        written
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(self.failed(&ErrorKind::WriteZero.into())),
                Ok(n) => {
                    let (written, rest) = bytes.split_at_checked(n).unwrap_or((bytes, &[]));
                    self.bytes = self.bytes.saturating_add(to_u64(n));
                    self.counter.push(written);
                    bytes = rest;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    self.is_closed |= e.kind() == ErrorKind::BrokenPipe;
                    return Err(self.failed(&e));
                }
            }
        }
        Ok(())
    }

    fn failed(&self, e: &io::Error) -> Failure {
        let failure = Failure::io(format_args!("cannot write {self}"), e);
        // The hint is about disks, and does not help here: the reader of the pipe closed it on purpose.
        if e.kind() == ErrorKind::BrokenPipe { failure.without_hint() } else { failure }
    }

    /// Removes a file that was created for a trace that could not start.
    pub(crate) fn abandon(&self) {
        remove(self.created());
    }
}

impl fmt::Display for TraceOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        stdout::name(&self.path).fmt(f)
    }
}

/// Removes a file that was created for a trace that could not start.
pub(crate) fn remove(created: Option<&Path>) {
    // An error is ignored: another process may have removed the file.
    let _ = created.map(fs::remove_file);
}
