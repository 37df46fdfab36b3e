//! Symbolic links to the files of outputs.
use std::fs;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
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
        let Ok(target) = fs::read_link(&path) else { break };
        #[cfg(unix)]
        {
            let owner = fs::symlink_metadata(&path)?.uid();
            if owner != 0 && owner != rustix::process::geteuid().as_raw() {
                return Err(io::Error::other("it is a symbolic link of another user"));
            }
        }
        path.pop();
        path.push(target);
    }
    Ok(path)
}
