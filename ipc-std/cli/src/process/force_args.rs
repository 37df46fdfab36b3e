//! `--force`: sends a request that can end the process.
use ipc_proto::Request;
use ipc_std::Client;

use crate::run::failure::{Failure, Kind};

/// Whether to send a request that can end the process.
#[derive(Debug, clap::Args)]
pub(crate) struct ForceArgs {
    /// Send the request even if it is known to end the process
    #[arg(long)]
    force: bool,
}

impl ForceArgs {
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
