//! Decoders of what the rows (events) of the runtime have in common. Their layouts are fixed: later versions only
//! append fields, so that a decoder of the first fields reads every version.
use ipc_proto::wire::Reader;
use nettrace::{Scalar, Str, Value};

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
