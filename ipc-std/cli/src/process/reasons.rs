//! Reasons why a runtime is not found, in JSON.
use ipc_std::discover::{Denied, Reason, Signs};
use serde_json::{Map, Value, json};

/// Returns the kind of the reason, its fields, and its sentence.
pub(crate) fn to_json(reason: &Reason) -> Value {
    let mut object = Map::new();
    object.insert("reason".to_owned(), reason.name().into());
    if let Some(path) = reason.path() {
        object.insert("path".to_owned(), path.to_string_lossy().into());
    }
    let fields = match reason {
        Reason::DiagnosticsOff { variable, value } => json!({ "variable": variable, "value": value }),
        Reason::NoSocket { searched, signs } => {
            let searched: Vec<_> = searched.iter().map(|path| path.to_string_lossy()).collect();
            let is_loaded = match signs {
                Signs::Absent => Some(false),
                Signs::Loaded | Signs::NotListening | Signs::Listening => Some(true),
                _ => None,
            };
            let is_listening = match signs {
                Signs::NotListening => Some(false),
                Signs::Listening => Some(true),
                _ => None,
            };
            json!({ "searched": searched, "runtime_loaded": is_loaded, "runtime_listens": is_listening })
        }
        Reason::TmpdirTooLong { limit, .. } | Reason::PathTooLong { limit, .. } => json!({ "limit": limit }),
        Reason::Unreadable { denied, .. } | Reason::Permission { denied, .. } => of_denied(denied),
        Reason::Thread { process_id } => json!({ "process_id": process_id }),
        Reason::Foreign { owner, user_id, .. } => json!({ "owner": owner, "user_id": user_id }),
        Reason::Stale { key, started, .. } | Reason::Inherited { key, started, .. } => {
            json!({ "key": key, "started": started })
        }
        Reason::Impostor { peer, .. } => {
            let process_id = Some(peer.process_id).filter(|id| *id != 0);
            #[cfg(unix)]
            let user_id = Some(peer.user_id);
            #[cfg(windows)]
            let user_id = None::<u32>;
            json!({ "peer_process_id": process_id, "peer_user_id": user_id })
        }
        Reason::Ambiguous { other, .. } => json!({ "other": other.to_string_lossy() }),
        Reason::OtherProcess { reported, expected, .. } => {
            json!({ "reported": reported, "expected": expected })
        }
        _ => Value::Null,
    };
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    object.insert("sentence".to_owned(), reason.to_string().into());
    object.into()
}

fn of_denied(denied: &Denied) -> Value {
    json!({
        "by": denied.by.to_string_lossy(),
        "owner": denied.owner,
        "mode": denied.mode.map(|mode| format!("{mode:04o}")),
        "own_user": denied.own_user,
        "errno": denied.errno,
    })
}
