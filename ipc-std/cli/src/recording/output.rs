//! The file or pipe that a trace is written to.
use core::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use ipc_proto::wire::to_u64;
use nettrace::{End, Losses, Record, TraceClock, Version};

use super::counter::EventCounter;
use crate::output::output_file::{OutputFile, OverwriteArgs};
use crate::output::stdout::{self, binary_stdout, is_stdout};
use crate::run::Failure;
use crate::run::threads::lock;

/// The file or pipe that a trace is written to, and the counts of what it has received. Clones are the same file.
#[derive(Debug, Clone)]
pub(crate) struct TraceOutput {
    /// `-` is standard output.
    path: PathBuf,
    file: Arc<File>,
    /// The path, if the file did not exist before.
    created: Option<PathBuf>,
    is_regular: bool,
    written: Arc<Mutex<Written>>,
}

/// The bytes that a file or pipe has received, and the events in them.
#[derive(Debug)]
struct Written {
    bytes: u64,
    counter: EventCounter,
    is_closed: bool,
}

/// What a file or pipe has received so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenCounts {
    pub(crate) bytes: u64,
    pub(crate) events: u64,
    pub(crate) losses: Losses,
    /// The clock of the trace, once it has begun.
    pub(crate) clock: Option<TraceClock>,
    /// Where and why the events could not be counted. The counts are then those of the valid part.
    pub(crate) corrupt: Option<End>,
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
            file: Arc::new(file),
            created,
            is_regular,
            written: Arc::new(Mutex::new(Written {
                bytes: 0,
                counter: EventCounter::new(),
                is_closed: false,
            })),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes that were written.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.written).bytes
    }

    pub(crate) fn counts(&self) -> WrittenCounts {
        let Written { bytes, counter, .. } = &*lock(&self.written);
        WrittenCounts {
            bytes: *bytes,
            events: counter.events(),
            losses: counter.losses(),
            clock: counter.clock(),
            corrupt: counter.corrupt(),
        }
    }

    /// Waits for one of these events.
    pub(crate) fn wait_until(&self, until: &[OnlyArg]) {
        lock(&self.written).counter.wait_until(until);
    }

    /// Looks for the events of [`wait_until`](Self::wait_until) in a record whose bytes are written later.
    pub(super) fn see(&self, record: &Record<'_>, version: Version) {
        lock(&self.written).counter.until_mut().record(record, version);
    }

    /// Returns whether one of the events of [`wait_until`](Self::wait_until) has arrived.
    pub(crate) fn has_until(&self) -> bool {
        lock(&self.written).counter.has_until()
    }

    /// Returns whether the trace has its end mark, which bytes can follow.
    pub(super) fn is_complete(&self) -> bool {
        lock(&self.written).counter.is_complete()
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

    /// Returns whether the reader of the pipe has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.written).is_closed
    }

    /// Writes bytes of the trace, and counts those that were written.
    pub(crate) fn write(&self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            match (&*self.file).write(bytes) {
                Ok(0) => return Err(self.failed(&ErrorKind::WriteZero.into())),
                Ok(n) => {
                    let (written, rest) = bytes.split_at_checked(n).unwrap_or((bytes, &[]));
                    let mut counts = lock(&self.written);
                    counts.bytes = counts.bytes.saturating_add(to_u64(n));
                    counts.counter.push(written);
                    bytes = rest;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    lock(&self.written).is_closed |= e.kind() == ErrorKind::BrokenPipe;
                    return Err(self.failed(&e));
                }
            }
        }
        Ok(())
    }

    /// Returns the failure for an error of writing.
    pub(super) fn failed(&self, e: &io::Error) -> Failure {
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
