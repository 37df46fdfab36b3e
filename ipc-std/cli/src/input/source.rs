//! Traces to read: files and pipes.
use core::fmt;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use nettrace::{Corruption, End, Limits, ParserBuf};

use super::reading_progress::ReadingProgress;
use crate::run::{Failure, Globals, Kind};

/// A trace to read.
#[derive(Debug)]
pub(crate) struct Source {
    /// `-` is standard input.
    path: PathBuf,
    file: File,
    progress: Option<ReadingProgress>,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let file = if path.as_os_str() == "-" { stdin() } else { File::open(path) };
        match file {
            Ok(file) => Ok(Self { path: path.to_owned(), file, progress: None }),
            Err(e) => Err(Failure::io(format_args!("cannot read {}", name(path)), &e)),
        }
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        name(&self.path)
    }

    /// Returns whether the trace can be read twice: it is a file with a name.
    pub(crate) fn is_regular(&self) -> bool {
        self.path.as_os_str() != "-" && self.file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Maps a regular file into memory, if the option `--map` is given.
    #[allow(
        unsafe_code,
        reason = "nothing else maps a file, and no function can know that nobody shortens it"
    )]
    pub(crate) fn map(&self, globals: &Globals) -> Result<Option<Mmap>, Failure> {
        if !globals.map || !self.is_regular() {
            return Ok(None);
        }
        // SAFETY: the bytes may change while they are read, which a parser of untrusted bytes bears. If the file becomes
        // shorter, the process ends by SIGBUS, as the help of `--map` states.
        let map = unsafe { Mmap::map(&self.file) };
        map.map(Some).map_err(|e| Failure::io(format_args!("cannot map {}", self.name()), &e))
    }

    /// Returns the parser of the records of the trace, and the source to read from. A terminal shows the progress of
    /// reading.
    pub(crate) fn records(self, globals: &Globals) -> Result<(ParserBuf, Self), Failure> {
        let limits = Limits::default();
        let records = match self.map(globals)? {
            Some(bytes) => ParserBuf::of_bytes(bytes, limits),
            None => ParserBuf::new(limits),
        };
        Ok((records, self.with_progress()))
    }

    /// Returns the source with its progress, which standard error shows if it is a terminal.
    pub(crate) fn with_progress(self) -> Self {
        let metadata = self.file.metadata().ok().filter(|metadata| metadata.is_file());
        Self { progress: Some(ReadingProgress::new(metadata.map(|metadata| metadata.len()))), ..self }
    }

    /// Removes the progress of [`with_progress`](Self::with_progress) before other output.
    pub(crate) fn hide_progress(&mut self) {
        self.progress = None;
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
        let read = self.file.read(buf)?;
        if let Some(progress) = &mut self.progress {
            progress.add(read);
        }
        Ok(read)
    }
}

/// Returns the name of a trace for messages.
pub(crate) fn name(path: &Path) -> Cow<'_, str> {
    if path.as_os_str() == "-" { "standard input".into() } else { path.to_string_lossy() }
}

/// Returns the reason if the version of the trace is not supported.
pub(crate) fn unsupported(end: End) -> Option<String> {
    match end {
        End::Corrupt { reason: Corruption::Version(version @ (..=2 | 7..)), .. } => {
            Some(format!("version {version} of the format is not supported; 3 to 6 are"))
        }
        _ => None,
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
        End::Corrupt { .. } => Err(match unsupported(end) {
            Some(reason) => Failure::new(Kind::UnsupportedVersion, format!("{name}: {reason}")),
            None => failure(format!("{name}: the trace is {end}"))
                .with_hint("the events outside of the corrupt part were read"),
        }),
    }
}
