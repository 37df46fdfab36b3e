//! Reads a trace to its end: all records; with the feature `describing`, stored metadata; with `reading`, the values of
//! payloads.
use nettrace::*;

use crate::register::{number, storage, write_bytes, write_number};

pub fn run() {
    let mut parser = Parser::new(Limits::default());
    #[cfg(feature = "describing")]
    let mut metadata = IdMap::new(storage::<Slot<Metadata<'_>>>());
    let stream: &[u8] = storage();
    loop {
        match parser.next(stream) {
            Record::Trace(trace) => write_number(trace.pointer_size),
            #[cfg(feature = "describing")]
            Record::Metadata(record) => {
                if let Ok(record) = Metadata::decode(parser.version(), record.payload) {
                    let _ = metadata.insert(record.id.into(), record);
                }
            }
            #[cfg(not(feature = "describing"))]
            Record::Event(event) => write_bytes(event.payload),
            #[cfg(feature = "describing")]
            Record::Event(event) => {
                if let Some(metadata) = metadata.get(event.metadata_id.into()) {
                    metadata.name.units().for_each(|unit| write_number(unit.into()));
                    #[cfg(feature = "reading")]
                    values(metadata, event.payload);
                    #[cfg(not(feature = "reading"))]
                    write_bytes(event.payload);
                }
            }
            Record::Stack(stack) => write_bytes(stack.bytes),
            Record::Thread(thread) => write_number(thread.process_id().unwrap_or_default() as u32),
            Record::LabelList(list) => {
                list.labels.for_each(|label| write_number(matches!(label, Label::ActivityId(_)).into()));
            }
            Record::SequencePoint(point) => write_number(point.flags),
            Record::More { .. } => {
                write_number(parser.release() as u32);
                if number() == 0 {
                    write_number(matches!(parser.finish(stream), End::Complete).into());
                    return;
                }
            }
            Record::End(_) => return,
            _ => {}
        }
    }
}

#[cfg(feature = "reading")]
#[inline(never)]
fn values(metadata: &Metadata<'_>, payload: &[u8]) {
    for item in metadata.fields.values(payload) {
        if let Item::Value { name, value } = item {
            name.units().for_each(|unit| write_number(unit.into()));
            match value {
                Value::Int(number) => write_number(number as u32),
                Value::Text(text) => text.chars().for_each(|c| write_number(c.into())),
                _ => {}
            }
        }
    }
}
