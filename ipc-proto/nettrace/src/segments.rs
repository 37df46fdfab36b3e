//! Segments: the events between two sequence points, in the order of time, as places in the bytes of the stream.
mod batch;
mod event_entry;
mod runs;
mod segment_core;
mod segment_event;
mod segment_view;

pub use self::segment_core::ReadOptions;
pub(crate) use self::segment_core::{Rest, SegmentCore};
pub(crate) use self::segment_event::SegmentEvent;
pub(crate) use self::segment_view::SegmentView;
