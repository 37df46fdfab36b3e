//! The places at which a trace has the command line of the process, and the parts of a trace that may have it.
use ipc_proto::wire::steps;

use crate::describe::{FieldType, Metadata, Scalar};
use crate::encoding::Str;

/// The position of the command line in the payloads of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CommandLine {
    /// The payloads contain no command line.
    #[default]
    None,
    /// The command line is one of the values of this layout.
    In(PayloadLayout),
    /// The command line cannot be removed alone, so the whole payload is removed.
    Somewhere,
    /// The name of a process, which may be its command line, is among the values. A name has no space.
    InName,
    /// The description does not state whether the payloads contain a command line, so the whole payload is removed.
    Unknown,
}

/// The loss of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removed {
    Nothing,
    CommandLine,
    /// All bytes, which may contain a command line.
    Unjudged,
}

/// The values of a payload, each as its number of bytes or as `STRING`, and the index of the command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PayloadLayout {
    steps: [u8; 16],
    len: usize,
    command_line: usize,
}

const STRING: u8 = 0xff;
/// The number of bytes from `ClrInstanceID` to `StartupMode` of the event `RuntimeInformationStart`, whose fields no
/// stream describes.
const RUNTIME_INFORMATION: u8 = 25;
/// `RuntimeInformationStart`: the command line, a GUID and a path follow the numbers.
const RUNTIME_STEPS: [u8; 4] = [RUNTIME_INFORMATION, STRING, 16, STRING];

impl CommandLine {
    /// Finds the command line by the description of an event: `RuntimeInformationStart`, `ProcessInfo`, which every
    /// trace contains, or any other event with a field of such a name.
    pub(super) fn of(metadata: &Metadata<'_>) -> Self {
        if metadata.lacks_fields {
            return Self::Unknown;
        }
        let names = ["ProcessCreate", "ExistingProcess"];
        if metadata.provider == "Universal.System" && names.iter().any(|name| metadata.name == **name) {
            return Self::InName;
        }
        let is_native = metadata.fields.is_empty();
        let is_of_runtime = starts_with(metadata.provider, "Microsoft-Windows-DotNETRuntime");
        let is_start = is_of_runtime && metadata.event_id == 187;
        if is_native && is_start {
            return PayloadLayout { command_line: 1, ..PayloadLayout::default() }.with(&RUNTIME_STEPS);
        }
        if is_native {
            let is_known = is_of_runtime || has_known_payloads(metadata.provider);
            return if is_known { Self::None } else { Self::Unknown };
        }
        let mut layout = PayloadLayout::default();
        let (mut found, mut is_exact) = (None, true);
        for (index, field) in metadata.fields.iter().enumerate() {
            if is_command_line(field.name) {
                let is_text = matches!(field.field_type, FieldType::Scalar(Scalar::Utf16String));
                is_exact &= is_text && found.is_none();
                found = Some(index);
            } else if field.field_type.has_inner(&|field| is_command_line(field.name)) {
                (found, is_exact) = (Some(index), false);
            }
            is_exact &= match field.field_type {
                FieldType::Scalar(scalar) => step(scalar).is_some_and(|step| layout.push(step)),
                _ => false,
            };
        }
        // The runtime writes the command line first, whatever a description of another order states. Readers know
        // `RuntimeInformationStart` by its id, whatever its description states.
        let is_info = starts_with(metadata.provider, "Microsoft-DotNETCore-EventPipe");
        if is_info && found != Some(0) || is_start && found.is_none() {
            return Self::Unknown;
        }
        match found {
            None => Self::None,
            Some(command_line) if is_exact => Self::In(PayloadLayout { command_line, ..layout }),
            Some(_) => Self::Somewhere,
        }
    }

