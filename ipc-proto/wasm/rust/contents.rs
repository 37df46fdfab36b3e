//! The contents of the records of a trace: descriptions, payloads, labels, threads.
use nettrace::{
    Item as Part, Label, Labels, Metadata, Pairs, ThreadEntries, ThreadEntry, TraceClock, Version,
};

use crate::memory;
use crate::output::{Item, Kind, Output};
use crate::trace::Reader;

const fn version(number: u32) -> Version {
    match number {
        3 => Version::V3,
        6 => Version::V6,
        _ => Version::V4,
    }
}

/// Describes what the stream states about itself. `pairs` are the bytes of the row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn describe_trace(
    reader: *const Reader,
    pairs: *const u8,
    len: usize,
    output: *mut Output,
) {
    // SAFETY: the caller vouches for the address, and has initialised the reader.
    let reader = unsafe { &*reader };
    // SAFETY: the caller vouches for the address.
    let pairs = unsafe { memory::bytes(pairs, len) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    let Some(trace) = &reader.trace else { return };
    // JavaScript's dates have whole milliseconds.
    let start = TraceClock::new(trace)
        .unix_start()
        .and_then(|start| i64::try_from(start.checked_div(1_000_000)?).ok());
    output.add("version", Item::number(trace.version.number().into()));
    output.add("minor", Item::number(trace.minor.into()));
    output.add("pointer_size", Item::number(trace.pointer_size.into()));
    output.add("frequency", Item::number(trace.frequency));
    output.add("sync_ticks", Item::number(trace.sync_ticks));
    output.add("start", start.map_or_else(|| Item::mark(Kind::Null), Item::signed));
    let numbers = [
        ("process_id", trace.process_id),
        ("processors", trace.processors),
        ("sampling_interval", trace.sampling_interval),
    ];
    for (name, number) in numbers {
        output.add(name, number.map_or_else(|| Item::mark(Kind::Null), |number| Item::number(number.into())));
    }
    output.add("pairs", Item::mark(Kind::BeginObject));
    for (key, value) in Pairs::from_bytes(pairs) {
        output.push(Item::text(value).named(key));
    }
    output.push(Item::mark(Kind::EndObject));
}

/// Decodes a description of events. If this fails, a fault is the only item of the output.
fn metadata<'r>(
    stream: u32,
    #[cfg_attr(not(feature = "clr"), allow(unused_variables, reason = "only those events depend on it"))]
    pointer_size: u32,
    record: &'r [u8],
    output: &mut Output,
) -> Option<Metadata<'r>> {
    match Metadata::decode(version(stream), record) {
        #[cfg(feature = "clr")]
        Ok(metadata) => Some(nettrace::clr::describe(metadata, pointer_size)),
        #[cfg(not(feature = "clr"))]
        Ok(metadata) => Some(metadata),
        Err(error) => {
            output.fault(error.offset, &error.kind);
            None
        }
    }
}

/// The description of a kind of event. Its texts and fields are in the bytes of its record.
pub type Description = Metadata<'static>;

/// Returns the size of a [`Description`].
#[unsafe(no_mangle)]
pub extern "C" fn description_size() -> usize {
    size_of::<Description>()
}

