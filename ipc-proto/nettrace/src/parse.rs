//! The records of a stream, and the parser that cuts a stream into them.
mod block;
mod calendar_time;
mod end;
mod event;
mod event_block;
mod label;
mod parser;
mod prefetch;
mod sequence_point;
mod stack;
#[cfg(feature = "std")]
mod system_time;
mod thread;
mod time_filter;
mod trace;
mod trace_clock;

pub use self::block::{Block, BlockKind, TimeRange};
pub use self::calendar_time::CalendarTime;
pub use self::end::{BadBlock, Corruption, End, Truncation};
pub use self::event::Event;
pub use self::label::{Label, LabelList, Labels};
pub use self::parser::{Limits, Parser, Record};
pub use self::sequence_point::{SequencePoint, ThreadSequence};
pub use self::stack::{Stack, frames};
#[cfg(feature = "std")]
pub use self::system_time::system_time;
pub use self::thread::{Thread, ThreadEntries, ThreadEntry};
pub use self::time_filter::TimeFilter;
pub use self::trace::{InvalidTrace, Pairs, Trace, Version};
pub use self::trace_clock::TraceClock;
#[cfg(feature = "alloc")]
pub(crate) use self::{event::Changes, event_block::EventBlock};
