//! Symbolic links to the files of outputs.
use std::fs::{self, File, OpenOptions};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The maximum number of symbolic links that lead to a file, as on Linux.
const MAX_LINKS: usize = 40;

/// Returns the file to which symbolic links lead, which may not exist; `path` itself if it is no link. The target of a
/// link of `/proc` to an open file is no path.
///
/// Fails for a link of another user, unless that is root: in a folder where others can write, it leads to a file that
/// they choose.
pub(super) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        let Some((target, owner)) = read_link(&path) else { break };
        if owner != 0 && owner != user() {
            return Err(io::Error::other("it is a symbolic link of another user"));
        }
        path.pop();
        path.push(target);
    }
    Ok(path)
}

/// Opens the file to which symbolic links lead. Fails if a further link has taken the place of the file: it could be one
/// of another user.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let target = follow(path)?;
    let is_open_file = target != path && fs::symlink_metadata(&target).is_err() && fs::metadata(path).is_ok();
    if is_open_file {
        return options.open(path);
    }
    #[cfg(unix)]
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    options.open(target)
}

/// Returns the target of a symbolic link, and its owner. Both are of the same link, even if another process replaces it
/// meanwhile.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn read_link(path: &Path) -> Option<(PathBuf, u32)> {
    use std::os::unix::ffi::OsStringExt;

    use rustix::fs::{Mode, OFlags, fstat, open, readlinkat};
    let link = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let target = readlinkat(&link, "", Vec::new()).ok()?;
    Some((std::ffi::OsString::from_vec(target.into_bytes()).into(), fstat(&link).ok()?.st_uid))
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
fn read_link(path: &Path) -> Option<(PathBuf, u32)> {
    use std::os::unix::fs::MetadataExt;
    Some((fs::read_link(path).ok()?, fs::symlink_metadata(path).ok()?.uid()))
}

#[cfg(windows)]
fn read_link(path: &Path) -> Option<(PathBuf, u32)> {
    Some((fs::read_link(path).ok()?, user()))
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Only an administrator can create symbolic links.
#[cfg(windows)]
const fn user() -> u32 {
    0
}
