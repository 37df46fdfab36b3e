//! Messages to values and back. Goals: decode CollectTracing2 with 8 providers in 60 ns, encode it in 200 ns.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark, whose macros make functions without documentation"
)]
use core::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ipc_benches::messages::{collect_tracing, process_info, providers, whole};
use ipc_proto::types::ProcessInfo3;
use ipc_proto::{Code, CollectTracing2, Command, encode};

fn codec(c: &mut Criterion) {
    let (providers, mut buf) = (providers(), [0; 4096]);
    let command = collect_tracing(&providers);
    c.bench_function("encode CollectTracing2, 8 providers", |b| {
        b.iter(|| encode(CollectTracing2::CODE, black_box(&command), black_box(&mut buf)).unwrap().len());
    });
    let bytes = encode(CollectTracing2::CODE, &command, &mut buf).unwrap();
    c.bench_function("decode CollectTracing2, 8 providers", |b| {
        b.iter(|| black_box(whole(black_box(bytes)).request().unwrap()));
    });

    let (info, mut buf) = (process_info(), [0; 4096]);
    c.bench_function("encode ProcessInfo3", |b| {
        b.iter(|| encode(Code::OK, black_box(&info), black_box(&mut buf)).unwrap().len());
    });
    let bytes = encode(Code::OK, &info, &mut buf).unwrap();
    c.bench_function("decode ProcessInfo3", |b| {
        b.iter(|| black_box(whole(black_box(bytes)).decode::<ProcessInfo3<'_>>().unwrap()));
    });
}

criterion_group!(benches, codec);
criterion_main!(benches);
