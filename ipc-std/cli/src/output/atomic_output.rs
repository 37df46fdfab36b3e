//! Output files that appear under their name only when they are complete.
use std::ffi::OsStr;
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ipc_proto::wire::to_u64;
use tempfile::NamedTempFile;

use super::failure::Failure;
use super::output_file::{OverwriteArgs, already_exists, not_a_terminal};
use super::signals;
use super::stdout::{self, binary_stdout, is_stdout};
use super::temporary_file;

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
        let is_stream = is_stdout(path) || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        // A pipe is not opened, because its reader would see the end of the file when the pipe is closed again.
        if is_stream { Ok(()) } else { Self::open(path, overwrite).map(drop) }
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

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let file = match &mut self.target {
            Destination::File(file, ..) => file.as_file_mut(),
            Destination::Stream(file) => file,
        };
        self.bytes = self.bytes.saturating_add(to_u64(bytes.len()));
        match file.write_all(bytes) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => self.is_closed = true,
            result => result.map_err(|e| cannot_write(&self.name, &e))?,
        }
        Ok(())
    }

    /// Returns whether the reader of the pipe closed it, which is no error.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Gives the complete file its name. Returns its length.
    pub(crate) fn persist(self) -> Result<u64, Failure> {
        if let Destination::File(file, path, overwrite) = self.target {
            let persisted = if overwrite { file.persist(&path) } else { file.persist_noclobber(&path) };
            persisted.map_err(|e| match e.error.kind() {
                ErrorKind::AlreadyExists => already_exists(&path),
                _ => cannot_write(&self.name, &e.error),
            })?;
        }
        Ok(self.bytes)
    }
}

impl Destination {
    fn open(path: &Path, overwrite: bool) -> io::Result<Self> {
        let permissions = match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path)?;
                return not_a_terminal(file).map(Self::Stream);
            }
            Ok(found) => Some(found.permissions()),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        // The file replaces the target of a symbolic link, which may not exist yet, instead of the link. A circle of
        // links is an error above.
        let mut path = path.to_owned();
        while let Ok(target) = fs::read_link(&path) {
            path.pop();
            path.push(target);
        }
        if permissions.is_some() {
            // Fails early if the file is not writable.
            File::options().write(true).open(&path)?;
        }
        let folder =
            path.parent().filter(|folder| *folder != Path::new("")).unwrap_or_else(|| Path::new("."));
        let mut prefix = path.file_name().unwrap_or_else(|| OsStr::new("trace")).to_owned();
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        // The umask applies to the permissions of a new file.
        #[cfg(unix)]
        builder.permissions(Permissions::from_mode(if permissions.is_some() { 0o600 } else { 0o666 }));
        let file = temporary_file::create(|| builder.prefix(&prefix).tempfile_in(folder))?;
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions)?;
        }
        Ok(Self::File(file, path, overwrite))
    }
}

fn cannot_write(name: &str, e: &io::Error) -> Failure {
    Failure::io(format_args!("cannot write {name}"), e)
}
