//! Plans: which command to send to which runtime, which older command to try next, and what that loses.
//!
//! Plans are computed from the caller's wishes and from what is known of the runtime; nothing is sent.
use core::fmt;

use super::types::{DumpFlags, SessionBufferMode};
use crate::{
    ApplyStartupHook, Code, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5,
    CollectTracing6, Command, CommandInfo, DisablePerfMap, EnablePerfMap, GenerateCoreDump,
    GenerateCoreDump2, GenerateCoreDump3, GetProcessInfo, GetProcessInfo2, GetProcessInfo3, HResult, Request,
};

/// A kind of runtime.
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

/// The known facts about a runtime. An unknown fact is `None`; plans then assume the worse case.
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
    /// Returns whether a runtime of this version can know the command.
    fn may_know(&self, code: Code) -> bool {
        let since = CommandInfo::find(code).map_or(0, |row| row.since);
        self.version.is_none_or(|version| since <= version)
    }
}

/// A feature that an older command lacks. Its `Display` is a sentence for the user who wanted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostFeature {
    /// Blocking the program when the buffer is full, instead of losing events.
    Blocking,
    /// Filtering events by id.
    EventFilters,
    /// A rundown selected by keywords; the default rundown replaces it.
    RundownKeyword,
    /// Events without stacks.
    Stackwalk,
    /// Flags of a dump other than logging.
    DumpFlags,
    /// The message of a refused dump.
    DumpMessage,
}

impl fmt::Display for LostFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking => "blocking instead of dropping needs .NET 11",
            Self::EventFilters => {
                "filtering events by id needs .NET 10: all events of the providers are sent"
            }
            Self::RundownKeyword => {
                "a rundown selected by keywords needs .NET 9: the default rundown is sent"
            }
            Self::Stackwalk => "events without stacks need .NET 9: events have stacks",
            Self::DumpFlags => "crash reports and verbose logging need .NET 6",
            Self::DumpMessage => "the error message of a refused dump needs .NET 7",
        })
    }
}

/// A set of lost features. It iterates in the order of [`LostFeature`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LostFeatures(u8);

impl LostFeatures {
    const ALL: [LostFeature; 6] = [
        LostFeature::Blocking,
        LostFeature::EventFilters,
        LostFeature::RundownKeyword,
        LostFeature::Stackwalk,
        LostFeature::DumpFlags,
        LostFeature::DumpMessage,
    ];

    /// Returns whether nothing is lost.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a feature is lost.
    #[must_use]
    pub const fn contains(self, loss: LostFeature) -> bool {
        self.0 & Self::bit(loss) != 0
    }

    /// Returns the lost features.
    pub fn iter(self) -> impl Iterator<Item = LostFeature> {
        Self::ALL.into_iter().filter(move |loss| self.contains(*loss))
    }

    const fn bit(loss: LostFeature) -> u8 {
        match loss {
            LostFeature::Blocking => 1,
            LostFeature::EventFilters => 2,
            LostFeature::RundownKeyword => 4,
            LostFeature::Stackwalk => 8,
            LostFeature::DumpFlags => 16,
            LostFeature::DumpMessage => 32,
        }
    }

    const fn with(self, loss: LostFeature) -> Self {
        Self(self.0 | Self::bit(loss))
    }
}

/// The keywords of the rundown that runtimes send if the command does not select keywords.
pub const DEFAULT_RUNDOWN: u64 = 0x8002_0139;

/// The client's wishes for a tracing session, apart from the providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceWishes {
    /// Keywords of the rundown; 0 for none.
    pub rundown_keyword: u64,
    /// Whether events contain stacks.
    pub stackwalk: bool,
    /// Whether a provider's events are filtered by id.
    pub event_filters: bool,
    /// The runtime's behaviour when the buffer is full.
    pub buffer_mode: SessionBufferMode,
    /// Whether events are written to `user_events` instead of a stream.
    pub user_events: bool,
}

impl Default for TraceWishes {
    /// The features of every version: the default rundown, stacks, and events lost when the buffer is full.
    fn default() -> Self {
        Self {
            rundown_keyword: DEFAULT_RUNDOWN,
            stackwalk: true,
            event_filters: false,
            buffer_mode: SessionBufferMode::DROP,
            user_events: false,
        }
    }
}

/// A command that starts a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceStep {
    /// The command.
    pub command: Code,
    /// The wishes that the command supports.
    pub wishes: TraceWishes,
    /// The wishes that it does not support.
    pub lost: LostFeatures,
}

