//! The stacks of events, and the facts that they show.
mod method_table;
mod outline;
mod snapshot;
mod stacks;
mod thread_state;
mod wait_kind;
mod waiting_stacks;

pub(crate) use self::method_table::{MethodName, MethodTable};
pub use self::outline::outline;
pub(crate) use self::snapshot::{Snapshot, stack_values};
pub use self::stacks::{StackId, Stacks};
pub use self::thread_state::ThreadState;
pub use self::wait_kind::WaitKind;
pub(crate) use self::waiting_stacks::WaitingStacks;
