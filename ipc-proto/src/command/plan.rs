//! Which command to send to which runtime, what to try next, and what that loses.
//!
//! Everything here is a function of what is wanted and what is known; nothing is sent.
use core::fmt;

use super::types::{DumpFlags, SessionBufferMode};
use crate::{
    ApplyStartupHook, Code, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5,
    CollectTracing6, Command, CommandInfo, DisablePerfMap, EnablePerfMap, GenerateCoreDump,
    GenerateCoreDump2, GenerateCoreDump3, GetProcessInfo, GetProcessInfo2, GetProcessInfo3, HResult, Request,
};

/// What kind of runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flavour {
    /// The usual one.
    CoreClr,
    /// Mono: no dumps, profilers, perf maps and startup hooks.
    Mono,
    /// Compiled ahead of time: no profilers, perf maps and startup hooks.
    NativeAot,
}

/// What is known of a runtime. What is not, is `None`, and counts as the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Runtime {
    /// The major version of .NET.
    pub version: Option<u8>,
    /// What kind of runtime.
    pub flavour: Option<Flavour>,
    /// Whether it runs on Linux.
    pub linux: Option<bool>,
    /// Whether it waits at its start for `ResumeRuntime`.
    pub suspended: Option<bool>,
}

impl Runtime {
    /// Whether a runtime of that version may know the command.
    fn may_know(&self, code: Code) -> bool {
        let since = CommandInfo::find(code).map_or(0, |row| row.since);
        self.version.is_none_or(|version| since <= version)
    }
}

/// Something that an older command does not carry. Its `Display` is the sentence for whoever wanted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// Holding up the program where events would be lost.
    Blocking,
    /// Filtering events by their ids.
    EventFilters,
    /// A rundown by keyword; the default one comes in its place.
    RundownKeyword,
    /// Events without stacks.
    Stackwalk,
    /// Flags of a dump beyond logging.
    DumpFlags,
    /// The words of a refused dump.
    DumpMessage,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking => "blocking instead of dropping needs .NET 11",
            Self::EventFilters => "filtering events by id needs .NET 10: all events of the providers come",
            Self::RundownKeyword => "a rundown of one's choice needs .NET 9: the default one comes",
            Self::Stackwalk => "leaving out stacks needs .NET 9: events come with them",
            Self::DumpFlags => "crash reports and verbose logging need .NET 6",
            Self::DumpMessage => "the reason of a refused dump in words needs .NET 7",
        })
    }
}

/// A set of losses, which iterates in the order of [`Loss`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Lost(u8);

impl Lost {
    const ALL: [Loss; 6] = [
        Loss::Blocking,
        Loss::EventFilters,
        Loss::RundownKeyword,
        Loss::Stackwalk,
        Loss::DumpFlags,
        Loss::DumpMessage,
    ];

    /// Whether nothing is lost.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this is lost.
    #[must_use]
    pub const fn contains(self, loss: Loss) -> bool {
        self.0 & Self::bit(loss) != 0
    }

    /// What is lost.
    pub fn iter(self) -> impl Iterator<Item = Loss> {
        Self::ALL.into_iter().filter(move |loss| self.contains(*loss))
    }

    const fn bit(loss: Loss) -> u8 {
        match loss {
            Loss::Blocking => 1,
            Loss::EventFilters => 2,
            Loss::RundownKeyword => 4,
            Loss::Stackwalk => 8,
            Loss::DumpFlags => 16,
            Loss::DumpMessage => 32,
        }
    }

    const fn with(self, loss: Loss) -> Self {
        Self(self.0 | Self::bit(loss))
    }
}

/// The rundown that runtimes send when they are asked for one and not which.
pub const DEFAULT_RUNDOWN: u64 = 0x8002_0139;

/// What a tool wants of a tracing session, beside its providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceWishes {
    /// Keywords of the rundown; 0 for none.
    pub rundown_keyword: u64,
    /// Whether events are to carry stacks.
    pub stackwalk: bool,
    /// Whether a provider's events are filtered by id.
    pub event_filters: bool,
    /// What is to happen when the buffer is full.
    pub buffer_mode: SessionBufferMode,
    /// Whether events go to `user_events` in place of a stream.
    pub user_events: bool,
}

impl Default for TraceWishes {
    /// What every version has: the default rundown, stacks, and events lost when the buffer is full.
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

/// A command to start a session with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceStep {
    /// The command.
    pub command: Code,
    /// The wishes that it carries.
    pub wishes: TraceWishes,
    /// The wishes that it does not.
    pub lost: Lost,
}

/// The commands to start a session with, one after the other as long as the answer is
/// [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND).
///
/// The first is the oldest that carries every wish, as Microsoft's client chooses, so that one round trip does on every
/// age of runtime; or the best that a runtime of that version may know. `user_events` have no older way: nothing follows
/// then.
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
    let first = TraceStep { command: oldest(&wishes), wishes, lost: Lost::default() };
    core::iter::successors(Some(first), step_down).filter(move |step| runtime.may_know(step.command))
}

/// The oldest command that carries every wish.
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

