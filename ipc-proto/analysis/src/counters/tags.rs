//! Splits the text of tags into pairs of a name and a value.
use alloc::borrow::Cow;
use alloc::string::String;

use nettrace::Str;

use super::System;
use crate::event::owned;

/// Returns the tags in a text of an event, which has no escapes.
///
/// ```
/// use nettrace_analysis::counters::{System, tags};
///
/// let found: Vec<_> = tags(System::Meter, "route=/a,status=200".into()).collect();
/// assert_eq!(found, [("route".into(), "/a".into()), ("status".into(), "200".into())]);
/// ```
#[must_use]
pub const fn tags(system: System, text: Str<'_>) -> Tags<'_> {
    let separator = match system {
        System::EventCounter => b':',
        System::Meter => b'=',
    };
    Tags { rest: text, separator, is_escaped: false, left: Tags::MAX }
}

/// Returns the tags in a text of a meter in which `\\` precedes each comma, equals sign and `\\` of a name or a value.
///
/// ```
/// use nettrace_analysis::counters::escaped_tags;
///
/// let found: Vec<_> = escaped_tags(r"list=a\,b,status=200".into()).collect();
/// assert_eq!(found, [("list".into(), "a,b".into()), ("status".into(), "200".into())]);
/// ```
#[must_use]
pub const fn escaped_tags(text: Str<'_>) -> Tags<'_> {
    Tags { rest: text, separator: b'=', is_escaped: true, left: Tags::MAX }
}

/// The tags of a series: names and values, without escapes.
///
/// Runtimes up to .NET 10 do not escape commas and equals signs, so a text can have several readings. This iterator
/// returns the reading with the most tags: a comma begins a tag if an equals sign follows before the next comma,
/// otherwise it belongs to the value before it. The name of a tag ends at its first equals sign. Characters before the
/// first equals sign of the text belong to the first name. An [escaped](escaped_tags) text has one reading.
///
/// A text has at most 1,024 tags: the value of the last one is the rest of the text.
#[derive(Debug, Clone, Copy)]
pub struct Tags<'a> {
    rest: Str<'a>,
    separator: u8,
    is_escaped: bool,
    /// The number of tags that can still be returned.
    left: usize,
}

impl<'a> Tags<'a> {
    /// The maximum number of tags. A tag takes many times the memory of its text.
    const MAX: usize = 1_024;

    /// Returns the same text with at most `max` tags.
    pub(super) const fn at_most(self, max: usize) -> Self {
        Self { left: max, ..self }
    }

    /// Returns the offsets in bytes of the name's end and of the tag's end.
    fn ends(&self) -> (Option<usize>, Option<usize>) {
        match self.rest {
            Str::Utf8(bytes) => self.ends_in(bytes.iter().map(|byte| u16::from(*byte))),
            Str::Utf16(_) => {
                let (name_end, end) = self.ends_in(self.rest.units());
                let offset = |place: usize| place.saturating_mul(WIDE);
                (name_end.map(offset), end.map(offset))
            }
        }
    }

    /// Returns the places of the name's end and of the tag's end. The separators are ASCII, so that the bytes of UTF-8
    /// need no decoding. The places after the end of the tag are those of the next name at most.
    fn ends_in(&self, units: impl Iterator<Item = u16>) -> (Option<usize>, Option<usize>) {
        let (mut name_end, mut last_comma, mut is_literal) = (None, None, false);
        for (place, unit) in units.enumerate() {
            if core::mem::take(&mut is_literal) {
                continue;
            }
            if self.is_escaped && unit == u16::from(b'\\') {
                is_literal = true;
            } else if unit == u16::from(self.separator) {
                if name_end.is_none() {
                    name_end = Some(place);
                } else if last_comma.is_some() {
                    // A name follows the last comma.
                    return (name_end, last_comma);
                }
            } else if unit == u16::from(b',') {
                if self.is_escaped {
                    return (name_end, Some(place));
                }
                last_comma = name_end.and(Some(place));
            }
        }
        (name_end, None)
    }

    /// Returns a name or a value without escapes.
    fn text(&self, text: Str<'a>) -> Cow<'a, str> {
        let text = match text {
            Str::Utf8(bytes) => String::from_utf8_lossy(bytes),
            text @ Str::Utf16(_) => Cow::Owned(owned(text)),
        };
        if !self.is_escaped || !text.contains('\\') {
            return text;
        }
        let (mut unescaped, mut chars) = (String::new(), text.chars());
        while let Some(c) = chars.next() {
            unescaped.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
        }
        Cow::Owned(unescaped)
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (name_end, end) = self.ends();
        self.left = self.left.saturating_sub(1);
        // The last tag has the rest of the text.
        let end = end.filter(|_| self.left > 0);
        let (tag, rest) = match end {
            Some(comma) => split(self.rest, comma),
            None => (self.rest, Str::EMPTY),
        };
        self.rest = rest;
        let (name, value) = match name_end {
            Some(name_end) => split(tag, name_end),
            None => (tag, Str::EMPTY),
        };
        Some((self.text(name), self.text(value)))
    }
}

/// The bytes of a unit of UTF-16.
const WIDE: usize = 2;

/// Returns the text before an offset in bytes, and the text after the unit there.
fn split(text: Str<'_>, offset: usize) -> (Str<'_>, Str<'_>) {
    match text {
        Str::Utf16(bytes) => {
            let (before, after) = around(bytes, offset, WIDE);
            (Str::Utf16(before), Str::Utf16(after))
        }
        Str::Utf8(bytes) => {
            let (before, after) = around(bytes, offset, 1);
            (Str::Utf8(before), Str::Utf8(after))
        }
    }
}

/// Returns the bytes before an offset, and those after the unit there.
fn around(bytes: &[u8], offset: usize, unit: usize) -> (&[u8], &[u8]) {
    let before = bytes.get(..offset).unwrap_or(bytes);
    (before, bytes.get(offset.saturating_add(unit)..).unwrap_or_default())
}
