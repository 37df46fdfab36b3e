//! What a reader of events takes and stores.
use crate::parse::Limits;

/// What a reader of events takes and stores, whatever the order in which it returns them.
///
/// ```
/// use nettrace::{EventAssembler, EventOrder, ReadOptions};
///
/// let without_stacks = ReadOptions { stacks: false, ..ReadOptions::default() };
/// let assembler = EventAssembler::new(EventOrder::Stream, without_stacks);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// The limits on the lengths that the stream can claim.
    pub limits: Limits,
    /// Whether stacks are stored. If not, events have none, and memory and time are saved. True by default.
    pub stacks: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), stacks: true }
    }
}
