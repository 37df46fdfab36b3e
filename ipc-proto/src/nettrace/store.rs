use super::{Full, Slot, Table};
use crate::wire::copy;

/// Copies of records by number, in memory that the caller owns: for what events point to when the stream does not stay
/// in memory, stacks and metadata above all. Where it does, a [`Table`] of slices needs no copies.
///
/// ```
/// use ipc_proto::nettrace::{Full, Slot, Store};
///
/// let (mut slots, mut bytes) = ([Slot::default(); 8], [0; 16]);
/// let mut stacks = Store::new(&mut slots, &mut bytes);
/// stacks.insert(1, &[1, 2, 3, 4, 5, 6, 7, 8])?;
/// assert_eq!(stacks.insert(2, &[0; 9]), Err(Full));
/// assert_eq!(stacks.get(1), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
/// stacks.clear(); // at a sequence point
/// assert_eq!(stacks.get(1), None);
/// # Ok::<(), Full>(())
/// ```
#[derive(Debug)]
pub struct Store<'s> {
    places: Table<'s, Place>,
    bytes: &'s mut [u8],
    used: usize,
}

/// Where a record lies in a [`Store`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    start: usize,
    end: usize,
}

impl<'s> Store<'s> {
    /// Holds nothing; what `slots` and `bytes` held is forgotten.
    #[must_use]
    pub fn new(slots: &'s mut [Slot<Place>], bytes: &'s mut [u8]) -> Self {
        Self { places: Table::new(slots), bytes, used: 0 }
    }

    /// Keeps a copy of `record`. One of the same number is replaced, but its memory is not used again.
    ///
    /// # Errors
    /// [`Full`] if there is no room for it; all is as it was then.
    pub fn insert(&mut self, key: u64, record: &[u8]) -> Result<(), Full> {
        let (start, end) = (self.used, self.used.saturating_add(record.len()));
        let room = self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..record.len())).ok_or(Full)?;
        self.places.insert(key, Place { start, end })?;
        copy(room, record);
        self.used = end;
        Ok(())
    }

    /// The record of this number.
    #[inline]
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&[u8]> {
        let Place { start, end } = *self.places.get(key)?;
        self.bytes.get(start..end)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.places.clear();
        self.used = 0;
    }
}
