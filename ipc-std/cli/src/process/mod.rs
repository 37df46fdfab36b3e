//! The process that a command is about: how the command line names it, how it is reached and described.
pub(crate) mod connection_args;
pub(crate) mod force_args;
pub(crate) mod process_fields;
pub(crate) mod process_name;
pub(crate) mod reasons;
pub(crate) mod target;
pub(crate) mod trace_target;
pub(crate) mod wire_log;
