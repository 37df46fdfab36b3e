#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod async_client;
mod async_connection;
mod async_connector;
mod async_monitor;
mod async_server;
mod async_trace_session;
mod async_transport;

pub use async_client::AsyncClient;
pub use async_connection::AsyncConnection;
pub use async_connector::{AsyncConnector, BoxedFuture};
pub use async_monitor::{AsyncMonitor, AsyncMonitorEvent, PortConnector, PortStream, Taking};
pub use async_server::AsyncServer;
pub use async_trace_session::AsyncTraceSession;
pub use async_transport::{AsyncTransport, drive};
pub use ipc_proto::plan::{DumpConfig, Hazard, LostFeatures, TraceConfig};
pub use ipc_proto::port::{Rejection, RuntimeEntry};
pub use ipc_proto::{self, Advertise, Code, Command, Exchange, Guid, Request, Serve, SessionEnd, Step};
pub use ipc_std::{DriveError, DumpOutcome, Environment, Error, Phase, ProcessInfo, Timeouts, nettrace};
