//! The fields of single events by name.
use ipc_proto::wire::to_usize;
use nettrace::{Str, TraceEvent};

/// Returns whether the event has this name.
pub(crate) fn is_named(event: &TraceEvent<'_>, name: &str) -> bool {
    event.description().is_some_and(|description| description.name() == name)
}

pub(crate) fn number(event: &TraceEvent<'_>, field: &str) -> Option<u64> {
    event.field(field)?.as_u64()
}

pub(crate) fn text<'e>(event: &TraceEvent<'e>, field: &str) -> Option<Str<'e>> {
    event.field(field)?.as_str()
}

/// Returns the size of a pointer of the program in bytes.
pub(crate) fn pointer_size(event: &TraceEvent<'_>) -> usize {
    event.trace().map_or(8, |trace| to_usize(trace.pointer_size))
}
