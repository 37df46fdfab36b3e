#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod async_client;
mod async_connector;
mod async_trace_session;

pub use async_client::AsyncClient;
pub use async_connector::AsyncConnector;
pub use async_trace_session::AsyncTraceSession;
pub use ipc_proto::plan::{LostFeatures, TraceConfig};
pub use ipc_proto::{Code, Command, SessionEnd, Step};
pub use ipc_std::{Environment, Error, ProcessInfo, Timeouts};
