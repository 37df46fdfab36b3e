//! Fields of single events by their names.
use nettrace::{Str, TraceEvent};

pub(crate) fn number(event: &TraceEvent<'_>, field: &str) -> Option<u64> {
    event.field(field)?.as_u64()
}

pub(crate) fn text<'e>(event: &TraceEvent<'e>, field: &str) -> Option<Str<'e>> {
    event.field(field)?.as_str()
}

/// Returns the bytes of an AllocationTick.
pub(crate) fn allocated(event: &TraceEvent<'_>) -> Option<u64> {
    number(event, "AllocationAmount64").or_else(|| number(event, "AllocationAmount"))
}
