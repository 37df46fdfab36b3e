//! `--until`: whether its event has arrived.
use dotnet_ipc::only_arg::OnlyArg;

use crate::output::failure::{Failure, Kind};

/// Fails if there are events to stop at, and none of them has arrived.
pub(crate) fn check_arrival(until: &[OnlyArg], has_arrived: bool) -> Result<(), Failure> {
    if until.is_empty() || has_arrived {
        return Ok(());
    }
    let events: Vec<String> = until.iter().map(|event| format!("'{event}'")).collect();
    Err(Failure::new(Kind::Timeout, format!("{} did not arrive", events.join(" or "))).without_hint())
}
