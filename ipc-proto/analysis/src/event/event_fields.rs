//! The fields of events by name, their texts, and decoders of the parts that the rows (events) of the runtime have in
//! common. Layouts of rows are fixed: later versions only append fields, so that a decoder of the first fields reads
//! every version.
use alloc::string::String;

use ipc_proto::wire::{Reader, to_usize};
use nettrace::{Scalar, Str, TraceEvent, Value};

/// Returns whether the event has this name.
pub(crate) fn is_named(event: &TraceEvent<'_>, name: &str) -> bool {
    event.description().is_some_and(|description| description.name() == name)
}

pub(crate) fn number(event: &TraceEvent<'_>, field: &str) -> Option<u64> {
    event.field(field)?.as_u64()
}

pub(crate) fn text<'e>(event: &TraceEvent<'e>, field: &str) -> Option<Str<'e>> {
    event.field(field)?.as_str()
}

/// Returns the size of a pointer of the program in bytes.
pub(crate) fn pointer_size(event: &TraceEvent<'_>) -> usize {
    event.trace().map_or(8, |trace| to_usize(trace.pointer_size))
}

/// Reads an address.
pub(crate) fn row_pointer(r: &mut Reader<'_>, size: usize) -> Option<u64> {
    if size == 4 { r.read::<u32>().ok().map(u64::from) } else { r.read().ok() }
}

/// Reads UTF-16 up to its NUL. A string without a NUL is the rest of the row, so that a name that the row cuts off is
/// not lost.
pub(crate) fn row_text<'a>(r: &mut Reader<'a>) -> Str<'a> {
    let rest = r.rest();
    let (text, len) = match Scalar::Utf16String.decode(rest) {
        Ok((Value::Text(text), after)) => (text, rest.len().saturating_sub(after.len())),
        _ => (Str::Utf16(rest), rest.len()),
    };
    let _ = r.bytes(len);
    text
}

/// Returns a text as a string.
pub(crate) fn owned(text: Str<'_>) -> String {
    let mut owned = String::new();
    push_text(&mut owned, text);
    owned
}

/// Appends a text, most of which is ASCII.
pub(crate) fn push_text(to: &mut String, text: Str<'_>) {
    match text {
        Str::Utf16(units) if push_ascii(to, units) => {}
        Str::Utf8(bytes) => match core::str::from_utf8(bytes) {
            Ok(text) => to.push_str(text),
            Err(_) => to.extend(text.chars()),
        },
        Str::Utf16(_) => to.extend(text.chars()),
    }
}

/// Appends UTF-16 if all of it is ASCII. Otherwise, nothing changes.
///
/// The units are read in pieces and without a branch for each, because one at a time takes several times as long.
fn push_ascii(to: &mut String, units: &[u8]) -> bool {
    const PIECE: usize = 64;
    let (start, mut piece) = (to.len(), [0; PIECE]);
    for units in units.chunks(2 * PIECE) {
        let units = units.chunks_exact(2);
        let (len, mut all) = (units.len(), 0);
        for (to, unit) in piece.iter_mut().zip(units) {
            if let [low, high] = *unit {
                *to = low;
                all |= low | if high == 0 { 0 } else { 0x80 };
            }
        }
        let ascii = piece.get(..len).filter(|_| all < 0x80);
        let Some(ascii) = ascii.and_then(|ascii| core::str::from_utf8(ascii).ok()) else {
            to.truncate(start);
            return false;
        };
        to.push_str(ascii);
    }
    true
}

/// Returns the text before the first of the `separators`, which are ASCII, and the text after it.
pub(crate) fn split_once<'a>(text: Str<'a>, separators: &[u8]) -> (Str<'a>, Option<Str<'a>>) {
    match text {
        Str::Utf16(bytes) => {
            let is_separator = |unit: &[u8]| matches!(unit, [low, 0] if separators.contains(low));
            let place = bytes.chunks_exact(2).position(is_separator).map(|units| units.saturating_mul(2));
            let after = place.and_then(|place| bytes.get(place.saturating_add(2)..));
            (Str::Utf16(place.and_then(|place| bytes.get(..place)).unwrap_or(bytes)), after.map(Str::Utf16))
        }
        Str::Utf8(bytes) => {
            let mut parts = bytes.splitn(2, |byte| separators.contains(byte)).map(Str::Utf8);
            (parts.next().unwrap_or_default(), parts.next())
        }
    }
}
