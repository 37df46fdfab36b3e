//! [`Runtime`], the known facts about a runtime; [`obstacle`] and [`refusal`]: which commands such a runtime refuses.
use core::fmt;

use crate::types::ProcessInfo3;
use crate::{
    ApplyStartupHook, AttachProfiler, Code, Command, CommandInfo, DisablePerfMap, EnablePerfMap, HResult,
    Text,
};

/// A kind of runtime, by the commands that it has: see [`obstacle`]. A server that is not a .NET runtime states the
/// kind whose commands the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flavour {
    /// The default runtime.
    CoreClr,
    /// Mono: has no dumps, profilers, perf maps and startup hooks.
    Mono,
    /// A program compiled ahead of time: has no profilers, perf maps and startup hooks.
    NativeAot,
}

/// The known facts about a runtime. An unknown fact is `None`: a plan then tries a command, and a hazard may exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Runtime {
    /// The major version of .NET.
    pub version: Option<u8>,
    /// The kind of runtime.
    pub flavour: Option<Flavour>,
    /// Whether the process runs on Linux.
    pub linux: Option<bool>,
    /// Whether the runtime is suspended at startup, until `ResumeRuntime`.
    pub suspended: Option<bool>,
}

impl Runtime {
    /// A runtime that refuses every command for process information with `UNKNOWN_COMMAND`: .NET Core 3.
    pub const WITHOUT_INFO: Self = Self { version: Some(3), flavour: None, linux: None, suspended: None };

    /// Returns whether a runtime of this version can know the command.
    pub(super) fn may_know(&self, code: Code) -> bool {
        let since = CommandInfo::find(code).map_or(0, |row| row.since);
        self.version.is_none_or(|version| since <= version)
    }

    /// Returns whether the runtime can be CoreCLR.
    pub(super) const fn may_be_coreclr(&self) -> bool {
        matches!(self.flavour, None | Some(Flavour::CoreClr))
    }
}

/// Takes the version and the system from the process information. The other facts are unknown.
impl From<&ProcessInfo3<'_>> for Runtime {
    fn from(info: &ProcessInfo3<'_>) -> Self {
        let version = major_version(info.clr_product_version);
        Self { version, linux: Some(info.os == "Linux"), ..Self::default() }
    }
}

/// Returns the major version in the version that a runtime reports; `None` if the text does not begin with a number.
///
/// .NET 5 is the only version that has process information but reports no version: for the null text the result is 5.
///
/// ```
/// use ipc_proto::{Text, plan};
///
/// assert_eq!(plan::major_version("10.0.1-servicing".into()), Some(10));
/// assert_eq!(plan::major_version(Text::NULL), Some(5));
/// assert_eq!(plan::major_version("".into()), None);
/// ```
#[must_use]
pub fn major_version(clr_product_version: Text<'_>) -> Option<u8> {
    if clr_product_version.is_null() {
        return Some(5);
    }
    let mut version = None;
    for unit in clr_product_version.units() {
        match char::from_u32(unit.into()).and_then(|unit| unit.to_digit(10)).map(u8::try_from) {
            Some(Ok(digit)) => {
                version = Some(version.unwrap_or(0u8).checked_mul(10)?.checked_add(digit)?);
            }
            _ if unit == u16::from(b'.') => return version,
            _ => return None,
        }
    }
    version
}

/// The reason why a runtime refuses a command regardless of its fields. Its `Display` is a sentence for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Obstacle {
    /// The runtime is older than the command.
    Version {
        /// The first version that knows the command.
        since: u8,
    },
    /// This kind of runtime does not support the command.
    Flavour(Flavour),
    /// The command works on Linux only.
    NotLinux,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { since } => write!(f, "it needs .NET {since}"),
            Self::Flavour(Flavour::CoreClr) => f.write_str("this runtime does not have it"),
            Self::Flavour(Flavour::Mono) => f.write_str("Mono does not have it"),
            Self::Flavour(Flavour::NativeAot) => f.write_str("programs compiled by NativeAOT do not have it"),
            Self::NotLinux => f.write_str("it works on Linux only"),
        }
    }
}

