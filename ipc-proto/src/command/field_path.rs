use core::fmt;

/// The place of a value in a request: `providers[3].level`.
///
/// Names and indexes are those that [`Message::inspect`](crate::Message::inspect) reports for the encoded request.
///
/// ```
/// use ipc_proto::FieldPath;
///
/// let id = FieldPath::new(&["providers", "filter.event_ids"], &[3, 12]);
/// assert_eq!(id.to_string(), "providers[3].filter.event_ids[12]");
/// assert_eq!(FieldPath::new(&["providers", "level"], &[3]).to_string(), "providers[3].level");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldPath {
    names: &'static [&'static str],
    indexes: [u32; Self::MAX_INDEXES],
    /// The number of indexes.
    len: u8,
}

impl FieldPath {
    /// The depth of lists in lists that a path can express. The protocol has three.
    pub const MAX_INDEXES: usize = 3;

    /// Creates a path of these names, each followed by the index with the same number, if there is one.
    ///
    /// Indexes beyond [`MAX_INDEXES`](Self::MAX_INDEXES) are dropped. One that does not fit into 32 bits becomes the largest
    /// number that does: no message has so many elements.
    #[must_use]
    pub fn new(names: &'static [&'static str], indexes: &[usize]) -> Self {
        let mut path = Self { names, indexes: [0; Self::MAX_INDEXES], len: 0 };
        for (slot, index) in path.indexes.iter_mut().zip(indexes) {
            *slot = u32::try_from(*index).unwrap_or(u32::MAX);
            path.len = path.len.saturating_add(1);
        }
        path
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut indexes = self.indexes.iter().take(self.len.into());
        let mut separator = "";
        for name in self.names {
            write!(f, "{separator}{name}")?;
            if let Some(index) = indexes.next() {
                write!(f, "[{index}]")?;
            }
            separator = ".";
        }
        Ok(())
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
