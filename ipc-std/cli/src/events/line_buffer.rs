//! `LineBuffer`: the bytes of lines, with the objects that are open in the last one.
use core::ops::Range;
use std::collections::HashMap;
use std::io::Write;

use ipc_proto::Guid;
use nettrace::{Fields, Item, ShapeKind, Str, Value, Values};

use super::field_template::{FieldTemplate, names_and_shapes, unread};
use super::json;
use crate::text::printable::is_rounded;

/// A buffer of lines of JSON or text.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(super) json: bool,
    /// The keys of the open objects, so that no object gets two keys of the same name.
    keys: Vec<ObjectKey>,
    /// An index of `keys` for objects that have more than [`FEW`]: by the object's first key, and the name.
    many: HashMap<(usize, Vec<u8>), usize>,
    /// The open objects and arrays.
    open: Vec<Open>,
    /// Whether a part of the event is not in its line.
    pub(super) is_cut: bool,
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

/// Up to this number, keys are compared one by one, which is enough for nearly every object.
const FEW: usize = 16;

impl LineBuffer {
    pub(super) fn new(json: bool) -> Self {
        Self { json, ..Self::default() }
    }

    /// Returns whether more than `limit` bytes follow `start`.
    pub(super) fn is_longer(&self, start: usize, limit: usize) -> bool {
        self.bytes.len().saturating_sub(start) > limit
    }

    /// Returns a template of fields, unless they are too many.
    pub(super) fn template(&mut self, fields: &Fields<'_>) -> Option<FieldTemplate> {
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

    /// Adds the fields of a payload by their description.
    pub(super) fn items<'p>(
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
    pub(super) fn open(&mut self, is_array: bool, is_payload: bool) {
        let is_empty = !is_payload || self.open.last().is_none_or(|open| open.is_empty);
        let first_key = if is_payload { 0 } else { self.keys.len() };
        self.open.push(Open { is_array, is_payload, is_empty, first_key });
    }

    /// Forgets the objects and keys of the last payload, and begins another one.
    pub(super) fn begin_items(&mut self) {
        self.keys.clear();
        if !self.many.is_empty() {
            // `clear` takes time in proportion to the capacity: after one large payload each later one would be slow.
            self.many = HashMap::new();
        }
        self.open.clear();
        self.open.push(Open { is_array: false, is_payload: true, is_empty: true, first_key: 0 });
    }

    /// Closes the innermost open object or array.
    pub(super) fn close_last(&mut self) {
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
    pub(super) fn key(&mut self, name: Str<'_>) {
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
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds what precedes a value, which follows.
    #[inline]
    pub(super) fn with(&mut self, bytes: &[u8]) -> &mut Self {
        self.raw(bytes);
        self
    }

    pub(super) fn signed(&mut self, number: i64) {
        if number < 0 {
            self.raw(b"-");
        }
        self.number(number.unsigned_abs());
    }

    pub(super) fn number(&mut self, number: u64) {
        self.raw(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Adds the id of a thread or of a process; as text if JavaScript would round it.
    pub(super) fn id_or_null(&mut self, id: Option<u64>) {
        self.or_null(id, |line, id| match is_rounded(id) {
            true => line.string((&*id.to_string()).into()),
            false => line.number(id),
        });
    }

    pub(super) fn number_or_null(&mut self, number: Option<u64>) {
        self.or_null(number, Self::number);
    }

    pub(super) fn or_null<T>(&mut self, value: Option<T>, push: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => push(self, value),
            None => self.raw(b"null"),
        }
    }

    pub(super) fn guid_or_null(&mut self, guid: Guid) {
        let guid = Some(guid).filter(|guid| *guid != Guid::NIL);
        self.or_null(guid, |line, guid| json::push_value(&Value::Guid(guid), &mut line.bytes));
    }

    pub(super) fn base64(&mut self, bytes: &[u8]) {
        json::push_base64(bytes, &mut self.bytes);
    }

    pub(super) fn string(&mut self, text: Str<'_>) {
        json::push_string(text, &mut self.bytes);
    }

    /// Adds a name as [`string`](Self::string) does, and cuts it: each event repeats the names of its description.
    pub(super) fn name(&mut self, text: Str<'_>) {
        self.is_cut |= json::push_name(text, &mut self.bytes);
    }

    /// Adds a name: without quotation marks, and escaped only where it would control a terminal.
    pub(super) fn printable(&mut self, text: Str<'_>) {
        self.is_cut |= json::push_printable(text, &mut self.bytes);
    }
}
