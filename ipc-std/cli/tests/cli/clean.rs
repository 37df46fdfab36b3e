//! Tests of the sockets that `clean` removes.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use ipc_std::discover;
use tempfile::TempDir;

use crate::search::*;
use crate::tool::{FakeProcess, TOOL, dead_socket, finish};

/// Returns the files in a directory.
fn files(directory: &Path) -> Vec<String> {
    let names =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn stale_sockets_are_removed() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let live = FakeProcess::start(directory.path());
    let crashed = FakeProcess::start(directory.path());
    let stale = crashed.socket.clone();
    crashed.crash();
    let key = stale.to_str().unwrap().rsplit('-').nth(1).unwrap().to_owned();
    let id = stale.to_str().unwrap().rsplit('-').nth(2).unwrap().to_owned();
    for end in ["in", "out"] {
        let pipe = path(&format!("clr-debug-pipe-{id}-{key}-{end}"));
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let idle = Idle::start();
    let reused = idle.socket(directory.path(), 9);
    dead_socket(&reused);
    let router = path("dotnet-diagnostic-dsrouter-4000000001-1-socket");
    dead_socket(&router);
    // These stay: the socket of a process that may be about to listen, an ordinary file, and a socket with a listener.
    let about_to_listen = idle.socket(directory.path(), 0);
    dead_socket(&about_to_listen);
    File::create(path("dotnet-diagnostic-4000000002-1-socket")).unwrap();
    let unseen = path("dotnet-diagnostic-4000000003-1-socket");
    let _listener = UnixListener::bind(&unseen).unwrap();
    let before = files(directory.path());

    let ran = run_in(directory.path(), &["clean", "--dry-run"]).well();
    let mut shown: Vec<_> = ran.text().lines().collect();
    shown.sort_unstable();
    let mut expected = [&stale, &reused, &router].map(|path| format!("stale {}", path.display())).to_vec();
    expected.extend(
        ["in", "out"]
            .map(|end| format!("  and {}", path(&format!("clr-debug-pipe-{id}-{key}-{end}")).display())),
    );
    expected.sort();
    assert_eq!(shown, expected);
    let ran = run_in(directory.path(), &["clean"]);
    assert_eq!((ran.status, ran.text().lines().count()), (Some(2), 5), "{ran:?}");
    assert!(ran.stderr.contains("nothing removed") && ran.stderr.contains("--yes"), "{ran:?}");
    run_in(directory.path(), &["clean", "--json"]).fails(2, "nothing removed");
    assert_eq!(files(directory.path()), before);

    let ran = run_in(directory.path(), &["clean", "--yes", "--json"]).well();
    let mut removed: Vec<_> =
        ran.lines().iter().map(|line| line["removed"].as_array().unwrap().len()).collect();
    removed.sort_unstable();
    assert_eq!(removed, [1, 1, 3], "{ran:?}");
    let rest: Vec<_> = files(directory.path());
    let kept =
        [live.socket.as_path(), &about_to_listen, &path("dotnet-diagnostic-4000000002-1-socket"), &unseen];
    let mut kept = kept.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    kept.sort();
    assert_eq!(rest, kept);
    let ran = run_in(directory.path(), &["clean"]);
    assert_eq!((ran.status, ran.text(), ran.stderr.as_str()), (Some(0), "", "note: no stale sockets\n"));
    run_in(directory.path(), &["clean", "/nowhere"]).fails(1, "cannot search /nowhere");
    dead_socket(&stale);
    let ran =
        run_in(directory.path(), &["clean", "--dry-run", directory.path().to_str().unwrap(), "/nowhere"]);
    assert_eq!(ran.text(), format!("stale {}\n", stale.display()), "{ran:?}");
    ran.fails(1, "cannot search /nowhere");
}

#[test]
fn sockets_of_other_users_are_not_removed() {
    if !is_root() {
        eprintln!("NOT RUN: only root can create files of another user");
        return;
    }
    let directory = TempDir::new().unwrap();
    let stale = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&stale);
    let mut command = powerless(directory.path());
    let ran = finish(command.args(["clean", "--yes"]).spawn().unwrap());
    // This user has no permission to connect, so the socket is not proven dead.
    assert_eq!((ran.text(), ran.stderr.as_str()), ("", "note: no stale sockets\n"));
    fs::set_permissions(&stale, fs::Permissions::from_mode(0o666)).unwrap();
    let mut command = powerless(directory.path());
    let ran = finish(command.args(["clean", "--yes"]).spawn().unwrap()).well();
    assert!(ran.text().contains("owned by user 0"), "{ran:?}");
    assert!(stale.exists());
}

#[test]
fn a_new_socket_is_not_removed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&path);
    let stale = discover::stale(directory.path()).unwrap().pop().unwrap();
    fs::remove_file(&path).unwrap();
    let runtime = FakeProcess::start(directory.path());
    runtime.rename_socket(&path);
    assert!(stale.remove().unwrap().is_empty());
    runtime.crash();
    // The new socket is dead, too, but only the old one was proven dead.
    assert!(stale.remove().unwrap().is_empty() && path.exists());
    let stale = discover::stale(directory.path()).unwrap().pop().unwrap();
    assert_eq!(stale.remove().unwrap(), [path]);
    assert!(stale.remove().unwrap().is_empty());
}

#[test]
fn only_pipes_are_removed_with_a_socket() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("dotnet-diagnostic-4000000001-1-socket");
    dead_socket(&socket);
    let [file, pipe, others] =
        ["in", "out", "x"].map(|end| directory.path().join(format!("clr-debug-pipe-4000000001-1-{end}")));
    for pipe in [&file, &pipe, &others] {
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let stale = discover::stale(directory.path()).unwrap().pop().unwrap();
    assert_eq!(stale.pipes, [file.clone(), pipe.clone()]);
    // After the search, an ordinary file replaces the pipe.
    fs::remove_file(&file).unwrap();
    fs::write(&file, "precious").unwrap();
    assert_eq!(stale.remove().unwrap(), [socket.clone(), pipe.clone()]);
    assert!(file.exists() && others.exists());
    if is_root() {
        // A pipe of another user is not removed either.
        dead_socket(&socket);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::chown(&pipe, Some(65534), None).unwrap();
        assert!(discover::stale(directory.path()).unwrap().pop().unwrap().pipes.is_empty());
    }
}

#[test]
fn a_socket_bound_in_another_overlay_layer_is_not_removed() {
    let Some(mut command) = unshare(&["-m"]) else { return };
    let base = TempDir::new().unwrap();
    // The upper directory of an overlay has the socket file, but a connection to it finds no listener.
    let script = "cd \"$1\" && mount -t tmpfs none . && cd \"$1\" && mkdir lower upper work merged && \
        mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none merged || exit 99; \
        mkfifo hold; exec 3<>hold; unshare -p -f --kill-child --mount-proc \"$0\" fake-runtime --dir \"$PWD/merged\" <&3 >started & \
        until test -s started; do :; done; \
        \"$0\" clean --yes upper; test -S upper/dotnet-diagnostic-*; left=$?; kill -9 $!; exit $left";
    let ran = finish(command.args(["sh", "-c", script, TOOL]).arg(base.path()).spawn().unwrap());
    if ran.status == Some(99) {
        eprintln!("NOT RUN: overlay mounts are not available here");
        return;
    }
    assert_eq!(ran.status, Some(0), "the socket was removed: {ran:?}");
    assert!(!ran.text().contains("removed"), "{ran:?}");
}
