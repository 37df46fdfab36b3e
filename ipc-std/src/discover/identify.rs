//! `identify`: asks the candidates of a search for their process information.
use std::sync::Arc;
use std::time::Instant;

use ipc_discover::{Candidate, Deadline, Reason, Search, SearchError, SearchStep, SearchSubject};
use ipc_proto::plan::Explanation;

use super::found::Found;
use crate::client::Client;
use crate::error::{Error, Phase};
use crate::observer::Observer;
use crate::process_info::ProcessInfo;
use crate::timeouts::Timeouts;
use crate::transport::SocketConnector;

/// Requests the process information at each socket until the right process answers, before the deadline of the search.
/// Every socket gets an equal share of the time, and becomes a step.
///
/// ```no_run
/// use core::time::Duration;
/// use ipc_std::discover;
///
/// let mut search = discover::search(4242, Duration::from_secs(10));
/// let found = discover::identify(&mut search, None);
/// for step in search.steps() {
///     println!("{step}");
/// }
/// println!("{}", found?.path.display());
/// # Ok::<(), discover::SearchError>(())
/// ```
///
/// # Errors
/// All reasons of all steps.
pub fn identify(search: &mut Search, observer: Option<&Observer>) -> Result<Found, SearchError> {
    identify_by(search, search.deadline().end, observer)
}

/// As [`identify`], before `deadline` and before the deadline of the search.
pub(super) fn identify_by(
    search: &mut Search,
    deadline: Instant,
    observer: Option<&Observer>,
) -> Result<Found, SearchError> {
    let (process_id, target, deadline) =
        (search.process_id(), search.target(), search.deadline().limited(deadline));
    let candidates = search.candidates().to_vec();
    let mut remaining = candidates.len();
    // The runtime of an invisible process. A second such runtime, in another PID namespace, can have the same id: then
    // the result is ambiguous.
    let mut invisible: Option<Found> = None;
    for candidate in candidates {
        let subject = SearchSubject::Socket { path: candidate.path.clone() };
        let (end, sockets) = (deadline.end, u32::try_from(remaining).unwrap_or(u32::MAX));
        let left = end.saturating_duration_since(Instant::now());
        let call = left.checked_div(sockets).unwrap_or(left);
        remaining = remaining.saturating_sub(1);
        let identified = match candidate.objection(target) {
            Some(reason) => Err(reason),
            None if call.is_zero() => Err(reason(&candidate, timed_out(process_id, deadline))),
            None => {
                let client = Client::new(SocketConnector::found(process_id, &candidate, target));
                let timeouts = Timeouts { call, ..Timeouts::default() };
                let timed = client.clone().with_timeouts(timeouts).with_observer(observer.cloned());
                ask(&candidate, &timed).map(|(info, refusal)| (client, info, refusal))
            }
        };
        let reason = match identified {
            Err(reason) => Some(reason),
            Ok((client, info, refusal)) => {
                let Candidate { local_process_id, path, router, .. } = candidate;
                let listener = client.connector().process_id();
                let found =
                    Found { process_id, listener, local_process_id, path, router, info, refusal, client };
                if listener.is_some() {
                    search.note(subject, None);
                    return Ok(found);
                }
                match &invisible {
                    Some(Found { path: other, .. }) => {
                        Some(Reason::Ambiguous { path: found.path, other: other.clone() })
                    }
                    None => {
                        invisible = Some(found);
                        None
                    }
                }
            }
        };
        search.note(subject, reason);
    }
    let is_ambiguous = |step: &SearchStep| matches!(step.reason, Some(Reason::Ambiguous { .. }));
    match invisible {
        Some(found) if !search.steps().iter().any(is_ambiguous) => Ok(found),
        _ => Err(search.error()),
    }
}

/// Requests the process information of the runtime at a socket, and checks its process id. Without it, returns why the
/// runtime cannot report it, so that the id cannot be checked.
fn ask(candidate: &Candidate, client: &Client) -> Result<(Option<ProcessInfo>, Option<Explanation>), Reason> {
    match client.process_info() {
        Ok(ProcessInfo { process_id: reported, .. })
            if !candidate.router && reported != u64::from(candidate.local_process_id) =>
        {
            let path = candidate.path.clone();
            Err(Reason::OtherProcess { path, reported, expected: candidate.local_process_id })
        }
        Ok(info) => Ok((Some(info), None)),
        Err(e) => match e.explanation() {
            Some(why @ (Explanation::Older { .. } | Explanation::InfoTooLong)) => Ok((None, Some(why))),
            _ => Err(reason(candidate, e)),
        },
    }
}

/// Converts an error at a socket into a reason of the search.
fn reason(candidate: &Candidate, error: Error) -> Reason {
    let path = candidate.path.clone();
    match error {
        // A listener that has ended may still accept connections.
        Error::Gone { received: 0, .. } if candidate.is_dead() => candidate.without_listener(),
        Error::NoListener { .. } => candidate.without_listener(),
        Error::NoSuchPath { .. } => Reason::Vanished { path },
        Error::Permission { denied, .. } => Reason::Permission { path, denied },
        Error::Impostor { reason, .. } => *reason,
        Error::PathTooLong { limit, .. } => Reason::PathTooLong { path, limit },
        error => Reason::Unanswered { path, kind: error.kind(), error: Arc::new(error) },
    }
}

/// Returns the error of a socket that the deadline leaves no time for.
fn timed_out(process_id: u32, deadline: Deadline) -> Error {
    Error::Timeout {
        peer: format!("process {process_id}"),
        phase: Phase::Connecting,
        command: None,
        after: deadline.begin.elapsed(),
        sent: 0,
        received: 0,
    }
}
