//! The recorded answers of real runtimes that differ from those of a careful server.
use std::collections::HashMap;

use ipc_proto::Message;
use ipc_proto::types::{SessionId, Status};

use super::program::RECORDING;
use super::response::Response;
use crate::conformance::{Case, Seen, State, cases};
use crate::profile::Profile;

/// The requests of the conformance kit to which a kind of runtime never gave the expected answer.
#[derive(Debug)]
pub(super) struct RecordedDeviations(HashMap<Vec<u8>, (Case, Seen)>);

impl RecordedDeviations {
    pub(super) fn new(profile: &Profile) -> Self {
        let kind = profile.kind();
        let cases = cases().into_iter().map(|case| case.for_server(profile.version, profile.flavour));
        let deviations = cases.filter_map(|case| Some((case.deviation(&kind)?, case)));
        Self(deviations.map(|(seen, case)| (case.request.clone(), (case, seen))).collect())
    }

    /// Returns what the runtime did, as a response.
    pub(super) fn response(&self, request: &[u8], state: State) -> Option<Response> {
        let (case, seen) = self.0.get(request).filter(|(case, _)| case.state == state)?;
        Some(match *seen {
            Seen::Ok { len: Some(28) } if case.starts_sessions() => Response::Replay(RECORDING.to_vec()),
            Seen::Ok { len: Some(28) } => Response::ok(&SessionId { session_id: 0 }),
            Seen::Ok { .. } => Response::ok(&Status::OK),
            Seen::Refused(hresult) => Response::Refuse(hresult),
            // The payload of the request is in place of the header.
            Seen::Garbage => Response::Raw(request.get(Message::HEADER_LEN..).unwrap_or_default().to_vec()),
            Seen::Waits => Response::Silence,
            Seen::Closes | Seen::Dies => Response::CLOSES,
        })
    }
}
