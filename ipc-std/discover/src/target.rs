//! `Target`: the process that must listen at a socket.
#[cfg(unix)]
use crate::sys;
use crate::sys::Credentials;

/// The process that must listen at a socket that was found by process id: see [`refusal`](crate::refusal()).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Target {
    /// Its id in the PID namespace of this process.
    pub process_id: u32,
    /// The user of the process, if known.
    #[cfg(unix)]
    pub user_id: Option<u32>,
}

impl Target {
    /// Returns whether `peer`, the process that listens, may be the target. Any process can listen at the socket name
    /// of a process that has not started yet.
    #[cfg(unix)]
    pub(crate) fn may_be(&self, peer: &Credentials) -> bool {
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
    pub(crate) const fn may_be(&self, peer: &Credentials) -> bool {
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
}
