//! Events as lines of JSON or text, written by hand into one buffer, because a trace can have millions of events.
use std::io::Write;

use dotnet_ipc_sans_io::syntax::hex::hex;
use ipc_proto::Guid;
use nettrace::{Label, Metadata, Str, ThreadEntry, TraceEvent, Value, Version};

use super::field::{ENTRIES_LIMIT, thread_name};
use super::field_template::Appended;
use super::json;
use super::line_buffer::LineBuffer;
use super::stack_texts::StackTexts;
use super::templates::{KindFields, Templates};
use crate::events::stack_names::{NamedStack, STACK_LIMIT};
use crate::text::date::Zone;
use crate::text::printable::printable_name;

/// A buffer of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) buffer: LineBuffer,
    templates: Templates,
    stacks: StackTexts,
    /// The facts that all events of the trace have in common, once the first one is read.
    trace: Option<TraceFacts>,
    /// The time zone of dates, if the user wants them.
    pub(crate) zone: Option<Zone>,
}

/// An event with the facts that its line shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownEvent<'s, 'e> {
    pub(crate) event: &'s TraceEvent<'e>,
    pub(crate) metadata: Option<&'s Metadata<'e>>,
    pub(crate) payload: &'s [u8],
    /// The names of the stack, if there are any.
    pub(crate) stack: Option<NamedStack<'s>>,
}

#[derive(Debug, Clone, Copy)]
struct TraceFacts {
    /// Whether events have labels, and threads names.
    has_labels: bool,
    process_id: Option<u64>,
}

/// The maximum length of the fields in a line: this many bytes, and this many for each byte of the payload. Usually a
/// field has a byte or more in the payload, but a crafted trace can have names without values.
const FIELDS_LIMIT: (usize, usize) = (4096, 64);

/// The maximum length of the names of a stack in a line, after which no frames follow. 100 frames have about 15 KiB.
const NAMES_LIMIT: usize = 64 << 10;

impl Lines {
    pub(crate) fn new(json: bool, zone: Option<Zone>) -> Self {
        Self {
            buffer: LineBuffer::new(json),
            templates: Templates::default(),
            stacks: StackTexts::new(),
            trace: None,
            zone,
        }
    }

    /// Returns whether lines show the addresses of stacks without names.
    pub(crate) const fn shows_addresses(&self) -> bool {
        self.buffer.json
    }

    /// Adds an event. The length of its payload limits that of the line. The names and the stack do not count for the
    /// limit, because a short event can refer to long ones.
    pub(crate) fn add(&mut self, shown: ShownEvent<'_, '_>) {
        self.buffer.is_cut = false;
        if self.buffer.json {
            self.json(shown);
        } else {
            self.text(shown);
        }
        self.buffer.bytes.push(b'\n');
    }

    fn json(&mut self, shown: ShownEvent<'_, '_>) {
        let ShownEvent { event, metadata, payload, stack } = shown;
        self.buffer.with(b"{\"time_ns\":").signed(event.nanoseconds());
        if self.zone.is_some() {
            let date = self.date(event);
            let date = date.as_deref().map(Str::from);
            self.buffer.with(b",\"time\":").or_null(date, LineBuffer::string);
        }
        self.buffer.with(b",\"thread_id\":").id_or_null(event.known_thread_id());
        self.buffer.with(b",\"process_id\":").id_or_null(event.process_id());
        match metadata {
            Some(metadata) => self.description(event.kind(), metadata),
            None => self.buffer.raw(
                b",\"provider\":null,\"id\":null,\"version\":null,\"name\":null,\"level\":null,\"opcode\":null,\
                  \"keywords\":null",
            ),
        }
        let (processor, activities) = (event.processor(), [event.activity_id(), event.related_activity_id()]);
        if processor.is_none() && activities == [Guid::NIL; 2] {
            // Most events have none of them, and one copy takes less time than six.
            self.buffer.raw(b",\"processor\":null,\"activity_id\":null,\"related_activity_id\":null");
        } else {
            let [activity, related_activity] = activities;
            self.buffer.with(b",\"processor\":").number_or_null(processor.map(u64::from));
            self.buffer.with(b",\"activity_id\":").guid_or_null(activity);
            self.buffer.with(b",\"related_activity_id\":").guid_or_null(related_activity);
        }
        if self.trace(event).has_labels {
            self.json_of_v6(event);
        }
        self.buffer.raw(b",\"stack\":[");
        match stack {
            Some(stack) => self.json_names(event, stack),
            None => self.json_addresses(event),
        }
        self.buffer.raw(b"]");
        match metadata.filter(|metadata| !metadata.fields.is_empty() || payload.is_empty()) {
            Some(metadata) => {
                self.buffer.raw(b",\"fields\":{");
                let (rest, error) = self.fields(event, metadata, payload);
                self.buffer.raw(b"}");
                if !rest.is_empty() {
                    self.buffer.with(b",\"rest\":").base64(rest);
                }
                if let Some(error) = error {
                    self.buffer.with(b",\"error\":").string(Str::from(&*error));
                }
            }
            None => {
                self.buffer.with(b",\"payload\":").base64(payload);
            }
        }
        self.buffer.raw(if self.buffer.is_cut { b",\"cut\":true}" } else { b"}" });
    }

