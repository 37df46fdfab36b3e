//! [`Text`]: a string of UTF-16 units, from the wire or from a `str`.
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::{fmt, slice, str::EncodeUtf16};

use byteorder::{ByteOrder, LittleEndian};

use super::convert::{to_u32, to_usize};
use super::error::{WireError, WireErrorKind};
use super::utf16::Utf16;
use super::{Reader, Writer};
use crate::Encode;

/// A string of UTF-16 code units, or null.
///
/// ```text
///  0       4                       4 + 2 × count
/// | count | unit | unit | … | 0    |      count = 0: null, without units
///   u32     u16    u16        u16
/// ```
///
/// The count includes the terminating NUL, so an empty string has count 1. Null and the empty string are different: an
/// environment variable that is set to null is removed, one that is set to `""` is empty. Lone surrogates are
/// preserved: neither client nor runtime checks them. Embedded NULs are preserved; runtimes read up to the first NUL.
///
/// A `Text` is either a string of the caller (UTF-8 or UTF-16) or checked bytes of a message. Texts of all forms
/// compare, order and hash by code units.
///
/// ```
/// use ipc_proto::Text;
///
/// assert_eq!(Text::from("é"), Text::from_utf16(&[0xe9]));
/// assert_ne!(Text::from(""), Text::NULL);
/// assert_eq!(Text::from_utf16(&[b'a' as u16, 0xd800]).to_string(), "a\u{fffd}");
/// ```
#[derive(Clone, Copy, Default)]
pub struct Text<'a>(TextRepr<'a>);

#[derive(Clone, Copy, Default)]
enum TextRepr<'a> {
    #[default]
    Null,
    Utf8(&'a str),
    Utf16(&'a [u16]),
    /// Little-endian units without the terminating NUL: an even number of bytes.
    Wire(&'a [u8]),
}

impl<'a> Text<'a> {
    /// The null string: count 0 on the wire.
    pub const NULL: Self = Self(TextRepr::Null);

    /// Creates a text from UTF-8. Unlike `From`, `new` can be used in constants.
    #[must_use]
    pub const fn new(s: &'a str) -> Self {
        Self(TextRepr::Utf8(s))
    }

    /// Creates a text from UTF-16 code units, which can contain lone surrogates.
    #[must_use]
    pub const fn from_utf16(units: &'a [u16]) -> Self {
        Self(TextRepr::Utf16(units))
    }

    /// Returns whether the text is null. An empty text is not null.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self.0, TextRepr::Null)
    }

    /// Returns whether the text has no units: it is null or empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self.0 {
            TextRepr::Null => true,
            TextRepr::Utf8(s) => s.is_empty(),
            TextRepr::Utf16(s) => s.is_empty(),
            TextRepr::Wire(s) => s.is_empty(),
        }
    }

    /// Returns the text, or `None` if it is null.
    #[must_use]
    pub const fn non_null(self) -> Option<Self> {
        if self.is_null() { None } else { Some(self) }
    }

    /// Returns the bytes of a text that was decoded: little-endian code units, not aligned, without the terminating
    /// NUL. `None` for null, and for a string of the caller.
    ///
    /// ```
    /// use ipc_proto::{Text, wire::decode};
    ///
    /// let text: Text<'_> = decode(b"\x02\0\0\0x\0\0\0")?;
    /// assert_eq!(text.as_wire(), Some(&b"x\0"[..]));
    /// assert_eq!(Text::from("x").as_wire(), None);
    /// # Ok::<(), ipc_proto::wire::WireError>(())
    /// ```
    #[must_use]
    pub const fn as_wire(&self) -> Option<&'a [u8]> {
        match self.0 {
            TextRepr::Wire(units) => Some(units),
            TextRepr::Null | TextRepr::Utf8(_) | TextRepr::Utf16(_) => None,
        }
    }

    /// Returns an iterator over the code units, without the terminating NUL. Null has no units.
    #[must_use]
    pub fn units(&self) -> Units<'a> {
        Units(match self.0 {
            TextRepr::Null => UnitsRepr::Utf16([].iter()),
            TextRepr::Utf8(s) => UnitsRepr::Utf8(s.encode_utf16()),
            TextRepr::Utf16(s) => UnitsRepr::Utf16(s.iter()),
            TextRepr::Wire(s) => UnitsRepr::Wire(s),
        })
    }

    /// Returns an iterator over the characters, with U+FFFD for each lone surrogate.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        Utf16(self.units()).chars()
    }

    /// Splits the text at the first separator (ASCII) after the first unit. The separator is in neither part.
    pub(crate) fn split_after_first(self, separator: u8) -> Option<(Self, Self)> {
        match self.0 {
            TextRepr::Null => None,
            TextRepr::Utf8(s) => {
                // An ASCII byte is never a part of another character, so the split is at a boundary of characters.
                let at = s.bytes().skip(1).position(|byte| byte == separator)?.saturating_add(1);
                Some((
                    Self(TextRepr::Utf8(s.get(..at)?)),
                    Self(TextRepr::Utf8(s.get(at.saturating_add(1)..)?)),
                ))
            }
            TextRepr::Utf16(s) => {
                let at = s.iter().skip(1).position(|unit| *unit == separator.into())?.saturating_add(1);
                Some((
                    Self(TextRepr::Utf16(s.get(..at)?)),
                    Self(TextRepr::Utf16(s.get(at.saturating_add(1)..)?)),
                ))
            }
            TextRepr::Wire(s) => {
                let at = self.units().skip(1).position(|unit| unit == separator.into())?.saturating_add(1);
                let at = at.saturating_mul(2);
                Some((
                    Self(TextRepr::Wire(s.get(..at)?)),
                    Self(TextRepr::Wire(s.get(at.saturating_add(2)..)?)),
                ))
            }
        }
    }

    /// Reads the units of a text whose `count` was read already.
    #[inline]
    pub(super) fn counted(r: &mut Reader<'a>, count: u32) -> Result<Self, WireError> {
        if count == 0 {
            return Ok(Self::NULL);
        }
        let units = r.bytes(to_usize(count).saturating_mul(2))?;
        // Two steps, not one pattern: they save a quarter of the instructions of decoding a provider.
        let Some((text, last)) = units.split_last_chunk() else {
            return Err(r.error(WireErrorKind::UnexpectedEnd));
        };
        if *last == [0, 0] {
            return Ok(Self(TextRepr::Wire(text)));
        }
        // The offset of the last unit, which is not NUL.
        let offset = r.offset().saturating_sub(2);
        Err(WireError { kind: WireErrorKind::Unterminated, offset })
    }

    /// Returns an owned copy.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_text_buf(&self) -> TextBuf {
        TextBuf { units: self.non_null().map(|text| text.units().collect()) }
    }
}

