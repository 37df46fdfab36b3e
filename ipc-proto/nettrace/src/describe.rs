//! What a metadata record describes: the names of an event, its fields and their types.
pub(crate) mod field;
pub(crate) mod metadata;
pub(crate) mod scalar;
pub(crate) mod shape;
