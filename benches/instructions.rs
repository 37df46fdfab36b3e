//! `instructions encode|decode|events|joined|ordered N`: does it N times, for callgrind to count. See README.md.
#![allow(clippy::unwrap_used, reason = "a benchmark")]
use core::hint::black_box;
use std::env;

use ipc_benches::traces::{Joins, events, joined, ordered};
use ipc_benches::{collect_tracing, providers};
use ipc_proto::nettrace::Held;
use ipc_proto::{CollectTracing2, Command, Message, Parsed, encode};

fn main() {
    let (providers, mut buf) = (providers(), [0; 4096]);
    let command = collect_tracing(&providers);
    let words: Vec<String> = env::args().collect();
    // cargo calls it too, with words of its own: then it only shows that it works.
    let times = words.get(2).and_then(|n| n.parse().ok()).unwrap_or(1);
    let what = words.get(1).map_or("decode", String::as_str);
    if let "events" | "joined" | "ordered" = what {
        trace(what, times);
    } else if what == "encode" {
        for _ in 0..times {
            black_box(encode(CollectTracing2::CODE, black_box(&command), black_box(&mut buf)).unwrap());
        }
    } else {
        let bytes = encode(CollectTracing2::CODE, &command, &mut buf).unwrap();
        for _ in 0..times {
            let Parsed::Complete { value, .. } = Message::parse(black_box(bytes)).unwrap() else {
                unreachable!()
            };
            black_box(value.request().unwrap());
        }
    }
}

/// Reads a trace of 406 events.
fn trace(what: &str, times: u32) {
    let bytes = include_bytes!("../testdata/nettrace/gen-net10-small-mixed.nettrace");
    let (mut joins, mut held) = (Joins::new(64, 256, 16), vec![Held::default(); 512]);
    for _ in 0..times {
        let events = match what {
            "events" => events(black_box(bytes)),
            "joined" => joined(black_box(bytes), &mut joins),
            _ => ordered(black_box(bytes), &mut held),
        };
        assert_eq!(events, 406);
    }
}
