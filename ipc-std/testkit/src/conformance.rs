//! Requests and the answers that a server of the protocol must give: a test for servers of any origin.
//!
//! The cases are data: `conformance/cases.jsonl` in the repository's folder `testdata/`, whose README describes them.
//! This module has the cases as types. `run_all` tries cases on a server, `run` one; a [`CaseExchange`] tries a case
//! over another transport.
//!
//! Some cases end real runtimes: [`Case::is_deadly`]. Some have [effects](Case::effects) if the answer is OK. The order
//! of the cases matters: one case sets a variable that the next case removes, and the cases that resume the runtime
//! come last.
//!
#![cfg_attr(feature = "io", doc = "```")]
#![cfg_attr(not(feature = "io"), doc = "```ignore")]
//! use std::time::{Duration, Instant};
//! use ipc_testkit::ipc_std::Stream;
//! use ipc_testkit::conformance::{self, State};
//! use ipc_testkit::{FakeRuntime, Profile};
//!
//! let server = FakeRuntime::start(Profile { careful: true, ..Profile::net11() })?; // in your tests: your server
//! let connect = || Stream::connect(server.path(), Instant::now() + Duration::from_secs(10));
//! let cases = conformance::cases().into_iter().filter(|case| case.state == State::Running);
//! let report = conformance::run_all(cases.take(20), connect);
//! assert!(report.differences.is_empty(), "{report}");
//! assert_eq!(report.passed.len() + report.not_tried.len(), 20);
//! # Ok::<(), std::io::Error>(())
//! ```
mod answer;
mod case;
mod case_exchange;
mod cases;
mod difference;
#[cfg(feature = "io")]
mod outcome;
#[cfg(feature = "io")]
mod run;

#[cfg(feature = "io")]
pub(crate) use answer::whole_message;
pub use answer::{ExpectedAnswer, ReceivedAnswer, Seen};
pub use case::{Case, InvalidCase, State};
pub use case_exchange::CaseExchange;
pub use cases::{KINDS, cases, newest_version};
pub use difference::{Against, Difference};
#[cfg(feature = "io")]
pub use outcome::{NotTried, Outcome, Report};
#[cfg(feature = "io")]
pub use run::{run, run_all, send};
