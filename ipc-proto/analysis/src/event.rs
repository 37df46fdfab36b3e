//! What the analyses read of an event: its kind, its fields and the rows of the runtime.
pub(crate) mod event_fields;
pub(crate) mod event_kinds;
pub(crate) mod known_provider;
pub(crate) mod row;
pub(crate) mod runtime_event;
pub(crate) mod text;
