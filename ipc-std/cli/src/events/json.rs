//! Values of events as JSON, appended to a buffer by hand: a trace can have millions of events.
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use nettrace::{Str, Value};

use super::plain_text;
use crate::text::printable::{NAME_LIMIT, is_control, not_a_number, printable_name, start, write_json_char};

/// Appends a value. JSON has no infinite numbers and no NaN: these are strings.
///
/// The value is a reference: to copy a value that was just stored takes longer than to format a short one.
pub(super) fn push_value(value: &Value<'_>, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = match *value {
        Value::Boolean(value) => write!(out, "{value}"),
        Value::CodeUnit(unit) => return push_string(Str::Utf16(&unit.to_le_bytes()), out),
        Value::Int(number) => out.write_all(itoa::Buffer::new().format(number).as_bytes()),
        Value::UInt(number) => out.write_all(itoa::Buffer::new().format(number).as_bytes()),
        // `{:?}` writes the shortest digits that read back as the same number, with an exponent where needed.
        Value::Single(number) => match not_a_number(number.into()) {
            None => write!(out, "{number:?}"),
            Some(name) => write!(out, "\"{name}\""),
        },
        Value::Double(number) => match not_a_number(number) {
            None => write!(out, "{number:?}"),
            Some(name) => write!(out, "\"{name}\""),
        },
        Value::DateTime(time) => write!(out, "\"{time}\""),
        Value::Guid(guid) => write!(out, "\"{guid}\""),
        Value::Text(text) => return push_string(text, out),
        Value::Bytes(bytes) => return push_base64(bytes, out),
        Value::Decimal(bytes) => return push_base64(&bytes, out),
        _ => out.write_all(b"null"),
    };
}

/// Returns a value; of a text or of bytes, only the beginning.
pub(crate) fn short_value(value: Value<'_>) -> String {
    let mut json = Vec::new();
    match value {
        Value::Text(text) => _ = push_name(text, &mut json),
        Value::Bytes(bytes) => push_base64(bytes.get(..NAME_LIMIT).unwrap_or(bytes), &mut json),
        value => push_value(&value, &mut json),
    }
    String::from_utf8_lossy(&json).into_owned()
}

/// Returns a result of [`short_value`] for people: a string without quotation marks and escapes.
pub(crate) fn shown(json: &str) -> String {
    match serde_json::from_str::<String>(json) {
        Ok(text) => printable_name(&text),
        Err(_) => json.to_owned(),
    }
}

pub(super) fn push_string(text: Str<'_>, out: &mut Vec<u8>) {
    out.push(b'"');
    if !plain_text::append(text, out) {
        text.chars().for_each(|c| push_char(c, out));
    }
    out.push(b'"');
}

/// Appends a name as [`push_string`] does, but only the beginning of a long one. Returns whether it was cut.
pub(super) fn push_name(text: Str<'_>, out: &mut Vec<u8>) -> bool {
    if !may_be_long(text) {
        push_string(text, out);
        return false;
    }
    out.push(b'"');
    let is_cut = push_start(text, push_char, out);
    out.push(b'"');
    is_cut
}

/// Appends a name without quotation marks, escaped only where it would control a terminal. Returns whether it was cut.
pub(super) fn push_printable(text: Str<'_>, out: &mut Vec<u8>) -> bool {
    if !may_be_long(text) && plain_text::append(text, out) {
        return false;
    }
    push_start(text, |c, out| if is_control(c) { push_char(c, out) } else { push_utf8(c, out) }, out)
}

/// Appends the beginning of a name, with a mark if that is not all of it. Returns whether it was cut.
fn push_start(text: Str<'_>, push: impl Fn(char, &mut Vec<u8>), out: &mut Vec<u8>) -> bool {
    // Only the start is decoded, because decoding would check all bytes of a UTF-8 name first.
    let mut chars = start(text).chars();
    chars.by_ref().take(NAME_LIMIT).for_each(|c| push(c, out));
    let is_cut = chars.next().is_some();
    if is_cut {
        push_utf8('…', out);
    }
    is_cut
}

/// Returns whether a name may have more than [`NAME_LIMIT`] characters.
const fn may_be_long(name: Str<'_>) -> bool {
    let (Str::Utf8(bytes) | Str::Utf16(bytes)) = name;
    bytes.len() > NAME_LIMIT
}

fn push_char(c: char, out: &mut Vec<u8>) {
    let _ = write_json_char(out, c);
}

fn push_utf8(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

pub(super) fn push_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    let len = bytes.len().div_ceil(3).saturating_mul(4);
    out.resize(start.saturating_add(len), 0);
    // Encoding cannot fail: the slice has exactly the encoded length.
    let _ = BASE64.encode_slice(bytes, out.get_mut(start..).unwrap_or_default());
    out.push(b'"');
}

/// Appends a number as `"0x2a"`.
pub(super) fn push_hexadecimal(number: u64, out: &mut Vec<u8>) {
    let [high, low] = [number >> 32, number & 0xffff_ffff].map(hexadecimal_digits);
    let zeros = (number | 1).leading_zeros() / 4;
    let digits = (u128::from(high) << 64 | u128::from(low)).wrapping_shl(zeros.wrapping_mul(8));
    // Bytes of a fixed number are copied with a few instructions.
    let mut text = *b"\"0x                ";
    if let Some((_, place)) = text.split_at_mut_checked(3) {
        place.copy_from_slice(&digits.to_be_bytes());
    }
    let end = out.len().saturating_add(19).saturating_sub(usize::try_from(zeros).unwrap_or_default());
    out.extend_from_slice(&text);
    out.truncate(end);
    out.push(b'"');
}

/// Returns the eight digits of a number of 32 bits, the first one in the highest byte. Stacks have so many addresses that
/// one digit at a time takes several times as long.
const fn hexadecimal_digits(number: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Each step moves the higher half of each group of digits away from the lower one: at last each digit has a byte.
    let digits = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 in the bytes of the digits from 10 on, which are letters.
    let letters = digits.wrapping_add(ONES.wrapping_mul(6)) >> 4 & ONES;
    let to_letter = b'a'.wrapping_sub(b'0').wrapping_sub(10) as u64;
    digits.wrapping_add(ONES.wrapping_mul(b'0' as u64)).wrapping_add(letters.wrapping_mul(to_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_numbers() {
        for number in [0, 1, 0xf, 0x10, 0x1234_5678_9abc_def0, u64::MAX] {
            let mut out = Vec::new();
            push_hexadecimal(number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("\"{number:#x}\""));
        }
    }

    /// Each event can refer to the same long name, so the work for one is limited.
    #[test]
    fn only_the_start_of_a_long_text_is_decoded() {
        for c in ['N', 'Ü', '…', '🦀'] {
            let long = c.to_string().repeat(100_000);
            let wide: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let expected: String = core::iter::repeat_n(c, NAME_LIMIT).chain(['…']).collect();
            for text in [Str::from(&*long), Str::Utf16(&wide)] {
                assert_eq!(short_value(Value::Text(text)), format!("\"{expected}\""));
                let (Str::Utf8(bytes) | Str::Utf16(bytes)) = start(text);
                assert!(bytes.len() <= 2000);
            }
        }
        let invalid = [0xff; 5000];
        let expected = format!("{}…", "\u{fffd}".repeat(NAME_LIMIT));
        assert_eq!(short_value(Value::Text(Str::Utf8(&invalid))), format!("\"{expected}\""));
    }
}
