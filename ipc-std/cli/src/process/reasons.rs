//! Reasons why a runtime is not found, in JSON.
use std::borrow::Cow;
use std::path::Path;

use ipc_std::discover::{Denied, Reason, Signs};
use serde::Serialize;

/// A reason: its kind, its fields, and its sentence.
#[derive(Serialize)]
pub(crate) struct ReasonRow<'r> {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'r, str>>,
    #[serde(flatten)]
    fields: Option<ReasonFields<'r>>,
    sentence: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ReasonFields<'r> {
    DiagnosticsOff { variable: &'r str, value: &'r str },
    NoSocket { searched: Vec<Cow<'r, str>>, runtime_loaded: Option<bool>, runtime_listens: Option<bool> },
    TooLong { limit: usize },
    Denied { by: Cow<'r, str>, owner: Option<u32>, mode: Option<String>, own_user: Option<u32>, errno: i32 },
    Thread { process_id: u32 },
    Foreign { owner: u32, user_id: u32 },
    Key { key: u64, started: Option<u64> },
    Impostor { peer_process_id: Option<u32>, peer_user_id: Option<u32> },
    Ambiguous { other: Cow<'r, str> },
    OtherProcess { reported: u64, expected: u32 },
}

impl<'r> ReasonRow<'r> {
    pub(crate) fn new(reason: &'r Reason) -> Self {
        Self {
            reason: reason.name(),
            path: reason.path().map(Path::to_string_lossy),
            fields: ReasonFields::new(reason),
            sentence: reason.to_string(),
        }
    }
}

impl<'r> ReasonFields<'r> {
    fn new(reason: &'r Reason) -> Option<Self> {
        Some(match reason {
            Reason::DiagnosticsOff { variable, value } => Self::DiagnosticsOff { variable, value },
            Reason::NoSocket { searched, signs } => {
                let searched = searched.iter().map(|path| path.to_string_lossy()).collect();
                let runtime_loaded = match signs {
                    Signs::Absent => Some(false),
                    Signs::Loaded | Signs::NotListening | Signs::Listening => Some(true),
                    _ => None,
                };
                let runtime_listens = match signs {
                    Signs::NotListening => Some(false),
                    Signs::Listening => Some(true),
                    _ => None,
                };
                Self::NoSocket { searched, runtime_loaded, runtime_listens }
            }
            Reason::TmpdirTooLong { limit, .. } | Reason::PathTooLong { limit, .. } => {
                Self::TooLong { limit: *limit }
            }
            Reason::Unreadable { denied, .. } | Reason::Permission { denied, .. } => Self::denied(denied),
            Reason::Thread { process_id } => Self::Thread { process_id: *process_id },
            Reason::Foreign { owner, user_id, .. } => Self::Foreign { owner: *owner, user_id: *user_id },
            Reason::Stale { key, started, .. } | Reason::Inherited { key, started, .. } => {
                Self::Key { key: *key, started: *started }
            }
            Reason::Impostor { peer, .. } => {
                let peer_process_id = Some(peer.process_id).filter(|id| *id != 0);
                #[cfg(unix)]
                let peer_user_id = Some(peer.user_id);
                #[cfg(windows)]
                let peer_user_id = None::<u32>;
                Self::Impostor { peer_process_id, peer_user_id }
            }
            Reason::Ambiguous { other, .. } => Self::Ambiguous { other: other.to_string_lossy() },
            Reason::OtherProcess { reported, expected, .. } => {
                Self::OtherProcess { reported: *reported, expected: *expected }
            }
            _ => return None,
        })
    }

    fn denied(denied: &'r Denied) -> Self {
        Self::Denied {
            by: denied.by.to_string_lossy(),
            owner: denied.owner,
            mode: denied.mode.map(|mode| format!("{mode:04o}")),
            own_user: denied.own_user,
            errno: denied.errno,
        }
    }
}