/// Describes a kind of event, and initialises its description for [`payload_values`], in memory that is aligned to 16
/// bytes. Without a description, a fault is the only item of the output. The bytes of the record must stay, because the
/// description refers to them: so it is decoded once, however many events refer to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn describe_metadata(
    stream: u32,
    pointer_size: u32,
    record: *const u8,
    len: usize,
    description: *mut Description,
    output: *mut Output,
) {
    // SAFETY: the caller vouches for the address.
    let record = unsafe { memory::bytes(record, len) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    let Some(metadata) = metadata(stream, pointer_size, record, output) else { return };
    // SAFETY: the caller has reserved [`description_size`] bytes there.
    unsafe { description.write(metadata) };
    output.add("metadata_id", Item::number(metadata.id.into()));
    output.add("provider", Item::text(metadata.provider));
    output.add("id", Item::number(metadata.event_id.into()));
    output.add("name", Item::text(metadata.name));
    output.add("keywords", Item::number(metadata.keywords));
    output.add("version", Item::number(metadata.version.into()));
    output.add("level", Item::number(metadata.level.into()));
    output.add("has_fields", Item::boolean(!metadata.fields.is_empty()));
    if let Some(opcode) = metadata.opcode {
        output.add("opcode", Item::number(opcode.into()));
    }
    if let Some(text) = metadata.message_template {
        output.add("message_template", Item::text(text));
    }
    if let Some(text) = metadata.description {
        output.add("description", Item::text(text));
    }
    if let Some(guid) = metadata.provider_guid {
        output.add("provider_guid", Item::guid(guid));
    }
    output.add("attributes", Item::mark(Kind::BeginObject));
    for (key, value) in metadata.attributes.iter() {
        output.push(Item::text(value).named(key));
    }
    output.push(Item::mark(Kind::EndObject));
    if let Some(problem) = metadata.problem {
        output.fault(problem.offset, &problem.kind);
    }
}

/// Returns the values of a payload, then the bytes after them or a fault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn payload_values(
    description: *const Description,
    payload: *const u8,
    len: usize,
    output: *mut Output,
) {
    // SAFETY: the caller vouches for the address, and has initialised the description.
    let metadata = unsafe { &*description };
    // SAFETY: the caller vouches for the address.
    let payload = unsafe { memory::bytes(payload, len) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    let mut values = metadata.fields.values(payload);
    for part in values.by_ref() {
        output.push(match part {
            Part::Value { name, value } => Item::value(&value).named(name),
            Part::BeginObject { name } => Item::mark(Kind::BeginObject).named(name),
            Part::BeginArray { name } => Item::mark(Kind::BeginArray).named(name),
            Part::EndObject => Item::mark(Kind::EndObject),
            Part::EndArray => Item::mark(Kind::EndArray),
        });
    }
    match values.finish() {
        Ok([]) => {}
        Ok(rest) => output.push(Item::bytes(Kind::Rest, rest)),
        Err(error) => output.fault(error.offset, &error.kind),
    }
}

/// Describes a thread of version 6.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn describe_thread(entries: *const u8, len: usize, output: *mut Output) {
    // SAFETY: the caller vouches for the address.
    let entries = unsafe { memory::bytes(entries, len) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    for entry in ThreadEntries::from_bytes(entries) {
        match entry {
            ThreadEntry::Name(name) => output.add("name", Item::text(name)),
            ThreadEntry::ProcessId(id) => output.add("process_id", Item::number(id)),
            ThreadEntry::ThreadId(id) => output.add("thread_id", Item::number(id)),
            ThreadEntry::Pair(key, value) => output.push(Item::text(value).named(key)),
            _ => {}
        }
    }
}

/// Describes a list of labels of version 6.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn describe_labels(labels: *const u8, len: usize, output: *mut Output) {
    // SAFETY: the caller vouches for the address.
    let labels = unsafe { memory::bytes(labels, len) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    let labels = match Labels::from_bytes(labels) {
        Ok(labels) => labels,
        Err(error) => return output.fault(error.offset, &error.kind),
    };
    for label in labels {
        match label {
            Label::ActivityId(guid) => output.add("activity_id", Item::guid(guid)),
            Label::RelatedActivityId(guid) => output.add("related_activity_id", Item::guid(guid)),
            Label::TraceId(id) => output.add("trace_id", Item::decimal(id)),
            Label::SpanId(id) => output.add("span_id", Item::number(id)),
            Label::Text(key, value) => output.push(Item::text(value).named(key)),
            Label::Number(key, value) => output.push(Item::signed(value).named(key)),
            Label::Opcode(opcode) => output.add("opcode", Item::number(opcode.into())),
            Label::Keywords(keywords) => output.add("keywords", Item::number(keywords)),
            Label::Level(level) => output.add("level", Item::number(level.into())),
            Label::Version(version) => output.add("version", Item::number(version.into())),
        }
    }
}
