//! Segments: the events between two sequence points, in the order of time, as places in the bytes of the stream.
pub(crate) mod batch;
pub(crate) mod event_entry;
pub(crate) mod read_options;
pub(crate) mod runs;
pub(crate) mod segment_core;
pub(crate) mod segment_event;
pub(crate) mod segment_view;
