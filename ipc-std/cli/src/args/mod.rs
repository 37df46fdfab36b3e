//! Arguments that several commands have, and their parsers.
pub(crate) mod comparison;
pub(crate) mod durations;
pub(crate) mod only_arg;
pub(crate) mod socket_path;
pub(crate) mod time_range_args;
pub(crate) mod timeout_args;
pub(crate) mod unsigned;
pub(crate) mod until_event;
