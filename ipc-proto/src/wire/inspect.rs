//! [`Part`], a part of a message with its [`Path`] and [`PartValue`], and [`Visitor`], which receives the parts.
use core::fmt;

use super::Reader;
use super::error::WireError;
use crate::{Guid, HResult, Text};

/// A part of a message, for tools that display messages: see [`Message::inspect`](crate::Message::inspect).
///
/// ```
/// use ipc_proto::{Message, wire::PartValue};
///
/// let mut parts = Vec::new();
/// Message::inspect(b"DOTNET_IPC_V1\0\x14\0\x04\x08\0\0", None, &mut |part| match part.value {
///     PartValue::Number { number, name: Some(name) } => parts.push(format!("{} = {number} ({name})", part.path)),
///     _ => parts.push(format!("{}: {} bytes", part.path, part.bytes.len())),
/// })?;
/// assert_eq!(parts[3], "command_id = 8 (GetProcessInfo3)");
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Part<'p> {
    /// The name of the part.
    pub path: Path<'p>,
    /// The offset of the part from the start of the message.
    pub offset: usize,
    /// The bytes of the part.
    pub bytes: &'p [u8],
    /// The value of the part.
    pub value: PartValue<'p>,
}

/// Receives the parts of a message, in order, and the path of the error if there is one.
///
/// Every `FnMut(&Part<'_>)` is a visitor that ignores the error.
///
/// ```
/// use ipc_proto::wire::{Part, Path, Reader, Visitor, WireError};
/// use ipc_proto::{Decode, types::Provider};
///
/// struct Report(Vec<String>);
///
/// impl Visitor for Report {
///     fn visit(&mut self, part: &Part<'_>) {
///         self.0.push(part.path.to_string());
///     }
///     fn failed(&mut self, path: &Path<'_>, error: WireError) {
///         self.0.push(format!("{path}: {error}"));
///     }
/// }
/// let mut report = Report(Vec::new());
/// let cut_off = [7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, b'x', 0];
/// assert!(Provider::inspect(&mut Reader::new(&cut_off), &Path::Root, &mut report).is_err());
/// let expected = ["keywords", "level", "name.count", "name: a field extends past the end (at byte 16)"];
/// assert_eq!(report.0, expected);
/// ```
pub trait Visitor {
    /// Receives the next part.
    fn visit(&mut self, part: &Part<'_>);

    /// Receives the path and the error of the innermost field that does not decode. No part follows.
    fn failed(&mut self, path: &Path<'_>, error: WireError) {
        let _ = (path, error);
    }
}

impl<F: FnMut(&Part<'_>) + ?Sized> Visitor for F {
    fn visit(&mut self, part: &Part<'_>) {
        self(part);
    }
}

/// The name of a part, with the names of the parts that contain it: `providers[0].filter.enable`.
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
    /// Returns the path of the part that contains this part.
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

/// The value of a [`Part`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartValue<'a> {
    /// An integer, with the name of the value if it has one.
    Number {
        /// The integer.
        number: i128,
        /// The name of the value.
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
    /// A reserved number. Every value is valid, but senders write 0.
    Reserved(u16),
    /// Bytes that are none of the other kinds.
    Bytes(&'a [u8]),
}

impl PartValue<'_> {
    /// Returns the fault of a value that the specification does not allow and that receivers accept: a reserved number
    /// other than 0.
    ///
    /// ```
    /// use ipc_proto::Message;
    ///
    /// let mut problems = Vec::new();
    /// Message::inspect(b"DOTNET_IPC_V1\0\x14\0\x04\x08\x01\0", None, &mut |part| {
    ///     problems.extend(part.value.problem().map(|problem| format!("{}: {problem}", part.path)));
    /// })?;
    /// assert_eq!(problems, ["reserved: expected 0; receivers ignore it"]);
    /// # Ok::<(), ipc_proto::DecodeError>(())
    /// ```
    #[must_use]
    pub const fn problem(&self) -> Option<&'static str> {
        match self {
            Self::Reserved(1..) => Some("expected 0; receivers ignore it"),
            _ => None,
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads the next part with `read`, and passes the part to `visitor` with a value that `value` makes of the result.
    ///
    /// # Errors
    /// The errors of `read`. The visitor then receives the error of the part by [`failed`](Visitor::failed).
    pub fn show<T>(
        &mut self,
        path: Path<'_>,
        visitor: &mut dyn Visitor,
        read: impl FnOnce(&mut Self) -> Result<T, WireError>,
        value: impl FnOnce(&T, &'a [u8]) -> PartValue<'a>,
    ) -> Result<T, WireError> {
        let (offset, before) = (self.offset(), self.rest());
        let read = read(self).inspect_err(|error| visitor.failed(&path, *error))?;
        let len = before.len().saturating_sub(self.rest().len());
        let bytes = before.get(..len).unwrap_or_default();
        visitor.visit(&Part { path, offset, bytes, value: value(&read, bytes) });
        Ok(read)
    }

    /// Reads a reserved number and visits it.
    pub(crate) fn show_reserved(
        &mut self,
        path: Path<'_>,
        visitor: &mut dyn Visitor,
    ) -> Result<(), WireError> {
        self.show(path, visitor, Self::read, |number, _| PartValue::Reserved(*number)).map(|_| ())
    }

    /// Visits the remaining bytes as one part, if there are any.
    pub(crate) fn show_rest(&mut self, path: Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        if !self.rest().is_empty() {
            self.show(path, visitor, |r| r.bytes(r.rest().len()), |_, rest| PartValue::Bytes(rest))?;
        }
        Ok(())
    }
}
