//! Events of a trace as text and JSON.
pub(crate) mod digest;
pub(crate) mod field;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod plain_text;
pub(crate) mod repeated_text;
pub(crate) mod summary;
