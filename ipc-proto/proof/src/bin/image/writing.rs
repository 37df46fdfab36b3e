//! Writes a trace with all kinds of records.
use nettrace::*;

use crate::register::{number, storage, text, write_bytes};

pub fn run() {
    let version = if number() == 4 { Version::V4 } else { Version::V6 };
    let Ok(mut writer) = start(version) else { return };
    loop {
        let written = match number() {
            1 => describe(&mut writer),
            2 => stack(&mut writer),
            3 => event(&mut writer),
            4 => sequence_point(&mut writer),
            5 => thread_sequence(&mut writer),
            6 => remove_thread(&mut writer),
            7 => thread(&mut writer),
            8 => labels(&mut writer),
            9 => Ok(writer.flush()),
            _ => return write_bytes(&writer.finish()),
        };
        match written {
            Ok(bytes) => write_bytes(&bytes),
            Err(_) => return,
        }
    }
}

#[inline(never)]
fn describe<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    let fields = [("number", Scalar::Int32), ("text", Scalar::Utf16String)];
    let Ok(fields) = Fields::build(&fields, storage()) else { return Ok(TraceBytes::default()) };
    let mut metadata = Metadata::new(number(), text(), number(), text());
    metadata.fields = fields;
    writer.describe(&metadata)
}

#[inline(never)]
fn event<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    writer.event(&Event { timestamp: number().into(), payload: storage(), ..Event::default() })
}

#[inline(never)]
fn stack<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    writer.stack(&Stack { id: number(), bytes: storage() })
}

#[inline(never)]
fn sequence_point<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    writer.sequence_point(&SequencePoint { timestamp: number().into(), flags: number(), threads: 0 })
}

#[inline(never)]
fn thread<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    writer.thread(number().into(), storage::<ThreadEntry<'_>>().iter().copied())
}

#[inline(never)]
fn labels<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    writer.label_list(number(), storage::<Label<'_>>().iter().copied())
}

#[inline(never)]
fn start(version: Version) -> Result<TraceWriter<'static>, WriteError> {
    TraceWriter::new(&Trace::new(version), storage())
}

#[inline(never)]
fn thread_sequence<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    writer.thread_sequence(&ThreadSequence { thread: number().into(), sequence: number() })
}

#[inline(never)]
fn remove_thread<'w>(writer: &'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError> {
    writer.remove_thread(&ThreadSequence { thread: number().into(), sequence: number() })
}
