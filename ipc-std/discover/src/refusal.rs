//! `refusal`: the check of the process that listens at a socket.
use std::path::Path;

#[cfg(unix)]
use crate::endpoint_name::EndpointName;
use crate::error::Reason;
#[cfg(unix)]
use crate::procfs::comparable_entry;
#[cfg(unix)]
use crate::sys;
use crate::sys::Credentials;
use crate::target::Target;

/// Returns the reason to send nothing on a connection to the socket of a [`Candidate`](crate::Candidate), where the
/// system reports `peer` as the process that listens: `peer` is not the target, or `peer` has ended, and another process
/// inherited its listener. The start time in the name of the socket shows the latter even if a new process has the id.
///
/// The start time is not checked for a process in another PID namespace: there it may differ from the one that is
/// visible here.
///
/// ```
/// # #[cfg(unix)]
/// # {
/// use ipc_discover::{Candidate, Reason, Target, refusal, sys};
/// use std::os::unix::net::UnixStream;
///
/// /// Returns why nothing may be sent on a new connection to the socket.
/// fn check(candidate: &Candidate, target: Option<Target>, connection: &UnixStream) -> Option<Reason> {
///     refusal(&candidate.path, target, sys::credentials(connection)?)
/// }
/// # }
/// ```
#[must_use]
pub fn refusal(path: &Path, target: Option<Target>, peer: Credentials) -> Option<Reason> {
    if target.is_some_and(|target| !target.may_be(&peer)) {
        return Some(Reason::Impostor { path: path.to_owned(), peer });
    }
    #[cfg(unix)]
    return inherited(path, peer);
    // A pipe disappears with the process that made it.
    #[cfg(windows)]
    None
}

/// Returns the reason for a listener that another process inherited. `peer` is the process that began to listen, also
/// after its end; its id is 0 if it is not visible here.
#[cfg(unix)]
fn inherited(path: &Path, peer: Credentials) -> Option<Reason> {
    let (name, process_id) = (EndpointName::parse(path.file_name()?)?, peer.process_id);
    let can_be = |started| name.is_router() || name.process_id() != process_id || name.is_of(started);
    let started = match comparable_entry(process_id) {
        _ if process_id == 0 => return None,
        _ if !sys::process_exists(process_id) => None,
        Some(entry) if entry.has_ended => None,
        Some(entry) if !can_be(entry.started) => Some(entry.started),
        _ => return None,
    };
    Some(Reason::Inherited { path: path.to_owned(), key: name.key(), started })
}

#[cfg(all(test, unix))]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Returns the start times of [`Reason::Inherited`] for a socket of this name, where `process_id` began to listen.
    fn inherited(name: &str, process_id: u32) -> Option<(u64, Option<u64>)> {
        let peer = Credentials { process_id, user_id: sys::own_user(), group_id: 0 };
        match refusal(Path::new(&format!("/tmp/dotnet-diagnostic-{name}-socket")), None, peer) {
            None => None,
            Some(Reason::Inherited { key, started, .. }) => Some((key, started)),
            Some(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_listener_of_an_earlier_process_is_refused() {
        let id = std::process::id();
        let own = sys::process_entry(id).unwrap().started;
        assert_eq!(inherited(&format!("{id}-{own}"), id), None);
        for other in [own + 1, own - 1, 1] {
            assert_eq!(inherited(&format!("{id}-{other}"), id), Some((other, Some(own))));
            // The listener is in another PID namespace, where a process has the same id.
            assert_eq!(inherited(&format!("{id}-{other}"), 0), None);
        }
        // A runtime that cannot read its start time writes 0. A router's time is approximate. A process in a PID
        // namespace below this one has another id in the name.
        for name in [format!("{id}-0"), format!("dsrouter-{id}-1"), "4000000001-1".to_owned()] {
            assert_eq!(inherited(&name, id), None, "{name}");
        }
    }

    #[test]
    fn a_listener_whose_process_has_ended_is_refused() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = child.id();
        while !sys::process_has_ended(id) {
            std::thread::yield_now();
        }
        for reaped in [false, true] {
            for name in [format!("{id}-1"), format!("dsrouter-{id}-1"), "4000000001-1".to_owned()] {
                assert_eq!(inherited(&name, id), Some((1, None)), "{name}, {reaped}");
            }
            child.wait().unwrap();
        }
    }
}
