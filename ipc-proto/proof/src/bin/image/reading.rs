//! A trace read to its end: every record, descriptions and stacks kept, events sorted, losses counted, payloads cut into
//! values.
use ipc_proto::nettrace::*;

use crate::{number, put, storage, tell};

pub fn run() {
    let mut parser = Parser::new(Limits::default());
    let mut metadata = Table::new(storage::<Slot<Metadata<'_>>>());
    let mut stacks = Store::new(storage(), storage());
    let mut loss = Loss::new(storage());
    let mut order = Order::new(storage::<Held<Event<'_>>>());
    let stream: &[u8] = storage();
    loop {
        let step = parser.next(stream);
        tell(loss.step(&step));
        match &step {
            Step::Trace(trace) => tell(trace.pointer_size),
            Step::Metadata(record) => {
                if let Ok(record) = Metadata::decode(parser.version(), record.payload) {
                    let _ = metadata.insert(record.id.into(), record);
                }
            }
            Step::Stack(stack) => drop(stacks.insert(stack.id.into(), stack.bytes)),
            Step::Event(event) => {
                let _ = order.push(event.timestamp, *event);
                if event.sorted {
                    order.release(event.timestamp);
                }
            }
            Step::Thread(thread) => tell(thread.process_id().unwrap_or_default() as u32),
            Step::LabelList(list) => {
                list.labels.for_each(|label| tell(matches!(label, Label::ActivityId(_)).into()))
            }
            Step::SequencePoint(_) => order.release_all(),
            Step::More { .. } => order.release_all(),
            Step::End(_) => return,
            _ => {}
        }
        while let Some(event) = order.pop() {
            put(stacks.get(event.stack_id.into()).unwrap_or_default());
            if let Some(metadata) = metadata.get(event.metadata_id.into()) {
                metadata.name.units().for_each(|unit| tell(unit.into()));
                values(metadata, event.payload);
            }
        }
        if matches!(step, Step::More { .. }) && number() == 0 {
            tell(matches!(parser.finish(stream), End::Complete).into());
            return;
        }
    }
}

fn values(metadata: &Metadata<'_>, payload: &[u8]) {
    for item in metadata.fields.values(payload) {
        if let Item::Value { name, value } = item {
            name.units().for_each(|unit| tell(unit.into()));
            match value {
                Value::Int(number) => tell(number as u32),
                Value::Text(text) => text.chars().for_each(|c| tell(c.into())),
                _ => {}
            }
        }
    }
}
