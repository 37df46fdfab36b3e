//! The encodings of texts (`Str`) and of numbers of variable length.
pub(crate) mod text;
pub(crate) mod varint;
