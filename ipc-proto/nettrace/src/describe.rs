//! What a metadata record describes: the names and fields of an event.
pub(crate) mod field;
pub(crate) mod metadata;
pub(crate) mod scalar;
