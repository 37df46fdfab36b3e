//! The stacks of events, and what they show.
pub(crate) mod outline;
pub(crate) mod snapshot;
pub(crate) mod stack_values;
mod stacks;
pub(crate) mod wait_kind;

pub use self::stacks::{StackId, Stacks};
