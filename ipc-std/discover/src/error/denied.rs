//! Why access to a file was denied.
use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use crate::sys;

/// The reason why the operating system denied access to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// The file that denied access: the requested file, or a directory above the requested file.
    pub by: PathBuf,
    /// The user who owns the file, if known.
    pub owner: Option<u32>,
    /// The permissions of the file, if known.
    pub mode: Option<u32>,
    /// The user of this process, on systems where users have numbers.
    pub own_user: Option<u32>,
    /// The operating system's error code.
    pub errno: i32,
}

impl Denied {
    /// Explains an error of opening `path`.
    #[cfg(unix)]
    #[must_use]
    pub fn new(path: &Path, error: &io::Error) -> Self {
        use std::os::unix::fs::MetadataExt;
        // If a file has no metadata, a directory above it hides the file.
        let seen = path.ancestors().find_map(|path| Some((path, path.metadata().ok()?)));
        let by = seen.as_ref().map_or(path, |(by, _)| by).to_owned();
        let metadata = seen.map(|(_, metadata)| metadata);
        Self {
            by,
            owner: metadata.as_ref().map(MetadataExt::uid),
            mode: metadata.as_ref().map(|metadata| metadata.mode() & 0o7777),
            own_user: Some(sys::own_user()),
            errno: error.raw_os_error().unwrap_or_default(),
        }
    }
    /// Explains an error of opening `path`. Windows does not report the owner to users without access.
    #[cfg(windows)]
    #[must_use]
    pub fn new(path: &Path, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or_default();
        Self { by: path.to_owned(), owner: None, mode: None, own_user: None, errno }
    }

    /// Returns whether permission was missing; otherwise access failed with another error.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        io::Error::from_raw_os_error(self.errno).kind() == io::ErrorKind::PermissionDenied
    }

    /// Returns a remedy for the user.
    #[must_use]
    pub fn advice(&self) -> String {
        match self.owner {
            Some(owner) if self.own_user != Some(owner) && owner != 0 => {
                format!("run as user {owner} or as root")
            }
            _ if cfg!(windows) => "run as the user of the process or as an administrator".to_owned(),
            _ if self.own_user != Some(0) => "run as the user of the process or as root".to_owned(),
            _ => "blocked by a namespace or security module (AppArmor, seccomp); run outside the container"
                .to_owned(),
        }
    }
}

/// Writes `/x belongs to user 0 and has mode 0600, this is user 1000: Permission denied (os error 13); run as the user
/// …`.
impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        if !self.is_permission() {
            return error.fmt(f);
        }
        let Some(own_user) = self.own_user else { return write!(f, "{error}; {}", self.advice()) };
        match (self.owner, self.mode) {
            (Some(owner), Some(mode)) => {
                write!(f, "{} belongs to user {owner} and has mode {mode:04o}, ", self.by.display())?;
            }
            (Some(owner), None) => write!(f, "{} belongs to user {owner}, ", self.by.display())?,
            (None, _) => {}
        }
        write!(f, "this is user {own_user}: {error}; {}", self.advice())
    }
}
