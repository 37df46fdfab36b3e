//! Commands: their trait, the table of all commands, the types of their fields, and the rules for their values.
#[macro_use]
mod define;
pub(crate) mod check;
mod command;
mod environment_entry;
pub(crate) mod field_at;
pub(crate) mod field_path;
mod inspect;
pub(crate) mod invalid_value;
mod names;
mod platform;
mod provider_arguments;
pub(crate) mod request_error;
mod responses;
pub(crate) mod table;
mod tracepoint_format;
pub mod types;
pub(crate) mod violation;

pub use command::{Command, CommandInfo, Continuation, encode_command};
