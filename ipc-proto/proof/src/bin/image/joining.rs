//! What joins the records of a trace: stacks kept, events sorted, losses counted. The records come from elsewhere.
use ipc_proto::nettrace::*;

use crate::{number, put, storage, tell};

pub fn run() {
    let mut stacks = Store::new(storage(), storage());
    let mut loss = Loss::new(storage());
    let mut order = Order::new(storage::<Held<Event<'_>>>());
    for step in storage::<Step<'_>>() {
        tell(loss.step(step));
        match step {
            Step::Stack(stack) => drop(stacks.insert(stack.id.into(), stack.bytes)),
            Step::Event(event) => {
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
            put(stacks.get(event.stack_id.into()).unwrap_or_default());
        }
    }
    tell(loss.lost() as u32 ^ number());
}
