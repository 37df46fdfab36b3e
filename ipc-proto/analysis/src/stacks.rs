//! The stacks of events, and what they show.
mod outline;
mod snapshot;
mod stack_values;
mod stacks;
mod wait_kind;

pub use self::outline::outline;
pub(crate) use self::snapshot::Snapshot;
pub(crate) use self::stack_values::stack_values;
pub use self::stacks::{StackId, Stacks};
pub use self::wait_kind::WaitKind;
