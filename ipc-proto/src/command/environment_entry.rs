//! [`EnvironmentEntry`]: the name and the value in an entry of an environment.
use core::fmt;

use crate::Text;

/// An entry of an environment, split into the name and the value of a variable.
///
/// ```text
/// NAME=value    =C:=C:\folder
/// ```
///
/// The name ends at the first `=` that is not the first character: Windows has variables such as `=C:`, the current
/// directory of a drive. An environment can also contain entries without a name; such entries are not variables.
///
/// Name and value borrow from the entry, and have its form: bytes of a message, UTF-8 or UTF-16.
///
/// ```
/// use ipc_proto::types::EnvironmentEntry;
///
/// let EnvironmentEntry { name, value } = EnvironmentEntry::parse("A=1=2".into()).unwrap();
/// assert_eq!((name.to_string(), value.to_string()), ("A".into(), "1=2".into()));
/// assert_eq!(EnvironmentEntry::parse("=C:=C:\\x".into()).unwrap().name, "=C:");
/// assert_eq!(EnvironmentEntry::parse("odd".into()), None);
/// assert_eq!(EnvironmentEntry::parse("=odd".into()), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnvironmentEntry<'a> {
    /// The name; not empty.
    pub name: Text<'a>,
    /// The value; can be empty, and can contain `=`.
    pub value: Text<'a>,
}

impl<'a> EnvironmentEntry<'a> {
    /// Splits an entry of [`ReceiveEnvironment`](crate::ReceiveEnvironment) or
    /// [`EnvironmentEntries`](super::types::EnvironmentEntries); `None` if the entry has no name.
    #[must_use]
    pub fn parse(entry: Text<'a>) -> Option<Self> {
        let (name, value) = entry.split_after_first(b'=')?;
        Some(Self { name, value })
    }
}

/// Writes the entry, with U+FFFD for each lone surrogate.
impl fmt::Display for EnvironmentEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}
