//! Files that a command writes, and `--overwrite`.
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

use super::link;
use crate::run::{Failure, Kind};

/// Whether a command can replace files.
#[derive(Debug, clap::Args)]
pub(crate) struct OverwriteArgs {
    /// Replace output files that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// A file to write to.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
    /// Whether `open` created the file.
    created: bool,
}

impl OverwriteArgs {
    /// Fails if `path` is an existing file, unless there is `--overwrite`. Devices and pipes are not replaced by
    /// writing to them, so they always pass.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Failure> {
        let exists = !self.overwrite && fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        if exists { Err(already_exists(path)) } else { Ok(()) }
    }
}

impl OutputFile {
    /// Opens a file for writing. An existing file keeps its contents until [`truncate`](Self::truncate).
    pub(crate) fn open(path: &Path, overwrite: &OverwriteArgs) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true);
        let (file, created) = match options.clone().create_new(true).open(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                overwrite.check(path)?;
                // A symbolic link can refer to a file that does not exist: `create` creates that file.
                (link::open(path, options.create(true)), false)
            }
            file => (file, true),
        };
        let file = file.and_then(not_a_terminal).map_err(|e| cannot_write(path, &e))?;
        Ok(Self { path: path.to_owned(), file, created })
    }

    /// Removes the old contents. Devices and pipes have none.
    pub(crate) fn truncate(&self) -> Result<(), Failure> {
        let truncate = || if self.file.metadata()?.is_file() { self.file.set_len(0) } else { Ok(()) };
        truncate().map_err(|e| cannot_write(&self.path, &e))
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// Returns the path, if the file did not exist before.
    pub(crate) fn created(&self) -> Option<&Path> {
        self.created.then_some(self.path.as_path())
    }
}

/// Fails if the file is a terminal, which the bytes of a trace would control.
pub(crate) fn not_a_terminal(file: File) -> io::Result<File> {
    if file.is_terminal() { Err(io::Error::other("it is a terminal")) } else { Ok(file) }
}

/// The failure for a file that exists.
pub(crate) fn already_exists(path: &Path) -> Failure {
    Failure::new(Kind::Io, format!("{} exists already", path.display()))
        .with_hint("pass --overwrite to replace it, or choose another file")
}

/// The failure for a file that cannot be written.
pub(crate) fn cannot_write(path: &Path, e: &io::Error) -> Failure {
    Failure::io(format_args!("cannot write {}", path.display()), e)
}
