//! [`Guid`]: 16 bytes in the mixed order of .NET, and their text.
use core::{fmt, str::FromStr};

use super::{Writer, hex_digit};
use crate::Encode;
use crate::sentences::sentences;

/// A GUID: 16 bytes in wire order.
///
/// ```text
///  0        4      6      8                  16
/// | Data1  | Data2| Data3| Data4 ...           |
///   u32 LE  u16 LE u16 LE 8 bytes in text order
/// ```
///
/// The first three groups of the text are little-endian numbers, the last two are bytes in text order: this is .NET's
/// layout (erratum: the specification says only "little-endian"). The cookie of a runtime is opaque: it can be compared
/// and displayed, but it has no structure.
///
/// ```
/// use ipc_proto::Guid;
///
/// let guid: Guid = "123e4567-e89b-12d3-a456-426614174000".parse()?;
/// assert_eq!(guid.0[..8], [0x67, 0x45, 0x3e, 0x12, 0x9b, 0xe8, 0xd3, 0x12]);
/// assert_eq!(guid.to_string(), "123e4567-e89b-12d3-a456-426614174000");
/// # Ok::<(), ipc_proto::wire::ParseGuidError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Guid(pub [u8; 16]);

/// The wire position of each byte of the text form, from left to right.
const TEXT_ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
/// The bytes of the text form that follow a dash.
const DASHES: [usize; 4] = [4, 6, 8, 10];

impl Guid {
    /// The GUID of zeros.
    pub const NIL: Self = Self([0; 16]);
}

impl fmt::Display for Guid {
    /// Formats the GUID as `123e4567-e89b-12d3-a456-426614174000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // One write for the whole text: a trace can have a GUID in each of millions of events.
        let mut text = [b'-'; 36];
        let mut characters = text.iter_mut();
        for (i, place) in TEXT_ORDER.iter().enumerate() {
            if DASHES.contains(&i) {
                characters.next();
            }
            let byte = self.0.get(*place).copied().unwrap_or_default();
            for (digit, to) in [byte >> 4, byte & 15].into_iter().zip(&mut characters) {
                *to = DIGITS.get(usize::from(digit)).copied().unwrap_or_default();
            }
        }
        f.write_str(core::str::from_utf8(&text).unwrap_or_default())
    }
}
impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

sentences! {
    /// The error for text that is not a GUID.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ParseGuidError = "not a GUID: write it as 123e4567-e89b-12d3-a456-426614174000";
}
impl core::error::Error for ParseGuidError {}

impl FromStr for Guid {
    type Err = ParseGuidError;

    /// Parses the form with dashes, with or without braces, in upper or lower case.
    fn from_str(s: &str) -> Result<Self, ParseGuidError> {
        let bare = s.strip_prefix('{').and_then(|s| s.strip_suffix('}')).unwrap_or(s);
        let mut characters = bare.bytes();
        let mut bytes = [0; 16];
        for (i, place) in TEXT_ORDER.iter().enumerate() {
            if DASHES.contains(&i) && characters.next() != Some(b'-') {
                return Err(ParseGuidError);
            }
            let mut digit = || characters.next().and_then(hex_digit).ok_or(ParseGuidError);
            let byte = digit()?.wrapping_mul(16).wrapping_add(digit()?);
            if let Some(to) = bytes.get_mut(*place) {
                *to = byte;
            }
        }
        if characters.next().is_some() {
            return Err(ParseGuidError);
        }
        Ok(Self(bytes))
    }
}

impl Encode for Guid {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(&self.0);
    }
}
