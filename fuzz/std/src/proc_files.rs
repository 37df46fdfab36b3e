//! The property of the readers of `/proc`.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ipc_discover::fuzzing::{Environ, Mounts, Status, start_and_end};

/// Checks the files of `/proc`: any bytes as each of them are harmless, and what a kernel writes for any name, path, or
/// variable is read as it was.
pub fn proc_files(bytes: &[u8]) {
    let _ = (start_and_end(bytes), Status::read(bytes), Mounts::new(bytes.to_vec()).is_local(Path::new("/")));
    let environment = Environ::new(bytes.to_vec());
    let _ = environment.never_suspends();
    stat(bytes);
    status(bytes);
    mounts(bytes);
    variables(bytes);
}

/// A program can have any name: the fields begin after the last parenthesis.
fn stat(name: &[u8]) {
    let fields: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
    for (state, has_ended) in [("S", false), ("Z", true)] {
        let file = [b"7 (", name, b") ", state.as_bytes(), b" ", fields.join(" ").as_bytes()].concat();
        assert_eq!(start_and_end(&file), Some((22, has_ended)));
    }
}

/// The name of a program cannot make up another line, because the kernel escapes line feeds.
fn status(name: &[u8]) {
    let name: Vec<u8> = name.iter().map(|byte| if *byte == b'\n' { b'?' } else { *byte }).collect();
    let file = [b"Name:\t", &name[..], b"\nTgid:\t9\nUid:\t1\t2\t3\t4\nNSpid:\t9\t5\n"].concat();
    assert_eq!(Status::read(&file), Some(Status { user_id: 2, leader: Some(9), local_process_id: Some(5) }));
}

/// A mount of a path that the kernel has escaped is found on that path and on those below it, but not on a path whose
/// last name only begins with its name.
fn mounts(name: &[u8]) {
    let name: Vec<u8> = name.iter().copied().filter(|byte| *byte != 0 && *byte != b'/').take(64).collect();
    if [&b""[..], b".", b".."].contains(&&*name) {
        return;
    }
    let escaped: Vec<u8> = name
        .iter()
        .flat_map(|byte| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
            other => vec![*other],
        })
        .collect();
    for (kind, is_local) in [("tmpfs", true), ("nfs4", false)] {
        let root = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /".to_vec();
        let file = [&root[..], &escaped, b" rw shared:1 - ", kind.as_bytes(), b" x rw\n"].concat();
        let mounts = Mounts::new(file);
        let path = Path::new("/").join(OsStr::from_bytes(&name));
        assert_eq!(mounts.is_local(&path), is_local, "{path:?}");
        assert_eq!(mounts.is_local(&path.join("below")), is_local, "{path:?}");
        let longer = Path::new("/").join(OsStr::from_bytes(&[&name[..], b"x"].concat()));
        assert!(mounts.is_local(&longer), "{longer:?}");
        assert!(!mounts.is_local(Path::new("relative")));
    }
}

/// Of several variables with the same name, the first one has the value.
fn variables(bytes: &[u8]) {
    let value = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let file = [b"TMPDIRS=/no\0odd\0TMPDIR=", value, b"\0TMPDIR=/second\0"].concat();
    assert_eq!(Environ::new(file).variable("TMPDIR"), Some(OsStr::from_bytes(value)));
    assert_eq!(Environ::new(value.to_vec()).variable("=never="), None);
}