    /// Returns what all events of the trace have in common.
    fn trace(&mut self, event: &TraceEvent<'_>) -> TraceFacts {
        *self.trace.get_or_insert_with(|| {
            let trace = event.trace();
            TraceFacts {
                has_labels: trace.is_some_and(|trace| trace.version == Version::V6),
                process_id: trace.and_then(|trace| trace.process_id).map(u64::from),
            }
        })
    }

    /// Adds the properties that only events of version 6 have.
    fn json_of_v6(&mut self, event: &TraceEvent<'_>) {
        self.buffer
            .with(b",\"trace_id\":")
            .or_null(event.trace_id(), |line, id| _ = write!(line.bytes, "\"{}\"", hex(&id)));
        self.buffer
            .with(b",\"span_id\":")
            .or_null(event.span_id(), |line, id| _ = write!(line.bytes, "\"{id:016x}\""));
        self.buffer.raw(b",\"labels\":");
        let labels = event.labels().map(|label| match label {
            Label::Text(key, value) => Some((key, Value::Text(value))),
            Label::Number(key, value) => Some((key, Value::Int(value))),
            _ => None,
        });
        self.json_pairs(labels);
        self.buffer.with(b",\"thread_name\":").or_null(thread_name(event), LineBuffer::name);
        self.buffer.raw(b",\"thread_attributes\":");
        let entries = event.thread().map(|thread| thread.entries).unwrap_or_default();
        self.json_pairs(entries.map(|entry| match entry {
            ThreadEntry::Pair(key, value) => Some((key, Value::Text(value))),
            _ => None,
        }));
    }

