use core::fmt;

use super::Reader;
use crate::{Decode, DecodeError, Guid, HResult, Text};

/// A part of a message, for whoever shows messages: see [`Message::inspect`](crate::Message::inspect).
#[derive(Debug, Clone, Copy)]
pub struct Part<'p> {
    /// Which part it is.
    pub path: Path<'p>,
    /// Where its bytes begin, from the start of the message.
    pub offset: usize,
    /// Its bytes.
    pub bytes: &'p [u8],
    /// What they say.
    pub value: Value<'p>,
}

/// Who is shown the parts, in their order.
pub type See<'s> = dyn FnMut(&Part<'_>) + 's;

/// The name of a part, within the part that it belongs to: `providers[0].filter.enable`.
///
/// ```
/// use ipc_proto::wire::Path;
///
/// let providers = Path::Field(&Path::Root, "providers");
/// assert_eq!(Path::Field(&Path::Index(&providers, 0), "name").to_string(), "providers[0].name");
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Path<'p> {
    /// The message.
    Root,
    /// A field of a struct.
    Field(&'p Self, &'static str),
    /// An element of an array.
    Index(&'p Self, u32),
}

impl Path<'_> {
    /// What it is a part of.
    pub(crate) const fn parent(&self) -> &Self {
        match self {
            Self::Root => self,
            Self::Field(of, _) | Self::Index(of, _) => of,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => f.write_str(name),
            Self::Field(of, name) => write!(f, "{of}.{name}"),
            Self::Index(of, index) => write!(f, "{of}[{index}]"),
        }
    }
}

/// What the bytes of a [`Part`] say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Any integer, with the name of this value if it has one.
    Number {
        /// The integer.
        number: i128,
        /// Its name.
        name: Option<&'static str>,
    },
    /// A bool.
    Bool(bool),
    /// A text, or null.
    Text(Text<'a>),
    /// A GUID.
    Guid(Guid),
    /// A result code.
    HResult(HResult),
    /// Bytes that are nothing else.
    Bytes(&'a [u8]),
}

impl<'a> Reader<'a> {
    /// Shows the next part: the bytes that `read` takes, and the `value` of what it made of them.
    ///
    /// # Errors
    /// As `read`; nothing is shown then.
    pub fn show<T>(
        &mut self,
        path: Path<'_>,
        see: &mut See<'_>,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
        value: impl FnOnce(&T, &'a [u8]) -> Value<'a>,
    ) -> Result<T, DecodeError> {
        let (offset, before) = (self.offset(), self.rest());
        let read = read(self)?;
        let len = before.len().saturating_sub(self.rest().len());
        let bytes = before.get(..len).unwrap_or_default();
        see(&Part { path, offset, bytes, value: value(&read, bytes) });
        Ok(read)
    }

    /// Shows the count before something, and reads it.
    pub(crate) fn show_count(&mut self, path: &Path<'_>, see: &mut See<'_>) -> Result<u32, DecodeError> {
        self.show(Path::Field(path, "count"), see, u32::decode, u32::shown)
    }

    /// Shows what is left, if anything is.
    pub(crate) fn show_rest(&mut self, path: Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        if !self.rest().is_empty() {
            self.show(path, see, |r| r.bytes(r.rest().len()), |_, rest| Value::Bytes(rest))?;
        }
        Ok(())
    }
}
