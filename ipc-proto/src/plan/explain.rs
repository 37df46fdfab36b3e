//! [`explain`]: why a runtime refused a command.
use core::fmt;

use crate::{
    ApplyStartupHook, Code, CollectTracing, CollectTracing2, CollectTracing3, CollectTracing4,
    CollectTracing5, CollectTracing6, Command, CommandInfo, GetProcessInfo, GetProcessInfo2, GetProcessInfo3,
    HResult,
};

/// The meaning of a refusal for the user. Its `Display` is a clause without a final period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// The runtime is older than the command.
    Older {
        /// The first version that knows the command.
        since: u8,
    },
    /// The request is valid, but the runtime could not start a session: probably it has reached its limit of sessions.
    SessionLimit {
        /// Whether the command can also request a session of `user_events`, which not every kernel supports.
        user_events: bool,
    },
    /// The process information of the runtime is longer than a message can be. Its other commands work.
    InfoTooLong,
    /// The runtime cannot load the startup hook. .NET 8 and 11 report this; .NET 9 and 10 end.
    StartupHookNotLoaded,
    /// The meaning of the code, which is the same for every command.
    Code(HResult),
}

/// The number of sessions that a .NET runtime allows at a time. Sessions count until they are stopped, even if their
/// client has ended. The runtime refuses one more with [`FAIL`](HResult::FAIL). Other servers can have another limit.
pub const SESSION_LIMIT: usize = 64;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Older { since } if since <= 5 => write!(
                f,
                "the runtime is older than .NET {since}; .NET Core 3 only knows tracing, dumps and profilers"
            ),
            Self::Older { since } => write!(f, "the runtime is older than .NET {since}"),
            Self::SessionLimit { user_events } => {
                write!(f, "it could not start a session; the runtime allows {SESSION_LIMIT} at a time")?;
                f.write_str(if user_events { ", and user_events need a kernel that has them" } else { "" })
            }
            Self::InfoTooLong => f.write_str(
                "its process information does not fit into a message of 64 KiB, probably because of its command line",
            ),
            Self::StartupHookNotLoaded => f.write_str(
                "it cannot load the startup hook; the path is resolved by the target process, and must be that of an assembly",
            ),
            Self::Code(hresult) => f.write_str(hresult.hint().unwrap_or_default()),
        }
    }
}

/// Explains why a runtime refused a command; `None` for a code without a known meaning.
///
/// ```
/// use ipc_proto::{Code, HResult, plan};
///
/// let explain = |code, hresult| plan::explain(Code(code), hresult).map(|why| why.to_string());
/// let older = explain(0x0205, HResult::UNKNOWN_COMMAND);
/// assert_eq!(older.as_deref(), Some("the runtime is older than .NET 9"));
/// let full = explain(0x0203, HResult::FAIL);
/// assert_eq!(full.as_deref(), Some("it could not start a session; the runtime allows 64 at a time"));
/// assert_eq!(explain(0x0203, HResult(0x8000_ffff)), None);
/// ```
#[must_use]
pub fn explain(command: Code, hresult: HResult) -> Option<Explanation> {
    if let (HResult::UNKNOWN_COMMAND, Some(row)) = (hresult, CommandInfo::find(command)) {
        return Some(Explanation::Older { since: row.since });
    }
    match (hresult, command) {
        (
            HResult::FAIL,
            CollectTracing::CODE | CollectTracing2::CODE | CollectTracing3::CODE | CollectTracing4::CODE,
        ) => Some(Explanation::SessionLimit { user_events: false }),
        (HResult::FAIL, CollectTracing5::CODE | CollectTracing6::CODE) => {
            Some(Explanation::SessionLimit { user_events: true })
        }
        (HResult::FAIL, GetProcessInfo::CODE | GetProcessInfo2::CODE | GetProcessInfo3::CODE) => {
            Some(Explanation::InfoTooLong)
        }
        (HResult::INVALID_ARG, ApplyStartupHook::CODE) => Some(Explanation::StartupHookNotLoaded),
        _ => hresult.hint().map(|_| Explanation::Code(hresult)),
    }
}
