//! Recording: what `trace`, `events`, `monitor` and the analyses of a process have in common.
pub(crate) mod analysis_input;
pub(crate) mod args;
mod counter;
pub(crate) mod findings;
pub(crate) mod names_first;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod rundown;
pub(crate) mod session;
pub(crate) mod session_failure;
pub(crate) mod summary;
pub(crate) mod trace_profile;
