//! A trace read to its end: every record, descriptions kept, payloads cut into values.
use ipc_proto::nettrace::*;

use crate::{number, put, storage, tell};

pub fn run() {
    let mut parser = Parser::new(Limits::default());
    let mut metadata = Table::new(storage::<Slot<Metadata<'_>>>());
    let stream: &[u8] = storage();
    loop {
        match parser.next(stream) {
            Step::Trace(trace) => tell(trace.pointer_size),
            Step::Metadata(record) => {
                if let Ok(record) = Metadata::decode(parser.version(), record.payload) {
                    let _ = metadata.insert(record.id.into(), record);
                }
            }
            Step::Event(event) => {
                if let Some(metadata) = metadata.get(event.metadata_id.into()) {
                    metadata.name.units().for_each(|unit| tell(unit.into()));
                    values(metadata, event.payload);
                }
            }
            Step::Stack(stack) => put(stack.bytes),
            Step::Thread(thread) => tell(thread.process_id().unwrap_or_default() as u32),
            Step::LabelList(list) => {
                list.labels.for_each(|label| tell(matches!(label, Label::ActivityId(_)).into()));
            }
            Step::SequencePoint(point) => tell(point.flags),
            Step::More { .. } => {
                tell(parser.release() as u32);
                if number() == 0 {
                    tell(matches!(parser.finish(stream), End::Complete).into());
                    return;
                }
            }
            Step::End(_) => return,
            _ => {}
        }
    }
}

#[inline(never)]
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
