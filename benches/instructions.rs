//! Runs the operations whose instructions callgrind counts for `instructions.md`. Each operation runs twice, and then
//! twelve times: the difference is ten operations and nothing else. `instructions.py` reads the counts.
#![allow(clippy::unwrap_used, reason = "a benchmark may fail as it likes")]
use core::array;
use core::hint::black_box;
use std::thread;

use ipc_benches::messages::{collect_tracing, exchange, process_info, providers, session, whole};
use ipc_benches::reverse::{PORTS, arrive, config, connect, frames, take};
use ipc_benches::traces::{
    Joins, assembled, events, fields, framing, joined, ordered, steps, whole_trace, written,
};
use ipc_proto::types::ProcessInfo3;
use ipc_proto::{Advertise, Code, CollectTracing2, Command, Guid, SessionEnd, encode};
use nettrace::{EventOrder, Held, Slot, TraceWriter};

type Operation = fn(times: u32);

const OPERATIONS: [(&str, Operation); 19] = [
    ("decode request", decode_request),
    ("encode request", encode_request),
    ("decode answer", decode_answer),
    ("encode answer", encode_answer),
    ("exchange", whole_exchange),
    ("session", whole_session),
    ("config", read_config),
    ("connect port", connect_port),
    ("monitor arrive", monitor_arrive),
    ("monitor take", monitor_take),
    ("framing", |times| trace(times, framing, 88_484)),
    ("events", |times| trace(times, events, EVENTS)),
    ("joined", |times| {
        let mut joins = Joins::new(64, 256, 16);
        trace(times, |bytes| joined(bytes, &mut joins), EVENTS);
    }),
    ("ordered", |times| {
        let mut held = vec![Held::default(); 512];
        trace(times, |bytes| ordered(bytes, &mut held).unwrap_or_default(), EVENTS);
    }),
    ("assembled", |times| trace(times, |bytes| assembled(bytes, EventOrder::Stream), EVENTS)),
    ("assembled in order", |times| {
        trace(times, |bytes| assembled(bytes, EventOrder::BY_TIME), EVENTS);
    }),
    ("whole", |times| trace(times, whole_trace, EVENTS)),
    ("fields", |times| {
        let mut metadata = vec![Slot::default(); 64];
        trace(times, |bytes| fields(bytes, &mut metadata), 43_096);
    }),
    ("written", write_trace),
];

fn main() {
    for (name, _) in OPERATIONS {
        println!("{name}");
    }
    // A new thread, because its stack begins at a page. The first stack begins after the arguments and the environment.
    thread::spawn(|| {
        for (_, operation) in OPERATIONS {
            part_ends();
            operation(2);
            part_ends();
            operation(12);
        }
        part_ends();
    })
    .join()
    .unwrap();
}

/// Makes callgrind write its counts since the last dump.
#[inline(never)]
fn part_ends() {
    black_box(());
}

fn decode_request(times: u32) {
    let (providers, mut buf) = (providers(), [0; 4096]);
    let bytes = encode(CollectTracing2::CODE, &collect_tracing(&providers), &mut buf).unwrap();
    for _ in 0..times {
        black_box(whole(black_box(bytes)).request().unwrap());
    }
}

fn encode_request(times: u32) {
    let (providers, mut buf) = (providers(), [0; 4096]);
    let command = collect_tracing(&providers);
    for _ in 0..times {
        black_box(encode(CollectTracing2::CODE, black_box(&command), black_box(&mut buf)).unwrap());
    }
}

fn decode_answer(times: u32) {
    let mut buf = [0; 4096];
    let bytes = encode(Code::OK, &process_info(), &mut buf).unwrap();
    for _ in 0..times {
        black_box(whole(black_box(bytes)).decode::<ProcessInfo3<'_>>().unwrap());
    }
}

fn encode_answer(times: u32) {
    let (info, mut buf) = (process_info(), [0; 4096]);
    for _ in 0..times {
        black_box(encode(Code::OK, black_box(&info), black_box(&mut buf)).unwrap());
    }
}

fn whole_exchange(times: u32) {
    let (mut buffers, info) = ([[0; 4096]; 3], process_info());
    for _ in 0..times {
        assert_eq!(exchange(black_box(&mut buffers), black_box(&info)), info.process_id);
    }
}

fn whole_session(times: u32) {
    let pieces: [&[u8]; 100] =
        array::from_fn(|_| &b"Nettrace\x14\0\0\0!FastSerialization.1 ... \x06\x01"[..]);
    for _ in 0..times {
        assert_eq!(session(black_box(&pieces)), SessionEnd::Complete);
    }
}

fn read_config(times: u32) {
    for _ in 0..times {
        assert_eq!(config(black_box(PORTS)), 3);
    }
}

fn connect_port(times: u32) {
    let advertise = Advertise { runtime_cookie: Guid(*b"a random cookie "), process_id: 7217, future: 0 };
    for _ in 0..times {
        assert_eq!(connect(black_box(&advertise), 20), 2849);
    }
}

fn monitor_arrive(times: u32) {
    let frames = frames(1000);
    let mut slots = vec![None; frames.len()];
    for _ in 0..times {
        assert_eq!(arrive(black_box(&frames), &mut slots[..]).runtimes().count(), frames.len());
    }
}

fn monitor_take(times: u32) {
    let frames = frames(1000);
    let mut port = arrive(&frames, vec![None; frames.len().saturating_add(1)]);
    for _ in 0..times {
        take(black_box(&frames), &mut port);
    }
}

const TRACE: &[u8] = include_bytes!("../testdata/nettrace/gen-net10-small-mixed.nettrace");
const EVENTS: u64 = 406;

fn trace(times: u32, mut read: impl FnMut(&'static [u8]) -> u64, expected: u64) {
    for _ in 0..times {
        assert_eq!(read(black_box(TRACE)), expected);
    }
}

fn write_trace(times: u32) {
    let (steps, mut buf) = (steps(TRACE), vec![0; TraceWriter::BUFFER]);
    for _ in 0..times {
        assert_eq!(written(black_box(&steps), &mut buf), 88_758);
    }
}
