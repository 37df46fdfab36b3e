//! Makes traces of a runtime that repeat events, to find events that are expensive to analyse. A few bytes describe
//! each trace.
#![allow(clippy::cast_possible_truncation, reason = "all lengths are short, and any number will do")]
use nettrace::Version;

use super::made_up_events::{self, MadeUp, Naming, u32s};

/// Makes a trace in which each part is repeated many times.
///
/// The first byte is the version: even is V6, odd is V4. Each part has six bytes: its kind, a `u16` count, the number
/// of addresses of its stacks, the length of its names, and the parts in which its events differ. A trace has about 32
/// KiB.
pub(super) fn repeated_events(bytes: &[u8]) -> Vec<u8> {
    let Some((first, parts)) = bytes.split_first() else { return Vec::new() };
    let version = if first % 2 == 0 { Version::V6 } else { Version::V4 };
    let mut events: Vec<MadeUp> = Vec::new();
    let mut size = 0;
    for part in parts.chunks_exact(6) {
        let part = Part {
            kind: part[0] % 16,
            count: (u64::from(part[1]) | u64::from(part[2]) << 8) % 4096,
            stack: part[3],
            name: part[4],
            differs: part[5],
        };
        for number in 0..part.count {
            if size > MAX {
                break;
            }
            for mut event in part.events(number) {
                event.time = 1_000 + events.len() as u64;
                let shares_stack = events.last().is_some_and(|last| last.stack == event.stack);
                size += 4 + event.payload.len() + if shares_stack { 0 } else { 8 * event.stack.len() };
                events.push(event);
            }
        }
    }
    let events: Vec<_> = events.into_iter().map(|event| (event, Naming::None)).collect();
    made_up_events::trace(&events, version)
}

/// The length of a trace in bytes, about, after which no events are added.
const MAX: usize = 32 << 10;

struct Part {
    kind: u8,
    count: u64,
    stack: u8,
    name: u8,
    differs: u8,
}

impl Part {
    /// Returns the number of an event: it counts up, or has few values, or is always the same.
    fn number(&self, number: u64, bit: u8) -> u64 {
        match self.differs >> bit & 3 {
            0 => 1,
            1 => number % 7,
            2 => number,
            _ => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20,
        }
    }

    /// Returns a name in UTF-16 of up to 6,144 characters and a number.
    fn name(&self, number: u64) -> Vec<u8> {
        let separator = ["", ".", "+<", ">d"][usize::from(self.name & 3)];
        let text = format!("N{separator}").repeat(1 << (self.name >> 2 & 15).min(11)) + &number.to_string();
        made_up_events::utf16(&text)
    }

    /// Returns the addresses of a stack, the innermost first: they have the callers in common, or differ everywhere.
    fn stack(&self, number: u64) -> Vec<u64> {
        let len = u64::from(self.stack & 0x3f).pow(2).min(2_000);
        let address = |place: u64| {
            let number = if self.stack & 0x40 != 0 && place > 0 { 0 } else { self.number(number, 0) };
            0x1000 + (number * 0x1000 + place * 0x10) % 0x100_0000
        };
        (0..len).map(address).collect()
    }

    fn events(&self, number: u64) -> Vec<MadeUp> {
        let event = |description, payload: &[&[u8]], stack| MadeUp {
            description,
            thread: self.number(number, 4) % 3 + 1,
            time: 0,
            payload: payload.concat(),
            stack,
        };
        let (own, name) = (self.number(number, 2), self.name(self.number(number, 2)));
        let id = own.to_le_bytes();
        let method = |start: u64| {
            let numbers = [own, 1, start].map(u64::to_le_bytes).concat();
            [&numbers[..], &0x1000_u32.to_le_bytes(), &[6, 0, 0, 0, 0, 0, 0, 0], &name, &name, &[0; 4]]
                .concat()
        };
        let start = 0x1000 * (1 + self.number(number, 0) % 0x1000);
        match self.kind {
            0 => vec![event(0, &[&method(start)], Vec::new())],
            1 => vec![event(5, &[&[2, 0, 0, 0]], self.stack(number))],
            2 => vec![event(5, &[&[1, 0, 0, 0]], self.stack(0))],
            // Code that is freed and loaded again between samples in it.
            3 => vec![
                event(0, &[&method(0x1000)], Vec::new()),
                event(5, &[&[2, 0, 0, 0]], self.stack(0)),
                event(1, &[&method(0x1000)], Vec::new()),
            ],
            4 => vec![event(
                13,
                &[&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0; 16], &name, &[0; 20]],
                self.stack(number),
            )],
            5 => vec![event(14, &[&name, &name, &[0; 20]], self.stack(number))],
            6 => vec![event(15, &[&[0, 1, 0], &id, &id, &id], self.stack(number))],
            7 => vec![event(16, &[&[0, 1, 0], &id], Vec::new())],
            8 => vec![event(8, &[&u32s(&[own, 2, 0, 1])], Vec::new())],
            9 => vec![event(9, &[&u32s(&[own, 2])], Vec::new()), event(10, &[&[1; 112]], Vec::new())],
            10 => vec![event(6, &[&u32s(&[1, own])], Vec::new()), event(11, &[], Vec::new())],
            11 => vec![event(12, &[&id, &id, &[0; 8], &name, &name, &[0; 4]], Vec::new())],
            12 => vec![event(18, &[&name], self.stack(number)), event(19, &[], self.stack(number))],
            13 => vec![event(4, &[&id, &[0; 16], &name, &[0; 2]], Vec::new())],
            14 => vec![event(22, &[&id, &name], Vec::new()), event(20, &[&method(start)], Vec::new())],
            _ => vec![event(usize::from(self.name % 25), &[&id, &name], self.stack(number))],
        }
    }
}
