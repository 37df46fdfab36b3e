//! Events as lines of JSON or text, written by hand into one buffer, because a trace can have millions of events.
use core::ops::Range;
use std::collections::HashMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ipc_proto::Guid;
use ipc_proto::nettrace::{Item, Metadata, Str, TraceEvent, Value, Values};

use super::plain_text;
use super::repeated_text::{DescriptionTexts, StackTexts};
use crate::output::printable::{NAME_LIMIT, is_control, printable_name, start};
use crate::stacks::stack_names::{NamedStack, STACK_LIMIT};

/// A buffer of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    json: bool,
    /// The keys of the open objects, so that no object gets two of the same name.
    keys: Vec<Key>,
    /// An index of `keys` for objects that have more than [`FEW`]: by the object's first key, and the name.
    many: HashMap<(usize, Vec<u8>), usize>,
    /// The open objects and arrays.
    open: Vec<Open>,
    /// Whether a part of the event is not in its line.
    is_cut: bool,
    descriptions: DescriptionTexts,
    stacks: StackTexts,
}

/// A key in the buffer.
#[derive(Debug)]
struct Key {
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

/// The length of the fields in a line: so many bytes, and so many for each byte of the payload. A field has at least
/// one byte, unless a trace is made to have names without values.
const FIELDS_LIMIT: (usize, usize) = (4096, 64);

/// The length of the names of a stack in a line: no more frames follow. 100 frames have about 15 KiB.
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
            descriptions: DescriptionTexts::new(),
            stacks: StackTexts::new(),
        }
    }

    /// Returns whether lines show the addresses of stacks without names.
    pub(crate) const fn shows_addresses(&self) -> bool {
        self.json
    }

    /// Adds an event, and the names of its stack if there are any. The length of its line is limited by that of the
    /// event, and not by that of the names and the stack that it refers to.
    pub(crate) fn add(
        &mut self,
        event: &TraceEvent<'_>,
        metadata: Option<&Metadata<'_>>,
        stack: Option<NamedStack<'_>>,
    ) {
        self.is_cut = false;
        if self.json {
            self.json(event, metadata, stack);
        } else {
            self.text(event, metadata, stack);
        }
        self.bytes.push(b'\n');
    }

    fn json(
        &mut self,
        event: &TraceEvent<'_>,
        metadata: Option<&Metadata<'_>>,
        stack: Option<NamedStack<'_>>,
    ) {
        self.raw(b"{\"time_ns\":");
        self.signed(event.nanoseconds());
        self.raw(b",\"thread_id\":");
        self.number(event.thread_id());
        match metadata {
            Some(metadata) => self.description(metadata),
            None => self.raw(
                b",\"provider\":null,\"id\":null,\"version\":null,\"name\":null,\"level\":null,\"opcode\":null,\
                  \"keywords\":null",
            ),
        }
        self.raw(b",\"processor\":");
        self.number_or_null(event.header.known_processor());
        self.raw(b",\"activity_id\":");
        self.guid_or_null(event.activity_id());
        self.raw(b",\"related_activity_id\":");
        self.guid_or_null(event.related_activity_id());
        self.raw(b",\"stack\":[");
        match stack {
            Some(stack) => self.json_names(event, stack),
            None => self.json_addresses(event),
        }
        self.raw(b"]");
        let payload = event.header.payload;
        match metadata.filter(|metadata| !metadata.fields.is_empty() || payload.is_empty()) {
            Some(metadata) => {
                self.raw(b",\"fields\":{");
                let (rest, error) = self.items(metadata.fields.values(payload), payload);
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

    fn json_description(&mut self, metadata: &Metadata<'_>) {
        self.raw(b",\"provider\":");
        self.name(metadata.provider);
        self.raw(b",\"id\":");
        self.number(metadata.event_id.into());
        self.raw(b",\"version\":");
        self.number(metadata.version.into());
        self.raw(b",\"name\":");
        if metadata.name.is_empty() {
            self.raw(b"null")
        } else {
            self.name(metadata.name)
        }
        self.raw(b",\"level\":");
        self.number(metadata.level.into());
        self.raw(b",\"opcode\":");
        self.number_or_null(metadata.opcode.map(u32::from));
        self.raw(b",\"keywords\":");
        hexadecimal(&[metadata.keywords], &mut self.bytes);
    }

    /// Adds the addresses of an event's stack, without brackets.
    fn json_addresses(&mut self, event: &TraceEvent<'_>) {
        let len = event.stack().len();
        if len > 0 {
            let stack = || event.stack().take(STACK_LIMIT);
            let text = self.stacks.get(event.header.stack_id, stack, hexadecimal);
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
                None => hexadecimal(&[address], &mut self.bytes),
            }
        }
    }

    /// Adds the description of an event.
    fn description(&mut self, metadata: &Metadata<'_>) {
        if let Some((text, is_cut)) = self.descriptions.get(metadata) {
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
        // The description is the first part of a line that can be cut.
        let text = self.bytes.get(start..).unwrap_or_default();
        self.descriptions.insert(metadata, text, self.is_cut);
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

    fn text(
        &mut self,
        event: &TraceEvent<'_>,
        metadata: Option<&Metadata<'_>>,
        stack: Option<NamedStack<'_>>,
    ) {
        let nanoseconds = event.nanoseconds();
        let seconds = nanoseconds.unsigned_abs() / 1_000_000_000;
        let fraction = nanoseconds.unsigned_abs() % 1_000_000_000;
        if nanoseconds < 0 {
            self.raw(b"-");
        }
        self.number(seconds);
        self.raw(b".");
        // The first of the ten digits is not one of the fraction.
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(fraction.saturating_add(1_000_000_000)).as_bytes();
        self.raw(digits.get(1..).unwrap_or_default());
        self.raw(b" [");
        self.number(event.thread_id());
        self.raw(b"] ");
        let payload = event.header.payload;
        match metadata {
            Some(metadata) => self.description(metadata),
            None => self.raw(b"(not described)"),
        }
        let activity = event.activity_id();
        if activity != Guid::NIL {
            let _ = write!(self.bytes, " activity={activity}");
        }
        match metadata.filter(|metadata| !metadata.fields.is_empty()) {
            Some(metadata) => {
                let (rest, error) = self.items(metadata.fields.values(payload), payload);
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
    fn items<'p>(&mut self, mut values: Values<'p>, payload: &'p [u8]) -> (&'p [u8], Option<String>) {
        let (fixed, per_byte) = FIELDS_LIMIT;
        let limit = payload.len().saturating_mul(per_byte).saturating_add(fixed);
        let limit = self.bytes.len().saturating_add(limit);
        self.keys.clear();
        if !self.many.is_empty() {
            // Clearing a map takes as long as its largest size.
            self.many = HashMap::new();
        }
        self.open.clear();
        self.open.push(Open { is_array: false, is_payload: true, is_empty: true, first_key: 0 });
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
                    self.value(value);
                }
                Item::BeginObject { name } => {
                    let is_payload = self.open.len() == 1 && name.is_empty();
                    if !is_payload {
                        self.key(name);
                        self.raw(b"{");
                    }
                    // The fields of an object that is the whole payload continue the outer ones.
                    let is_empty = !is_payload || self.open.last().is_none_or(|open| open.is_empty);
                    let first_key = if is_payload { 0 } else { self.keys.len() };
                    self.open.push(Open { is_array: false, is_payload, is_empty, first_key });
                }
                Item::BeginArray { name } => {
                    self.key(name);
                    self.raw(b"[");
                    let first_key = self.keys.len();
                    self.open.push(Open { is_array: true, is_payload: false, is_empty: true, first_key });
                }
                Item::EndObject | Item::EndArray => self.close_last(),
            }
        }
        unread(values, payload)
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
        if self.json {
            if !is_empty {
                self.raw(b",");
            }
            if !is_array {
                let start = self.bytes.len();
                self.name(name);
                self.make_unique(start, first_key);
                self.raw(b":");
            }
            return;
        }
        match (is_payload, is_empty) {
            (true, _) => self.raw(b" "),
            (false, true) => {}
            (false, false) => self.raw(b", "),
        }
        if !is_array {
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
        self.keys.push(Key { place: start..self.bytes.len(), next_suffix: 2 });
        let last = self.keys.len().saturating_sub(1);
        // The first key beyond the limit also adds those before it.
        let added = match last.saturating_sub(first) {
            ..FEW => return,
            FEW => first..self.keys.len(),
            _ => last..self.keys.len(),
        };
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
        let same = |key: &Key| key.place.len() == new.len() && self.bytes.get(key.place.clone()) == Some(new);
        self.keys.get(first..)?.iter().position(same)?.checked_add(first)
    }

    fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Boolean(true) => self.raw(b"true"),
            Value::Boolean(false) => self.raw(b"false"),
            Value::CodeUnit(unit) => self.string(Str::Utf16(&unit.to_le_bytes())),
            Value::Int(number) => self.signed(number),
            Value::UInt(number) => self.number(number),
            // `{:?}` writes the shortest digits that read back as the same number, with an exponent where needed.
            Value::Single(number) if number.is_finite() => _ = write!(self.bytes, "{number:?}"),
            Value::Single(number) => self.not_a_number(number.into()),
            Value::Double(number) if number.is_finite() => _ = write!(self.bytes, "{number:?}"),
            Value::Double(number) => self.not_a_number(number),
            Value::DateTime(time) => _ = write!(self.bytes, "\"{time}\""),
            Value::Guid(guid) => self.guid(guid),
            Value::Text(text) => self.string(text),
            Value::Bytes(bytes) => self.base64(bytes),
            Value::Decimal(bytes) => self.base64(&bytes),
            _ => self.raw(b"null"),
        }
    }

    /// Adds a number that JSON cannot represent, by its name in JavaScript.
    fn not_a_number(&mut self, number: f64) {
        self.raw(if number.is_nan() {
            b"\"NaN\""
        } else if number > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        });
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

    fn number_or_null(&mut self, number: Option<u32>) {
        match number {
            Some(number) => self.number(number.into()),
            None => self.raw(b"null"),
        }
    }

    fn guid_or_null(&mut self, guid: Guid) {
        if guid == Guid::NIL { self.raw(b"null") } else { self.guid(guid) }
    }

    fn guid(&mut self, guid: Guid) {
        /// The first three parts are little-endian numbers.
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        self.raw(b"\"");
        for (i, place) in ORDER.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                self.raw(b"-");
            }
            let byte = guid.0.get(place).copied().unwrap_or_default();
            self.raw(&[hex_digit(byte >> 4), hex_digit(byte)]);
        }
        self.raw(b"\"");
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.raw(b"\"");
        let start = self.bytes.len();
        let len = bytes.len().div_ceil(3).saturating_mul(4);
        self.bytes.resize(start.saturating_add(len), 0);
        // The slice has exactly the encoded length.
        let _ = BASE64.encode_slice(bytes, self.bytes.get_mut(start..).unwrap_or_default());
        self.raw(b"\"");
    }

    /// Adds a string as JSON, which is also its form in text.
    fn string(&mut self, text: Str<'_>) {
        self.raw(b"\"");
        if !plain_text::append(text, &mut self.bytes) {
            text.chars().for_each(|c| self.char(c));
        }
        self.raw(b"\"");
    }

    /// Adds a name as [`string`](Self::string) does, and cuts it: each event repeats the names of its description.
    fn name(&mut self, text: Str<'_>) {
        if !may_be_long(text) {
            return self.string(text);
        }
        self.raw(b"\"");
        let mut chars = start(text).chars();
        chars.by_ref().take(NAME_LIMIT).for_each(|c| self.char(c));
        self.mark_cut(chars.next().is_some());
        self.raw(b"\"");
    }

    /// Adds a name: without quotation marks, and escaped only where it would control a terminal.
    fn printable(&mut self, text: Str<'_>) {
        if !may_be_long(text) && plain_text::append(text, &mut self.bytes) {
            return;
        }
        let mut chars = start(text).chars();
        for c in chars.by_ref().take(NAME_LIMIT) {
            if is_control(c) { self.char(c) } else { self.utf8(c) }
        }
        self.mark_cut(chars.next().is_some());
    }

    /// Marks the end of a name that is cut.
    fn mark_cut(&mut self, is_cut: bool) {
        if is_cut {
            self.is_cut = true;
            self.utf8('…');
        }
    }

    fn char(&mut self, c: char) {
        match c {
            '"' => self.raw(b"\\\""),
            '\\' => self.raw(b"\\\\"),
            '\n' => self.raw(b"\\n"),
            '\r' => self.raw(b"\\r"),
            '\t' => self.raw(b"\\t"),
            c if is_control(c) => _ = write!(self.bytes, "\\u{:04x}", u32::from(c)),
            c => self.utf8(c),
        }
    }

    fn utf8(&mut self, c: char) {
        let mut utf8 = [0; 4];
        self.raw(c.encode_utf8(&mut utf8).as_bytes());
    }
}

