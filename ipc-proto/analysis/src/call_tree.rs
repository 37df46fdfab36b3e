//! Trees of calls and what the calls weigh: top functions, callers and callees, folded stacks, differences of two
//! trees, and the weights by thread.
//!
//! A frame is *exclusive* in the stacks in which it is the innermost one, and *inclusive* in all stacks that have it; a
//! stack counts once, even if it has the frame several times. Two methods of one name are one frame, whatever their
//! addresses. The *own* weight of a method of the program is that of the stacks in which no method of the program is
//! further inside: its own work, and that of the framework on its behalf. [`OwnCode`](crate::OwnCode) has the rule.
mod call_tree;
mod folding;
mod machinery;
mod old_waits;
mod origins;

pub use self::call_tree::{CallTree, Change, Entry, NodeId, Order, ThreadTree, ThreadWeight};
pub use self::folding::folded_stack;
pub use self::old_waits::old_waits;
pub(crate) use self::origins::Origins;