/// An iterator over the code units of a [`Text`].
#[derive(Debug, Clone)]
pub struct Units<'a>(UnitsRepr<'a>);

#[derive(Debug, Clone)]
enum UnitsRepr<'a> {
    Utf8(EncodeUtf16<'a>),
    Utf16(slice::Iter<'a, u16>),
    Wire(&'a [u8]),
}

impl Iterator for Units<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        match &mut self.0 {
            UnitsRepr::Utf8(units) => units.next(),
            UnitsRepr::Utf16(units) => units.next().copied(),
            UnitsRepr::Wire(bytes) => {
                let (head, rest) = bytes.split_first_chunk::<2>()?;
                *bytes = rest;
                Some(LittleEndian::read_u16(head))
            }
        }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(s: &'a str) -> Self {
        Self(TextRepr::Utf8(s))
    }
}
/// Converts `None` to null.
impl<'a> From<Option<&'a str>> for Text<'a> {
    fn from(s: Option<&'a str>) -> Self {
        s.map_or(Self::NULL, Self::from)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is_null() == other.is_null() && self.units().eq(other.units())
    }
}
impl Eq for Text<'_> {}
impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Text::from(other)
    }
}
impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}
impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
/// Orders by code units; null is first.
impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.is_null().cmp(&self.is_null()).then_with(|| self.units().cmp(other.units()))
    }
}
impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_null().hash(state);
        self.units().for_each(|unit| unit.hash(state));
        state.write_u8(0xff);
    }
}