    /// Adds keys and values as an object. The number of entries is limited, with those that are left out (`None`), and
    /// so is the length of each key and value.
    fn json_pairs<'p>(&mut self, pairs: impl Iterator<Item = Option<(Str<'p>, Value<'p>)>>) {
        self.buffer.begin_items();
        self.buffer.raw(b"{");
        self.buffer.open(false, false);
        for (place, pair) in pairs.enumerate() {
            if place == ENTRIES_LIMIT {
                self.buffer.is_cut = true;
                break;
            }
            match pair {
                Some((key, Value::Text(text))) => {
                    self.buffer.key(key);
                    self.buffer.name(text);
                }
                Some((key, value)) => {
                    self.buffer.key(key);
                    json::push_value(&value, &mut self.buffer.bytes);
                }
                None => {}
            }
        }
        self.buffer.close_last();
    }

    fn json_description(&mut self, metadata: &Metadata<'_>) {
        self.buffer.with(b",\"provider\":").name(metadata.provider);
        self.buffer.with(b",\"id\":").number(metadata.event_id.into());
        self.buffer.with(b",\"version\":").number(metadata.version.into());
        self.buffer
            .with(b",\"name\":")
            .or_null(Some(metadata.name).filter(|name| !name.is_empty()), LineBuffer::name);
        self.buffer.with(b",\"level\":").number(metadata.level.into());
        self.buffer.with(b",\"opcode\":").number_or_null(metadata.opcode.map(u64::from));
        self.buffer.raw(b",\"keywords\":");
        json::push_hexadecimal(metadata.keywords, &mut self.buffer.bytes);
    }

    /// Adds the addresses of an event's stack, without brackets.
    fn json_addresses(&mut self, event: &TraceEvent<'_>) {
        let len = event.stack().len();
        if len > 0 {
            let text = self.stacks.get(event.stack_number(), |text| {
                for (n, address) in event.stack().take(STACK_LIMIT).enumerate() {
                    if n > 0 {
                        text.push(b',');
                    }
                    json::push_hexadecimal(address, text);
                }
            });
            self.buffer.bytes.extend_from_slice(text);
            self.buffer.is_cut |= len > STACK_LIMIT;
        }
    }

    /// Adds the names of an event's stack, and the addresses that have none, without brackets.
    fn json_names(&mut self, event: &TraceEvent<'_>, stack: NamedStack<'_>) {
        let (mut names, start) = (stack.names(), self.buffer.bytes.len());
        for (n, address) in event.stack().enumerate() {
            if n == STACK_LIMIT || self.buffer.is_longer(start, NAMES_LIMIT) {
                self.buffer.is_cut = true;
                break;
            }
            if n > 0 {
                self.buffer.raw(b",");
            }
            match names.next().flatten() {
                Some(name) => self.buffer.string(name.into()),
                None => json::push_hexadecimal(address, &mut self.buffer.bytes),
            }
        }
    }

    /// Adds the description of an event.
    fn description(&mut self, kind: u32, metadata: &Metadata<'_>) {
        if let Some((text, is_cut)) = self.templates.description(kind, metadata) {
            self.buffer.bytes.extend_from_slice(text);
            self.buffer.is_cut |= is_cut;
            return;
        }
        let start = self.buffer.bytes.len();
        if self.buffer.json {
            self.json_description(metadata);
        } else {
            self.text_description(metadata);
        }
        // No part of a line before the description can be cut, so `is_cut` is about the description.
        let text = self.buffer.bytes.get(start..).unwrap_or_default();
        self.templates.set_description(kind, metadata, text, self.buffer.is_cut);
    }

    fn text_description(&mut self, metadata: &Metadata<'_>) {
        self.buffer.printable(metadata.provider);
        self.buffer.with(b"/").number(metadata.event_id.into());
        if !metadata.name.is_empty() {
            self.buffer.with(b" ").printable(metadata.name);
        }
    }

    fn text(&mut self, shown: ShownEvent<'_, '_>) {
        let ShownEvent { event, metadata, payload, stack } = shown;
        match self.date(event) {
            Some(date) => self.buffer.raw(date.as_bytes()),
            None => self.seconds(event.nanoseconds()),
        }
        self.buffer.raw(b" [");
        // A process is shown if it is not that of the trace.
        let process = event.process_id();
        if process != self.trace(event).process_id {
            self.buffer.number(process.unwrap_or_default());
            self.buffer.raw(b"/");
        }
        match event.known_thread_id() {
            Some(id) => self.buffer.number(id),
            None => self.buffer.raw(b"?"),
        }
        self.buffer.raw(b"] ");
        match metadata {
            Some(metadata) => self.description(event.kind(), metadata),
            None => self.buffer.raw(b"(not described)"),
        }
        let activity = event.activity_id();
        if activity != Guid::NIL {
            let _ = write!(self.buffer.bytes, " activity={activity}");
        }
        match metadata.filter(|metadata| !metadata.fields.is_empty()) {
            Some(metadata) => {
                let (rest, error) = self.fields(event, metadata, payload);
                if !rest.is_empty() {
                    self.buffer.with(b" (rest: ").base64(rest);
                    self.buffer.raw(b")");
                }
                if let Some(error) = error {
                    let _ = write!(self.buffer.bytes, " ({error})");
                }
            }
            None if payload.is_empty() => {}
            None => {
                self.buffer.with(b" (payload: ").base64(payload);
                self.buffer.raw(b")");
            }
        }
        if self.buffer.is_cut {
            self.buffer.raw(b" (cut)");
        }
        let (names, start) = (stack.into_iter().flat_map(NamedStack::names), self.buffer.bytes.len());
        for (address, name) in event.stack().zip(names) {
            self.buffer.raw(b"\n    ");
            if self.buffer.is_longer(start, NAMES_LIMIT) {
                return self.buffer.raw(b"(cut)");
            }
            match name {
                Some(name) => _ = write!(self.buffer.bytes, "{}", printable_name(name)),
                None => _ = write!(self.buffer.bytes, "{address:#x}"),
            }
        }
    }

    /// Adds a time in seconds.
    fn seconds(&mut self, nanoseconds: i64) {
        let seconds = nanoseconds.unsigned_abs() / 1_000_000_000;
        let fraction = nanoseconds.unsigned_abs() % 1_000_000_000;
        if nanoseconds < 0 {
            self.buffer.raw(b"-");
        }
        self.buffer.number(seconds);
        self.buffer.raw(b".");
        // The first of the ten digits is the added 1, which keeps the zeros after it.
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(fraction.saturating_add(1_000_000_000)).as_bytes();
        self.buffer.raw(digits.get(1..).unwrap_or_default());
    }

    /// Returns the date of an event, if the user wants dates and the trace states one.
    pub(crate) fn date(&self, event: &TraceEvent<'_>) -> Option<String> {
        self.zone.as_ref()?.date(event.unix_nanoseconds()?, 9)
    }

    /// Adds the fields of a payload, without braces around them. Returns the bytes of the payload after the fields, and
    /// the error if a field did not fit.
    fn fields<'p>(
        &mut self,
        event: &TraceEvent<'_>,
        metadata: &Metadata<'p>,
        payload: &'p [u8],
    ) -> (&'p [u8], Option<String>) {
        let (fixed, per_byte) = FIELDS_LIMIT;
        let limit = payload.len().saturating_mul(per_byte).saturating_add(fixed);
        let limit = self.buffer.bytes.len().saturating_add(limit);
        if event.has_described_fields() {
            let kind = event.kind();
            if matches!(self.templates.fields(kind), KindFields::Unknown) {
                let template = self.buffer.template(&metadata.fields);
                self.templates.set_fields(kind, template);
            }
            if let KindFields::Known(template) = self.templates.fields(kind) {
                let Appended { rest, error, is_cut } =
                    template.append(payload, limit, &mut self.buffer.bytes);
                self.buffer.is_cut |= is_cut;
                return (rest, error);
            }
        }
        self.buffer.items(metadata.fields.values(payload), payload, limit)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use ipc_std::TraceReader;

    use super::*;

    #[test]
    fn lines_are_the_same_with_and_without_templates() {
        let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace");
        let mut fields = 0;
        for entry in fs::read_dir(traces).unwrap() {
            let path = entry.unwrap().path();
            if !path.extension().is_some_and(|extension| extension == "nettrace" || extension == "netperf") {
                continue;
            }
            for json in [false, true] {
                let [mut lines, mut others] = [Lines::new(json, None), Lines::new(json, None)];
                let mut trace = TraceReader::new(File::open(&path).unwrap());
                while let Some(event) = trace.next_event().unwrap() {
                    others.templates.set_fields(event.kind(), None);
                    for lines in [&mut lines, &mut others] {
                        lines.buffer.bytes.clear();
                        let metadata = event.metadata();
                        let metadata = metadata.as_ref();
                        let payload = event.payload();
                        lines.add(ShownEvent { event: &event, metadata, payload, stack: None });
                    }
                    assert_eq!(
                        lines.buffer.bytes.escape_ascii().to_string(),
                        others.buffer.bytes.escape_ascii().to_string()
                    );
                    fields += u64::from(matches!(lines.templates.fields(event.kind()), KindFields::Known(_)));
                }
            }
        }
        assert!(fields > 4000, "{fields}");
    }
}
