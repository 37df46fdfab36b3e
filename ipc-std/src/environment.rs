use core::{fmt, iter};

use ipc_proto::wire::{Reader, TextBuf, Writer};
use ipc_proto::{Encode, Text};

/// The environment of a process: all entries in their order, including duplicates and malformed ones.
///
/// It stores the entries as a message contains them, and so needs as much memory.
///
/// The name of an entry ends at the first `=` that is not the first character, because Windows has variables such as
/// `=C:`. An entry without such a `=` has no name.
///
/// ```
/// use ipc_std::Environment;
///
/// let environment = Environment::from_entries(["A=1=2", "=C:=C:\\x", "odd", "A=3"]);
/// assert_eq!(environment.get("A").unwrap(), "1=2");
/// assert_eq!(environment.get("=C:").unwrap(), "C:\\x");
/// assert_eq!(environment.variables().count(), 3);
/// assert_eq!(environment.entries().nth(2).unwrap(), "odd");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The encoded entries.
    bytes: Vec<u8>,
}

impl Environment {
    /// Creates an environment from entries, each `NAME=value`.
    pub fn from_entries<'t, T: Into<Text<'t>>>(entries: impl IntoIterator<Item = T>) -> Self {
        let mut environment = Self::default();
        entries.into_iter().for_each(|entry| environment.push(entry.into()));
        environment
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: Text<'_>) {
        let start = self.bytes.len();
        self.bytes.resize(start.saturating_add(entry.encoded_len()), 0);
        entry.encode(&mut Writer::new(self.bytes.get_mut(start..).unwrap_or_default()));
    }

    /// Returns all entries.
    pub fn entries(&self) -> impl Iterator<Item = Text<'_>> {
        let mut reader = Reader::new(&self.bytes);
        iter::from_fn(move || if reader.rest().is_empty() { None } else { reader.read().ok() })
    }

    /// Returns name and value of each entry that has a name, in order.
    pub fn variables(&self) -> impl Iterator<Item = (TextBuf, TextBuf)> {
        self.entries().filter_map(Self::split)
    }

    /// Returns the value of a variable; of several entries with its name, the first.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<TextBuf> {
        self.variables().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// Splits an entry into name and value; `None` if it has no name.
    #[must_use]
    pub fn split(entry: Text<'_>) -> Option<(TextBuf, TextBuf)> {
        let units: Vec<u16> = entry.units().collect();
        let at = units.iter().skip(1).position(|unit| *unit == u16::from(b'='))?;
        let (name, value) = units.split_at_checked(at.saturating_add(1))?;
        Some((Text::from_utf16(name).into(), Text::from_utf16(value.get(1..)?).into()))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}
