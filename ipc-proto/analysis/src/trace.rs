//! What concerns a trace as a whole: the shape of its analyses, the part that counts, the durations in it and its lost events.
pub(crate) mod analysis;
pub(crate) mod durations;
pub(crate) mod loss_report;
pub(crate) mod part;
