use core::ffi::CStr;
use core::fmt::{self, Write};
use core::str::FromStr;

use crate::Text;
use crate::endpoint::split_once;

/// The name of a tracepoint and its fields, as the kernel is told when it is registered.
///
/// ```text
/// {name} u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload
/// ```
///
/// It is kept with its NUL on the stack: half a kilobyte. "Tracepoint Format V1" in the specification.
///
/// ```
/// use ipc_proto::user_events::{TracepointFormat, TracepointFormatError};
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
    /// The fields, the same for all.
    pub const FIELDS: &'static str =
        "u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload";
    /// The most bytes that the kernel takes, with the blank behind the name and the NUL.
    pub const MAX_LEN: usize = 512;

    /// Of the tracepoint with this name: text, or what a [`TracepointConfig`](crate::types::TracepointConfig) has,
    /// which counts up to its first NUL.
    ///
    /// # Errors
    /// [`BadName`](TracepointFormatError::BadName) for no name, or one in which is a blank or a control character:
    /// the kernel would take it for another. [`TooLong`](TracepointFormatError::TooLong).
    pub fn new<'n>(name: impl Into<Text<'n>>) -> Result<Self, TracepointFormatError> {
        let name = name.into();
        let len = Self::len_with(name);
        if len > Self::MAX_LEN {
            return Err(TracepointFormatError::TooLong { len });
        }
        let mut text = heapless::String::new();
        for c in chars(name) {
            if c == ' ' || c.is_control() {
                return Err(TracepointFormatError::BadName);
            }
            // It fits: the length was looked at.
            let _ = text.push(c);
        }
        if text.is_empty() {
            return Err(TracepointFormatError::BadName);
        }
        let _ = write!(text, " {}\0", Self::FIELDS);
        Ok(Self(text))
    }

    /// How long the format with this name would be, with its NUL.
    pub(crate) fn len_with(name: Text<'_>) -> usize {
        chars(name).map(char::len_utf8).fold(Self::FIELDS.len().saturating_add(2), usize::saturating_add)
    }

    /// The format, without its NUL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.strip_suffix('\0').unwrap_or_default()
    }

    /// The format with its NUL: what `name_args` of `struct user_reg` points to.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(self.0.as_bytes()).unwrap_or_default()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        split_once(&self.0, b' ').unwrap_or_default().0
    }
}

/// What a runtime reads of a name.
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

    /// Reads a format strictly: it is the one that [`Display`](fmt::Display) would write, or none.
    fn from_str(s: &str) -> Result<Self, TracepointFormatError> {
        let other = TracepointFormatError::OtherFields;
        let name = s.strip_suffix(Self::FIELDS).and_then(|s| s.strip_suffix(' ')).ok_or(other)?;
        if name.contains('\0') {
            return Err(TracepointFormatError::BadName);
        }
        Self::new(name)
    }
}

/// Why there is no such format of a tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracepointFormatError {
    /// There is no name, or there is a blank or a control character in it.
    BadName,
    /// The kernel takes 512 bytes.
    TooLong {
        /// Bytes that it would have, with its NUL.
        len: usize,
    },
    /// The fields are not those of a .NET tracepoint.
    OtherFields,
}

impl fmt::Display for TracepointFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => f.write_str("a tracepoint needs a name without blanks and control characters"),
            Self::TooLong { len } => {
                write!(f, "the format of the tracepoint would have {len} bytes, and the kernel takes 512")
            }
            Self::OtherFields => f.write_str("the tracepoint has other fields than those of .NET"),
        }
    }
}
impl core::error::Error for TracepointFormatError {}
