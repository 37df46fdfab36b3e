use core::fmt;

/// Values by number, in slots that the caller owns: what a stream says once and events point to later.
///
/// Nothing is dropped to make room: [`insert`](Self::insert) says so when there is none. Of `n` slots, the largest power
/// of two up to `n` is used, seven eighths of it.
///
/// ```
/// use ipc_proto::nettrace::{Full, Slot, Table};
///
/// let mut slots = [Slot::default(); 4];
/// let mut table = Table::new(&mut slots);
/// assert_eq!(table.insert(7, "seven"), Ok(None));
/// assert_eq!(table.insert(7, "sept"), Ok(Some("seven")));
/// assert_eq!(table.get(7), Some(&"sept"));
/// table.clear();
/// assert_eq!(table.get(7), None);
/// assert_eq!(Table::new(&mut []).insert(7, "seven"), Err(Full));
/// ```
#[derive(Debug)]
pub struct Table<'s, V> {
    slots: &'s mut [Slot<V>],
    /// The number of used slots less one.
    mask: usize,
    /// Slots of another generation are vacant, which makes it quick to clear them.
    generation: u32,
    len: usize,
}

/// Room for one value in a [`Table`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Slot<V> {
    key: u64,
    generation: u32,
    value: V,
}

/// There is no room left in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table is full")
    }
}
impl core::error::Error for Full {}

impl<'s, V> Table<'s, V> {
    /// An empty table; what `slots` held is forgotten.
    #[must_use]
    pub fn new(slots: &'s mut [Slot<V>]) -> Self {
        let used = slots.len().checked_ilog2().map_or(0, |log| 1usize.wrapping_shl(log));
        let slots = slots.get_mut(..used).unwrap_or_default();
        slots.iter_mut().for_each(|slot| slot.generation = 0);
        Self { slots, mask: used.saturating_sub(1), generation: 1, len: 0 }
    }

    /// The table that was in these slots when it was like `self`, whose own slots do not matter.
    #[cfg(feature = "alloc")]
    pub(super) const fn lend<'t>(&self, slots: &'t mut [Slot<V>]) -> Table<'t, V> {
        Table { slots, mask: self.mask, generation: self.generation, len: self.len }
    }

    /// Whether a value of another number would find no room.
    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.slots.len().wrapping_sub(self.slots.len().wrapping_shr(3))
    }

    /// How many values there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `key`.
    #[inline]
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&V> {
        self.slots.get(self.find(key).ok()?).map(|slot| &slot.value)
    }

    /// The value of `key`, to change it.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let place = self.find(key).ok()?;
        self.slots.get_mut(place).map(|slot| &mut slot.value)
    }

    /// Sets the value of `key`, and hands back the one before.
    ///
    /// # Errors
    /// [`Full`] if there is no room for one more; all is as it was then.
    pub fn insert(&mut self, key: u64, value: V) -> Result<Option<V>, Full> {
        match self.find(key) {
            Ok(place) => {
                let slot = self.slots.get_mut(place).ok_or(Full)?;
                Ok(Some(core::mem::replace(&mut slot.value, value)))
            }
            Err(place) => {
                if self.is_full() {
                    return Err(Full);
                }
                let slot = self.slots.get_mut(place).ok_or(Full)?;
                *slot = Slot { key, generation: self.generation, value };
                self.len = self.len.wrapping_add(1);
                Ok(None)
            }
        }
    }

    /// Takes the value of `key` out.
    pub fn remove(&mut self, key: u64) -> Option<V>
    where
        V: Default,
    {
        let mut hole = self.find(key).ok()?;
        let value = core::mem::take(&mut self.slots.get_mut(hole)?.value);
        self.len = self.len.wrapping_sub(1);
        // What was pushed behind its place by others moves up, so that a search may stop at the first vacant slot.
        let mut place = hole;
        for _ in 0..self.mask {
            place = place.wrapping_add(1) & self.mask;
            let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.generation == self.generation)
            else {
                break;
            };
            let (key, home) = (slot.key, home(slot.key));
            if place.wrapping_sub(home) & self.mask >= place.wrapping_sub(hole) & self.mask {
                let value = core::mem::take(&mut slot.value);
                *self.slots.get_mut(hole)? = Slot { key, generation: self.generation, value };
                hole = place;
            }
        }
        self.slots.get_mut(hole)?.generation = 0;
        Some(value)
    }

    /// Takes all out. Values that own something are dropped when others take their place.
    pub fn clear(&mut self) {
        self.len = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.slots.iter_mut().for_each(|slot| slot.generation = 0);
            self.generation = 1;
        }
    }

    /// All there are, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.slots
            .iter()
            .filter(|slot| slot.generation == self.generation)
            .map(|slot| (slot.key, &slot.value))
    }

    /// The same, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut V)> {
        let generation = self.generation;
        let slots = self.slots.iter_mut().filter(move |slot| slot.generation == generation);
        slots.map(|slot| (slot.key, &mut slot.value))
    }

    /// Where `key` is, or else where it would come.
    #[inline]
    fn find(&self, key: u64) -> Result<usize, usize> {
        let place = home(key) & self.mask;
        match self.slots.get(place) {
            Some(slot) if slot.key == key && slot.generation == self.generation => Ok(place),
            _ => self.search(key, place),
        }
    }

    /// The same, from `place` on.
    #[cold]
    #[inline(never)]
    fn search(&self, key: u64, mut place: usize) -> Result<usize, usize> {
        for _ in 0..=self.mask {
            match self.slots.get(place) {
                Some(slot) if slot.generation != self.generation => return Err(place),
                Some(slot) if slot.key == key => return Ok(place),
                Some(_) => place = place.wrapping_add(1) & self.mask,
                None => break,
            }
        }
        Err(usize::MAX)
    }
}

/// Where a number would like to be. Most numbers count up from 1, and lie side by side then; larger ones are spread, as
/// those of threads may be addresses, or be chosen by somebody who means no good.
#[inline]
fn home(key: u64) -> usize {
    const DENSE: u64 = 1 << 24;
    /// 2^64 by the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let spread = if key < DENSE { key } else { key.wrapping_mul(SPREAD) >> 33 };
    // No more than 31 bits: it fits.
    usize::try_from(spread).unwrap_or(0)
}