/// Writes the characters, with U+FFFD for each lone surrogate; nothing for null.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Utf16(self.units()), f)
    }
}
/// Writes `"text"`, with Rust's escapes and a lone surrogate as `\u{d800}`, or `null`.
impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() {
            return f.write_str("null");
        }
        fmt::Debug::fmt(&Utf16(self.units()), f)
    }
}

/// Returns the count in the wire form of `len` units and the terminating NUL.
fn count(len: usize) -> u32 {
    to_u32(len.saturating_add(1))
}

/// Returns whether all bytes are ASCII. The last word overlaps the one before it: texts are short, and the function of
/// the standard library checks the rest of a short one byte by byte.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const ABOVE: usize = usize::from_ne_bytes([0x80; size_of::<usize>()]);
    let above = |word: &[u8; size_of::<usize>()]| usize::from_ne_bytes(*word) & ABOVE;
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().fold(0, |found, byte| found | byte) < 0x80;
    };
    let (mut found, mut rest) = (above(last), bytes);
    while let Some((first, after)) = rest.split_first_chunk() {
        found |= above(first);
        rest = after;
    }
    found == 0
}

impl Encode for Text<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self.0 {
            TextRepr::Utf8(s) if is_ascii(s.as_bytes()) && w.ascii_text(count(s.len()), s.as_bytes()) => {}
            _ => self.encode_other(w),
        }
    }
}

impl Text<'_> {
    /// Encodes any text. A separate function, so that the code for the usual text is short.
    #[inline(never)]
    fn encode_other(&self, w: &mut Writer<'_>) {
        match self.0 {
            TextRepr::Null => return 0u32.encode(w),
            TextRepr::Wire(s) => {
                count(s.len().wrapping_div(2)).encode(w);
                w.bytes(s);
            }
            TextRepr::Utf8(_) | TextRepr::Utf16(_) => {
                count(self.units().count()).encode(w);
                self.units().for_each(|unit| unit.encode(w));
            }
        }
        0u16.encode(w);
    }
}

/// A [`Text`] that owns its code units.
///
/// ```
/// use ipc_proto::{Text, wire::TextBuf};
///
/// let owned: TextBuf = Text::from_utf16(&[0xd800]).to_text_buf();
/// assert_eq!(owned.as_text(), Text::from_utf16(&[0xd800]));
/// assert_eq!(owned.to_string(), "\u{fffd}");
/// ```
#[cfg(feature = "alloc")]
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextBuf {
    units: Option<alloc::vec::Vec<u16>>,
}

#[cfg(feature = "alloc")]
impl TextBuf {
    /// Returns the text.
    #[must_use]
    pub fn as_text(&self) -> Text<'_> {
        self.units.as_deref().map_or(Text::NULL, Text::from_utf16)
    }
    /// Returns the text as UTF-8, with U+FFFD for each lone surrogate; `None` for null.
    #[must_use]
    pub fn to_utf8(&self) -> Option<alloc::string::String> {
        self.as_text().non_null().map(|text| text.chars().collect())
    }
    /// Returns whether the text has no units: it is null or empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_text().is_empty()
    }
}
#[cfg(feature = "alloc")]
impl fmt::Display for TextBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_text(), f)
    }
}
#[cfg(feature = "alloc")]
impl fmt::Debug for TextBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_text(), f)
    }
}
#[cfg(feature = "alloc")]
impl From<&str> for TextBuf {
    fn from(s: &str) -> Self {
        Text::from(s).to_text_buf()
    }
}
#[cfg(feature = "alloc")]
impl PartialEq<str> for TextBuf {
    fn eq(&self, other: &str) -> bool {
        self.as_text() == *other
    }
}
#[cfg(feature = "alloc")]
impl PartialEq<&str> for TextBuf {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

/// Generates null, UTF-8, or any code units, including lone surrogates.
#[cfg(feature = "arbitrary")]
impl<'a> arbitrary::Arbitrary<'a> for Text<'a> {
    fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(match u.int_in_range(0..=3)? {
            0 => Self::NULL,
            1 => Self::from(u.arbitrary::<&str>()?),
            _ => {
                let n = u.arbitrary_len::<u16>()?.saturating_mul(2);
                Self(TextRepr::Wire(u.bytes(n)?))
            }
        })
    }
}
