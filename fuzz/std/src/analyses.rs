//! Properties of `nettrace-analysis`.
//!
//! The first byte chooses the version of the trace, and whether the other bytes are a trace or describe the events of
//! one.
mod analysis_work;
mod collections;
mod counters;
mod gcdump;
mod heap;
mod made_up_counters;
mod made_up_events;
mod names;
mod profiles;
mod repeated_events;
mod traces;

pub use analysis_work::analysis_work;
pub use collections::collections;
pub use counters::counters;
pub use gcdump::gcdump;
pub use heap::heap;
pub use names::names;
pub use profiles::profiles;
