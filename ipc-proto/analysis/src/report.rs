//! Where a program spends its time, allocates, throws or waits: what the samples of one clock show and what they lack.
//!
//! [`CallReport`] has the decisions: which clock the report is by, which functions come first, whether shares are an
//! answer, and what is missing. The caller writes them, in its language and its format.
mod call_report;
mod cpu_time;
mod gap;
mod uncounted;

pub use self::call_report::{CallReport, OlderReport, ReportQuery, ThreadReport};
pub use self::cpu_time::{CpuTime, NOTABLE, is_nearly_idle};
pub use self::gap::Gap;
pub use self::uncounted::Uncounted;
