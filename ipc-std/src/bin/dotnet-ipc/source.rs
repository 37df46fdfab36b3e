//! Traces that are files, or come through a pipe.
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

    /// What to call it.
    pub(crate) fn name(&self) -> impl fmt::Display {
        Name(&self.path)
    }

    pub(crate) fn failed(&self, e: &io::Error) -> Failure {
        Failure::io(format_args!("cannot read {}", self.name()), e)
    }
}

/// Without the buffer that Rust's has, which would only be one more.
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

struct Name<'p>(&'p Path);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str() == "-" { f.write_str("standard input") } else { self.0.display().fmt(f) }
    }
}

/// What an end that is not as it should be comes to.
pub(crate) fn check(end: End, name: impl fmt::Display) -> Result<(), Failure> {
    match end {
        End::Complete => Ok(()),
        End::Truncated { offset: 0, .. } => {
            Err(Failure::new(Kind::Gone, format!("{name}: the trace is truncated: there is nothing in it"))
                .with_hint("whatever should write it wrote nothing, or not yet"))
        }
        End::Truncated { .. } => Err(Failure::new(Kind::Gone, format!("{name}: the trace is {end}"))
            .with_hint("what the runtime wrote before it went away, or before somebody cut it, was read")),
        End::Corrupt { .. } => Err(Failure::new(Kind::Protocol, format!("{name}: the trace is {end}"))
            .with_hint("all that is good in it was read")),
    }
}
