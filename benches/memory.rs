//! The memory that reading a trace of a GB in the order of time takes. The trace is written while it is read.
//!
//! `cargo bench -p ipc-benches --bench memory -- [MILLION EVENTS]`: by default 70, of about 16 bytes each. The first
//! trace marks sorted events. In the second, all events between two sequence points must wait, which exceeds the limit.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "a benchmark may panic")]

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::thread;

use ipc_benches::traces::threads;
use nettrace::{EventAssembler, EventOrder, ReadOptions, TraceReader};

/// A reader that counts its bytes.
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

/// Returns the peak memory of the process in KiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn read(million: u32, sorted: bool) {
    let (reader, mut writer) = UnixStream::pair().unwrap();
    let writing = thread::spawn(move || threads(&mut writer, 200, million * 1_000_000, sorted).unwrap());
    let reader = Counting { reader, read: 0 };
    let mut trace =
        TraceReader::with_assembler(reader, EventAssembler::new(EventOrder::BY_TIME, ReadOptions::default()));
    let (mut events, mut last, mut out_of_order) = (0_u64, i64::MIN, 0_u64);
    while let Some(event) = trace.next_event().unwrap() {
        events += 1;
        out_of_order += u64::from(event.nanoseconds() < last);
        last = event.nanoseconds();
    }
    writing.join().unwrap();
    let summary = trace.summary();
    println!(
        "{events} events of {} MB: {out_of_order} out of order, {} counted as late, {:?}; peak {} KiB",
        trace.get_ref().read / 1_000_000,
        summary.late,
        summary.end.unwrap(),
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
