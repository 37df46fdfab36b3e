//! The encodings of texts and numbers.
pub(crate) mod text;
pub(crate) mod varint;
