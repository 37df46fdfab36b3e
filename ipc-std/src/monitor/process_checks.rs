//! `ProcessChecks`: recent checks of processes that connected; and `Peer`, by which a process is known.
use std::collections::HashMap;

use ipc_discover::Credentials;
use ipc_discover::sys::process_has_ended;
use ipc_proto::port::{MonitorLimits, RuntimeEntry};

/// What the monitor knows of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// The peer that the system reports.
    pub(super) credentials: Option<Credentials>,
    /// Whether the connection came to the monitor's own socket, which only processes of this machine can reach.
    pub(super) is_local: bool,
}

impl Peer {
    /// Returns the process of a runtime that advertises this process id; `None` if nothing vouches for it: the process can
    /// be on another machine.
    pub(super) fn process_id(self, advertised: u64) -> Option<u32> {
        let process_id = match self.credentials {
            // A stream of this process is one end of a bridge. The runtime is at the far side of the bridge.
            Some(Credentials { process_id, .. }) if !self.is_local && process_id == std::process::id() => 0,
            Some(credentials) => credentials.process_id,
            // Systems that do not report the peer have no PID namespaces, so the advertised id is valid in this process.
            None if self.is_local => u32::try_from(advertised).unwrap_or(0),
            None => 0,
        };
        (process_id != 0).then_some(process_id)
    }
}

/// The results of recent process checks, so that one process with many runtimes is not checked for each of them.
#[derive(Debug, Default)]
pub(super) struct ProcessChecks {
    /// The time of the first result, in milliseconds.
    since: u64,
    ended: HashMap<u32, bool>,
    /// The number of checks.
    #[cfg(test)]
    made: usize,
}

impl ProcessChecks {
    /// How long a result is valid, in milliseconds: the shortest interval of checks of one runtime.
    const VALID: u64 = MonitorLimits::DEFAULT.disconnected_check_ms;

    /// Returns whether the process of a runtime has ended; `false` if its process is unknown. `now` is in milliseconds.
    pub(super) fn has_ended(&mut self, runtime: &RuntimeEntry<Peer>, now: u64) -> bool {
        let Some(process_id) = runtime.peer.process_id(runtime.process_id) else { return false };
        if now.saturating_sub(self.since) >= Self::VALID {
            self.ended.clear();
            self.since = now;
        }
        *self.ended.entry(process_id).or_insert_with(|| {
            #[cfg(test)]
            {
                self.made = self.made.saturating_add(1);
            }
            process_has_ended(process_id)
        })
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use ipc_proto::Guid;

    use super::*;

    #[test]
    fn only_what_the_system_vouches_for_is_a_process() {
        let (socket, _other_end) = std::os::unix::net::UnixStream::pair().unwrap();
        let reported = ipc_discover::sys::credentials(&socket);
        let advertised = |credentials, is_local| Peer { credentials, is_local }.process_id(42);
        assert_eq!(advertised(reported, true), Some(std::process::id()));
        assert_eq!(advertised(reported, false), None, "this process is at both ends");
        assert_eq!((advertised(None, true), advertised(None, false)), (Some(42), None));
        assert_eq!(Peer { credentials: None, is_local: true }.process_id(u64::MAX), None);
    }

    /// The monitor checks each of many disconnected runtimes every 20 ms. Runtimes of one process share a check.
    #[test]
    fn a_process_is_checked_once_for_all_its_runtimes() {
        let mut checks = ProcessChecks::default();
        let (socket, _other_end) = std::os::unix::net::UnixStream::pair().unwrap();
        let peer = Peer { credentials: ipc_discover::sys::credentials(&socket), is_local: true };
        let runtime = |cookie: u8| RuntimeEntry { cookie: Guid([cookie; 16]), process_id: 42, peer };
        for now in 1000..1020 {
            for cookie in 0..100 {
                assert!(!checks.has_ended(&runtime(cookie), now));
            }
        }
        assert_eq!(checks.made, 1);
        assert!(!checks.has_ended(&runtime(0), 1020));
        assert_eq!(checks.made, 2, "the result is not valid for longer");
    }
}
