//! Traces to read: files and pipes.
use core::fmt;
use std::fs::File;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};

use ipc_proto::nettrace::End;

use crate::failure::{Failure, Kind};

/// A trace to read.
#[derive(Debug)]
pub(crate) struct Source {
    /// `-` is standard input.
    path: PathBuf,
    file: File,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let file = if path.as_os_str() == "-" { stdin() } else { File::open(path) };
        match file {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(e) => Err(Failure::io(format_args!("cannot read {}", Name(path)), &e)),
        }
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> impl fmt::Display {
        name(&self.path)
    }

    pub(crate) fn failed(&self, e: &io::Error) -> Failure {
        Failure::io(format_args!("cannot read {}", self.name()), e)
    }
}

/// Returns standard input without the buffer of [`io::Stdin`], because the reader has its own.
fn stdin() -> io::Result<File> {
    #[cfg(unix)]
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    #[cfg(windows)]
    let stdin = io::stdin().as_handle().try_clone_to_owned();
    stdin.map(File::from)
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.file.read(buf)
    }
}

/// Returns the name of a trace for messages.
pub(crate) const fn name(path: &Path) -> impl fmt::Display {
    Name(path)
}

struct Name<'p>(&'p Path);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str() == "-" { f.write_str("standard input") } else { self.0.display().fmt(f) }
    }
}

/// Fails if the trace is truncated or corrupt.
pub(crate) fn check(end: End, name: impl fmt::Display) -> Result<(), Failure> {
    let failure = |message: String| Failure::new(Kind::Protocol, message);
    match end {
        End::Complete => Ok(()),
        End::Truncated { offset: 0, .. } => Err(failure(format!("{name}: the trace is empty"))
            .with_hint("the program that records the trace has not written to it")),
        End::Truncated { .. } => Err(failure(format!("{name}: the trace is {end}")).with_hint(
            "the recording did not finish, or the file was cut; the events before that were read",
        )),
        End::Corrupt { .. } => Err(failure(format!("{name}: the trace is {end}"))
            .with_hint("the events outside of the corrupt part were read")),
    }
}
