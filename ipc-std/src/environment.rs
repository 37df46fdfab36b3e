use ipc_proto::Text;
use ipc_proto::wire::TextBuf;

/// The environment of a process, every entry as it came: in its order, with duplicates and odd ones.
///
/// An entry is split at the first `=` that is not its first character: Windows has variables such as `=C:`. An entry
/// without one has no name.
///
/// ```
/// use ipc_std::Environment;
///
/// let environment = Environment::from_entries(["A=1=2", "=C:=C:\\x", "odd", "A=3"]);
/// assert_eq!(environment.get("A").unwrap(), "1=2");
/// assert_eq!(environment.get("=C:").unwrap(), "C:\\x");
/// assert_eq!(environment.variables().count(), 3);
/// assert_eq!(environment.entries()[2], "odd");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    entries: Vec<TextBuf>,
}

impl Environment {
    /// Of these entries, each `NAME=value`.
    pub fn from_entries<T: Into<TextBuf>>(entries: impl IntoIterator<Item = T>) -> Self {
        Self { entries: entries.into_iter().map(Into::into).collect() }
    }

    /// Every entry as it came.
    #[must_use]
    pub fn entries(&self) -> &[TextBuf] {
        &self.entries
    }

    /// Every entry that has a name, as name and value, in order.
    pub fn variables(&self) -> impl Iterator<Item = (TextBuf, TextBuf)> {
        self.entries.iter().filter_map(|entry| Self::split(entry.as_text()))
    }

    /// The value of a variable, the first if there are several.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<TextBuf> {
        self.variables().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// Name and value of one entry, if it has a name.
    #[must_use]
    pub fn split(entry: Text<'_>) -> Option<(TextBuf, TextBuf)> {
        let units: Vec<u16> = entry.units().collect();
        let at = units.iter().skip(1).position(|unit| *unit == u16::from(b'='))?;
        let (name, value) = units.split_at_checked(at.saturating_add(1))?;
        Some((Text::from_utf16(name).into(), Text::from_utf16(value.get(1..)?).into()))
    }
}
