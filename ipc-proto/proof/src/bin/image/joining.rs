//! Joins the records of a trace: stores stacks, sorts events and counts losses. `reading.rs` parses records.
use nettrace::*;

use crate::register::{number, storage, write_bytes, write_number};

pub fn run() {
    let mut stacks = Store::new(storage(), storage());
    let mut loss = LossCounter::new(storage());
    let mut order = Order::new(storage::<Held<Event<'_>>>());
    for step in storage::<Record<'_>>() {
        write_number(loss.record(step));
        match step {
            Record::Stack(stack) => drop(stacks.insert(stack.id.into(), stack.bytes)),
            Record::Event(event) => {
                if order.push(event.timestamp, *event).is_err() {
                    return;
                }
                if event.sorted {
                    order.release(event.timestamp);
                }
            }
            _ => order.release_all(),
        }
        while let Some(event) = order.pop() {
            write_bytes(stacks.get(event.stack_id.into()).unwrap_or_default());
        }
    }
    write_number(loss.lost_after_start() as u32 ^ number());
}
