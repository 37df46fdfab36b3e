//! Conversations in memory: a request from a `Call` to a `Serve`, its response on the way back, and a whole `Session`.
#![allow(missing_docs, reason = "a benchmark, whose macros make functions without documentation")]
use core::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ipc_benches::messages::{exchange, process_info, session};
use ipc_proto::SessionEnd;

fn exchanges(c: &mut Criterion) {
    let (mut buffers, info) = ([[0; 4096]; 3], process_info());
    c.bench_function("exchange GetProcessInfo3", |b| {
        b.iter(|| exchange(black_box(&mut buffers), black_box(&info)));
    });
    let pieces = [&b"Nettrace\x14\0\0\0!FastSerialization.1 ... \x06\x01"[..]; 100];
    assert_eq!(session(&pieces), SessionEnd::Complete);
    c.bench_function("session of 100 pieces, stopped", |b| b.iter(|| session(black_box(&pieces))));
}

criterion_group!(benches, exchanges);
criterion_main!(benches);
