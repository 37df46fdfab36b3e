//! Arrays in payloads: those that are one value, and those that lie elsewhere in the payload.
use ipc_proto::wire::Reader;

use crate::describe::field::ArrayKind;
use crate::describe::scalar::Scalar;
use crate::encoding::text::Str;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::values::value::Value;

/// Returns the size in bytes of elements of this type, if arrays of them are one value.
#[inline]
pub(crate) const fn unit_size(unit: Scalar) -> Option<usize> {
    match unit {
        Scalar::Byte | Scalar::Utf8CodeUnit => Some(1),
        Scalar::Utf16CodeUnit => Some(2),
        _ => None,
    }
}

/// Returns an array of these elements as one value.
pub(crate) const fn whole(unit: Scalar, bytes: &[u8]) -> Value<'_> {
    match unit {
        Scalar::Utf16CodeUnit => Value::Text(Str::Utf16(bytes)),
        Scalar::Utf8CodeUnit => Value::Text(Str::Utf8(bytes)),
        _ => Value::Bytes(bytes),
    }
}

/// Reads where the elements of an array lie in a payload, and returns their offset and their bytes.
pub(crate) fn located<'a>(
    payload: &'a [u8],
    r: &mut Reader<'a>,
    kind: ArrayKind,
) -> Result<(usize, &'a [u8]), DecodeError> {
    let outside = DecodeError::at(r, DecodeErrorKind::UnexpectedEnd);
    let [low, high, len_low, len_high] = r.array()?;
    let place = usize::from(u16::from_le_bytes([low, high]));
    let len = usize::from(u16::from_le_bytes([len_low, len_high]));
    let from = if kind == ArrayKind::RelLoc { r.offset() } else { 0 };
    let start = from.checked_add(place).ok_or(outside)?;
    let bytes = payload.get(start..).and_then(|rest| rest.get(..len)).ok_or(outside)?;
    Ok((start, bytes))
}
