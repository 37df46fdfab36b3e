//! `--timeout`: the deadline of a command, and the remaining time for each of its calls.
use core::time::Duration;
use std::time::Instant;

use dotnet_ipc_sans_io::syntax::durations;
use ipc_std::{Client, Timeouts};

/// How long a command can take. A command for which the deadline means something else replaces the help of `timeout`.
#[derive(Debug, clap::Args)]
pub(crate) struct TimeoutArgs {
    /// Give up after DURATION [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    timeout: Option<Duration>,
}

impl TimeoutArgs {
    /// Returns the duration from the command line.
    pub(crate) const fn given(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the default timeouts. `--timeout` replaces those of calls, dumps and ends of sessions.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let defaults = Timeouts::default();
        let Some(timeout) = self.timeout else { return defaults };
        Timeouts { call: timeout, dump: timeout, stop: timeout, ..defaults }
    }
}

/// Returns the client of a command that began at `began`. All calls of a command share one deadline.
pub(crate) fn since(client: Client, began: Instant) -> Client {
    let end = began.checked_add(client.timeouts().call);
    client.with_deadline(end)
}

/// Returns the timeouts with the remaining time of a command that began at `began`.
pub(crate) fn remaining(timeouts: Timeouts, began: Instant) -> Timeouts {
    Timeouts { call: timeouts.call.saturating_sub(began.elapsed()), ..timeouts }
}
