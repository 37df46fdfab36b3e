//! `--timeout`.
use core::time::Duration;
use std::time::Instant;

use dotnet_ipc::durations;
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

    /// Returns the defaults, or the one duration from the command line for everything.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let defaults = Timeouts::default();
        let Some(timeout) = self.timeout else { return defaults };
        Timeouts { call: timeout, dump: timeout, stop: timeout, ..defaults }
    }
}

/// Returns the client for the next call of a command that began then: one deadline holds for all of its calls.
pub(crate) fn since(client: Client, began: Instant) -> Client {
    let timeouts = *client.timeouts();
    client.with_timeouts(remaining(timeouts, began))
}

/// Returns the remaining time for a call of a command that began then.
pub(crate) fn remaining(timeouts: Timeouts, began: Instant) -> Timeouts {
    Timeouts { call: timeouts.call.saturating_sub(began.elapsed()), ..timeouts }
}
