//! Compares `Client::process_info` with thirty handwritten lines. Both call the same runtime alternately.
//!
//! `cargo bench -p ipc-benches --bench overhead -- SOCKET [PAIRS]` prints the medians. With the id of a process in
//! place of the socket, the client verifies at each connection that this process listens there. `ours` or `hand` as the
//! second argument makes a thousand calls of only one implementation, for `strace -c`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark reports a fault by a panic"
)]

use core::hint::black_box;
use core::time::Duration;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use ipc_std::Client;

/// Requests the process information without a library: a literal request, two reads, strings at known offsets.
fn by_hand(path: &Path) -> Vec<String> {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(b"DOTNET_IPC_V1\0\x14\0\x04\x08\0\0").unwrap();
    let mut header = [0; 20];
    stream.read_exact(&mut header).unwrap();
    let size = usize::from(u16::from_le_bytes([header[14], header[15]]));
    let mut payload = vec![0; size - 20];
    stream.read_exact(&mut payload).unwrap();
    let mut rest = &payload[28..];
    let mut strings = Vec::new();
    while let Some((count, units)) = rest.split_first_chunk::<4>() {
        let len = u32::from_le_bytes(*count) as usize * 2;
        let units: Vec<u16> =
            units[..len - 2].chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        strings.push(String::from_utf16_lossy(&units));
        rest = &rest[4 + len..];
    }
    strings
}

fn timed<T>(call: impl FnOnce() -> T) -> Duration {
    let begin = Instant::now();
    black_box(call());
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let Some(runtime) = args.first() else {
        println!("overhead: skipped; pass the path of a runtime's socket, or the id of its process");
        return;
    };
    let client = match runtime.parse() {
        Ok(process) => Client::for_process(process).unwrap(),
        Err(_) => Client::at(runtime),
    };
    let path = client.path().unwrap();
    let ours = || client.process_info().unwrap();
    match args.get(1).map(String::as_str) {
        Some("ours") => (0..1000).for_each(|_| drop(ours())),
        Some("hand") => (0..1000).for_each(|_| drop(by_hand(path))),
        pairs => {
            let pairs: u32 = pairs.map_or(10_000, |pairs| pairs.parse().unwrap());
            let (a, b): (Vec<_>, Vec<_>) = (0..pairs).map(|_| (timed(ours), timed(|| by_hand(path)))).unzip();
            let (a, b) = (median(a), median(b));
            let ratio = a.as_secs_f64() / b.as_secs_f64();
            println!("{pairs} pairs: process_info {a:?}, by hand {b:?}, ratio of the medians {ratio:.3}");
        }
    }
}
