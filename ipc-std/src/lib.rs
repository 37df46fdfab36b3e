// Where it is not there, its name leads to where the README says so.
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
mod step_reader;
mod timeouts;
mod trace_reader;

mod client;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod discover;
#[cfg(feature = "fake")]
pub mod fake;
mod monitor;
#[cfg(unix)]
mod procfs;
mod server;
mod stream;
mod sys;
mod trace;
#[cfg(unix)]
mod user_events;

pub use connection::Connection;
pub use drive::{DriveError, drive};
pub use environment::Environment;
pub use error::{Error, ErrorKind, Phase};
pub use observer::{Direction, Observed, Observer};
pub use process_info::ProcessInfo;
pub use step_reader::StepReader;
pub use timeouts::Timeouts;
pub use trace_reader::{TraceClock, TraceEvent, TraceReader};

pub use client::{Client, DumpConfig, Written};
pub use monitor::{AdvertisedRuntime, Credentials, Monitor, MonitorEvent, MonitorWaker, Rejection};
pub use server::{Incoming, Server, ServerStopper, Turn};
pub use stream::Stream;
pub use trace::{Stopper, TraceConfig, TraceSession};
#[cfg(unix)]
pub use user_events::UserEvents;

/// The README of the repository, so that its examples are compiled and run.
#[cfg(all(doctest, unix, feature = "fake"))]
#[doc = include_str!("../../README.md")]
struct RepositoryReadme;