/// Returns the hexadecimal digit for the low four bits.
fn hex_digit(nibble: u8) -> u8 {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    HEX.get(usize::from(nibble & 15)).copied().unwrap_or_default()
}

/// Appends numbers as `"0x2a","0x0"`: digits without leading zeros, at least one.
fn hexadecimal(numbers: &[u64], out: &mut Vec<u8>) {
    /// So many numbers are converted at once.
    const CHUNK: usize = 16;
    for (n, numbers) in numbers.chunks(CHUNK).enumerate() {
        let (mut bytes, mut digits) = ([[0; 8]; CHUNK], [0; CHUNK * 16]);
        for (number, bytes) in numbers.iter().zip(&mut bytes) {
            let shifted = number.checked_shl(zeros(*number).saturating_mul(4)).unwrap_or_default();
            *bytes = shifted.to_be_bytes();
        }
        // Only so many as there are: names of frames have one number between them.
        let bytes = bytes.get(..numbers.len()).unwrap_or_default().as_flattened();
        // There are two digits for each byte.
        let digits = digits.get_mut(..bytes.len().saturating_mul(2)).unwrap_or_default();
        let _ = const_hex::encode_to_slice(bytes, digits);
        for (i, (number, digits)) in numbers.iter().zip(digits.chunks_exact(16)).enumerate() {
            out.extend_from_slice(if n == 0 && i == 0 { b"\"0x" } else { b",\"0x" });
            // All digits are copied, which is faster than some, and those of the leading zeros are removed. They are
            // last, because the number is shifted.
            out.extend_from_slice(digits);
            let end = out.len().saturating_sub(usize::try_from(zeros(*number)).unwrap_or_default());
            out.truncate(end);
            out.push(b'"');
        }
    }
}

/// Returns the number of leading zeros among the 16 digits of a number. The last digit is none of them.
fn zeros(number: u64) -> u32 {
    (number.leading_zeros() / 4).min(15)
}

/// Returns whether a name may have more than [`NAME_LIMIT`] characters.
const fn may_be_long(name: Str<'_>) -> bool {
    let (Str::Utf8(bytes) | Str::Utf16(bytes)) = name;
    bytes.len() > NAME_LIMIT
}

/// Returns the bytes of the payload after the fields, all of which have been read, and the error if a field did not
/// fit.
fn unread<'a>(values: Values<'a>, payload: &'a [u8]) -> (&'a [u8], Option<String>) {
    match values.finish() {
        Ok(rest) => (rest, None),
        Err(error) => (payload.get(error.offset..).unwrap_or_default(), Some(error.to_string())),
    }
}
