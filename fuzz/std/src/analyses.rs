//! Properties of `nettrace-analysis`.
//!
//! The first byte chooses the version of the trace, and whether the other bytes are a trace or describe the events of
//! one.
mod collections;
mod counters;
mod made_up_counters;
mod made_up_events;
mod names;
mod profiles;
mod traces;

pub use collections::collections;
pub use counters::counters;
pub use names::names;
pub use profiles::profiles;