/// Returns the commands that can start a session. Send the next one if the answer to the previous one is
/// [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND).
///
/// The first is the oldest command that supports every wish, which Microsoft's client chooses too: one round trip is then
/// enough for runtimes of every age. If the version is known, the commands that it does not know are omitted. No older
/// command supports `user_events`.
///
/// ```
/// use ipc_proto::{Code, plan::{self, Runtime, TraceWishes}, types::SessionBufferMode};
///
/// let wishes = TraceWishes { buffer_mode: SessionBufferMode::BLOCK, ..TraceWishes::default() };
/// let steps: Vec<_> = plan::trace(wishes, &Runtime::default()).collect();
/// assert_eq!([steps[0].command, steps[1].command], [Code(0x0207), Code(0x0203)]);
/// assert!(steps[0].lost.is_empty());
/// let lost: Vec<String> = steps[1].lost.iter().map(|loss| loss.to_string()).collect();
/// assert_eq!(lost, ["blocking instead of dropping needs .NET 11"]);
/// ```
pub fn trace(wishes: TraceWishes, runtime: &Runtime) -> impl Iterator<Item = TraceStep> + use<> {
    let runtime = *runtime;
    let first = TraceStep { command: oldest(&wishes), wishes, lost: LostFeatures::default() };
    core::iter::successors(Some(first), step_down).filter(move |step| runtime.may_know(step.command))
}

/// Returns the oldest command that supports every wish.
const fn oldest(wishes: &TraceWishes) -> Code {
    let TraceWishes { rundown_keyword, stackwalk, event_filters, buffer_mode, user_events } = *wishes;
    if buffer_mode.0 != SessionBufferMode::DROP.0 && !user_events {
        CollectTracing6::CODE
    } else if event_filters || user_events {
        CollectTracing5::CODE
    } else if !matches!(rundown_keyword, 0 | DEFAULT_RUNDOWN) {
        CollectTracing4::CODE
    } else if !stackwalk {
        CollectTracing3::CODE
    } else {
        CollectTracing2::CODE
    }
}

/// Returns the next older step: the same wishes without the one that only this command supports.
fn step_down(step: &TraceStep) -> Option<TraceStep> {
    let mut wishes = step.wishes;
    let loss = match step.command {
        CollectTracing6::CODE => {
            wishes.buffer_mode = SessionBufferMode::DROP;
            LostFeature::Blocking
        }
        CollectTracing5::CODE if !wishes.user_events => {
            wishes.event_filters = false;
            LostFeature::EventFilters
        }
        CollectTracing4::CODE => {
            wishes.rundown_keyword = DEFAULT_RUNDOWN;
            LostFeature::RundownKeyword
        }
        CollectTracing3::CODE => {
            wishes.stackwalk = true;
            LostFeature::Stackwalk
        }
        _ => return None,
    };
    Some(TraceStep { command: oldest(&wishes), wishes, lost: step.lost.with(loss) })
}

/// A command that writes a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DumpStep {
    /// The command.
    pub command: Code,
    /// The features that it lacks.
    pub lost: LostFeatures,
}

/// Returns the commands that write a dump, the newest first. Send the next one if the answer to the previous one is
/// [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND).
///
/// ```
/// use ipc_proto::{Code, plan::{self, Runtime}, types::DumpFlags};
/// let core_3 = Runtime { version: Some(3), ..Runtime::default() };
/// let steps: Vec<_> = plan::dump(DumpFlags::CRASH_REPORT_ENABLED, &core_3).collect();
/// assert_eq!(steps.len(), 1);
/// assert_eq!(steps[0].command, Code(0x0101));
/// assert!(steps[0].lost.contains(plan::LostFeature::DumpFlags));
/// ```
pub fn dump(flags: DumpFlags, runtime: &Runtime) -> impl Iterator<Item = DumpStep> + use<> {
    let runtime = *runtime;
    let message = LostFeatures::default().with(LostFeature::DumpMessage);
    let beyond_logging = flags.0 & !DumpFlags::LOGGING_ENABLED.0 != 0;
    [
        DumpStep { command: GenerateCoreDump3::CODE, lost: LostFeatures::default() },
        DumpStep { command: GenerateCoreDump2::CODE, lost: message },
        DumpStep {
            command: GenerateCoreDump::CODE,
            lost: if beyond_logging { message.with(LostFeature::DumpFlags) } else { message },
        },
    ]
    .into_iter()
    .filter(move |step| runtime.may_know(step.command))
}

