//! `Target`: the process that must listen at a socket; and `refusal`, the check of the process that does.
use std::path::Path;

use crate::error::Reason;
use crate::socket_file::SocketFile;
#[cfg(unix)]
use crate::sys;
use crate::sys::Credentials;

/// The process that must listen at a socket that was found by process id: see [`refusal`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Target {
    /// Its id in the PID namespace of this process.
    pub process_id: u32,
    /// The user of the process, if known.
    #[cfg(unix)]
    pub user_id: Option<u32>,
}

/// Returns the reason to send nothing on a connection to the socket of a [`Candidate`](crate::Candidate), where the system
/// reports `peer` as the process that listens: `peer` is not the target, or `peer` has ended, and another process
/// inherited its listener. The start time in the name of the socket shows the latter even if a new process has the id.
///
/// The start time is not checked for a process in another PID namespace: it may differ from the one that is visible here.
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
    match target {
        Some(target) if !target.may_be(&peer) => Some(Reason::Impostor { path: path.to_owned(), peer }),
        _ => SocketFile::inherited(path, peer),
    }
}

impl Target {
    /// Returns whether `peer`, the process that listens, may be the target. Any process can listen at the socket name
    /// of a process that has not started yet.
    #[cfg(unix)]
    fn may_be(&self, peer: &Credentials) -> bool {
        let is_user = [Some(0), Some(sys::own_user()), self.user_id].contains(&Some(peer.user_id));
        match peer.process_id {
            // The system did not report the id; or, on Linux, the peer has the target's id in another PID namespace.
            0 => is_user,
            // The user of a hidden process is unknown, so only the process id decides.
            process_id => process_id == self.process_id && (is_user || self.user_id.is_none()),
        }
    }
    /// Returns whether `peer`, the process that listens, is the target.
    #[cfg(windows)]
    const fn may_be(&self, peer: &Credentials) -> bool {
        peer.process_id == self.process_id
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// The user of a process may change after the process began to listen.
    #[test]
    fn listener_has_process_id_and_user() {
        let peer = |process_id, user_id| Credentials { process_id, user_id, group_id: 0 };
        let target = |user_id| Target { process_id: 42, user_id };
        let (own, targets, other) = (sys::own_user(), 1_234_567, 1_234_568);
        for user_id in [0, own, targets] {
            assert!(target(Some(targets)).may_be(&peer(42, user_id)), "{user_id}");
            assert!(!target(Some(targets)).may_be(&peer(43, user_id)), "{user_id}");
            assert!(target(Some(targets)).may_be(&peer(0, user_id)), "{user_id}");
        }
        assert!(!target(Some(targets)).may_be(&peer(42, other)));
        assert!(target(None).may_be(&peer(42, other)));
        assert!(!target(None).may_be(&peer(43, own)));
        assert!(!target(Some(targets)).may_be(&peer(0, other)));
        assert!(!target(None).may_be(&peer(0, other)));
    }

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
