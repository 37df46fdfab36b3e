//! [`Utf16`]: UTF-16 code units as text.
use core::fmt::{self, Write};

/// UTF-16 code units, which can contain lone surrogates, as text.
///
/// ```
/// use ipc_proto::wire::Utf16;
///
/// let units = [u16::from(b'a'), 0xd800];
/// assert_eq!(Utf16(units.into_iter()).to_string(), "a\u{fffd}");
/// assert_eq!(format!("{:?}", Utf16(units.into_iter())), r#""a\u{d800}""#);
/// ```
#[derive(Clone)]
pub struct Utf16<I>(pub I);

impl<I: Iterator<Item = u16>> Utf16<I> {
    /// Returns the characters, with U+FFFD for each lone surrogate.
    pub fn chars(self) -> impl Iterator<Item = char> + use<I> {
        char::decode_utf16(self.0).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

/// Writes the [characters](Utf16::chars).
impl<I: Iterator<Item = u16> + Clone> fmt::Display for Utf16<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clone().chars().try_for_each(|c| f.write_char(c))
    }
}
/// Writes `"text"`, with Rust's escapes, and a lone surrogate as `\u{d800}`.
impl<I: Iterator<Item = u16> + Clone> fmt::Debug for Utf16<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in char::decode_utf16(self.0.clone()) {
            match c {
                Ok('\'') => f.write_str("'")?,
                Ok(c) => write!(f, "{}", c.escape_debug())?,
                Err(lone) => write!(f, "\\u{{{:x}}}", lone.unpaired_surrogate())?,
            }
        }
        f.write_str("\"")
    }
}
