//! An event as a line: JSON, or text for people. Both are written by hand into a buffer that is kept, since a trace may
//! have millions of them.
use core::ops::Range;
use std::collections::HashMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ipc_proto::Guid;
use ipc_proto::nettrace::{Item, Metadata, Str, Value, Values};
use ipc_std::TraceEvent;

use crate::output::steers;

/// Lines, one behind the other.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    json: bool,
    /// The keys of the objects that are open, for JSON knows no two of the same name.
    keys: Vec<Key>,
    /// Where to find those of objects that have more than [`FEW`]: by the first key of the object, and the key.
    many: HashMap<(usize, Vec<u8>), usize>,
    /// What is open.
    open: Vec<Open>,
}

/// A key, by its place in the bytes.
#[derive(Debug)]
struct Key {
    place: Range<usize>,
    /// What the next one of the same name gets to be told from it.
    number: u32,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    is_array: bool,
    /// It has no name and stands for the whole payload, so that nothing around it is shown.
    is_payload: bool,
    is_empty: bool,
    /// Of the keys, the first one of this object.
    keys: usize,
}

/// So many keys are looked through one by one, which is all that nearly every object needs.
const FEW: usize = 16;

impl Lines {
    pub(crate) fn new(json: bool) -> Self {
        Self { bytes: Vec::new(), json, keys: Vec::new(), many: HashMap::new(), open: Vec::new() }
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, event: &TraceEvent<'_>, metadata: Option<&Metadata<'_>>) {
        if self.json {
            self.json(event, metadata);
        } else {
            self.text(event, metadata);
        }
        self.bytes.push(b'\n');
    }

