//! [`TracepointFormat`], the text that registers a tracepoint with the kernel, and the error of an invalid text.
use core::ffi::CStr;
use core::fmt::{self, Write};
use core::str::FromStr;

use crate::Text;
use crate::endpoint::split_once;

/// The name and the fields of a tracepoint, as they are registered with the kernel.
///
/// ```text
/// {name} u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload
/// ```
///
/// A value takes half a kilobyte: it contains the text and its NUL. "Tracepoint Format V1" in the specification.
///
/// ```
/// use ipc_proto::types::{TracepointFormat, TracepointFormatError};
///
/// let format = TracepointFormat::new("MyTracepoint")?;
/// assert_eq!(format.name(), "MyTracepoint");
/// assert_eq!(format.to_string().parse(), Ok(format));
/// let long = "n".repeat(500);
/// assert_eq!(TracepointFormat::new(&*long), Err(TracepointFormatError::TooLong { len: 576 }));
/// # Ok::<(), TracepointFormatError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TracepointFormat(heapless::String<{ Self::MAX_LEN }>);

impl TracepointFormat {
    /// The fields of every tracepoint.
    pub const FIELDS: &'static str =
        "u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload";
    /// The longest format that the kernel accepts, in bytes, with the space after the name and the NUL.
    pub const MAX_LEN: usize = 512;

    /// Creates the format of the tracepoint with this name. The name ends at its first NUL, as runtimes read the names
    /// in a [`TracepointConfig`](crate::types::TracepointConfig).
    ///
    /// # Errors
    /// [`BadName`](TracepointFormatError::BadName) for an empty name, or a name with a space, a colon or a control
    /// character: the kernel would read a different name. [`TooLong`](TracepointFormatError::TooLong).
    pub fn new<'n>(name: impl Into<Text<'n>>) -> Result<Self, TracepointFormatError> {
        let name = name.into();
        let len = Self::len_with(name);
        if len > Self::MAX_LEN {
            return Err(TracepointFormatError::TooLong { len });
        }
        let mut text = heapless::String::new();
        for c in chars(name) {
            if matches!(c, ' ' | ':') || c.is_control() {
                return Err(TracepointFormatError::BadName);
            }
            // The text fits: its length was checked.
            let _ = text.push(c);
        }
        if text.is_empty() {
            return Err(TracepointFormatError::BadName);
        }
        let _ = write!(text, " {}\0", Self::FIELDS);
        Ok(Self(text))
    }

    /// Returns the length of the format with this name, including its NUL.
    pub(crate) fn len_with(name: Text<'_>) -> usize {
        chars(name).map(char::len_utf8).fold(Self::FIELDS.len().saturating_add(2), usize::saturating_add)
    }

    /// Returns the format without its NUL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.strip_suffix('\0').unwrap_or_default()
    }

    /// Returns the format with its NUL, for `name_args` of `struct user_reg`.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(self.0.as_bytes()).unwrap_or_default()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        split_once(&self.0, b' ').unwrap_or_default().0
    }
}

/// Returns the characters of a name before its first NUL: a runtime reads no others.
fn chars(name: Text<'_>) -> impl Iterator<Item = char> {
    name.chars().take_while(|c| *c != '\0')
}

impl fmt::Display for TracepointFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TracepointFormat {
    type Err = TracepointFormatError;

    /// Parses a format strictly: only the text that [`Display`](fmt::Display) writes is accepted.
    fn from_str(s: &str) -> Result<Self, TracepointFormatError> {
        let other = TracepointFormatError::OtherFields;
        let name = s.strip_suffix(Self::FIELDS).and_then(|s| s.strip_suffix(' ')).ok_or(other)?;
        if name.contains('\0') {
            return Err(TracepointFormatError::BadName);
        }
        Self::new(name)
    }
}

/// The reason why a tracepoint format is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracepointFormatError {
    /// The name is empty, or contains a space, a colon or a control character.
    BadName,
    /// The format is longer than the 512 bytes that the kernel accepts.
    TooLong {
        /// The length of the format, including its NUL.
        len: usize,
    },
    /// The fields are not those of a .NET tracepoint.
    OtherFields,
}

impl fmt::Display for TracepointFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => {
                f.write_str("a tracepoint needs a name without blanks, colons and control characters")
            }
            Self::TooLong { len } => {
                write!(f, "the format of the tracepoint would have {len} bytes, and the kernel takes 512")
            }
            Self::OtherFields => f.write_str("the tracepoint has other fields than those of .NET"),
        }
    }
}
impl core::error::Error for TracepointFormatError {}
