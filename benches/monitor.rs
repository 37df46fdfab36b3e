//! One monitor and many runtimes in two processes: every runtime arrives, and takes a command once a second. It also
//! measures the monitor's memory for an idle runtime.
//!
//! `cargo bench -p ipc-benches --bench monitor -- [RUNTIMES [SECONDS]]`, 1,000 and 10 by default.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark fails by panicking"
)]

use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use ipc_std::{Monitor, MonitorEvent};
use ipc_testkit::{FakePort, FakeRuntime, Profile};
use rustix::process::{Resource, getrlimit, setrlimit};

/// A limit that is longer than any step takes.
const LONG: Duration = Duration::from_secs(60);

fn main() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();

    // Cargo adds options of its own. `--test` requests the shortest run.
    let test = std::env::args().any(|arg| arg == "--test");
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |i: usize, default: u32| args.get(i).map_or(default, |arg| arg.parse().unwrap());
    match args.first().map(String::as_str) {
        Some("be-runtimes") => be_runtimes(number(1, 0), Path::new(&args[2])),
        _ if test => monitor(10, 1),
        _ => monitor(number(0, 1000), number(1, 10)),
    }
}

/// Runs runtimes that connect to the monitor at `path`, until standard input ends.
fn be_runtimes(runtimes: u32, path: &Path) {
    let ports = vec![FakePort { path: path.to_owned(), suspended: true }];
    let start =
        |_| FakeRuntime::without_listener(Profile { ports: ports.clone(), ..Profile::net10() }).unwrap();
    let _runtimes: Vec<_> = (0..runtimes).map(start).collect();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn start(runtimes: u32, path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.arg("be-runtimes").arg(runtimes.to_string()).arg(path).stdin(Stdio::piped());
    child.spawn().unwrap()
}

fn monitor(runtimes: u32, seconds: u32) {
    let directory = tempfile::tempdir().unwrap();
    let monitor = Monitor::bind(directory.path().join("port")).unwrap();
    let empty = status("VmRSS");
    let began = Instant::now();
    let mut child = start(runtimes, monitor.path().unwrap());
    let mut cookies = BTreeSet::new();
    while cookies.len() < runtimes as usize {
        match monitor.next_event(LONG).unwrap() {
            Some(MonitorEvent::Arrived(runtime)) => assert!(cookies.insert(runtime.runtime_cookie)),
            other => panic!("{} of {runtimes} arrived, then {other:?}", cookies.len()),
        }
    }
    let arrived = began.elapsed();
    let each = (status("VmRSS") - empty) * 1024 / runtimes as usize;
    println!("{runtimes} runtimes arrived in {arrived:.2?}; an idle runtime takes {each} bytes of memory");

    let mut times = Vec::new();
    for second in 0..seconds {
        let round = Instant::now();
        for cookie in &cookies {
            let began = Instant::now();
            let client = monitor.client(*cookie);
            if second == 0 {
                client.resume().unwrap()
            } else {
                drop(client.process_info().unwrap())
            }
            times.push(began.elapsed());
        }
        assert!(monitor.poll_event().unwrap().is_none(), "no runtime leaves, and none arrives twice");
        assert_eq!(monitor.runtimes().len(), cookies.len());
        if second + 1 < seconds {
            thread::sleep(Duration::from_secs(1).saturating_sub(round.elapsed()));
        }
    }
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let (threads, peak) = (status("Threads"), status("VmHWM"));
    println!(
        "{} commands, none failed: median {median:.0?}, worst {worst:.1?}; {threads} threads, at most {peak} KiB",
        times.len()
    );

    let began = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    while !cookies.is_empty() {
        match monitor.next_event(LONG).unwrap() {
            Some(MonitorEvent::Left(runtime)) => assert!(cookies.remove(&runtime.runtime_cookie)),
            other => panic!("{} have not left, then came {other:?}", cookies.len()),
        }
    }
    println!("after a kill, all left within {:.2?}", began.elapsed());
}

/// Reads a number from `/proc/self/status`.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(|c: char| !c.is_ascii_digit()).split_whitespace().next().unwrap().parse().unwrap()
}
