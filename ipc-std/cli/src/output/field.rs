//! Parts of a message, as `decode` shows them.
use core::fmt;
use std::io::{self, Write};

use dotnet_ipc_sans_io::syntax::hex;
use ipc_proto::wire::{Part, PartValue};

use crate::text::printable::{json_line, write_json_string};

/// A part of a message. Its `Display` is its name and its value for people.
#[derive(Debug)]
pub(crate) struct Field<'p>(pub(crate) &'p Part<'p>);

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { path, bytes, value, .. } = self.0;
        write!(f, "{path}: ")?;
        match value {
            PartValue::Number { number, name: Some(name) } => write!(f, "{number} {name}"),
            // Keywords and session IDs are usually written in hexadecimal.
            PartValue::Number { number, .. } if bytes.len() == 8 && *number > 0xffff => {
                write!(f, "{number} ({number:#x})")
            }
            PartValue::Number { number, .. } => number.fmt(f),
            PartValue::Bool(value) => value.fmt(f),
            PartValue::Text(text) => write!(f, "{text:?}"),
            PartValue::Guid(guid) => guid.fmt(f),
            PartValue::HResult(hresult) => write!(f, "{hresult:?}"),
            PartValue::Reserved(number) => number.fmt(f),
            PartValue::Bytes(bytes) => describe(bytes, f),
            other => write!(f, "{other:?}"),
        }?;
        value.problem().map_or(Ok(()), |problem| write!(f, " ({problem})"))
    }
}

impl Field<'_> {
    /// Writes the object for `--json`.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let Part { path, offset, bytes, value } = self.0;
        write!(out, "{{\"name\":\"{path}\",\"offset\":{offset},\"length\":{},\"value\":", bytes.len())?;
        match value {
            PartValue::Number { number, .. } if u64::try_from(*number).is_ok() => write!(out, "{number}")?,
            PartValue::Number { number, .. } => write!(out, "\"{number}\"")?,
            PartValue::Bool(value) => write!(out, "{value}")?,
            PartValue::Text(text) if text.is_null() => write!(out, "null")?,
            PartValue::Text(text) => write_json_string(out, text.chars())?,
            PartValue::Guid(guid) => write!(out, "\"{guid}\"")?,
            PartValue::HResult(hresult) => write!(out, "\"{hresult}\"")?,
            PartValue::Reserved(number) => write!(out, "{number}")?,
            PartValue::Bytes(bytes) => write_json_string(out, hex::digits(bytes))?,
            _ => write!(out, "null")?,
        }
        let value_name = match value {
            PartValue::Number { name, .. } => *name,
            PartValue::HResult(hresult) => hresult.name(),
            _ => None,
        };
        write!(
            out,
            ",\"value_name\":{},\"problem\":{}}}",
            json_line(&value_name),
            json_line(&value.problem())
        )
    }
}

/// Describes bytes whose digits are shown already.
fn describe(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let letters = bytes.strip_suffix(b"\0").filter(|letters| !letters.is_empty());
    match letters {
        Some(letters) if letters.iter().all(u8::is_ascii_graphic) => {
            write!(f, "\"{}\\0\"", letters.escape_ascii())
        }
        _ => write!(f, "{} bytes", bytes.len()),
    }
}
