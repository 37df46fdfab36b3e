//! One account of the time of a recording: what each thread did, where and when; and what else the events weigh, by the
//! same windows of time.
//!
//! [`TimeAccount`] takes the events of a trace in the order of time, and makes an [`Account`] at the end.
//!
//! | what | events |
//! |---|---|
//! | states of threads | `Microsoft-DotNETCore-SampleProfiler` |
//! | waits for locks | ContentionStart, ContentionStop |
//! | waits on handles | WaitHandleWaitStart, WaitHandleWaitStop |
//! | allocated bytes, small and large | AllocationTick, AllocationSampled |
//! | exceptions by type | ExceptionThrown |
//! | triggered collections, started threads, compilations | GCTriggered, ThreadCreating, MethodJittingStarted |
//! | sent requests | `System.Net.Http`: RequestStart |
//!
//! # States
//!
//! The frames between the innermost method of the program and the end of the stack show what a thread waits for
//! ([`ThreadState`]). A thread outside managed code whose stack shows no wait either waits or runs native code, which
//! the samples do not tell apart. A thread that waits without a method of the program is idle.
//!
//! # Roles
//!
//! The outermost frames show what a thread is for ([`ThreadRole`]), whatever the methods of the program are called. The
//! entry point of the program is the outermost frame of a thread that no code of the runtime has started.
//!
//! # Methods
//!
//! All instances of a generic method are one method, and an asynchronous method has its name in the source. The
//! [`Blame`] of some events is the deepest method of the program that is in more than half of their stacks.
//!
//! # Memory
//!
//! Times are sums over at most [`Windows::COUNT`] windows of the same length, which doubles when the recording lasts
//! longer. There are at most [`TimeAccount::CELLS`] sums, beside [`Samples`](crate::samples::Samples).
//! [`Account::dropped`] counts the events for which there was no room.
mod blame;
mod cells;
mod gauge;
mod method_table;
mod place;
mod report;
mod time_account;
mod windows;

pub use self::blame::{Blame, BlamedMethod};
pub use self::cells::Measure;
pub use self::gauge::{Gauge, GaugePoint};
pub use self::method_table::MethodNumber;
pub use self::place::{Place, ThreadRole};
pub use self::report::{Account, AccountThread, LastState, Row};
pub use self::time_account::TimeAccount;
pub use self::windows::Windows;
pub use crate::stacks::ThreadState;
