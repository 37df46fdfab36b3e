//! The stacks of events, and the facts that they show.
mod calls;
mod method_table;
mod outline;
mod stacks;
mod thread_state;
mod values;
mod wait_kind;
mod waiting_stacks;

pub(crate) use self::calls::{Call, Calls};
pub(crate) use self::method_table::{MethodName, MethodTable};
pub use self::outline::outline;
pub use self::stacks::{StackId, Stacks};
pub use self::thread_state::ThreadState;
pub(crate) use self::values::stack_values;
pub use self::wait_kind::WaitKind;
pub(crate) use self::waiting_stacks::WaitingStacks;
