//! Events as lines of JSON or text, written by hand into one buffer, because a trace can have millions of events.
use core::ops::Range;
use std::collections::HashMap;
use std::io::Write;

use dotnet_ipc_syntax::hex::hex;
use ipc_proto::Guid;
use nettrace::{
    Fields, Item, Label, Metadata, ShapeKind, Str, ThreadEntry, TraceEvent, Value, Values, Version,
};

use super::field::{ENTRIES_LIMIT, thread_name};
use super::field_template::{Appended, FieldTemplate, names_and_shapes, unread};
use super::json;
use super::stack_texts::StackTexts;
use super::templates::{KindFields, Templates};
use crate::output::printable::printable_name;
use crate::stacks::stack_names::{NamedStack, STACK_LIMIT};

/// A buffer of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    json: bool,
    /// The keys of the open objects, so that no object gets two keys of the same name.
    keys: Vec<ObjectKey>,
    /// An index of `keys` for objects that have more than [`FEW`]: by the object's first key, and the name.
    many: HashMap<(usize, Vec<u8>), usize>,
    /// The open objects and arrays.
    open: Vec<Open>,
    /// Whether a part of the event is not in its line.
    is_cut: bool,
    templates: Templates,
    stacks: StackTexts,
    /// The facts that all events of the trace have in common, once the first one is read.
    trace: Option<TraceFacts>,
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

/// A key in the buffer.
#[derive(Debug)]
struct ObjectKey {
    place: Range<usize>,
    /// The suffix for the next key of the same name.
    next_suffix: u32,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    is_array: bool,
    /// Whether this is an object without a name that is the whole payload. Its braces are left out.
    is_payload: bool,
    is_empty: bool,
    /// The index of the object's first key.
    first_key: usize,
}

/// The maximum length of the fields in a line: this many bytes, and this many for each byte of the payload. Usually a
/// field has a byte or more in the payload, but a crafted trace can have names without values.
const FIELDS_LIMIT: (usize, usize) = (4096, 64);

/// The maximum length of the names of a stack in a line, after which no frames follow. 100 frames have about 15 KiB.
const NAMES_LIMIT: usize = 64 << 10;

/// Up to this number, keys are compared one by one, which is enough for nearly every object.
const FEW: usize = 16;

