// On Windows the type `UserEvents` does not exist, so its links in the README lead to the section about Windows.
#![cfg_attr(windows, doc = "[`UserEvents`]: #windows")]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod connection;
mod drive;
mod environment;
mod error;
mod observer;
mod process_info;
mod timed_session;
mod timeouts;

mod client;
#[cfg(feature = "counters")]
mod counter_stream;
pub mod discover;
mod hazard;
mod monitor;
mod server;
mod sys;
mod system_process;
mod trace;
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
pub use system_process::SystemProcess;
pub use timed_session::TimedSession;
pub use timeouts::{Timeouts, milliseconds};

#[cfg(feature = "counters")]
pub use counter_stream::CounterStream;
#[cfg(feature = "counters")]
pub use nettrace_analysis;

pub use client::{Client, DumpOutcome};
pub use ipc_proto::plan::{DumpConfig, Hazard, LostFeatures, TraceConfig};
pub use ipc_proto::types::{DumpFlags, DumpType, EventLevel, PerfMapType, Provider, SessionBufferMode};
pub use ipc_proto::{self, Guid, HResult};
pub use monitor::{AdvertisedRuntime, Monitor, MonitorEvent, MonitorWaker};
pub use server::{Incoming, Inlet, Server, ServerStopper, Turn};
pub use sys::is_shortage;
pub use trace::{Stopper, TraceSession};
pub use transport::{ConnectError, Connector, Stream};
#[cfg(unix)]
pub use user_events::UserEvents;

/// The README of the repository: its examples run as tests.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../../README.md")]
struct RepositoryReadme;
