//! Plans: a wish, a command that fulfils the wish, and an older command for a runtime that does not know the first.
//!
//! ```text
//!  TraceConfig, DumpConfig or InfoConfig
//!     │ first_step(&runtime)
//!     ▼
//!  PlanStep ── older() ──► PlanStep ── older() ──► … None     each is a request with a code and a payload
//!     │
//!     ▼
//!  Fallback: connect, send, receive; after UNKNOWN_COMMAND the older step on a new connection; done
//! ```
//!
//! | wish | first command | answer |
//! |---|---|---|
//! | [`TraceConfig`] | the oldest with all requested features, as in Microsoft's client | [`SessionId`](crate::types::SessionId) |
//! | [`DumpConfig`] | the newest that the runtime can know | [`Status`](crate::types::Status) |
//! | [`InfoConfig`] | the newest that the runtime can know | [`ProcessInfo3`](crate::types::ProcessInfo3) |
//! | a [`Single`] command | the command itself, without an older one | the response of the command |
//!
//! [`StartupTrace`] is a `TraceConfig` as the environment variables with which a process records itself.
//!
//! The rest of the module states facts about runtimes: whether a runtime has a command ([`obstacle`], [`refusal`]), why
//! a runtime refused a command ([`explain`]), and which requests can end a process ([`hazard`]). The module sends and
//! allocates nothing.
mod dump;
mod explain;
mod fallback;
mod hazard;
mod info;
mod lost_feature;
mod runtime;
mod serve;
mod startup_trace;
mod step;
mod trace;

pub use dump::{DumpConfig, DumpStep, NotDumping};
pub use explain::{Explanation, SESSION_LIMIT, explain};
pub use fallback::{Fallback, FallbackError, FallbackStep};
pub use hazard::{Hazard, StopHazard, hazard, stop_hazard};
pub use info::{InfoAnswer, InfoConfig, InfoStep};
pub use lost_feature::{LostFeature, LostFeatures};
pub use runtime::{Flavour, Obstacle, Runtime, major_version, obstacle, refusal};
pub use startup_trace::{StartupTrace, StartupTraceError, StartupValue, StartupVariable};
pub use step::{CALL_LIMIT_MS, DUMP_LIMIT_MS, PlanStep, Single};
pub use trace::{DEFAULT_RUNDOWN, NotTracing, Providers, TraceConfig, TraceStep};
