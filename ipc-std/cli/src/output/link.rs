//! Symbolic links to the files of outputs.
use std::fs;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Fails for a symbolic link of another user, unless that is root: in a folder where others can write, it leads to a file
/// that they choose.
pub(super) fn may_follow(link: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let owner = fs::symlink_metadata(link)?.uid();
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it is a symbolic link of another user"));
        }
    }
    Ok(())
}
