//! Recent checks of processes that connected.
use std::collections::HashMap;

use ipc_discover::Credentials;
use ipc_discover::sys::process_has_ended;
use ipc_proto::port::{MonitorLimits, RuntimeEntry};

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

    /// Returns whether the process of a runtime has ended; `false` if its process ID is unknown. `now` is in
    /// milliseconds.
    pub(super) fn has_ended(&mut self, runtime: &RuntimeEntry<Option<Credentials>>, now: u64) -> bool {
        // Systems that do not report the peer have no PID namespaces, so the process id in the frame is valid in this
        // process.
        let advertised = || u32::try_from(runtime.process_id).unwrap_or(0);
        let process_id = runtime.peer.map_or_else(advertised, |peer| peer.process_id);
        if process_id == 0 {
            return false;
        }
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

    /// The monitor checks each of many disconnected runtimes every 20 ms. Runtimes of one process share a check.
    #[test]
    fn a_process_is_checked_once_for_all_its_runtimes() {
        let mut checks = ProcessChecks::default();
        let (socket, _other_end) = std::os::unix::net::UnixStream::pair().unwrap();
        let peer = ipc_discover::sys::credentials(&socket);
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