    /// Returns the position in the payloads of an id that is described twice.
    pub(super) fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }

    /// Returns the two remaining parts of a payload, and the removed one.
    pub(super) fn strip<'p>(&self, payload: &'p [u8]) -> ([&'p [u8]; 2], Removed) {
        let whole = |removed| ([&[][..]; 2], if payload.is_empty() { Removed::Nothing } else { removed });
        match self {
            Self::None => ([payload, &[]], Removed::Nothing),
            Self::Somewhere => whole(Removed::CommandLine),
            Self::InName if !has_space(payload) => ([payload, &[]], Removed::Nothing),
            Self::InName | Self::Unknown => whole(Removed::Unjudged),
            // If the payload contradicts its description, the whole payload is removed.
            Self::In(layout) => layout.strip(payload).unwrap_or_else(|| whole(Removed::CommandLine)),
        }
    }
}

impl PayloadLayout {
    fn with(mut self, steps: &[u8]) -> CommandLine {
        let is_complete = steps.iter().all(|step| self.push(*step));
        if is_complete { CommandLine::In(self) } else { CommandLine::Somewhere }
    }

    /// Adds a value; returns false if there are too many.
    fn push(&mut self, step: u8) -> bool {
        let Some(place) = self.steps.get_mut(self.len) else { return false };
        *place = step;
        self.len = self.len.saturating_add(1);
        true
    }

    /// Removes the command line. `None` if the payload ends before the command line, or has bytes after the last value: a
    /// NUL in the middle of the command line would make its rest another value.
    fn strip<'p>(&self, payload: &'p [u8]) -> Option<([&'p [u8]; 2], Removed)> {
        let (mut at, mut head, mut tail) = (0usize, 0usize, 0usize);
        for (index, step) in self.steps.iter().take(self.len).enumerate() {
            let len = if *step == STRING { string(payload, at) } else { usize::from(*step) };
            if index == self.command_line {
                (head, tail) = (at, at.saturating_add(len));
            }
            at = at.saturating_add(len).saturating_add(if *step == STRING { 2 } else { 0 });
        }
        if at < payload.len() {
            return None;
        }
        let parts = [payload.get(..head)?, payload.get(tail..).unwrap_or_default()];
        Some((parts, if tail > head { Removed::CommandLine } else { Removed::Nothing }))
    }
}

fn has_space(payload: &[u8]) -> bool {
    steps::count(payload.len());
    payload.contains(&b' ')
}

/// Returns the number of bytes of the UTF-16 text at an offset, without its NUL; without a NUL, all bytes from there.
fn string(payload: &[u8], at: usize) -> usize {
    let rest = payload.get(at..).unwrap_or_default();
    let units = rest.chunks_exact(2).position(|unit| unit == [0, 0]);
    let len = units.map_or(rest.len(), |units| units.saturating_mul(2));
    steps::count(len);
    len
}

/// Returns whether a field, label, attribute or pair has a name for a command line, such as `CommandLine` or
/// `process.command_line`.
pub(super) fn is_command_line(name: Str<'_>) -> bool {
    const WORDS: [&str; 3] = ["commandline", "commandargs", "cmdline"];
    // The last letters so far; no word is longer.
    let mut window = ['\0'; 11];
    for c in name.chars().filter(char::is_ascii_alphanumeric) {
        window.rotate_left(1);
        if let Some(last) = window.last_mut() {
            *last = c.to_ascii_lowercase();
        }
        let ends_with = |word: &str| window.iter().rev().copied().take(word.len()).eq(word.chars().rev());
        if WORDS.iter().any(|word| ends_with(word)) {
            return true;
        }
    }
    false
}

/// Returns whether the events of a provider have no command line although their descriptions have no fields.
fn has_known_payloads(provider: Str<'_>) -> bool {
    ["Microsoft-DotNETCore-SampleProfiler", "Microsoft-Diagnostics-DiagnosticSource"]
        .iter()
        .any(|name| provider == **name)
        || starts_with(provider, "Universal.")
}

/// Returns whether a text starts so, in any case of ASCII letters: readers find providers in any case.
fn starts_with(text: Str<'_>, start: &str) -> bool {
    let mut chars = text.chars();
    start.chars().all(|c| chars.next().is_some_and(|other| other.eq_ignore_ascii_case(&c)))
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
