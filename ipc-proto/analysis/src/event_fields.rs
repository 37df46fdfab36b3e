//! Single events: their ids, and their fields by name.
use nettrace::{Str, TraceEvent};

use crate::KnownProvider;

/// Returns the id of an event of the runtime's provider; `None` for events of other providers.
pub(crate) fn runtime_event_id(event: &TraceEvent<'_>) -> Option<u32> {
    let metadata = event.metadata()?;
    let is_runtime = KnownProvider::of(metadata.provider) == Some(KnownProvider::Runtime);
    is_runtime.then_some(metadata.event_id)
}

pub(crate) fn number(event: &TraceEvent<'_>, field: &str) -> Option<u64> {
    event.field(field)?.as_u64()
}

pub(crate) fn text<'e>(event: &TraceEvent<'e>, field: &str) -> Option<Str<'e>> {
    event.field(field)?.as_str()
}

/// Returns the number of allocated bytes that an AllocationTick states.
pub(crate) fn allocated(event: &TraceEvent<'_>) -> Option<u64> {
    number(event, "AllocationAmount64").or_else(|| number(event, "AllocationAmount"))
}
