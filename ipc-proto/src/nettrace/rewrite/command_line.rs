use super::super::{FieldIter, FieldType, Fields, Metadata, Scalar, Str};

/// Where the payloads of some event have the command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CommandLine {
    /// Nowhere.
    #[default]
    None,
    /// In a string behind this.
    Behind(Skips),
    /// Where it cannot be cut out.
    Somewhere,
}

/// How to get to a field: so many bytes, or a string, one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Skips {
    steps: [u8; 16],
    len: usize,
}

const STRING: u8 = 0xff;
/// `ClrInstanceID` to `StartupMode` of the event `RuntimeInformationStart`, which no stream describes.
const RUNTIME_INFORMATION: u8 = 25;
/// How deep a description goes, and no deeper.
const MAX_DEPTH: usize = 16;

impl CommandLine {
    /// Looks for it: in the event `ProcessInfo` that every trace has, in `RuntimeInformationStart`, and in whatever else
    /// calls a field so.
    pub(super) fn of(metadata: &Metadata<'_>) -> Self {
        let runtime = ["Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown"];
        if metadata.event_id == 187 && runtime.iter().any(|name| metadata.provider == **name) {
            let mut skips = Skips::default();
            let _ = skips.push(RUNTIME_INFORMATION);
            return Self::Behind(skips);
        }
        let mut fields = metadata.fields.iter();
        let (mut skips, mut exact) = (Skips::default(), true);
        while let Some(field) = fields.next() {
            match field.field_type {
                FieldType::Scalar(Scalar::Utf16String) if exact && is_command_line(field.name) => {
                    return if mentioned(fields) { Self::Somewhere } else { Self::Behind(skips) };
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

    /// What is left of a payload: two parts of it, which lie behind one another, and whether anything is missing.
    pub(super) fn strip<'p>(&self, payload: &'p [u8]) -> ([&'p [u8]; 2], bool) {
        let skips = match self {
            Self::None => return ([payload, &[]], false),
            Self::Somewhere => return ([&[], &[]], !payload.is_empty()),
            Self::Behind(skips) => skips,
        };
        let mut at = 0usize;
        for step in skips.steps.iter().take(skips.len) {
            let len =
                if *step == STRING { string(payload, at).saturating_add(2) } else { usize::from(*step) };
            at = at.saturating_add(len);
        }
        let Some(head) = payload.get(..at) else {
            // It is not what it says it is.
            return ([&[], &[]], !payload.is_empty());
        };
        let len = string(payload, at);
        ([head, payload.get(at.saturating_add(len)..).unwrap_or_default()], len > 0)
    }
}

impl Skips {
    /// False if there are too many.
    fn push(&mut self, step: u8) -> bool {
        let Some(place) = self.steps.get_mut(self.len) else { return false };
        *place = step;
        self.len = self.len.saturating_add(1);
        true
    }
}

/// Bytes of the UTF-16 text at some place, without its NUL; all there are, if it has none.
fn string(payload: &[u8], at: usize) -> usize {
    let rest = payload.get(at..).unwrap_or_default();
    let units = rest.chunks_exact(2).position(|unit| unit == [0, 0]);
    units.map_or(rest.len(), |units| units.saturating_mul(2))
}

fn is_command_line(name: Str<'_>) -> bool {
    name.chars().map(|c| c.to_ascii_lowercase()).eq("commandline".chars())
}

/// Whether a field is called so, or one in it.
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
            // Nothing that was understood goes deeper.
            let _ = outer.push(core::mem::replace(&mut level, Fields::iter(&fields)));
        }
    }
}

/// How to get behind a value.
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