    fn json(&mut self, event: &TraceEvent<'_>, metadata: Option<&Metadata<'_>>) {
        self.raw(b"{\"time_ns\":");
        self.signed(event.nanoseconds());
        self.raw(b",\"thread_id\":");
        self.number(event.thread_id());
        match metadata {
            Some(metadata) => {
                self.raw(b",\"provider\":");
                self.string(metadata.provider);
                self.raw(b",\"id\":");
                self.number(metadata.event_id.into());
                self.raw(b",\"version\":");
                self.number(metadata.version.into());
                self.raw(b",\"name\":");
                if metadata.name.is_empty() { self.raw(b"null") } else { self.string(metadata.name) }
            }
            None => self.raw(b",\"provider\":null,\"id\":null,\"version\":null,\"name\":null"),
        }
        self.raw(b",\"activity_id\":");
        let activity = event.activity_id();
        if activity == Guid::NIL {
            self.raw(b"null")
        } else {
            self.guid(activity)
        }
        let payload = event.header.payload;
        match metadata.filter(|metadata| !metadata.fields.is_empty() || payload.is_empty()) {
            Some(metadata) => {
                self.raw(b",\"fields\":{");
                let mut values = metadata.fields.values(payload);
                self.items(&mut values);
                self.raw(b"}");
                let (rest, error) = left_over(values, payload);
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
        self.raw(b"}");
    }

    fn text(&mut self, event: &TraceEvent<'_>, metadata: Option<&Metadata<'_>>) {
        let nanoseconds = event.nanoseconds();
        let seconds = nanoseconds.unsigned_abs() / 1_000_000_000;
        let fraction = nanoseconds.unsigned_abs() % 1_000_000_000;
        let sign = if nanoseconds < 0 { "-" } else { "" };
        // A vector takes all that is written.
        let _ = write!(self.bytes, "{sign}{seconds}.{fraction:09} [{}] ", event.thread_id());
        let payload = event.header.payload;
        match metadata {
            Some(metadata) => {
                self.printable(metadata.provider);
                self.raw(b"/");
                self.number(metadata.event_id.into());
                if !metadata.name.is_empty() {
                    self.raw(b" ");
                    self.printable(metadata.name);
                }
            }
            None => self.raw(b"(not described)"),
        }
        let activity = event.activity_id();
        if activity != Guid::NIL {
            let _ = write!(self.bytes, " activity={activity}");
        }
        match metadata.filter(|metadata| !metadata.fields.is_empty()) {
            Some(metadata) => {
                let mut values = metadata.fields.values(payload);
                self.items(&mut values);
                let (rest, error) = left_over(values, payload);
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
    }

    /// What a payload holds, without what is around it.
    fn items(&mut self, values: &mut Values<'_>) {
        self.keys.clear();
        self.many.clear();
        self.open.clear();
        self.open.push(Open { is_array: false, is_payload: true, is_empty: true, keys: 0 });
        for item in values {
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
                    // What stands for the whole payload goes on with what is there.
                    let is_empty = !is_payload || self.open.last().is_none_or(|open| open.is_empty);
                    let keys = if is_payload { 0 } else { self.keys.len() };
                    self.open.push(Open { is_array: false, is_payload, is_empty, keys });
                }
                Item::BeginArray { name } => {
                    self.key(name);
                    self.raw(b"[");
                    let keys = self.keys.len();
                    self.open.push(Open { is_array: true, is_payload: false, is_empty: true, keys });
                }
                Item::EndObject => self.close(b"}"),
                Item::EndArray => self.close(b"]"),
            }
        }
    }

    fn close(&mut self, mark: &[u8]) {
        let Some(open) = self.open.pop() else { return };
        if !open.is_payload {
            self.raw(mark);
            let many = self.keys.len().saturating_sub(open.keys) > FEW;
            for key in self.keys.drain(open.keys..).filter(|_| many) {
                let name = self.bytes.get(key.place).unwrap_or_default();
                self.many.remove(&(open.keys, name.to_vec()));
            }
        } else if let Some(outer) = self.open.last_mut() {
            outer.is_empty = open.is_empty;
        }
    }

    /// What stands before a value: a comma if there is one before it, and its name.
    fn key(&mut self, name: Str<'_>) {
        let Some(open) = self.open.last_mut() else { return };
        let Open { is_array, is_payload, is_empty, keys } = *open;
        open.is_empty = false;
        if self.json {
            if !is_empty {
                self.raw(b",");
            }
            if !is_array {
                let start = self.bytes.len();
                self.string(name);
                self.set_apart(start, keys);
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

    /// Numbers a key, which begins at `start`, if its object, whose keys begin with the one at `first`, has one of that
    /// name already: `"x"`, `"x#2"`, `"x#3"`.
    fn set_apart(&mut self, start: usize, first: usize) {
        if let Some(same) = self.same_key(start, first) {
            // Without the closing quotation mark.
            let end = self.bytes.len().saturating_sub(1);
            let mut number = self.keys.get(same).map_or(2, |key| key.number);
            loop {
                self.bytes.truncate(end);
                let _ = write!(self.bytes, "#{number}\"");
                number = number.saturating_add(1);
                if self.same_key(start, first).is_none() {
                    break;
                }
            }
            if let Some(key) = self.keys.get_mut(same) {
                key.number = number;
            }
        }
        self.keys.push(Key { place: start..self.bytes.len(), number: 2 });
        let last = self.keys.len().saturating_sub(1);
        // With the first that is too many, all before it.
        let news = match last.saturating_sub(first) {
            ..FEW => return,
            FEW => first..self.keys.len(),
            _ => last..self.keys.len(),
        };
        for at in news {
            let place = self.keys.get(at).map(|key| key.place.clone()).unwrap_or_default();
            let name = self.bytes.get(place).unwrap_or_default().to_vec();
            self.many.insert((first, name), at);
        }
    }

    /// The key of the object that is the same as what stands at `start`.
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
            // So that `{:?}`, which knows exponents, writes as few digits as tell it from its neighbours.
            Value::Single(number) if number.is_finite() => _ = write!(self.bytes, "{number:?}"),
            Value::Single(number) => self.no_number(number.into()),
            Value::Double(number) if number.is_finite() => _ = write!(self.bytes, "{number:?}"),
            Value::Double(number) => self.no_number(number),
            Value::DateTime(time) => _ = write!(self.bytes, "\"{time}\""),
            Value::Guid(guid) => self.guid(guid),
            Value::Text(text) => self.string(text),
            Value::Bytes(bytes) => self.base64(bytes),
            Value::Decimal(bytes) => self.base64(&bytes),
            _ => self.raw(b"null"),
        }
    }

    /// By the names that JavaScript has for them.
    fn no_number(&mut self, number: f64) {
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

    fn number(&mut self, mut number: u64) {
        // From the last digit on.
        let mut digits = [b'0'; 20];
        let mut len = 0_usize;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' | u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
            len = len.saturating_add(1);
            if number == 0 {
                break;
            }
        }
        self.raw(digits.get(digits.len().saturating_sub(len)..).unwrap_or_default());
    }

    fn guid(&mut self, guid: Guid) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        /// Its first three parts are numbers, and lie there with their last byte first.
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        let digit = |n: u8| HEX.get(usize::from(n & 15)).copied().unwrap_or_default();
        self.raw(b"\"");
        for (i, place) in ORDER.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                self.raw(b"-");
            }
            let byte = guid.0.get(place).copied().unwrap_or_default();
            self.raw(&[digit(byte >> 4), digit(byte)]);
        }
        self.raw(b"\"");
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.raw(b"\"");
        let start = self.bytes.len();
        let len = bytes.len().div_ceil(3).saturating_mul(4);
        self.bytes.resize(start.saturating_add(len), 0);
        // It has just the length that it needs.
        let _ = BASE64.encode_slice(bytes, self.bytes.get_mut(start..).unwrap_or_default());
        self.raw(b"\"");
    }

