//! Lists of named values, which the caller turns into objects.
use core::fmt::{self, Display, Write};

use ipc_proto::Guid;
use nettrace::{Str, Value};

use crate::memory;

/// Kinds of [`Item`]. The caller has the same list.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Kind {
    /// An object begins.
    BeginObject,
    /// An array begins.
    BeginArray,
    /// The innermost object ends.
    EndObject,
    /// The innermost array ends.
    EndArray,
    /// `content` begins with 0 or 1.
    Boolean,
    /// `content` begins with a code unit.
    CodeUnit,
    /// `content` begins with an `i64`.
    Int,
    /// `content` begins with a `u64`.
    UInt,
    /// `content` begins with an `f64`.
    Float,
    /// `content` begins with 16 bytes.
    Decimal,
    /// `content` begins with a `u64`, a Windows FILETIME.
    DateTime,
    /// `content` begins with 16 bytes.
    Guid,
    /// `content` begins with address and length of the text, which is UTF-16 if `is_wide`.
    Text,
    /// `content` begins with address and length of the bytes.
    Bytes,
    /// The value is null.
    Null,
    /// The bytes after the values, as for [`Kind::Bytes`].
    Rest,
    /// A fault: a text in UTF-8, and the offset of the fault in `offset`.
    Error,
}

/// A named value.
#[derive(Clone, Copy, Default)]
#[repr(C, align(8))]
pub struct Item {
    /// A [`Kind`].
    kind: u8,
    /// Whether the name is UTF-16.
    name_is_wide: u8,
    /// Whether the text is UTF-16.
    is_wide: u8,
    padding: u8,
    /// The address of the name.
    name: u32,
    /// The length of the name in bytes.
    name_len: u32,
    /// The label of a number: address and length of a text in UTF-8, or zeros.
    label: [u32; 2],
    /// The range of the value in a message: offset and length.
    place: [u32; 2],
    /// The value.
    content: [u32; 4],
}

/// A list of items in memory of the caller, with memory for the texts that are written for it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Output {
    items: *mut Item,
    capacity: usize,
    text: *mut u8,
    text_capacity: usize,
    /// The number of items, which can be more than `capacity`: those beyond it are not stored.
    len: usize,
    /// The length of all texts, which can be more than `text_capacity`: the rest is not stored.
    text_len: usize,
}

const fn low_and_high(number: u64) -> [u32; 4] {
    let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]), 0, 0]
}

fn words(bytes: [u8; 16]) -> [u32; 4] {
    let [low, high] = low_and_high_of(u128::from_le_bytes(bytes));
    let ([a, b, ..], [c, d, ..]) = (low_and_high(low), low_and_high(high));
    [a, b, c, d]
}

#[allow(clippy::cast_possible_truncation, reason = "the other half follows")]
const fn low_and_high_of(number: u128) -> [u64; 2] {
    [number as u64, (number >> 64) as u64]
}

/// Returns address and length of bytes.
#[allow(clippy::cast_possible_truncation, reason = "addresses and lengths have 32 bits here")]
pub(crate) fn place_of(bytes: &[u8]) -> [u32; 2] {
    [bytes.as_ptr() as usize as u32, bytes.len() as u32]
}

fn text(value: Str<'_>) -> (u8, [u32; 2]) {
    match value {
        Str::Utf16(bytes) => (1, place_of(bytes)),
        Str::Utf8(bytes) => (0, place_of(bytes)),
    }
}

impl Item {
    fn new(kind: Kind, content: [u32; 4]) -> Self {
        Self { kind: kind as u8, content, ..Self::default() }
    }

    pub(crate) fn mark(kind: Kind) -> Self {
        Self::new(kind, [0; 4])
    }

    pub(crate) fn number(number: u64) -> Self {
        Self::new(Kind::UInt, low_and_high(number))
    }

    pub(crate) fn signed(number: i64) -> Self {
        Self::new(Kind::Int, low_and_high(u64::from_le_bytes(number.to_le_bytes())))
    }

    pub(crate) fn boolean(value: bool) -> Self {
        Self::new(Kind::Boolean, [value.into(), 0, 0, 0])
    }

    pub(crate) fn guid(guid: Guid) -> Self {
        Self::new(Kind::Guid, words(guid.0))
    }

    pub(crate) fn decimal(bytes: [u8; 16]) -> Self {
        Self::new(Kind::Decimal, words(bytes))
    }

