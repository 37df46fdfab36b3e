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
