//! The name of code, as a row of a trace states it or as a text.
use alloc::borrow::Cow;
use alloc::string::String;

use super::rows::MethodNames;
use super::spelling::{MAX_METHOD, cut, push_method_name};

/// A name. A trace names all methods of the process, but samples are in few of them. So the names of a row stay as they
/// are until a sample is in the method.
#[derive(Debug, Clone, Copy)]
pub(super) enum CodeName<'n> {
    /// The names of a row, and the bytes that follow them in the row.
    Row(&'n [u8]),
    /// `Type.Method(args)`.
    Text(&'n str),
}

impl<'n> CodeName<'n> {
    /// The most bytes of a row that is stored as it is. The text of a longer row has at most half as many.
    pub(super) const LONGEST_ROW: usize = 2 * MAX_METHOD;

    /// Returns `Type.Method(args)`, cut at the longest length of a name.
    pub(super) fn text(self) -> Cow<'n, str> {
        match self {
            Self::Row(row) => {
                let mut text = String::new();
                push_method_name(&mut text, &MethodNames::decode(row));
                text.truncate(cut(&text, MAX_METHOD).len());
                Cow::Owned(text)
            }
            Self::Text(text) => Cow::Borrowed(cut(text, MAX_METHOD)),
        }
    }

    /// Returns whether both are the same name. A row that states a name in other bytes than a row before is another one.
    pub(super) fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Row(row), Self::Row(other)) => row == other,
            (name, other) => name.text() == other.text(),
        }
    }
}
