//! A question and its answer, from a `Call` to a `Serve` and back, in memory.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark, whose macros make functions without documentation"
)]
use core::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ipc_benches::process_info;
use ipc_proto::types::ProcessInfo3;
use ipc_proto::{Answer, Call, Exchange, GetProcessInfo3, Request, Serve, Step};

/// Carries what the one sends to the other.
fn carry(from: &mut impl Exchange, to: &mut impl Exchange) {
    while let (Step::Send(bytes), Step::Receive(space)) = (from.step(), to.step()) {
        let n = bytes.len().min(space.len());
        space.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        from.advance(n).unwrap();
        to.advance(n).unwrap();
    }
}

fn round_trip(buffers: &mut [[u8; 4096]; 3], info: &ProcessInfo3<'_>) -> u64 {
    let [tool, receive, send] = buffers;
    let mut call = Call::new(&GetProcessInfo3 {}, tool).unwrap();
    let mut serve = Serve::new(receive, send).unwrap();
    carry(&mut call, &mut serve);
    let (Ok(Request::GetProcessInfo3(asked)), mut reply) = serve.finish() else { unreachable!() };
    reply.answer(&asked, info).unwrap();
    carry(&mut reply, &mut call);
    let Answer::Ok(info) = call.finish::<ProcessInfo3<'_>>().unwrap() else { unreachable!() };
    info.process_id
}

fn exchange(c: &mut Criterion) {
    let (mut buffers, info) = ([[0; 4096]; 3], process_info());
    c.bench_function("exchange GetProcessInfo3", |b| {
        b.iter(|| round_trip(black_box(&mut buffers), black_box(&info)));
    });
}

criterion_group!(benches, exchange);
criterion_main!(benches);
