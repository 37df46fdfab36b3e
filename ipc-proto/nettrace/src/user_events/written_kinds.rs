//! The set of events whose metadata a session has written.
/// The kinds of events that a session has written: their metadata is not written again.
///
/// A runtime has one set for each session. The set needs a bit for each kind of event, in a buffer of the caller. Kinds
/// have numbers that the runtime assigns. A kind beyond the buffer never counts as written, so its metadata is written
/// with each event, which readers accept.
///
/// ```
/// use nettrace::user_events::WrittenKinds;
///
/// let mut bits = [0; 16]; // for 128 kinds
/// let mut written = WrittenKinds::new(&mut bits);
/// for (kind, has_metadata) in [(7, true), (7, false), (8, true), (128, true), (128, true)] {
///     assert_eq!(!written.contains(kind), has_metadata);
///     // … write the event, and only if the system has accepted it:
///     written.insert(kind);
/// }
/// ```
#[derive(Debug)]
pub struct WrittenKinds<'s>(&'s mut [u8]);

impl<'s> WrittenKinds<'s> {
    /// Creates a set from its bits, which are 0 at the start of a session.
    #[must_use]
    pub const fn new(bits: &'s mut [u8]) -> Self {
        Self(bits)
    }

    /// Returns whether an event of this kind was written.
    #[must_use]
    pub fn contains(&self, kind: usize) -> bool {
        self.0.get(kind / 8).is_some_and(|byte| byte & bit(kind) != 0)
    }

    /// Records that an event of this kind was written.
    pub fn insert(&mut self, kind: usize) {
        if let Some(byte) = self.0.get_mut(kind / 8) {
            *byte |= bit(kind);
        }
    }
}

/// Returns the bit of a kind in its byte.
const fn bit(kind: usize) -> u8 {
    1 << (kind % 8)
}
