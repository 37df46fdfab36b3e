//! What concerns a trace as a whole: the shape of its analyses, the part that counts, the durations in it and its lost
//! events.
mod analysis;
mod durations;
mod loss_report;
mod part;
mod recording_span;

pub use self::analysis::Analysis;
pub use self::durations::Durations;
pub(crate) use self::durations::elapsed;
pub use self::loss_report::{EventBuffer, LossReport};
pub use self::part::{Part, TraceTime};
pub(crate) use self::recording_span::RecordingSpan;