/// Returns the reason why the runtime refuses the command; `None` if the known facts give no reason.
///
/// | commands | CoreCLR | Mono | NativeAOT |
/// |---|---|---|---|
/// | dumps | yes | no | on Unix |
/// | profilers, startup hooks | yes | no | no |
/// | perf maps | on Linux | no | no |
/// | all others | yes | yes | yes |
///
/// ```
/// use ipc_proto::{Code, plan::{self, Flavour, Obstacle, Runtime}};
///
/// let native = Runtime { flavour: Some(Flavour::NativeAot), ..Runtime::default() };
/// assert_eq!(plan::obstacle(Code(0x0301), &native), Some(Obstacle::Flavour(Flavour::NativeAot)));
/// assert_eq!(plan::obstacle(Code(0x0203), &native), None);
/// let net8 = Runtime { version: Some(8), ..Runtime::default() };
/// assert_eq!(plan::obstacle(Code(0x0205), &net8).unwrap().to_string(), "it needs .NET 9");
/// ```
#[must_use]
pub fn obstacle(command: Code, runtime: &Runtime) -> Option<Obstacle> {
    const DUMP: u8 = 1;
    const PROFILER: u8 = 3;
    let &Runtime { flavour, linux, .. } = runtime;
    if !runtime.may_know(command) {
        return CommandInfo::find(command).map(|row| Obstacle::Version { since: row.since });
    }
    let perf_map = matches!(command, EnablePerfMap::CODE | DisablePerfMap::CODE);
    let hook = command == ApplyStartupHook::CODE;
    match flavour {
        Some(Flavour::Mono) if command.set() == DUMP => Some(Obstacle::Flavour(Flavour::Mono)),
        Some(other @ (Flavour::Mono | Flavour::NativeAot))
            if command.set() == PROFILER || perf_map || hook =>
        {
            Some(Obstacle::Flavour(other))
        }
        _ if perf_map && linux == Some(false) => Some(Obstacle::NotLinux),
        _ => None,
    }
}

/// Returns whether a runtime that does not support the command decodes the payload, and refuses a malformed one as
/// malformed, before it refuses the command. .NET 11 checks the bounds of each payload.
pub(super) fn reads_payload_first(command: Code, runtime: &Runtime) -> bool {
    match command {
        ApplyStartupHook::CODE => true,
        EnablePerfMap::CODE => runtime.version.is_some_and(|version| version >= 11),
        _ => false,
    }
}

/// Returns the code with which the runtime refuses the command before it reads the payload, if it does so.
///
/// ```
/// use ipc_proto::{Code, HResult, plan::{self, Flavour, Runtime}};
///
/// let native = Runtime { flavour: Some(Flavour::NativeAot), ..Runtime::default() };
/// assert_eq!(plan::refusal(Code(0x0301), &native), Some(HResult::NOT_SUPPORTED));
/// assert_eq!(plan::refusal(Code(0x04f0), &native), Some(HResult::UNKNOWN_COMMAND));
/// assert_eq!(plan::refusal(Code(0x0407), &native), None); // a runtime reads the path of a startup hook first
/// ```
#[must_use]
pub fn refusal(command: Code, runtime: &Runtime) -> Option<HResult> {
    match obstacle(command, runtime) {
        Some(Obstacle::Flavour(_)) if reads_payload_first(command, runtime) => None,
        Some(Obstacle::Version { .. }) => Some(HResult::UNKNOWN_COMMAND),
        Some(_) => Some(HResult::NOT_SUPPORTED),
        None if CommandInfo::find(command).is_none() => Some(HResult::UNKNOWN_COMMAND),
        None if command == AttachProfiler::CODE && runtime.suspended == Some(true) => {
            Some(HResult::NOT_YET_AVAILABLE)
        }
        None => None,
    }
}