/// The same without what only this command carries.
fn step_down(step: &TraceStep) -> Option<TraceStep> {
    let mut wishes = step.wishes;
    let loss = match step.command {
        CollectTracing6::CODE => {
            wishes.buffer_mode = SessionBufferMode::DROP;
            Loss::Blocking
        }
        CollectTracing5::CODE if !wishes.user_events => {
            wishes.event_filters = false;
            Loss::EventFilters
        }
        CollectTracing4::CODE => {
            wishes.rundown_keyword = DEFAULT_RUNDOWN;
            Loss::RundownKeyword
        }
        CollectTracing3::CODE => {
            wishes.stackwalk = true;
            Loss::Stackwalk
        }
        _ => return None,
    };
    Some(TraceStep { command: oldest(&wishes), wishes, lost: step.lost.with(loss) })
}

/// A command to write a dump with, and what it loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DumpStep {
    /// The command.
    pub command: Code,
    /// What it does not carry.
    pub lost: Lost,
}

/// The commands to write a dump with, the newest first, as long as the answer is
/// [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND).
///
/// ```
/// use ipc_proto::{Code, plan::{self, Runtime}, types::DumpFlags};
/// let core_3 = Runtime { version: Some(3), ..Runtime::default() };
/// let steps: Vec<_> = plan::dump(DumpFlags::CRASH_REPORT_ENABLED, &core_3).collect();
/// assert_eq!(steps.len(), 1);
/// assert_eq!(steps[0].command, Code(0x0101));
/// assert!(steps[0].lost.contains(plan::Loss::DumpFlags));
/// ```
pub fn dump(flags: DumpFlags, runtime: &Runtime) -> impl Iterator<Item = DumpStep> + use<> {
    let runtime = *runtime;
    let words = Lost::default().with(Loss::DumpMessage);
    let beyond_logging = flags.0 & !DumpFlags::LOGGING_ENABLED.0 != 0;
    [
        DumpStep { command: GenerateCoreDump3::CODE, lost: Lost::default() },
        DumpStep { command: GenerateCoreDump2::CODE, lost: words },
        DumpStep {
            command: GenerateCoreDump::CODE,
            lost: if beyond_logging { words.with(Loss::DumpFlags) } else { words },
        },
    ]
    .into_iter()
    .filter(move |step| runtime.may_know(step.command))
}

/// The commands to ask who a process is with, the newest first, as long as the answer is
/// [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND). A runtime older than .NET 5 has none.
pub fn process_info(runtime: &Runtime) -> impl Iterator<Item = Code> + use<> {
    let runtime = *runtime;
    [GetProcessInfo3::CODE, GetProcessInfo2::CODE, GetProcessInfo::CODE]
        .into_iter()
        .filter(move |code| runtime.may_know(*code))
}

/// Why a runtime will refuse a command, whatever the request holds. Its `Display` is the sentence for whoever wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Obstacle {
    /// The runtime is older than the command.
    Version {
        /// The first version that knows it.
        since: u8,
    },
    /// This kind of runtime does not have what the command is about.
    Flavour(Flavour),
    /// It works on Linux only.
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

/// Why the runtime will refuse the command, as far as it is known what it is.
///
/// | commands | CoreCLR | Mono | NativeAOT |
/// |---|---|---|---|
/// | dumps | yes | no | on Unix |
/// | profilers, startup hooks | yes | no | no |
/// | perf maps | on Linux | no | no |
/// | the others | yes | yes | yes |
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

/// What a runtime answers to a command by its code, before it looks at the payload; `None` if it looks.
///
/// ```
/// use ipc_proto::{Code, HResult, plan::{self, Flavour, Runtime}};
///
/// let native = Runtime { flavour: Some(Flavour::NativeAot), ..Runtime::default() };
/// assert_eq!(plan::refusal(Code(0x0301), &native), Some(HResult::NOT_SUPPORTED));
/// assert_eq!(plan::refusal(Code(0x0499), &native), Some(HResult::UNKNOWN_COMMAND));
/// assert_eq!(plan::refusal(Code(0x0407), &native), None); // the path of a startup hook is read first
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

/// A request that may end the process it is sent to. Its `Display` is the sentence for whoever is about to send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hazard {
    /// EnablePerfMap before the runtime runs.
    PerfMapWhileSuspended,
    /// SetEnvironmentVariable without a value.
    UnsetVariable,
    /// A startup hook that cannot be loaded, or may not.
    StartupHook,
    /// A dump without a name.
    DumpWithoutName,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerfMapWhileSuspended => {
                "EnablePerfMap ends a .NET 8 or 9 that is still suspended at its start; resume it first"
            }
            Self::UnsetVariable => "removing a variable ends a program compiled by NativeAOT",
            Self::DumpWithoutName => "a dump whose name is null ends every CoreCLR; an empty one does not",
            Self::StartupHook => {
                "a startup hook that cannot be loaded ends a .NET 9 or 10 that runs, and whatever is suspended when it \
                 is resumed"
            }
        })
    }
}

/// Whether the request may end the process.
///
/// `file_is_there` says of a startup hook whether its file is where the runtime will look.
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
pub fn hazard(request: &Request<'_>, runtime: &Runtime, file_is_there: Option<bool>) -> Option<Hazard> {
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
            let kills = coreclr && file_is_there != Some(true) && !running_8;
            kills.then_some(Hazard::StartupHook)
        }
        _ => None,
    }
}
