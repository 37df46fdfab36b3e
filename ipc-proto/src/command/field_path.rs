//! [`FieldPath`]: the path of a field in a message, for example `providers[3].level`.
use core::fmt;
use core::hash::{Hash, Hasher};

use super::violation::Violation;

/// The path of a value in a request: `providers[3].level`.
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
#[derive(Clone, Copy)]
pub struct FieldPath(FieldPathRepr);

/// `Known` stores no names; [`Position::names`] returns them. So a program that displays no path contains no names.
#[derive(Clone, Copy)]
enum FieldPathRepr {
    Known(Violation, Position),
    Other { names: &'static [&'static str], indexes: [u16; FieldPath::MAX_INDEXES], len: u8 },
}

/// The value that the rules currently check: its index in each list that contains it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Position {
    pub(super) provider: u16,
    /// The index of the set of tracepoints, if the value is in a set.
    pub(super) set: u16,
    pub(super) is_in_set: bool,
    pub(super) event_id: u16,
}

impl Position {
    /// Returns the names in the path of the value that breaks the rule, and the number of indexes in that path.
    const fn names(&self, violation: Violation) -> (&'static [&'static str], usize) {
        match (violation, self.is_in_set) {
            (Violation::BufferSize, _) => (&["buffer_mb"], 0),
            (Violation::Format, _) => (&["format"], 0),
            (Violation::SessionType, _) => (&["session_type"], 0),
            (Violation::SessionBufferMode, _) => (&["session_buffer_mode"], 0),
            (Violation::ProviderCount, _) => (&["providers"], 0),
            (Violation::ProviderLevel, _) => (&["providers", "level"], 1),
            (Violation::ProviderName, _) => (&["providers", "name"], 1),
            (Violation::NoTracepoint, _) => (&["providers", "tracepoints"], 1),
            (Violation::TracepointSetName, _) | (Violation::TracepointNameLength, true) => {
                (&["providers", "tracepoints.sets", "tracepoint_name"], 2)
            }
            (Violation::TracepointNameLength, false) => {
                (&["providers", "tracepoints.default_tracepoint_name"], 1)
            }
            (Violation::DuplicateEventId, false) => (&["providers", "filter.event_ids"], 2),
            (Violation::DuplicateEventId, true) => (&["providers", "tracepoints.sets", "event_ids"], 3),
            (Violation::DumpType, _) => (&["dump_type"], 0),
            (Violation::ProfilerPath, _) => (&["profiler_path"], 0),
            (Violation::VariableName, _) => (&["name"], 0),
            (Violation::PerfMapType, _) => (&["perf_map_type"], 0),
            (Violation::StartupHookPath, _) => (&["startup_hook_path"], 0),
        }
    }

    const fn indexes(&self) -> [u16; FieldPath::MAX_INDEXES] {
        if self.is_in_set {
            [self.provider, self.set, self.event_id]
        } else {
            [self.provider, self.event_id, 0]
        }
    }
}

impl FieldPath {
    /// The largest number of indexes in a path. The protocol has lists in lists in lists.
    pub const MAX_INDEXES: usize = 3;

    /// Creates a path: the first name, the first index, the second name, and so on. Indexes can be fewer than names.
    ///
    /// Indexes beyond [`MAX_INDEXES`](Self::MAX_INDEXES) are dropped. An index that does not fit into 16 bits becomes
    /// 65,535: no message has so many elements.
    #[must_use]
    pub fn new(names: &'static [&'static str], indexes: &[usize]) -> Self {
        let (mut stored, mut len) = ([0; Self::MAX_INDEXES], 0u8);
        for (slot, index) in stored.iter_mut().zip(indexes) {
            *slot = u16::try_from(*index).unwrap_or(u16::MAX);
            len = len.saturating_add(1);
        }
        Self(FieldPathRepr::Other { names, indexes: stored, len })
    }

    /// Returns the path of the value at the position `at`, which breaks the rule `violation`.
    pub(super) const fn known(violation: Violation, at: Position) -> Self {
        Self(FieldPathRepr::Known(violation, at))
    }

    /// Returns each name with the index that follows the name, if there is one.
    fn parts(&self) -> impl Iterator<Item = (&'static str, Option<u16>)> + Clone {
        let (names, indexes, len) = match self.0 {
            FieldPathRepr::Known(violation, at) => {
                let (names, len) = at.names(violation);
                (names, at.indexes(), len)
            }
            FieldPathRepr::Other { names, indexes, len } => (names, indexes, len.into()),
        };
        let indexes = indexes.into_iter().take(len).map(Some).chain(core::iter::repeat(None));
        names.iter().copied().zip(indexes)
    }
}

impl PartialEq for FieldPath {
    fn eq(&self, other: &Self) -> bool {
        self.parts().eq(other.parts())
    }
}
impl Eq for FieldPath {}
impl Hash for FieldPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().for_each(|part| part.hash(state));
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, index) in self.parts() {
            write!(f, "{separator}{name}")?;
            if let Some(index) = index {
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
