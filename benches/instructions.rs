//! `instructions encode|decode N`: does it N times, for callgrind to count. See README.md.
#![allow(clippy::unwrap_used, reason = "a benchmark")]
use core::hint::black_box;
use std::env;

use ipc_benches::{collect_tracing, providers};
use ipc_proto::{CollectTracing2, Command, Message, Parsed, encode};

fn main() {
    let (providers, mut buf) = (providers(), [0; 4096]);
    let command = collect_tracing(&providers);
    let words: Vec<String> = env::args().collect();
    // cargo calls it too, with words of its own: then it only shows that it works.
    let times = words.get(2).and_then(|n| n.parse().ok()).unwrap_or(1);
    if words.get(1).is_some_and(|what| what == "encode") {
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
