//! Which runtime a command is about, and how long it may take.
use core::time::Duration;
use std::path::PathBuf;

use ipc_std::{Client, Timeouts};

use crate::durations;
use crate::failure::Failure;
use crate::wire_log::WireLog;

/// The runtime to ask.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Process id of the runtime
    pid: Option<u32>,
    /// Path of the runtime's diagnostic socket, in place of a process id
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// How long a command may take.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// Deadline of the whole command [default: 10s]; of `trace`, for starting it and again for ending it [default: 10s, 2m]
    #[arg(long, global = true, value_name = "DURATION", value_parser = durations::parse)]
    timeout: Option<Duration>,
}

impl Limits {
    pub(crate) fn timeouts(&self) -> Timeouts {
        let defaults = Timeouts::default();
        let Some(timeout) = self.timeout else { return defaults };
        Timeouts { call: timeout, stop: timeout, ..defaults }
    }
}

impl Target {
    /// The way to it.
    pub(crate) fn client(&self, timeouts: Timeouts, wire_log: &WireLog) -> Result<Client, Failure> {
        let client = match &self.socket {
            Some(path) => Client::at(path),
            // The parser sees to it that there is one; nobody has the process id 0.
            None => Client::for_process(self.pid.unwrap_or_default())?,
        };
        Ok(client.with_timeouts(timeouts).with_observer(wire_log.observer()))
    }
}
