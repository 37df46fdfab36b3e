//! What reading a long trace in the order of time takes in memory: one of a GB, made while it is read.
//!
//! `cargo bench -p ipc-benches --bench memory -- [MILLION EVENTS]`: 70, of some 16 bytes each. The first trace says where
//! events may go out; in the second those between two sequence points have to be held, which is more than the limit.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "a benchmark may fail as it likes")]

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::thread;

use ipc_benches::traces::threads;
use ipc_std::TraceReader;

/// Counts what is read.
struct Counting<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.reader.read(buf)?;
        self.read += n as u64;
        Ok(n)
    }
}

/// The most memory that the process has had, in KiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn read(million: u32, sorted: bool) {
    let (reader, mut writer) = UnixStream::pair().unwrap();
    let writing = thread::spawn(move || threads(&mut writer, 200, million * 1_000_000, sorted).unwrap());
    let reader = Counting { reader, read: 0 };
    let mut trace = TraceReader::new(reader).in_order(TraceReader::<UnixStream>::HELD);
    let (mut events, mut last, mut out_of_order) = (0_u64, i64::MIN, 0_u64);
    while let Some(event) = trace.next_event().unwrap() {
        events += 1;
        out_of_order += u64::from(event.nanoseconds() < last);
        last = event.nanoseconds();
    }
    writing.join().unwrap();
    println!(
        "{events} events of {} MB: {out_of_order} out of order, {} said to be late, {:?}; {} KiB at most",
        trace.get_ref().read / 1_000_000,
        trace.late(),
        trace.end().unwrap(),
        peak()
    );
}

fn main() {
    let test = std::env::args().any(|arg| arg == "--test");
    let million = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let million = if test { 1 } else { million.unwrap_or(70) };
    println!("before: {} KiB", peak());
    read(million, true);
    read(million, false);
}
