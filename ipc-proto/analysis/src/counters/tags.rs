//! Splits the text of tags into pairs of a name and a value.
use nettrace::Str;

use super::System;

/// Returns the tags in a text of an event.
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
    Tags { rest: text, separator }
}

/// The tags of a series: names and values.
///
/// Runtimes do not escape commas and equals signs, so a text can have several readings. This iterator returns the
/// reading with the most tags: a comma begins a tag if an equals sign follows before the next comma, otherwise it
/// belongs to the value before it. The name of a tag ends at its first equals sign. Characters before the first equals
/// sign of the text belong to the first name.
#[derive(Debug, Clone, Copy)]
pub struct Tags<'a> {
    rest: Str<'a>,
    separator: u8,
}

impl<'a> Iterator for Tags<'a> {
    type Item = (Str<'a>, Str<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        // The offsets in units of the name's end, of the last comma, and of that comma if a name follows it.
        let (mut name_end, mut last_comma, mut end) = (None, None, None);
        for (place, unit) in self.rest.units().enumerate() {
            if unit == u16::from(self.separator) {
                if name_end.is_none() {
                    name_end = Some(place);
                } else if last_comma.is_some() {
                    end = last_comma;
                    break;
                }
            } else if unit == u16::from(b',') && name_end.is_some() {
                last_comma = Some(place);
            }
        }
        let (tag, rest) = match end {
            Some(comma) => split(self.rest, comma),
            None => (self.rest, Str::EMPTY),
        };
        self.rest = rest;
        Some(match name_end {
            Some(name_end) => split(tag, name_end),
            None => (tag, Str::EMPTY),
        })
    }
}

/// Returns the text before a unit and the text after it.
fn split(text: Str<'_>, place: usize) -> (Str<'_>, Str<'_>) {
    match text {
        Str::Utf16(bytes) => {
            let (before, after) = around(bytes, place.saturating_mul(2), 2);
            (Str::Utf16(before), Str::Utf16(after))
        }
        Str::Utf8(bytes) => {
            // The separators are ASCII. Other characters can have more bytes than units.
            let (mut unit, mut offset) = (0_usize, bytes.len());
            for (at, c) in chars(bytes) {
                if unit >= place {
                    offset = at;
                    break;
                }
                unit = unit.saturating_add(c.len_utf16());
            }
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

/// Returns the characters of UTF-8 with their offsets, and U+FFFD for each invalid part, as [`Str::units`] does.
fn chars(bytes: &[u8]) -> impl Iterator<Item = (usize, char)> {
    let mut offset = 0_usize;
    bytes.utf8_chunks().flat_map(move |chunk| {
        let start = offset;
        let invalid = start.saturating_add(chunk.valid().len());
        offset = invalid.saturating_add(chunk.invalid().len());
        let stray = (!chunk.invalid().is_empty()).then_some((invalid, char::REPLACEMENT_CHARACTER));
        chunk.valid().char_indices().map(move |(at, c)| (start.saturating_add(at), c)).chain(stray)
    })
}
