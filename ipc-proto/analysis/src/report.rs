//! What the samples of one clock show and what they lack, for a report to people: the CPU time, why there is nothing,
//! and what is not counted. The caller writes it, in its language and its format.
mod cpu_time;
mod gap;
mod uncounted;

pub use self::cpu_time::{CpuTime, NOTABLE, is_nearly_idle};
pub use self::gap::Gap;
pub use self::uncounted::Uncounted;
