//! The stacks of events, and the facts that they show.
mod outline;
mod snapshot;
mod stacks;
mod wait_kind;

pub use self::outline::outline;
pub(crate) use self::snapshot::{Snapshot, stack_values};
pub use self::stacks::{StackId, Stacks};
pub use self::wait_kind::WaitKind;
