//! Reads a trace from standard input in fixed memory, and prints its events with stacks and its losses.
//!
//! `cargo run -p nettrace --example fixed_memory < testdata/nettrace/gen-net10-lab-small.nettrace`
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an example is short")]
use std::io::Read;

use nettrace::{Counter, End, Limits, LossCounter, Parser, Record, Slot, Store, StoredRange};

/// Large enough for the longest record of a runtime.
const WINDOW: usize = 66 << 10;

/// All the memory that is needed, for a trace of any length.
pub(crate) struct Memory {
    window: [u8; WINDOW],
    stack_slots: [Slot<StoredRange>; 512],
    stack_bytes: [u8; 64 << 10],
    threads: [Slot<Counter>; 64],
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            window: [0; WINDOW],
            stack_slots: [Slot::default(); 512],
            stack_bytes: [0; 64 << 10],
            threads: [Slot::default(); 64],
        }
    }
}

/// The lost events of up to 64 threads.
pub(crate) type Losses<'m> = LossCounter<&'m mut [Slot<Counter>; 64]>;

/// Returns the number of events, the number of events with a stack, the losses and the end.
pub(crate) fn read_trace(
    mut source: impl Read,
    memory: &mut Memory,
) -> std::io::Result<(u64, u64, Losses<'_>, End)> {
    let mut stacks = Store::new(&mut memory.stack_slots, &mut memory.stack_bytes);
    let mut loss = LossCounter::new(&mut memory.threads);
    let mut parser = Parser::new(Limits { record: 64 << 10, ..Limits::default() });
    let (mut events, mut with_stack, mut len) = (0, 0, 0);
    loop {
        let record = parser.next(&memory.window[..len]);
        loss.record(&record);
        match record {
            Record::Event(event) => {
                events += 1;
                with_stack += u64::from(stacks.get(event.stack_id.into()).is_some());
            }
            // If there is no room for a stack, the events that refer to it have none.
            Record::Stack(stack) => {
                let _ = stacks.insert(stack.id.into(), stack.bytes);
            }
            // Later events do not refer to earlier stacks.
            Record::SequencePoint(_) => stacks.clear(),
            Record::More { .. } => {
                let released = parser.release();
                memory.window.copy_within(released..len, 0);
                len -= released;
                match source.read(&mut memory.window[len..])? {
                    0 => return Ok((events, with_stack, loss, parser.finish(&memory.window[..len]))),
                    n => len += n,
                }
            }
            Record::End(end) => return Ok((events, with_stack, loss, end)),
            _ => {}
        }
    }
}

fn main() -> std::io::Result<()> {
    let mut memory = Memory::new();
    let (events, with_stack, loss, end) = read_trace(std::io::stdin().lock(), &mut memory)?;
    println!("{events} events, {with_stack} with a stack; the trace is {end}");
    println!(
        "{} events were lost in {} gaps, {} at the start of a thread",
        loss.lost_after_start(),
        loss.gaps(),
        loss.lost_at_start()
    );
    println!("{} numbers went back; {} were of threads without a slot", loss.went_back(), loss.untracked());
    for (thread, lost) in loss.threads().filter(|(_, lost)| *lost > 0) {
        println!("thread {thread} lost {lost}");
    }
    Ok(())
}
