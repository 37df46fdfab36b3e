//! `--force`: sends a request that can end the process.
use std::time::Instant;

use ipc_proto::Request;
use ipc_std::Client;

use crate::args::timeout_args::since;
use crate::output::failure::{Failure, Kind};

/// Whether to send a request that can end the process.
#[derive(Debug, clap::Args)]
pub(crate) struct ForceArgs {
    /// Send the request even if it is known to end the process
    #[arg(long)]
    force: bool,
}

impl ForceArgs {
    /// Fails if the request can end the process and there is no `--force`. The returned client has the remaining time
    /// to send it.
    pub(crate) fn check(&self, client: Client, request: &Request<'_>) -> Result<Client, Failure> {
        if self.force {
            return Ok(client);
        }
        let began = Instant::now();
        match client.hazard(request)? {
            Some(hazard) => Err(Failure::new(Kind::Danger, hazard.to_string())),
            None => Ok(since(client, began)),
        }
    }
}
