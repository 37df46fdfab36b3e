//! Where a program spends its time, allocates, throws or waits: what the samples of one clock show, for a report.
//!
//! [`CallReport`] has the decisions: which clock the report is by, which functions come first, whether shares are an
//! answer, and what is missing. The caller writes them, in its language and its format.
mod call_line;
mod call_report;
mod cpu_time;
mod gap;
mod thread_row;
mod type_rows;
mod uncounted;

pub use self::call_line::CallLine;
pub use self::call_report::{CallReport, OlderReport, ReportQuery};
pub use self::cpu_time::{CpuTime, NOTABLE, is_nearly_idle};
pub use self::gap::Gap;
pub use self::thread_row::ThreadRow;
pub use self::type_rows::{TypeRow, TypeRows};
pub use self::uncounted::Uncounted;
