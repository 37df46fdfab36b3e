//! Whole traces: the events of one segment after another, in the order of time, in place.
pub(crate) mod batch;
pub(crate) mod catalog;
pub(crate) mod description;
pub(crate) mod event_entry;
pub(crate) mod runs;
pub(crate) mod segment;
pub(crate) mod segment_event;
pub(crate) mod segment_view;
pub(crate) mod whole_trace;
