//! The syntax of the tool's options and of its inputs, and the HTTP exchanges of its server: parsed and written without
//! I/O.
//!
//! This library is not an API. It is for the program `dotnet-ipc`, and for the fuzz targets of the repository.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "it is no API")]

pub mod decode_input;
pub mod durations;
pub mod event_ids;
pub mod hex;
pub mod http_exchange;
pub mod http_hosts;
pub mod keywords;
pub mod only_arg;
pub mod provider;
pub mod unsigned;
