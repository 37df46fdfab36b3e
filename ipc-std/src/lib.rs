// On Windows the type `UserEvents` does not exist, so its links in the README lead to the section about Windows.
#![cfg_attr(windows, doc = "[`UserEvents`]: #windows")]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
// Elsewhere, as in a browser, only the parts remain that `ipc-async` shares.
#![cfg_attr(not(any(unix, windows)), allow(dead_code, unused_imports))]

mod connection;
mod drive;
mod dump_outcome;
mod environment;
mod error;
mod observer;
mod process_info;
mod timed_session;
mod timeouts;

#[cfg(any(unix, windows))]
mod client;
#[cfg(all(any(unix, windows), feature = "counters"))]
mod counter_stream;
#[cfg(any(unix, windows))]
pub mod discover;
#[cfg(any(unix, windows))]
mod hazard;
#[cfg(any(unix, windows))]
mod monitor;
#[cfg(any(unix, windows))]
mod server;
mod sys;
#[cfg(any(unix, windows))]
mod system_process;
#[cfg(any(unix, windows))]
mod trace;
#[cfg(any(unix, windows))]
mod transport;
#[cfg(unix)]
mod user_events;

pub use connection::Connection;
pub use drive::{DriveError, drive, drive_async, is_closed, is_not_ready, transferred};
pub use environment::Environment;
pub use error::{CallContext, Error, Phase};
pub use ipc_discover::{Credentials, ErrorKind};
pub use nettrace::{self, TraceReader, system_time};
pub use observer::{Observed, Observer};
pub use process_info::ProcessInfo;
#[cfg(any(unix, windows))]
pub use system_process::SystemProcess;
pub use timed_session::TimedSession;
pub use timeouts::{Timeouts, clock, milliseconds};

#[cfg(all(any(unix, windows), feature = "counters"))]
pub use counter_stream::CounterStream;
#[cfg(feature = "counters")]
pub use nettrace_analysis;

#[cfg(any(unix, windows))]
pub use client::Client;
pub use dump_outcome::DumpOutcome;
pub use ipc_proto::plan::{DumpConfig, Hazard, LostFeatures, TraceConfig};
pub use ipc_proto::types::{DumpFlags, DumpType, EventLevel, PerfMapType, Provider, SessionBufferMode};
pub use ipc_proto::{self, Guid, HResult};
#[cfg(any(unix, windows))]
pub use monitor::{AdvertisedRuntime, Monitor, MonitorEvent, MonitorWaker};
#[cfg(any(unix, windows))]
pub use server::{Incoming, Inlet, Server, ServerStopper, Turn};
pub use sys::is_shortage;
#[cfg(any(unix, windows))]
pub use trace::{Stopper, TraceSession};
#[cfg(any(unix, windows))]
pub use transport::{ConnectError, Connector, Stream};
#[cfg(unix)]
pub use user_events::UserEvents;

/// The README of the repository: its examples run as tests.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../../README.md")]
struct RepositoryReadme;
