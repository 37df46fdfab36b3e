//! `--until`: whether its event has arrived.
use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;

use crate::run::{Failure, Kind};

/// Fails if there are events to stop at, and none of them has arrived, also if that is because the reader of the output
/// has closed it.
pub(crate) fn check_arrival(until: &[OnlyArg], has_arrived: bool, is_closed: bool) -> Result<(), Failure> {
    if until.is_empty() || has_arrived {
        return Ok(());
    }
    let events: Vec<String> = until.iter().map(|event| format!("'{event}'")).collect();
    let failure = Failure::new(Kind::Timeout, format!("{} did not arrive", events.join(" or ")));
    Err(match is_closed {
        true => failure.with_hint("the reader of the output has closed it"),
        false => failure.without_hint(),
    })
}
