//! The records of a stream, and the parser that cuts a stream into them.
pub(crate) mod block;
pub(crate) mod calendar_time;
pub(crate) mod end;
pub(crate) mod event;
pub(crate) mod event_block;
pub(crate) mod label;
pub(crate) mod parser;
pub(crate) mod prefetch;
pub(crate) mod sequence_point;
pub(crate) mod stack;
#[cfg(feature = "std")]
pub(crate) mod system_time;
pub(crate) mod thread;
pub(crate) mod time_filter;
pub(crate) mod trace;
pub(crate) mod trace_clock;
