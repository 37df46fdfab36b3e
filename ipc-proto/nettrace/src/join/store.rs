//! Copies of records by id, for streams that do not stay in memory.
use ipc_proto::wire::copy;

use crate::join::id_map::{IdMap, Slot, StoreFull};

/// Copies of records by id, in memory that the caller owns: stacks and metadata that events refer to, if the stream
/// does not stay in memory. For a stream that stays in memory, an [`IdMap`] of slices needs no copies.
///
/// ```
/// use nettrace::{StoreFull, Slot, Store};
///
/// let (mut slots, mut bytes) = ([Slot::default(); 8], [0; 16]);
/// let mut stacks = Store::new(&mut slots, &mut bytes);
/// stacks.insert(1, &[1, 2, 3, 4, 5, 6, 7, 8])?;
/// assert_eq!(stacks.insert(2, &[0; 9]), Err(StoreFull));
/// assert_eq!(stacks.get(1), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
/// stacks.clear(); // at a sequence point
/// assert_eq!(stacks.get(1), None);
/// # Ok::<(), StoreFull>(())
/// ```
#[derive(Debug)]
pub struct Store<'s> {
    places: IdMap<&'s mut [Slot<StoredRange>]>,
    bytes: &'s mut [u8],
    used: usize,
}

/// The bytes of a record in a [`Store`].
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredRange {
    start: usize,
    end: usize,
}

impl<'s> Store<'s> {
    /// Creates an empty store. Previous content of `slots` and `bytes` is overwritten.
    #[must_use]
    pub fn new(slots: &'s mut [Slot<StoredRange>], bytes: &'s mut [u8]) -> Self {
        Self { places: IdMap::new(slots), bytes, used: 0 }
    }

    /// Stores a copy of `record`. The copy replaces a record of the same key, whose memory stays unused until
    /// [`clear`](Self::clear).
    ///
    /// # Errors
    /// [`StoreFull`] if there is no room for the record. The store then stays unchanged.
    pub fn insert(&mut self, key: u64, record: &[u8]) -> Result<(), StoreFull> {
        let (start, end) = (self.used, self.used.saturating_add(record.len()));
        let room =
            self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..record.len())).ok_or(StoreFull)?;
        self.places.insert(key, StoredRange { start, end })?;
        copy(room, record);
        self.used = end;
        Ok(())
    }

    /// Returns the record of this key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&[u8]> {
        let StoredRange { start, end } = *self.places.get(key)?;
        self.bytes.get(start..end)
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.places.clear();
        self.used = 0;
    }
}
