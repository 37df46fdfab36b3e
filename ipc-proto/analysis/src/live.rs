//! What a program does now: which functions and threads run, and how much is collected, allocated and thrown, in one
//! period of a running session after the other.
//!
//! [`Live`] takes the events of a session in the order of time. [`Live::next_period`] ends a period, of a second for
//! example, and returns its [`Activity`]; [`Live::total`] returns the activity of all periods together.
//!
//! | number | events of the session | level |
//! |---|---|---|
//! | functions and threads | `Microsoft-DotNETCore-SampleProfiler` | informational |
//! | names of functions and threads | `Microsoft-Windows-DotNETRuntime`, keywords Loader (0x8), Jit (0x10) and NGen (0x20) | verbose |
//! | collections and pauses | `Microsoft-Windows-DotNETRuntime`, keyword GC (0x1) | informational |
//! | allocated bytes | `Microsoft-Windows-DotNETRuntime`, keyword GC (0x1) | verbose |
//! | exceptions | `Microsoft-Windows-DotNETRuntime`, keyword Exception (0x8000) | error |
//!
//! A session sends only the names of code that is compiled or loaded while the session runs. So after the start of the
//! session, start a second one with a rundown of the keywords Loader, Jit, NGen and ForceEndRundown (0x138), and stop
//! the second one immediately. Pass its events to [`Live::names_mut`] before you pass events of the first session to
//! [`Live::event`](crate::Analysis::event).
//!
//! # Memory
//!
//! [`Samples`](crate::samples::Samples) and [`Names`](crate::names::Names) have their limits, and each period begins
//! with empty samples. The sums of all periods have [`Live::FUNCTIONS`] functions and [`Live::THREADS`] threads;
//! further functions and threads are not added, and [`Activity::omitted`] counts them once a period. The names of
//! [`Live::THREADS`] threads are stored.
mod live;

pub use self::live::{Activity, FunctionActivity, Live, ThreadActivity};
