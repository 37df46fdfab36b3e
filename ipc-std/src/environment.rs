//! The environment of a process, as its runtime reports it.
use core::{fmt, iter};

use ipc_proto::types::EnvironmentEntry;
use ipc_proto::wire::{Reader, Writer};
use ipc_proto::{Encode, ProtocolError, ReceiveEnvironment, Text};

/// The environment of a process: all entries in their order, including duplicates and malformed ones.
///
/// The entries are stored in the encoding of the message, and take as much memory as in the message.
///
/// An [`EnvironmentEntry`] is an entry with a name: a variable.
///
/// ```
/// use ipc_std::Environment;
///
/// let environment = Environment::from_entries(["A=1=2", "=C:=C:\\x", "odd", "A=3"]);
/// assert_eq!(environment.get("A").unwrap(), "1=2");
/// assert_eq!(environment.get("=C:").unwrap(), "C:\\x");
/// let names: Vec<String> = environment.variables().map(|variable| variable.name.to_string()).collect();
/// assert_eq!(names, ["A", "=C:", "A"]);
/// assert_eq!(environment.entries().nth(2).unwrap(), "odd");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The encoded entries.
    bytes: Vec<u8>,
}

impl Environment {
    /// The longest environment that a client receives, in bytes. Linux allows 6 MiB of UTF-8.
    pub const LIMIT: u32 = 64 << 20;

    /// Creates an environment from entries, each `NAME=value`.
    pub fn from_entries<'t, T: Into<Text<'t>>>(entries: impl IntoIterator<Item = T>) -> Self {
        let mut environment = Self::default();
        entries.into_iter().for_each(|entry| environment.push(entry.into()));
        environment
    }

    /// Takes the entries that have arrived. Returns whether they are all.
    ///
    /// # Errors
    /// As [`ReceiveEnvironment::next_entry`].
    pub fn receive(&mut self, from: &mut ReceiveEnvironment<'_>) -> Result<bool, ProtocolError> {
        while let Some(entry) = from.next_entry()? {
            self.push(entry);
        }
        Ok(from.is_finished())
    }

    /// Adds an entry.
    fn push(&mut self, entry: Text<'_>) {
        let start = self.bytes.len();
        self.bytes.resize(start.saturating_add(entry.encoded_len()), 0);
        entry.encode(&mut Writer::new(self.bytes.get_mut(start..).unwrap_or_default()));
    }

    /// Returns all entries.
    pub fn entries(&self) -> impl Iterator<Item = Text<'_>> {
        let mut reader = Reader::new(&self.bytes);
        iter::from_fn(move || if reader.rest().is_empty() { None } else { reader.read().ok() })
    }

    /// Returns the variables: the entries that have a name, in order.
    pub fn variables(&self) -> impl Iterator<Item = EnvironmentEntry<'_>> {
        self.entries().filter_map(EnvironmentEntry::parse)
    }

    /// Returns the value of the first variable with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Text<'_>> {
        self.variables().find(|variable| variable.name == name).map(|variable| variable.value)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}
