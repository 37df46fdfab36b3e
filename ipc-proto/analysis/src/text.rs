//! Conversions and splitting of the texts of events.
use alloc::string::String;

use nettrace::Str;

/// Returns a text as a string.
pub(crate) fn owned(text: Str<'_>) -> String {
    let mut owned = String::new();
    push_text(&mut owned, text);
    owned
}

/// Appends a text, most of which is ASCII.
pub(crate) fn push_text(to: &mut String, text: Str<'_>) {
    match text {
        Str::Utf16(units) if units.chunks_exact(2).all(|unit| matches!(unit, [0..=0x7f, 0])) => {
            const PIECE: usize = 64;
            // Text is read in pieces, because one character at a time takes several times as long.
            let mut piece = [0; PIECE];
            for units in units.chunks(2 * PIECE) {
                let units = units.chunks_exact(2);
                let len = units.len();
                let bytes = units.filter_map(|unit| unit.first());
                piece.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
                let ascii = piece.get(..len).and_then(|piece| core::str::from_utf8(piece).ok());
                to.push_str(ascii.unwrap_or_default());
            }
        }
        Str::Utf8(bytes) => match core::str::from_utf8(bytes) {
            Ok(text) => to.push_str(text),
            Err(_) => to.extend(text.chars()),
        },
        Str::Utf16(_) => to.extend(text.chars()),
    }
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
