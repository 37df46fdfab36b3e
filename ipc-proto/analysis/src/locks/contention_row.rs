//! The rows of waits for locks, and of the version of the runtime that sends them.
use ipc_proto::wire::Reader;

use crate::event::row_pointer;

/// The start of a wait for a lock: ContentionStart. `P` has the size of a pointer. Version 1 ends after the runtime.
///
/// ```text
/// u8 flags, u16 runtime, P lock, P object, u64 owner
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentionRow {
    /// The id of the lock; `None` before .NET 8.
    pub(crate) lock: Option<u64>,
    /// The address of the object, which the collector can move.
    pub(super) object: Option<u64>,
    /// The thread that has the lock, as the runtime counts threads; `None` if the runtime does not know it.
    pub(super) owner: Option<u64>,
}

impl ContentionRow {
    pub(crate) fn decode(payload: &[u8], pointer_size: usize) -> Self {
        let mut r = Reader::new(payload);
        // The flags, and the number of the runtime.
        let _ = r.bytes(1 + 2);
        let lock = row_pointer(&mut r, pointer_size);
        let object = row_pointer(&mut r, pointer_size);
        let owner = object.and_then(|_| r.read().ok()).filter(|owner| *owner != 0);
        Self { lock, object, owner }
    }
}

/// Returns the nanoseconds of a wait for a lock, by its end: ContentionStop. `None` before .NET 5.
///
/// ```text
/// u8 flags, u16 runtime, f64 nanoseconds
/// ```
pub(super) fn contention_time(payload: &[u8]) -> Option<u64> {
    let mut r = Reader::new(payload);
    r.bytes(1 + 2).ok()?;
    let nanoseconds = f64::from_bits(r.read().ok()?);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the conversion saturates, and makes 0 of what is no number"
    )]
    let nanoseconds = nanoseconds as u64;
    Some(nanoseconds)
}

/// Returns the major version of a runtime: RuntimeInformationStart, and the row of the rundown.
///
/// ```text
/// u16 runtime, u16 kind, 4 x u16 version of the library, u16 major version of the runtime, ...
/// ```
pub(super) fn runtime_version(payload: &[u8]) -> Option<u16> {
    let mut r = Reader::new(payload);
    r.bytes(2 + 2 + 4 * 2).ok()?;
    r.read().ok()
}
