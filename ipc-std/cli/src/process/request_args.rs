//! The arguments of the commands that send a request which can end the process.
use ipc_proto::Request;
use ipc_std::Client;

use super::connection_args::ConnectionArgs;
use super::target::OperandArgs;
use crate::run::{Failure, Kind};

/// The runtime, the operands of the request, and whether to send a request that can end the process.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) operands: OperandArgs,
    /// Send the request even if it is known to end the process
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

impl RequestArgs {
    /// Fails if the request can end the process and there is no `--force`.
    pub(crate) fn check(&self, client: &Client, request: &Request<'_>) -> Result<(), Failure> {
        if self.force {
            return Ok(());
        }
        match client.hazard(request)? {
            Some(hazard) => Err(Failure::new(Kind::Danger, hazard.to_string())),
            None => Ok(()),
        }
    }
}
