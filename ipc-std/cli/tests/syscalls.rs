//! Compares the system calls of `dotnet-ipc info` with a list, in order. No call may wait without a deadline.
#![cfg(target_os = "linux")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

mod strace;
mod tool;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use strace::{Call, endless};

use crate::tool::{finish, tool};

/// `.ci/run bless` rewrites the list; review its changes.
#[test]
#[ignore = "needs strace, which `.ci/run syscalls` installs"]
fn info_makes_the_calls_of_the_list() {
    let directory = tempfile::tempdir().unwrap();
    let mut fake = tool(&["fake-runtime"]);
    let mut fake = fake.env("TMPDIR", directory.path()).stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(fake.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let fields: Value = serde_json::from_str(&line).unwrap();

    let socket = Path::new(fields["socket"].as_str().unwrap());
    let (calls, list) = strace::info(fake.id(), socket);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(strace::LIST, &list).unwrap();
    }
    strace::assert_expected(&calls, &list);

    drop(fake.stdin.take());
    finish(fake).well();
}

/// Returns the indices of the lines whose call can wait without a deadline.
fn unbounded_lines(lines: &str) -> Vec<usize> {
    let calls: Vec<Call> = lines.lines().map(|line| Call::parse(line.trim()).expect(line)).collect();
    let found = endless(&calls);
    (0..calls.len()).filter(|at| found.iter().any(|call| core::ptr::eq(*call, &calls[*at]))).collect()
}

#[test]
fn waits_without_a_deadline_are_recognised() {
    let bounded = r#"poll([{fd=0, events=0}], 1, 0) = 0 (Timeout)
        poll([{fd=3<socket:[7]>, events=POLLIN}], 1, 5000) = 1 ([{fd=3, revents=POLLIN}])
        ppoll([{fd=3<socket:[7]>, events=POLLIN}], 1, {tv_sec=9, tv_nsec=9}, NULL, 8) = 1 ([{fd=3}], left {tv_sec=9})
        epoll_pwait(4<anon_inode:[eventpoll]>, [], 64, 0, NULL, 8) = 0
        select(4, [3], NULL, NULL, {tv_sec=1, tv_usec=0}) = 0 (Timeout)
        futex(0x7f00, FUTEX_WAKE_PRIVATE, 1) = 0
        futex(0x7f00, FUTEX_WAIT_BITSET_PRIVATE, 1, {tv_sec=9, tv_nsec=0}, FUTEX_BITSET_MATCH_ANY) = 0
        wait4(12, NULL, WNOHANG, NULL) = 0
        flock(3</tmp>, LOCK_EX|LOCK_NB) = 0
        fcntl(3</tmp>, F_SETLK, {l_type=F_WRLCK}) = 0
        read(3</proc/1/environ>, ""..., 32) = 32
        write(1<pipe:[5]>, ""..., 373) = 373"#;
    assert_eq!(unbounded_lines(bounded), [0; 0]);
    let unbounded = r#"poll([{fd=0, events=0}], 1, -1) = 1
        ppoll([{fd=3<socket:[7]>, events=POLLIN}], 1, NULL, NULL, 8) = 1
        epoll_wait(4<anon_inode:[eventpoll]>, [], 64, -1) = 0
        epoll_pwait2(4<anon_inode:[eventpoll]>, [], 64, NULL, NULL, 8) = 0
        pselect6(4, [3], NULL, NULL, NULL, NULL) = 1
        futex(0x7f00, FUTEX_WAIT_PRIVATE, 1, NULL) = 0
        futex(0x7f00, FUTEX_WAIT_BITSET_PRIVATE, 1, NULL, FUTEX_BITSET_MATCH_ANY) = 0
        wait4(12, NULL, 0, NULL) = 12
        waitid(P_PID, 12, {}, WEXITED, NULL) = 0
        flock(3</tmp>, LOCK_EX) = 0
        fcntl(3</tmp>, F_SETLKW, {l_type=F_WRLCK}) = 0
        pause() = ? ERESTARTNOHAND (To be restarted)
        read(0</dev/pts/0>, ""..., 32) = 1
        read(5<pipe:[5]>, ""..., 32) = 1"#;
    assert_eq!(unbounded_lines(unbounded), (0..14).collect::<Vec<_>>());
}

#[test]
fn a_socket_must_be_nonblocking_before_its_use() {
    let lines = r#"socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0) = 3<socket:[7]>
        connect(3<socket:[7]>, {sa_family=AF_UNIX, sun_path="/tmp/a, (b"}, 51) = 0
        recvfrom(3<socket:[7]>, ""..., 20, 0, NULL, NULL) = 20
        socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 4<socket:[8]>
        connect(4<socket:[8]>, {sa_family=AF_UNIX, sun_path="/tmp/c"}, 51) = -1 ENOENT (No such file or directory)
        recvfrom(4<socket:[8]>, ""..., 20, MSG_DONTWAIT, NULL, NULL) = 20
        ioctl(4<socket:[8]>, FIONBIO, [1]) = 0
        sendto(4<socket:[8]>, ""..., 20, MSG_NOSIGNAL, NULL, 0) = 20
        read(3<socket:[9]>, ""..., 20) = 20"#;
    assert_eq!(unbounded_lines(lines), [4, 8]);
}
