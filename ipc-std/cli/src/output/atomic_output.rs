//! Output files that appear under their name only when they are complete, and keep the mode of the file before.
use std::ffi::OsStr;
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ipc_proto::wire::to_u64;
use tempfile::{Builder, NamedTempFile};

use super::link;
use super::output_file::{OverwriteArgs, already_exists, not_a_terminal};
use super::stdout::{self, binary_stdout, is_stdout};
use crate::run::Failure;
use crate::run::signals;
use crate::run::temporary_file;

/// An output file that appears under its name only when it is complete, or a stream.
pub(crate) struct AtomicOutput {
    name: String,
    bytes: u64,
    is_closed: bool,
    target: Destination,
}

enum Destination {
    /// A temporary file, its final path, and whether it can replace a file there.
    File(NamedTempFile, PathBuf, bool),
    /// Standard output, a pipe, or a device.
    Stream(File),
}

impl AtomicOutput {
    /// Fails if [`open`](Self::open) would fail, and leaves no file.
    pub(crate) fn check(path: &Path, overwrite: &OverwriteArgs) -> Result<(), Failure> {
        match fs::metadata(path) {
            _ if is_stdout(path) => Ok(()),
            // A pipe is not opened, because its reader would see the end of the file when the pipe is closed again.
            Ok(found) if is_pipe(&found) => Ok(()),
            _ => Self::open(path, overwrite).map(drop),
        }
    }

    /// Creates a temporary file beside `path`. A signal handler removes the file. `-` is standard output.
    pub(crate) fn open(path: &Path, overwrite: &OverwriteArgs) -> Result<Self, Failure> {
        let name = stdout::name(path).into_owned();
        if is_stdout(path) {
            return Ok(Self {
                name,
                bytes: 0,
                is_closed: false,
                target: Destination::Stream(binary_stdout()?),
            });
        }
        overwrite.check(path)?;
        // Signals are handled before the file exists, so that no signal ends the tool without removing the file.
        signals::handle_ends()?;
        let target = Destination::open(path, overwrite.overwrite).map_err(|e| cannot_write(&name, &e))?;
        Ok(Self { name, bytes: 0, is_closed: false, target })
    }

    /// Returns the failure for an error of writing.
    pub(crate) fn failed(&self, e: &io::Error) -> Failure {
        cannot_write(&self.name, e)
    }

    /// Returns whether the reader of the pipe closed it, which is not an error.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Gives the complete file its name. Returns its length.
    pub(crate) fn persist(self) -> Result<u64, Failure> {
        self.target.persist().map_err(|(e, path)| match e.kind() {
            ErrorKind::AlreadyExists => already_exists(&path),
            _ => cannot_write(&self.name, &e),
        })?;
        Ok(self.bytes)
    }
}

impl Write for AtomicOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(to_u64(bytes.len()));
        match self.target.write(bytes) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => self.is_closed = true,
            result => result?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives a file new contents in one step, so that no reader sees a part of them. Writes to a device.
pub(crate) fn write_at_once(path: &Path, overwrite: bool, bytes: &[u8]) -> io::Result<()> {
    let mut target = Destination::open(path, overwrite)?;
    target.write(bytes)?;
    target.persist().map_err(|(e, _)| e)
}

impl Destination {
    /// The length of the longest name that the name of its temporary file begins with. It fits in 255 bytes.
    const LONG: usize = 240;

    fn open(path: &Path, overwrite: bool) -> io::Result<Self> {
        let existing = match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let file = link::open(path, File::options().write(true))?;
                return not_a_terminal(file).map(Self::Stream);
            }
            Ok(found) => Some(found),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        // The file replaces the target of a symbolic link, which may not exist yet, instead of the link. A circle of
        // links is an error above.
        let path = link::follow(path)?;
        // Fails early if the file is not writable. The mode is that of the file that was opened, not of one that has
        // replaced it in the meantime.
        let existing = match existing {
            Some(_) => Some(link::open(&path, File::options().write(true))?.metadata()?),
            None => None,
        };
        let folder =
            path.parent().filter(|folder| *folder != Path::new("")).unwrap_or_else(|| Path::new("."));
        let mut prefix = path
            .file_name()
            .filter(|name| name.len() <= Self::LONG)
            .unwrap_or_else(|| OsStr::new("trace"))
            .to_owned();
        prefix.push(".");
        let mut options = File::options();
        options.write(true).create_new(true);
        // The umask applies to the permissions of a new file.
        #[cfg(unix)]
        options.mode(if existing.is_some() { 0o600 } else { 0o666 });
        // The errors of `tempfile_in` would have the name of the temporary file, and no code of the system.
        let create = || Builder::new().prefix(&prefix).make_in(folder, |path| options.open(path));
        let file = temporary_file::create(create)?;
        if let Some(existing) = existing {
            keep_access(file.as_file(), &existing)?;
        }
        Ok(Self::File(file, path, overwrite))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            // An error of `NamedTempFile` would have the name of the temporary file, and no code of the system.
            Self::File(file, ..) => file.as_file_mut().write_all(bytes),
            Self::Stream(file) => file.write_all(bytes),
        }
    }

    /// Gives the complete file its name. An error has this name.
    fn persist(self) -> Result<(), (io::Error, PathBuf)> {
        let Self::File(file, path, overwrite) = self else { return Ok(()) };
        let persisted = if overwrite { file.persist(&path) } else { file.persist_noclobber(&path) };
        persisted.map(drop).map_err(|e| (e.error, path))
    }
}

/// Returns whether a file is a named pipe.
pub(crate) fn is_pipe(found: &Metadata) -> bool {
    #[cfg(unix)]
    let is_pipe = found.file_type().is_fifo();
    #[cfg(windows)]
    let is_pipe = !(found.is_file() || found.is_dir());
    is_pipe
}

/// Gives a new file the mode of the file that it replaces, and its owner and group as far as the tool may. If the group
/// is another one, it gets no access.
#[cfg(unix)]
fn keep_access(file: &File, existing: &Metadata) -> io::Result<()> {
    use rustix::fs::{Gid, Uid, fchown};
    let (user, group) = (Uid::from_raw(existing.uid()), Gid::from_raw(existing.gid()));
    let new = file.metadata()?;
    let is_owner = (new.uid(), new.gid()) == (existing.uid(), existing.gid());
    let keeps_group = is_owner
        || fchown(file, Some(user), Some(group)).is_ok()
        || new.gid() == existing.gid()
        || fchown(file, None, Some(group)).is_ok();
    let mode = existing.mode() & if keeps_group { 0o777 } else { 0o707 };
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(windows)]
fn keep_access(file: &File, existing: &Metadata) -> io::Result<()> {
    file.set_permissions(existing.permissions())
}

fn cannot_write(name: &str, e: &io::Error) -> Failure {
    Failure::io(format_args!("cannot write {name}"), e)
}