    /// As JSON has strings, which is how text shows them too.
    fn string(&mut self, text: Str<'_>) {
        self.raw(b"\"");
        match text {
            Str::Utf8(bytes) if bytes.iter().all(|byte| is_plain(*byte)) => self.raw(bytes),
            Str::Utf16(bytes) if is_plain_utf16(bytes) => {
                self.bytes.extend(bytes.chunks_exact(2).filter_map(<[u8]>::first));
            }
            text => text.chars().for_each(|c| self.char(c)),
        }
        self.raw(b"\"");
    }

    /// The same without quotation marks, in which it would need them; for names.
    fn printable(&mut self, text: Str<'_>) {
        for c in text.chars() {
            if steers(c) { self.char(c) } else { self.utf8(c) }
        }
    }

    fn char(&mut self, c: char) {
        match c {
            '"' => self.raw(b"\\\""),
            '\\' => self.raw(b"\\\\"),
            '\n' => self.raw(b"\\n"),
            '\r' => self.raw(b"\\r"),
            '\t' => self.raw(b"\\t"),
            c if steers(c) => _ = write!(self.bytes, "\\u{:04x}", u32::from(c)),
            c => self.utf8(c),
        }
    }

    fn utf8(&mut self, c: char) {
        let mut utf8 = [0; 4];
        self.raw(c.encode_utf8(&mut utf8).as_bytes());
    }
}

/// Whether a character stands for itself, in one byte.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn is_plain_utf16(bytes: &[u8]) -> bool {
    bytes.chunks_exact(2).all(|unit| matches!(unit, [low, 0] if is_plain(*low)))
}

/// What of a payload the fields leave over, all of which have been read; and if it is because one does not fit, why.
fn left_over<'a>(values: Values<'a>, payload: &'a [u8]) -> (&'a [u8], Option<String>) {
    match values.finish() {
        Ok(rest) => (rest, None),
        Err(error) => (payload.get(error.offset..).unwrap_or_default(), Some(error.to_string())),
    }
}
