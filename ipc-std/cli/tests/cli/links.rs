//! Output files that are symbolic links.
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;

use tempfile::TempDir;

use crate::tool::{Ran, finish, tool};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/counters/net8-meters.nettrace");

/// Runs commands as a user that replace a file, one that gives it new contents in one step, and one that writes to it.
fn write(file: &Path, user: u32) -> [Ran; 3] {
    let file = file.to_str().unwrap();
    let commands = [
        &["rewrite", TRACE, "-o", file][..],
        &["counters", TRACE, "--format", "prometheus", "-o", file],
        &["info", "--socket", "/nonexistent", "--wire-log", file],
    ];
    commands.map(|args| finish(tool(&[args, &["--overwrite"]].concat()).uid(user).spawn().unwrap()))
}

/// Returns a folder in which everybody can write, as a temporary folder without its protection. Without root, there is
/// only one user.
fn open_folder() -> Option<TempDir> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can create links of other users");
        return None;
    }
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    Some(folder)
}

/// A link of another user leads to a file that this user chooses.
#[test]
fn a_link_of_another_user_is_not_followed() {
    let Some(folder) = open_folder() else { return };
    let [victim, link, further] = ["victim", "link", "further"].map(|name| folder.path().join(name));
    for exists in [true, false] {
        if exists {
            fs::write(&victim, "old").unwrap();
            fs::set_permissions(&victim, Permissions::from_mode(0o666)).unwrap();
        } else {
            fs::remove_file(&victim).unwrap();
        }
        let contents = fs::read(&victim).ok();
        symlink(&victim, &further).unwrap();
        symlink(&further, &link).unwrap();
        for (owner, user) in [(1000, 0), (1001, 1000)] {
            for (of_link, of_further) in [(owner, user), (user, owner)] {
                lchown(&link, Some(of_link), None).unwrap();
                lchown(&further, Some(of_further), None).unwrap();
                for ran in write(&link, user) {
                    ran.fails(1, "it is a symbolic link of another user");
                }
                assert_eq!(fs::read(&victim).ok(), contents, "{owner} {user}");
            }
        }
        fs::remove_file(&link).unwrap();
        fs::remove_file(&further).unwrap();
    }
}

/// Links of the user and of root are followed, and remain.
#[test]
fn own_links_and_those_of_root_are_followed() {
    let Some(folder) = open_folder() else { return };
    let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
    symlink("file", &link).unwrap();
    for (owner, user) in [(0, 0), (1000, 1000), (0, 1000)] {
        lchown(&link, Some(owner), None).unwrap();
        let [replaced, at_once, opened] = write(&link, user);
        assert_eq!(
            (replaced.status, at_once.status, opened.status),
            (Some(0), Some(0), Some(3)),
            "{opened:?}"
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && file.exists());
        fs::remove_file(&file).unwrap();
    }
}

/// A circle of links, and a chain that is longer than the system follows, are errors.
#[test]
fn links_have_an_end() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    symlink("right", path("left")).unwrap();
    symlink("left", path("right")).unwrap();
    for number in 0..100 {
        symlink((number + 1).to_string(), path(&number.to_string())).unwrap();
    }
    let user = rustix::process::geteuid().as_raw();
    for name in ["left", "0"] {
        for ran in write(&path(name), user) {
            ran.fails(1, "cannot write");
        }
    }
    assert!(!path("100").exists());
}