    pub(crate) fn text(value: Str<'_>) -> Self {
        let (is_wide, [address, len]) = text(value);
        Self { is_wide, ..Self::new(Kind::Text, [address, len, 0, 0]) }
    }

    pub(crate) fn bytes(kind: Kind, bytes: &[u8]) -> Self {
        let [address, len] = place_of(bytes);
        Self::new(kind, [address, len, 0, 0])
    }

    /// A fault, whose text is at this address.
    pub(crate) fn error(address: u32, len: u32) -> Self {
        Self::new(Kind::Error, [address, len, 0, 0])
    }

    pub(crate) fn value(value: &Value<'_>) -> Self {
        match *value {
            Value::Boolean(value) => Self::boolean(value),
            Value::CodeUnit(unit) => Self::new(Kind::CodeUnit, [unit.into(), 0, 0, 0]),
            Value::Int(number) => Self::signed(number),
            Value::UInt(number) => Self::number(number),
            Value::Single(number) => Self::new(Kind::Float, low_and_high(f64::from(number).to_bits())),
            Value::Double(number) => Self::new(Kind::Float, low_and_high(number.to_bits())),
            Value::Decimal(bytes) => Self::decimal(bytes),
            Value::DateTime(time) => Self::new(Kind::DateTime, low_and_high(time.0)),
            Value::Guid(guid) => Self::guid(guid),
            Value::Text(value) => Self::text(value),
            Value::Bytes(bytes) => Self::bytes(Kind::Bytes, bytes),
            _ => Self::mark(Kind::Null),
        }
    }

    pub(crate) fn named(self, name: Str<'_>) -> Self {
        let (name_is_wide, [name, name_len]) = text(name);
        Self { name_is_wide, name, name_len, ..self }
    }

    #[cfg(feature = "messages")]
    pub(crate) fn labelled(self, label: Option<&'static str>) -> Self {
        Self { label: label.map_or([0, 0], |label| place_of(label.as_bytes())), ..self }
    }

    #[allow(clippy::cast_possible_truncation, reason = "offsets and lengths have 32 bits here")]
    pub(crate) const fn at(self, offset: usize, len: usize) -> Self {
        Self { place: [offset as u32, len as u32], ..self }
    }
}

impl Output {
    /// Begins a list.
    ///
    /// # Safety
    /// The caller of the module vouches for the address and for those in the output.
    pub(crate) unsafe fn begin<'a>(output: *mut Self) -> &'a mut Self {
        // SAFETY: the caller vouches for the address.
        let output = unsafe { &mut *output };
        (output.len, output.text_len) = (0, 0);
        output
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, item: Item) {
        // SAFETY: `begin` requires it.
        let items = unsafe { memory::space(self.items, self.capacity) };
        if let Some(space) = items.get_mut(self.len) {
            *space = item;
        }
        self.len = self.len.saturating_add(1);
    }

    /// Appends a value with a name.
    pub(crate) fn add(&mut self, name: &'static str, item: Item) {
        self.push(item.named(name.into()));
    }

    /// Appends a fault with this text.
    pub(crate) fn fault(&mut self, offset: usize, text: &dyn Display) {
        let [address, len] = self.write(text);
        self.push(Item::error(address, len).at(offset, 0));
    }

    /// Writes a text, and returns its address and length.
    #[allow(clippy::cast_possible_truncation, reason = "addresses and lengths have 32 bits here")]
    pub(crate) fn write(&mut self, text: &dyn Display) -> [u32; 2] {
        let start = self.text_len;
        let _ = write!(self, "{text}"); // an output never fails
        let address = self.text.wrapping_add(start) as usize;
        [address as u32, self.text_len.saturating_sub(start) as u32]
    }

    /// Appends a value whose name is written.
    #[cfg(feature = "messages")]
    pub(crate) fn add_at(&mut self, name: &dyn Display, item: Item) {
        let [name, name_len] = self.write(name);
        self.push(Item { name, name_len, ..item });
    }
}

impl Write for Output {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        // SAFETY: `begin` requires it.
        let text = unsafe { memory::space(self.text, self.text_capacity) };
        if let Some(space) = text.get_mut(self.text_len..).and_then(|text| text.get_mut(..s.len())) {
            space.copy_from_slice(s.as_bytes());
        }
        self.text_len = self.text_len.saturating_add(s.len());
        Ok(())
    }
}
