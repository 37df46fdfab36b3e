//! Diagnostic ports, without sockets: a runtime's configuration, its connection attempts until a monitor listens, and a
//! monitor with a thousand runtimes. Goal: 1 µs for an arrival or a command.
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
    let slots = || vec![None; frames.len().saturating_add(1)];
    let mut group = c.benchmark_group("monitor of 1,000");
    group.throughput(Throughput::Elements(1000));
    let mut storage = slots();
    group.bench_function("arrive", |b| {
        b.iter(|| arrive(black_box(&frames), &mut storage[..]).runtimes().count())
    });
    let mut port = arrive(&frames, slots());
    group.bench_function("take", |b| b.iter(|| take(black_box(&frames), &mut port)));
    group.finish();
}

criterion_group!(benches, ports);
criterion_main!(benches);
