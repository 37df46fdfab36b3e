//! `--utc` and `--local`: times as dates.
use jiff::tz::TimeZone;

use crate::run::{Failure, Kind};
use crate::text::date::Zone;

/// `--utc` and `--local`: the time zone in which times are shown as dates.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ZoneArgs {
    /// Show times as dates in UTC, as 2026-11-20T21:45:13.125Z
    #[arg(long, conflicts_with = "local")]
    utc: bool,
    /// Show times as dates in the time zone of this system, as 2026-11-20T22:45:13.125+01:00
    #[arg(long)]
    local: bool,
}

impl ZoneArgs {
    /// Returns the zone; `None` without an option. Fails if the system does not know its zone.
    pub(crate) fn zone(self) -> Result<Option<Zone>, Failure> {
        if self.local {
            let zone = TimeZone::try_system().map_err(|e| {
                let message = format!("the time zone of this system is not known: {e}");
                Failure::new(Kind::Io, message).with_hint("use --utc, or set the variable TZ")
            })?;
            return Ok(Some(Zone::Local(zone)));
        }
        Ok(self.utc.then_some(Zone::Utc))
    }
}
