//! The values of an event: its payload, read by the description of its fields.
pub(crate) mod value;
pub(crate) mod values;
