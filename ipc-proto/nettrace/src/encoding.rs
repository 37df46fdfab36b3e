//! The encodings of texts (`Str`) and of numbers of variable length.
mod text;
mod varint;

pub use self::text::Str;
pub(crate) use self::text::{utf8, utf16_z};
pub use self::varint::{Varint32, Varint64, Zigzag64};
