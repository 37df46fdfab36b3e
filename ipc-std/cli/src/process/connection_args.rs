//! The options of commands that connect to runtimes: `--timeout` and `--wire-log`.
use core::time::Duration;

use ipc_std::{Client, Timeouts};

use super::target::Target;
use super::wire_log::{WireLog, WireLogArgs};
use crate::args::timeout_args::TimeoutArgs;
use crate::run::Failure;
use crate::run::signals;

/// How often the tool checks a session that sends nothing.
pub(crate) const TICK: Duration = signals::TICK;

/// How a command connects to runtimes.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectionArgs {
    #[command(flatten)]
    pub(crate) timeout: TimeoutArgs,
    #[command(flatten)]
    pub(crate) wire_log: WireLogArgs,
}

impl ConnectionArgs {
    /// Returns a client for the runtime, and its log.
    pub(crate) fn client(&self, target: Target<'_>) -> Result<(Client, WireLog), Failure> {
        let wire_log = self.wire_log.open()?;
        Ok((target.client(self.timeout.timeouts(), &wire_log)?, wire_log))
    }

    /// Passes a client for the runtime to `call`, and then checks the log.
    pub(crate) fn call(
        &self,
        target: Target<'_>,
        call: impl FnOnce(Client) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (client, wire_log) = self.client(target)?;
        call(client)?;
        wire_log.check()
    }

    /// Returns a client for a session of the runtime, and its log.
    pub(crate) fn session_client(&self, target: Target<'_>) -> Result<(Client, WireLog), Failure> {
        let wire_log = self.wire_log.open()?;
        Ok((target.client(self.session_timeouts(), &wire_log)?, wire_log))
    }

    /// Returns the timeouts of a session, whose reads take no longer than [`TICK`].
    pub(crate) fn session_timeouts(&self) -> Timeouts {
        Timeouts { silence: TICK, ..self.timeout.timeouts() }
    }

    /// Returns whether the command line has one of these options.
    pub(crate) const fn is_used(&self) -> bool {
        self.timeout.given().is_some() || self.wire_log.is_wanted()
    }
}
