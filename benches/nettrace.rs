//! Traces in memory, one core.
//!
//! Goals, in million events a second: headers and payloads 60 if payloads are large, 120 if they are small; with
//! metadata, stacks and loss joined 55, and 100 for a trace of 200 threads; in the order of time 25. Framing: 20 GB a
//! second. Fields: 200 MB of payload a second.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark, whose macros make functions without documentation"
)]
use core::hint::black_box;
use std::path::PathBuf;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ipc_benches::traces::{
    Joins, assembled, events, fields, framing, joined, ordered, ordered_in, steps, threads, whole_trace,
    written,
};
use nettrace::{EventOrder, Held, Record, Slot, TraceWriter, Version};

/// Returns the traces to read: the files of `NETTRACE_FILES`, separated by `:`, or else one of the repository; and two
/// that are written here, of 200 threads and small payloads.
fn traces() -> Vec<(String, Vec<u8>)> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/nettrace/gen-net10-small-mixed.nettrace");
    let files = std::env::var("NETTRACE_FILES").unwrap_or_else(|_| default.to_owned());
    files
        .split(':')
        .map(PathBuf::from)
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .chain([true, false].map(|sorted| {
            (if sorted { "made-200-threads" } else { "made-200-threads-unsorted" }.to_owned(), made(sorted))
        }))
        .collect()
}

/// Returns a trace of 200 threads. If not `sorted`, more events wait than the slots have room for at first.
fn made(sorted: bool) -> Vec<u8> {
    let mut trace = Vec::new();
    threads(&mut trace, 200, 1_000_000, sorted).unwrap();
    trace
}

fn nettrace(c: &mut Criterion) {
    for (name, bytes) in traces() {
        let count = events(&bytes);
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("framing", |b| b.iter(|| framing(black_box(&bytes))));
        group.throughput(Throughput::Elements(count));
        group.bench_function("events", |b| b.iter(|| events(black_box(&bytes))));
        let mut joins = Joins::new(4096, 1 << 17, 4096);
        group.bench_function("joined", |b| b.iter(|| joined(black_box(&bytes), &mut joins)));
        let mut slots = vec![Held::default(); 1 << 16];
        assert_eq!(ordered_in(&bytes, &mut slots), count);
        group.bench_function("ordered", |b| b.iter(|| ordered(black_box(&bytes), &mut slots)));
        group.bench_function("assembled", |b| b.iter(|| assembled(black_box(&bytes), EventOrder::Stream)));
        group.bench_function("assembled in order", |b| {
            b.iter(|| assembled(black_box(&bytes), EventOrder::BY_TIME));
        });
        group.bench_function("whole", |b| b.iter(|| whole_trace(black_box(&bytes))));
        let steps = steps(&bytes);
        // `written` writes only version 4.
        if steps.iter().any(|step| matches!(step, Record::Trace(trace) if trace.version == Version::V4)) {
            let mut buf = vec![0; TraceWriter::BUFFER];
            group.bench_function("written", |b| b.iter(|| written(black_box(&steps), &mut buf)));
        }
        let mut metadata = vec![Slot::default(); 4096];
        let payload = fields(&bytes, &mut metadata);
        group.throughput(Throughput::Bytes(payload));
        group.bench_function("fields", |b| b.iter(|| fields(black_box(&bytes), &mut metadata)));
        group.finish();
    }
}

criterion_group!(benches, nettrace);
criterion_main!(benches);