impl Lines {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            bytes: Vec::new(),
            json,
            keys: Vec::new(),
            many: HashMap::new(),
            open: Vec::new(),
            is_cut: false,
            templates: Templates::default(),
            stacks: StackTexts::new(),
            trace: None,
        }
    }

    /// Returns whether lines show the addresses of stacks without names.
    pub(crate) const fn shows_addresses(&self) -> bool {
        self.json
    }

    /// Adds an event. The length of its payload limits that of the line. The names and the stack do not count for the limit, because a short event can refer to long ones.
    pub(crate) fn add(&mut self, shown: ShownEvent<'_, '_>) {
        self.is_cut = false;
        if self.json {
            self.json(shown);
        } else {
            self.text(shown);
        }
        self.bytes.push(b'\n');
    }

    fn json(&mut self, shown: ShownEvent<'_, '_>) {
        let ShownEvent { event, metadata, payload, stack } = shown;
        self.raw(b"{\"time_ns\":");
        self.signed(event.nanoseconds());
        self.raw(b",\"thread_id\":");
        self.number_or_null(event.known_thread_id());
        self.raw(b",\"process_id\":");
        self.number_or_null(event.process_id());
        match metadata {
            Some(metadata) => self.description(event.kind(), metadata),
            None => self.raw(
                b",\"provider\":null,\"id\":null,\"version\":null,\"name\":null,\"level\":null,\"opcode\":null,\
                  \"keywords\":null",
            ),
        }
        let (processor, activities) = (event.processor(), [event.activity_id(), event.related_activity_id()]);
        if processor.is_none() && activities == [Guid::NIL; 2] {
            // Most events have none of them, and one copy takes less time than six.
            self.raw(b",\"processor\":null,\"activity_id\":null,\"related_activity_id\":null");
        } else {
            let [activity, related_activity] = activities;
            self.raw(b",\"processor\":");
            self.number_or_null(processor.map(u64::from));
            self.raw(b",\"activity_id\":");
            self.guid_or_null(activity);
            self.raw(b",\"related_activity_id\":");
            self.guid_or_null(related_activity);
        }
        if self.trace(event).has_labels {
            self.json_of_v6(event);
        }
        self.raw(b",\"stack\":[");
        match stack {
            Some(stack) => self.json_names(event, stack),
            None => self.json_addresses(event),
        }
        self.raw(b"]");
        match metadata.filter(|metadata| !metadata.fields.is_empty() || payload.is_empty()) {
            Some(metadata) => {
                self.raw(b",\"fields\":{");
                let (rest, error) = self.fields(event, metadata, payload);
                self.raw(b"}");
                if !rest.is_empty() {
                    self.raw(b",\"rest\":");
                    self.base64(rest);
                }
                if let Some(error) = error {
                    self.raw(b",\"error\":");
                    self.string(Str::from(&*error));
                }
            }
            None => {
                self.raw(b",\"payload\":");
                self.base64(payload);
            }
        }
        self.raw(if self.is_cut { b",\"cut\":true}" } else { b"}" });
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
        self.raw(b",\"trace_id\":");
        self.or_null(event.trace_id(), |line, id| _ = write!(line.bytes, "\"{}\"", hex(&id)));
        self.raw(b",\"span_id\":");
        self.or_null(event.span_id(), |line, id| _ = write!(line.bytes, "\"{id:016x}\""));
        self.raw(b",\"labels\":");
        let labels = event.labels().map(|label| match label {
            Label::Text(key, value) => Some((key, Value::Text(value))),
            Label::Number(key, value) => Some((key, Value::Int(value))),
            _ => None,
        });
        self.json_pairs(labels);
        self.raw(b",\"thread_name\":");
        self.or_null(thread_name(event), Self::name);
        self.raw(b",\"thread_attributes\":");
        let entries = event.thread().map(|thread| thread.entries).unwrap_or_default();
        self.json_pairs(entries.map(|entry| match entry {
            ThreadEntry::Pair(key, value) => Some((key, Value::Text(value))),
            _ => None,
        }));
    }

    /// Adds keys and values as an object. The number of entries is limited, with those that are left out (`None`), and
    /// so is the length of each key and value.
    fn json_pairs<'p>(&mut self, pairs: impl Iterator<Item = Option<(Str<'p>, Value<'p>)>>) {
        self.begin_items();
        self.raw(b"{");
        self.open.push(Open { is_array: false, is_payload: false, is_empty: true, first_key: 0 });
        for (place, pair) in pairs.enumerate() {
            if place == ENTRIES_LIMIT {
                self.is_cut = true;
                break;
            }
            match pair {
                Some((key, Value::Text(text))) => {
                    self.key(key);
                    self.name(text);
                }
                Some((key, value)) => {
                    self.key(key);
                    json::push_value(&value, &mut self.bytes);
                }
                None => {}
            }
        }
        self.close_last();
    }

    fn json_description(&mut self, metadata: &Metadata<'_>) {
        self.raw(b",\"provider\":");
        self.name(metadata.provider);
        self.raw(b",\"id\":");
        self.number(metadata.event_id.into());
        self.raw(b",\"version\":");
        self.number(metadata.version.into());
        self.raw(b",\"name\":");
        self.or_null(Some(metadata.name).filter(|name| !name.is_empty()), Self::name);
        self.raw(b",\"level\":");
        self.number(metadata.level.into());
        self.raw(b",\"opcode\":");
        self.number_or_null(metadata.opcode.map(u64::from));
        self.raw(b",\"keywords\":");
        json::push_hexadecimal(metadata.keywords, &mut self.bytes);
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
            self.bytes.extend_from_slice(text);
            self.is_cut |= len > STACK_LIMIT;
        }
    }

    /// Adds the names of an event's stack, and the addresses that have none, without brackets.
    fn json_names(&mut self, event: &TraceEvent<'_>, stack: NamedStack<'_>) {
        let (mut names, start) = (stack.names(), self.bytes.len());
        for (n, address) in event.stack().enumerate() {
            if n == STACK_LIMIT || self.is_longer(start, NAMES_LIMIT) {
                self.is_cut = true;
                break;
            }
            if n > 0 {
                self.raw(b",");
            }
            match names.next().flatten() {
                Some(name) => self.string(name.into()),
                None => json::push_hexadecimal(address, &mut self.bytes),
            }
        }
    }

    /// Adds the description of an event.
    fn description(&mut self, kind: u32, metadata: &Metadata<'_>) {
        if let Some((text, is_cut)) = self.templates.description(kind, metadata) {
            self.bytes.extend_from_slice(text);
            self.is_cut |= is_cut;
            return;
        }
        let start = self.bytes.len();
        if self.json {
            self.json_description(metadata);
        } else {
            self.text_description(metadata);
        }
        // No part of a line before the description can be cut, so `is_cut` is about the description.
        let text = self.bytes.get(start..).unwrap_or_default();
        self.templates.set_description(kind, metadata, text, self.is_cut);
    }

    fn text_description(&mut self, metadata: &Metadata<'_>) {
        self.printable(metadata.provider);
        self.raw(b"/");
        self.number(metadata.event_id.into());
        if !metadata.name.is_empty() {
            self.raw(b" ");
            self.printable(metadata.name);
        }
    }

    fn text(&mut self, shown: ShownEvent<'_, '_>) {
        let ShownEvent { event, metadata, payload, stack } = shown;
        let nanoseconds = event.nanoseconds();
        let seconds = nanoseconds.unsigned_abs() / 1_000_000_000;
        let fraction = nanoseconds.unsigned_abs() % 1_000_000_000;
        if nanoseconds < 0 {
            self.raw(b"-");
        }
        self.number(seconds);
        self.raw(b".");
        // The first of the ten digits is the added 1, which keeps the zeros after it.
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(fraction.saturating_add(1_000_000_000)).as_bytes();
        self.raw(digits.get(1..).unwrap_or_default());
        self.raw(b" [");
        // A process is shown if it is not that of the trace.
        let process = event.process_id();
        if process != self.trace(event).process_id {
            self.number(process.unwrap_or_default());
            self.raw(b"/");
        }
        match event.known_thread_id() {
            Some(id) => self.number(id),
            None => self.raw(b"?"),
        }
        self.raw(b"] ");
        match metadata {
            Some(metadata) => self.description(event.kind(), metadata),
            None => self.raw(b"(not described)"),
        }
        let activity = event.activity_id();
        if activity != Guid::NIL {
            let _ = write!(self.bytes, " activity={activity}");
        }
        match metadata.filter(|metadata| !metadata.fields.is_empty()) {
            Some(metadata) => {
                let (rest, error) = self.fields(event, metadata, payload);
                if !rest.is_empty() {
                    self.raw(b" (rest: ");
                    self.base64(rest);
                    self.raw(b")");
                }
                if let Some(error) = error {
                    let _ = write!(self.bytes, " ({error})");
                }
            }
            None if payload.is_empty() => {}
            None => {
                self.raw(b" (payload: ");
                self.base64(payload);
                self.raw(b")");
            }
        }
        if self.is_cut {
            self.raw(b" (cut)");
        }
        let (names, start) = (stack.into_iter().flat_map(NamedStack::names), self.bytes.len());
        for (address, name) in event.stack().zip(names) {
            self.raw(b"\n    ");
            if self.is_longer(start, NAMES_LIMIT) {
                return self.raw(b"(cut)");
            }
            match name {
                Some(name) => _ = write!(self.bytes, "{}", printable_name(name)),
                None => _ = write!(self.bytes, "{address:#x}"),
            }
        }
    }

    /// Returns whether more than `limit` bytes follow `start`.
    fn is_longer(&self, start: usize, limit: usize) -> bool {
        self.bytes.len().saturating_sub(start) > limit
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
        let limit = self.bytes.len().saturating_add(limit);
        if event.has_described_fields() {
            let kind = event.kind();
            if matches!(self.templates.fields(kind), KindFields::Unknown) {
                let template = self.template(&metadata.fields);
                self.templates.set_fields(kind, template);
            }
            if let KindFields::Known(template) = self.templates.fields(kind) {
                let Appended { rest, error, is_cut } = template.append(payload, limit, &mut self.bytes);
                self.is_cut |= is_cut;
                return (rest, error);
            }
        }
        self.items(metadata.fields.values(payload), payload, limit)
    }

    /// Returns a template of fields, unless they are too many.
    fn template(&mut self, fields: &Fields<'_>) -> Option<FieldTemplate> {
        let (start, was_cut) = (self.bytes.len(), self.is_cut);
        let (mut template, mut ends) = (FieldTemplate::default(), Vec::new());
        self.begin_items();
        for ((name, shape), index) in names_and_shapes(fields)?.into_iter().zip(0..) {
            while ends.last() == Some(&index) {
                ends.pop();
                self.close_last();
            }
            let Some(open) = self.open.last_mut() else { break };
            // The text always has a separator, which is left out where nothing precedes the value.
            open.is_empty = false;
            let separator_len = match (self.json, open.is_payload) {
                (true, _) => 1,
                (false, false) => 2,
                (false, true) => 0,
            };
            let is_payload = self.is_payload(shape.kind == ShapeKind::Object, name);
            let key = self.bytes.len();
            self.is_cut = false;
            if !is_payload {
                self.key(name);
            }
            let text = self.bytes.get(key..).filter(|_| !is_payload);
            template.add(shape, text, separator_len, self.is_cut);
            if matches!(shape.kind, ShapeKind::Object | ShapeKind::Array(_)) {
                self.open(matches!(shape.kind, ShapeKind::Array(_)), is_payload);
                ends.push(shape.end);
            }
        }
        self.bytes.truncate(start);
        self.is_cut = was_cut;
        Some(template)
    }

    /// Adds the fields of a payload by their description, as [`fields`](Self::fields) does.
    fn items<'p>(
        &mut self,
        mut values: Values<'p>,
        payload: &'p [u8],
        limit: usize,
    ) -> (&'p [u8], Option<String>) {
        self.begin_items();
        for item in values.by_ref() {
            if self.bytes.len() > limit {
                self.is_cut = true;
                while self.open.len() > 1 {
                    self.close_last();
                }
                return (&[], None);
            }
            match item {
                Item::Value { name, value } => {
                    self.key(name);
                    json::push_value(&value, &mut self.bytes);
                }
                Item::BeginObject { name } => {
                    let is_payload = self.is_payload(true, name);
                    if !is_payload {
                        self.key(name);
                        self.raw(b"{");
                    }
                    self.open(false, is_payload);
                }
                Item::BeginArray { name } => {
                    self.key(name);
                    self.raw(b"[");
                    self.open(true, false);
                }
                Item::EndObject | Item::EndArray => self.close_last(),
            }
        }
        unread(values.finish(), payload)
    }

    /// Returns whether a value that begins is an object without a name that is the whole payload.
    fn is_payload(&self, is_object: bool, name: Str<'_>) -> bool {
        is_object && self.open.len() == 1 && name.is_empty()
    }

    /// Opens an object or array. An object that is the whole payload has no braces of its own: its fields continue those
    /// before it.
    fn open(&mut self, is_array: bool, is_payload: bool) {
        let is_empty = !is_payload || self.open.last().is_none_or(|open| open.is_empty);
        let first_key = if is_payload { 0 } else { self.keys.len() };
        self.open.push(Open { is_array, is_payload, is_empty, first_key });
    }

    /// Forgets the objects and keys of the last payload, and begins another one.
    fn begin_items(&mut self) {
        self.keys.clear();
        if !self.many.is_empty() {
            // `clear` takes time in proportion to the capacity: after one large payload each later one would be slow.
            self.many = HashMap::new();
        }
        self.open.clear();
        self.open.push(Open { is_array: false, is_payload: true, is_empty: true, first_key: 0 });
    }

    /// Closes the innermost open object or array.
    fn close_last(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if !open.is_payload {
            self.raw(if open.is_array { b"]" } else { b"}" });
            let many = self.keys.len().saturating_sub(open.first_key) > FEW;
            for key in self.keys.drain(open.first_key..).filter(|_| many) {
                let name = self.bytes.get(key.place).unwrap_or_default();
                self.many.remove(&(open.first_key, name.to_vec()));
            }
        } else if let Some(outer) = self.open.last_mut() {
            outer.is_empty = open.is_empty;
        }
    }

    /// Adds what precedes a value: a comma, unless the value is the first, and its name.
    fn key(&mut self, name: Str<'_>) {
        let Some(open) = self.open.last_mut() else { return };
        let Open { is_array, is_payload, is_empty, first_key } = *open;
        open.is_empty = false;
        let start = self.bytes.len();
        let separator: &[u8] = match (self.json, is_payload, is_empty) {
            (true, _, true) | (false, false, true) => b"",
            (true, _, false) => b",",
            (false, true, _) => b" ",
            (false, false, false) => b", ",
        };
        let key = start.saturating_add(separator.len());
        self.raw(separator);
        if is_array {
            return;
        }
        if self.json {
            self.name(name);
            self.make_unique(key, first_key);
            self.raw(b":");
        } else {
            self.printable(name);
            self.raw(b"=");
        }
    }

    /// Adds a suffix to the key that begins at `start` if its object, whose first key is `first`, already has a key of
    /// that name: `"x"`, `"x#2"`, `"x#3"`.
    fn make_unique(&mut self, start: usize, first: usize) {
        if let Some(same) = self.same_key(start, first) {
            // The suffix replaces the closing quotation mark.
            let end = self.bytes.len().saturating_sub(1);
            let mut suffix = self.keys.get(same).map_or(2, |key| key.next_suffix);
            loop {
                self.bytes.truncate(end);
                let _ = write!(self.bytes, "#{suffix}\"");
                suffix = suffix.saturating_add(1);
                if self.same_key(start, first).is_none() {
                    break;
                }
            }
            if let Some(key) = self.keys.get_mut(same) {
                key.next_suffix = suffix;
            }
        }
        self.keys.push(ObjectKey { place: start..self.bytes.len(), next_suffix: 2 });
        let last = self.keys.len().saturating_sub(1);
        // The first key beyond the limit also adds the keys before it to the index.
        let added = match last.saturating_sub(first) {
            ..FEW => return,
            FEW => first..self.keys.len(),
            _ => last..self.keys.len(),
        };
        self.index(added, first);
    }

    /// Adds keys of the object whose first key is `first` to the index.
    fn index(&mut self, added: Range<usize>, first: usize) {
        for at in added {
            let place = self.keys.get(at).map(|key| key.place.clone()).unwrap_or_default();
            let name = self.bytes.get(place).unwrap_or_default().to_vec();
            self.many.insert((first, name), at);
        }
    }

    /// Returns the key of the object that equals the one at `start`.
    fn same_key(&self, start: usize, first: usize) -> Option<usize> {
        let new = self.bytes.get(start..)?;
        if self.keys.len().saturating_sub(first) > FEW {
            return self.many.get(&(first, new.to_vec())).copied();
        }
        let same =
            |key: &ObjectKey| key.place.len() == new.len() && self.bytes.get(key.place.clone()) == Some(new);
        self.keys.get(first..)?.iter().position(same)?.checked_add(first)
    }

    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn signed(&mut self, number: i64) {
        if number < 0 {
            self.raw(b"-");
        }
        self.number(number.unsigned_abs());
    }

    fn number(&mut self, number: u64) {
        self.raw(itoa::Buffer::new().format(number).as_bytes());
    }

    fn number_or_null(&mut self, number: Option<u64>) {
        self.or_null(number, Self::number);
    }

    fn or_null<T>(&mut self, value: Option<T>, push: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => push(self, value),
            None => self.raw(b"null"),
        }
    }

    fn guid_or_null(&mut self, guid: Guid) {
        let guid = Some(guid).filter(|guid| *guid != Guid::NIL);
        self.or_null(guid, |line, guid| json::push_value(&Value::Guid(guid), &mut line.bytes));
    }

    fn base64(&mut self, bytes: &[u8]) {
        json::push_base64(bytes, &mut self.bytes);
    }

    fn string(&mut self, text: Str<'_>) {
        json::push_string(text, &mut self.bytes);
    }

    /// Adds a name as [`string`](Self::string) does, and cuts it: each event repeats the names of its description.
    fn name(&mut self, text: Str<'_>) {
        self.is_cut |= json::push_name(text, &mut self.bytes);
    }

    /// Adds a name: without quotation marks, and escaped only where it would control a terminal.
    fn printable(&mut self, text: Str<'_>) {
        self.is_cut |= json::push_printable(text, &mut self.bytes);
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
                let [mut lines, mut others] = [Lines::new(json), Lines::new(json)];
                let mut trace = TraceReader::new(File::open(&path).unwrap());
                while let Some(event) = trace.next_event().unwrap() {
                    others.templates.set_fields(event.kind(), None);
                    for lines in [&mut lines, &mut others] {
                        lines.bytes.clear();
                        let metadata = event.metadata();
                        let metadata = metadata.as_ref();
                        let payload = event.payload();
                        lines.add(ShownEvent { event: &event, metadata, payload, stack: None });
                    }
                    assert_eq!(
                        lines.bytes.escape_ascii().to_string(),
                        others.bytes.escape_ascii().to_string()
                    );
                    fields += u64::from(matches!(lines.templates.fields(event.kind()), KindFields::Known(_)));
                }
            }
        }
        assert!(fields > 4000, "{fields}");
    }
}