/// Returns the commands that describe a process, the newest first. Send the next one if the answer to the previous one is
/// [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND). A runtime older than .NET 5 knows none of them.
pub fn process_info(runtime: &Runtime) -> impl Iterator<Item = Code> + use<> {
    let runtime = *runtime;
    [GetProcessInfo3::CODE, GetProcessInfo2::CODE, GetProcessInfo::CODE]
        .into_iter()
        .filter(move |code| runtime.may_know(*code))
}

/// The reason why a runtime refuses a command regardless of its fields. Its `Display` is a sentence for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Obstacle {
    /// The runtime is older than the command.
    Version {
        /// The first version that knows it.
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

/// Returns the reason why the runtime refuses the command, as far as the runtime is known.
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

/// Returns the runtime's refusal of a command whose payload it does not read; `None` if it reads the payload.
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
        Some(Obstacle::Flavour(_)) if command == ApplyStartupHook::CODE => None,
        Some(Obstacle::Version { .. }) => Some(HResult::UNKNOWN_COMMAND),
        Some(_) => Some(HResult::NOT_SUPPORTED),
        None if CommandInfo::find(command).is_none() => Some(HResult::UNKNOWN_COMMAND),
        None => None,
    }
}

/// A request that can end the target process. Its `Display` is a sentence for the user who is about to send it.
///
/// ```
/// use ipc_proto::plan::Hazard;
///
/// println!("{}: pass --force to send the request", Hazard::UnsetVariable);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hazard {
    /// EnablePerfMap while the runtime is suspended at startup.
    PerfMapWhileSuspended,
    /// SetEnvironmentVariable without a value.
    UnsetVariable,
    /// A startup hook that cannot be loaded, or that may not exist.
    StartupHook,
    /// A dump without a name.
    DumpWithoutName,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerfMapWhileSuspended => {
                "EnablePerfMap ends a .NET 8 or 9 that is suspended at startup; resume it first"
            }
            Self::UnsetVariable => "removing a variable ends a program compiled by NativeAOT",
            Self::DumpWithoutName => "a dump whose name is null ends every CoreCLR; an empty one does not",
            Self::StartupHook => {
                "a startup hook that cannot be loaded ends a running .NET 9 or 10, and a suspended runtime of any \
                 version when it is resumed"
            }
        })
    }
}

/// Returns how the request can end the process.
///
/// `file_exists` is for a startup hook: whether its file exists in the target's file system.
///
/// ```
/// use ipc_proto::{Request, SetEnvironmentVariable, Text, plan::{self, Flavour, Hazard, Runtime}};
///
/// let unset = SetEnvironmentVariable { name: "A".into(), value: Text::NULL };
/// let unset = Request::SetEnvironmentVariable(unset);
/// assert_eq!(plan::hazard(&unset, &Runtime::default(), None), Some(Hazard::UnsetVariable));
/// let usual = Runtime { flavour: Some(Flavour::CoreClr), ..Runtime::default() };
/// assert_eq!(plan::hazard(&unset, &usual, None), None);
/// ```
#[must_use]
pub fn hazard(request: &Request<'_>, runtime: &Runtime, file_exists: Option<bool>) -> Option<Hazard> {
    let Runtime { version, flavour, suspended, .. } = *runtime;
    if obstacle(request.code(), runtime).is_some() {
        return None;
    }
    let coreclr = matches!(flavour, None | Some(Flavour::CoreClr));
    match request {
        Request::GenerateCoreDump(GenerateCoreDump { dump_name, .. })
        | Request::GenerateCoreDump2(GenerateCoreDump2 { dump_name, .. })
        | Request::GenerateCoreDump3(GenerateCoreDump3 { dump_name, .. }) => {
            (coreclr && dump_name.is_null()).then_some(Hazard::DumpWithoutName)
        }
        Request::EnablePerfMap(_) => {
            let kills = coreclr && suspended != Some(false) && matches!(version, None | Some(8 | 9));
            kills.then_some(Hazard::PerfMapWhileSuspended)
        }
        Request::SetEnvironmentVariable(set) => {
            let kills = matches!(flavour, None | Some(Flavour::NativeAot)) && set.value.is_null();
            kills.then_some(Hazard::UnsetVariable)
        }
        Request::ApplyStartupHook(_) => {
            let running_8 = version == Some(8) && suspended == Some(false);
            let kills = coreclr && file_exists != Some(true) && !running_8;
            kills.then_some(Hazard::StartupHook)
        }
        _ => None,
    }
}
