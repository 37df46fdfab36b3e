//! Where the payload of an event has the command line of the process.
use ipc_proto::wire::steps;

use crate::describe::field::{FieldIter, FieldType, Fields, MAX_DEPTH};
use crate::describe::metadata::Metadata;
use crate::describe::scalar::Scalar;
use crate::encoding::text::Str;

/// The position of the command line in the payloads of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CommandLine {
    /// The payloads contain no command line.
    #[default]
    None,
    /// The command line is the string after the fields in [`Skips`].
    After(Skips),
    /// The command line cannot be removed alone, so the whole payload is removed.
    Somewhere,
}

/// The fields before the command line, each as its number of bytes or as `STRING`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Skips {
    steps: [u8; 16],
    len: usize,
}

const STRING: u8 = 0xff;
/// The number of bytes from `ClrInstanceID` to `StartupMode` of the event `RuntimeInformationStart`, whose fields no
/// stream describes.
const RUNTIME_INFORMATION: u8 = 25;

impl CommandLine {
    /// Finds the command line by the description of an event: `RuntimeInformationStart`, `ProcessInfo`, which every
    /// trace contains, or any other event with a field named `CommandLine`.
    pub(super) fn of(metadata: &Metadata<'_>) -> Self {
        let runtime = ["Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown"];
        if metadata.event_id == 187 && runtime.iter().any(|name| metadata.provider == **name) {
            let mut skips = Skips::default();
            let _ = skips.push(RUNTIME_INFORMATION);
            return Self::After(skips);
        }
        let mut fields = metadata.fields.iter();
        let (mut skips, mut exact) = (Skips::default(), true);
        while let Some(field) = fields.next() {
            match field.field_type {
                FieldType::Scalar(Scalar::Utf16String) if exact && is_command_line(field.name) => {
                    return if mentioned(fields) { Self::Somewhere } else { Self::After(skips) };
                }
                _ if is_command_line(field.name) => return Self::Somewhere,
                FieldType::Scalar(scalar) => {
                    exact = exact && step(scalar).is_some_and(|step| skips.push(step))
                }
                _ => exact = false,
            }
        }
        if mentioned(metadata.fields.iter()) { Self::Somewhere } else { Self::None }
    }

    /// Returns the two parts of a payload that remain, and whether anything was removed.
    pub(super) fn strip<'p>(&self, payload: &'p [u8]) -> ([&'p [u8]; 2], bool) {
        let skips = match self {
            Self::None => return ([payload, &[]], false),
            Self::Somewhere => return ([&[], &[]], !payload.is_empty()),
            Self::After(skips) => skips,
        };
        let mut at = 0usize;
        for step in skips.steps.iter().take(skips.len) {
            let len =
                if *step == STRING { string(payload, at).saturating_add(2) } else { usize::from(*step) };
            at = at.saturating_add(len);
        }
        let Some(head) = payload.get(..at) else {
            // The payload contradicts its description, so the whole payload is removed.
            return ([&[], &[]], !payload.is_empty());
        };
        let len = string(payload, at);
        ([head, payload.get(at.saturating_add(len)..).unwrap_or_default()], len > 0)
    }
}

impl Skips {
    /// Adds a step; returns false if there are too many.
    fn push(&mut self, step: u8) -> bool {
        let Some(place) = self.steps.get_mut(self.len) else { return false };
        *place = step;
        self.len = self.len.saturating_add(1);
        true
    }
}

/// Returns the number of bytes of the UTF-16 text at an offset, without its NUL; without a NUL, all bytes from there.
fn string(payload: &[u8], at: usize) -> usize {
    let rest = payload.get(at..).unwrap_or_default();
    let units = rest.chunks_exact(2).position(|unit| unit == [0, 0]);
    let len = units.map_or(rest.len(), |units| units.saturating_mul(2));
    steps::count(len);
    len
}

fn is_command_line(name: Str<'_>) -> bool {
    name.chars().map(|c| c.to_ascii_lowercase()).eq("commandline".chars())
}

/// Returns whether a field, or a field of an object in it, has the name of the command line.
fn mentioned(fields: FieldIter<'_>) -> bool {
    let mut outer = heapless::Vec::<FieldIter<'_>, MAX_DEPTH>::new();
    let mut level = fields;
    loop {
        let Some(field) = level.next() else {
            match outer.pop() {
                Some(before) => level = before,
                None => return false,
            }
            continue;
        };
        if is_command_line(field.name) {
            return true;
        }
        let mut field_type = field.field_type;
        while let FieldType::Array { element, .. } = field_type {
            field_type = element.field_type();
        }
        if let FieldType::Object(fields) = field_type {
            // The push cannot fail: a decoded description has at most `MAX_DEPTH` levels.
            let _ = outer.push(core::mem::replace(&mut level, Fields::iter(&fields)));
        }
    }
}

/// Returns the step over a value: its number of bytes or `STRING`. Other types of variable size have no step.
const fn step(scalar: Scalar) -> Option<u8> {
    Some(match scalar {
        Scalar::SByte | Scalar::Byte | Scalar::Utf8CodeUnit | Scalar::Boolean8 => 1,
        Scalar::Utf16CodeUnit | Scalar::Int16 | Scalar::UInt16 => 2,
        Scalar::Boolean32 | Scalar::Int32 | Scalar::UInt32 | Scalar::Single => 4,
        Scalar::Int64 | Scalar::UInt64 | Scalar::Double | Scalar::DateTime => 8,
        Scalar::Decimal | Scalar::Guid => 16,
        Scalar::Utf16String => STRING,
        Scalar::VarInt | Scalar::VarUInt | Scalar::Utf8String => return None,
    })
}
