//! Diagnostic ports, without sockets: what a runtime reads of its own, what it does until its monitor is there, and a
//! monitor's roster with a thousand runtimes. Goal: 1 µs for an arrival there, or a command.
#![allow(missing_docs, reason = "a benchmark, whose macros make functions without documentation")]
use core::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ipc_benches::reverse::{PORTS, arrive, config, connect, frames, take};
use ipc_proto::{Advertise, Guid};

fn ports(c: &mut Criterion) {
    c.bench_function("config of three ports", |b| b.iter(|| config(black_box(PORTS))));
    let advertise = Advertise { runtime_cookie: Guid(*b"a random cookie "), process_id: 7217, future: 0 };
    c.bench_function("connect port, 20 tries in vain", |b| b.iter(|| connect(black_box(&advertise), 20)));

    let frames = frames(1000);
    let mut group = c.benchmark_group("roster of 1,000");
    group.throughput(Throughput::Elements(1000));
    let mut slots = vec![None; frames.len()];
    group.bench_function("arrive", |b| b.iter(|| arrive(black_box(&frames), &mut slots[..]).len()));
    let mut roster = arrive(&frames, vec![None; frames.len()]);
    group.bench_function("take", |b| b.iter(|| take(black_box(&frames), &mut roster)));
    group.finish();
}

criterion_group!(benches, ports);
criterion_main!(benches);
