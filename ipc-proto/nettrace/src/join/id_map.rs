//! Values by id: `IdMap`, its `Slot`s, and the error `StoreFull` of a map or a store without room.
use core::fmt;

use ipc_proto::wire::{steps, to_u32, to_u64, to_usize};

use crate::join::backing::Backing;

/// Values by id, in slots of the caller or in a `Vec`: records that later events refer to.
///
/// No value is dropped to make room for another: [`insert`](Self::insert) fails if all slots are full and the memory
/// does not [grow](Backing::grow). Each slot holds one value.
///
/// Each call takes at most a few hundred steps, whatever the ids are, so a hostile stream cannot make a call slower
/// than that. Only the first [`remove`](Self::remove) after ids that count up from 1 takes so many steps for each of
/// those ids. Most calls read one or two slots. Creating and clearing a map takes no time.
///
/// ```
/// use nettrace::{IdMap, Slot, StoreFull};
///
/// let mut slots = [Slot::default(); 4];
/// let mut map = IdMap::new(&mut slots);
/// assert_eq!(map.insert(7, "seven"), Ok(None));
/// assert_eq!(map.insert(7, "sept"), Ok(Some("seven")));
/// assert_eq!(map.get(7), Some(&"sept"));
/// map.clear();
/// assert_eq!(map.get(7), None);
/// assert_eq!(IdMap::new([]).insert(7, "seven"), Err(StoreFull));
/// ```
///
/// The values are in the first slots. Writers number most records 1, 2, 3: as long as ids come in this order, the slot
/// of each is known. All other values form a digital search tree: the bits of an id, after a multiplication that
/// spreads them, select a branch at each level. Ids have 64 bits and are different, so no value is below the 65th
/// level. In addition each slot holds a hint, which is the slot of a value whose id prefers this slot. A hint can be
/// outdated: it is valid only if the slot to which it leads has the id.
#[derive(Debug)]
pub struct IdMap<B> {
    slots: B,
    /// The number of slots with hints (a power of two) minus one.
    mask: usize,
    /// The number of values.
    len: usize,
    /// The first values have the ids 1, 2, 3, up to this number. The value after them is the root of the tree.
    counted: usize,
}

/// Room for a value in an [`IdMap`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Slot<V> {
    key: u64,
    value: V,
    /// The child in the tree for ids whose next bit is 0. The number 0 means no child, because slot 0 is the root or
    /// not in the tree.
    low: u32,
    /// The child in the tree for ids whose next bit is 1, or 0.
    high: u32,
    /// The slot of a value whose id prefers this slot. The hint is unrelated to the value in this slot.
    hint: u32,
}

impl<V> Slot<V> {
    const fn child(&self, is_high: bool) -> u32 {
        if is_high { self.high } else { self.low }
    }
}

/// The position of a slot in the tree: its parent, and whether the slot is the high child. `None` for the root.
type Link = Option<(usize, bool)>;

/// The levels of the tree: one for each bit, and the root.
const LEVELS: usize = 65;

/// The error that an [`IdMap`] or a [`Store`](crate::Store) has no room for another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreFull;

impl fmt::Display for StoreFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no room for another value")
    }
}
impl core::error::Error for StoreFull {}

impl<V, B: Backing<Slot = Slot<V>>> IdMap<B> {
    /// Creates an empty map.
    #[must_use]
    pub fn new(slots: B) -> Self {
        let mask = mask(slots.slots());
        Self { slots, mask, len: 0, counted: 0 }
    }

    /// Returns the number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of `key`.
    #[inline]
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&V> {
        let place = match self.known_place(key) {
            Some(place) => place,
            None => self.search(key).0?,
        };
        self.slots.slots().get(place).map(|slot| &slot.value)
    }

    /// Returns the value of `key`, to change it.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let place = match self.known_place(key) {
            Some(place) => place,
            None => self.search_and_hint(key).0?,
        };
        self.slots.slots_mut().get_mut(place).map(|slot| &mut slot.value)
    }

    /// Sets the value of `key`, and returns the previous one.
    ///
    /// # Errors
    /// [`StoreFull`] if there is no room for another value. The map then stays unchanged. A `Vec` grows instead.
    pub fn insert(&mut self, key: u64, value: V) -> Result<Option<V>, StoreFull> {
        if let Some(place) = self.known_place(key) {
            let slot = self.slots.slots_mut().get_mut(place).ok_or(StoreFull)?;
            return Ok(Some(core::mem::replace(&mut slot.value, value)));
        }
        let place = self.len;
        if self.counted == place && to_u64(place).wrapping_add(1) == key {
            self.append(key, value)?;
            self.counted = self.len;
            return Ok(None);
        }
        match self.search_and_hint(key) {
            (Some(place), _) => {
                let slot = self.slots.slots_mut().get_mut(place).ok_or(StoreFull)?;
                Ok(Some(core::mem::replace(&mut slot.value, value)))
            }
            (None, link) => {
                self.append(key, value)?;
                self.link(link, place);
                self.hint(key, place);
                Ok(None)
            }
        }
    }

    /// Sets the first slot without a value.
    #[inline]
    fn append(&mut self, key: u64, value: V) -> Result<(), StoreFull> {
        let place = self.len;
        if place >= self.slots.slots().len() {
            self.grow();
        }
        // Slots refer to each other by `u32`, so the index of each slot must fit into a `u32`.
        u32::try_from(place).map_err(|_| StoreFull)?;
        let slot = self.slots.slots_mut().get_mut(place).ok_or(StoreFull)?;
        (slot.key, slot.value, slot.low, slot.high) = (key, value, 0, 0);
        self.len = place.wrapping_add(1);
        Ok(())
    }

    /// Removes the value of `key`, and returns it.
    pub fn remove(&mut self, key: u64) -> Option<V>
    where
        V: Default,
    {
        if self.counted_place(key).is_some() {
            self.link_all();
        }
        let (place, mut link) = self.search(key);
        let place = place?;
        let mut leaf = place;
        for _ in 0..LEVELS {
            steps::count(1);
            let slot = self.slots.slots().get(leaf)?;
            let is_high = slot.low == 0;
            match slot.child(is_high) {
                0 => break,
                child => (link, leaf) = (Some((leaf, is_high)), to_usize(child)),
            }
        }
        self.link(link, 0);
        let slot = self.slots.slots_mut().get_mut(leaf)?;
        let (of_leaf, mut value) = (slot.key, core::mem::take(&mut slot.value));
        if place != leaf {
            // An id can be at any level of its path, and the removed id is on the path of the leaf. So the leaf can
            // take its place.
            let slot = self.slots.slots_mut().get_mut(place)?;
            slot.key = of_leaf;
            core::mem::swap(&mut slot.value, &mut value);
            self.hint(of_leaf, place);
        }
        let last = self.len.wrapping_sub(1);
        if leaf != last {
            // The values fill the first slots without a gap, so the last value moves into the vacant slot.
            let slot = self.slots.slots_mut().get_mut(last)?;
            let (key, low, high) = (slot.key, slot.low, slot.high);
            let moved = core::mem::take(&mut slot.value);
            let (_, link) = self.search(key);
            let slot = self.slots.slots_mut().get_mut(leaf)?;
            (slot.key, slot.value, slot.low, slot.high) = (key, moved, low, high);
            self.link(link, leaf);
            self.hint(key, leaf);
        }
        self.len = last;
        Some(value)
    }

    /// Removes all values. Values that own memory are dropped when others replace them.
    pub const fn clear(&mut self) {
        (self.len, self.counted) = (0, 0);
    }

    /// Returns all values, in no particular order. Slots without a value take no time.
    pub fn iter<'m>(&'m self) -> impl Iterator<Item = (u64, &'m V)>
    where
        V: 'm,
    {
        let slots = self.slots.slots().get(..self.len).unwrap_or_default();
        slots.iter().inspect(|_| steps::count(1)).map(|slot| (slot.key, &slot.value))
    }

    /// Returns all values, to change them.
    pub(crate) fn iter_mut<'m>(&'m mut self) -> impl Iterator<Item = (u64, &'m mut V)>
    where
        V: 'm,
    {
        let slots = self.slots.slots_mut().get_mut(..self.len).unwrap_or_default();
        slots.iter_mut().inspect(|_| steps::count(1)).map(|slot| (slot.key, &mut slot.value))
    }

    /// Returns the slot of `key`, if it is found without a search.
    #[inline]
    fn known_place(&self, key: u64) -> Option<usize> {
        steps::count(1);
        if let Some(place) = self.counted_place(key) {
            return Some(place);
        }
        if self.counted == self.len {
            return None;
        }
        let place = to_usize(self.slots.slots().get(home(key) & self.mask)?.hint);
        let slot = self.slots.slots().get(place)?;
        (slot.key == key && place < self.len).then_some(place)
    }

    /// Returns the slot of `key`, if `key` is one of the first ids, which count up from 1.
    #[inline]
    fn counted_place(&self, key: u64) -> Option<usize> {
        let place = usize::try_from(key.wrapping_sub(1)).ok()?;
        (place < self.counted).then_some(place)
    }

    /// Adds all values to the tree, because one of the counted ids (1, 2, 3, …) is removed. This takes some steps for
    /// each value, but happens only once until the map is cleared.
    #[cold]
    fn link_all(&mut self) {
        let len = self.len;
        self.clear();
        for place in 0..len {
            let Some(slot) = self.slots.slots_mut().get_mut(place) else { break };
            (slot.low, slot.high) = (0, 0);
            let key = slot.key;
            let (_, link) = self.search(key);
            self.len = place.wrapping_add(1);
            self.link(link, place);
            self.hint(key, place);
        }
    }

    /// Adds slots, if the memory can grow. The ids then prefer other slots, so their hints are stored again.
    #[cold]
    fn grow(&mut self) {
        if !self.slots.grow() {
            return;
        }
        self.mask = mask(self.slots.slots());
        for place in self.counted..self.len {
            steps::count(1);
            if let Some(slot) = self.slots.slots().get(place) {
                self.hint(slot.key, place);
            }
        }
    }

    /// Makes the slot `place` the hint for `key`.
    fn hint(&mut self, key: u64, place: usize) {
        if let Some(slot) = self.slots.slots_mut().get_mut(home(key) & self.mask) {
            slot.hint = to_u32(place);
        }
    }

    /// Makes the slot `place` the child at `link`; 0 removes the child.
    fn link(&mut self, link: Link, place: usize) {
        let Some((above, is_high)) = link else { return };
        if let Some(slot) = self.slots.slots_mut().get_mut(above) {
            *(if is_high { &mut slot.high } else { &mut slot.low }) = to_u32(place);
        }
    }

    /// Returns the slot of `key`, if it has a value, and the link to that slot, or the link at which it would be added.
    #[cold]
    #[inline(never)]
    fn search(&self, key: u64) -> (Option<usize>, Link) {
        let (mut link, mut at, mut path) = (None, self.counted, spread(key));
        for _ in 0..LEVELS {
            steps::count(1);
            let Some(slot) = self.slots.slots().get(at).filter(|_| at < self.len) else { break };
            if slot.key == key {
                return (Some(at), link);
            }
            let is_high = path >> 63 != 0;
            path <<= 1;
            link = Some((at, is_high));
            match slot.child(is_high) {
                0 => break,
                child => at = to_usize(child),
            }
        }
        (None, link)
    }

    /// Searches as [`search`](Self::search) does, and stores a hint to the slot that was found.
    #[cold]
    #[inline(never)]
    fn search_and_hint(&mut self, key: u64) -> (Option<usize>, Link) {
        let found = self.search(key);
        if let Some(place) = found.0 {
            self.hint(key, place);
        }
        found
    }
}

#[cfg(feature = "alloc")]
impl<V: Default> IdMap<alloc::vec::Vec<Slot<V>>> {
    /// Returns the bytes of memory that the slots take after the next insertion.
    pub(crate) fn memory(&self) -> usize {
        // The vector doubles when it is full.
        let slots = if self.len < self.slots.len() { self.slots.len() } else { self.len.saturating_mul(2) };
        slots.saturating_mul(size_of::<Slot<V>>())
    }

    /// Removes all values, and releases the memory if there is more than `limit` bytes of it.
    pub(crate) fn clear_and_shrink(&mut self, limit: usize) {
        if self.memory() > limit {
            *self = Self::default();
        }
        self.clear();
    }
}

#[cfg(feature = "alloc")]
impl<V: Default> Default for IdMap<alloc::vec::Vec<Slot<V>>> {
    fn default() -> Self {
        Self::new(alloc::vec::Vec::new())
    }
}

/// Returns the number of slots with hints minus one.
fn mask<V>(slots: &[Slot<V>]) -> usize {
    let hints = slots.len().checked_ilog2().map_or(0, |log| 1usize.wrapping_shl(log));
    hints.saturating_sub(1)
}

/// Returns the preferred slot of an id. Most ids count up from 1, and prefer neighbouring slots. Ids from 2^24 on are
/// spread, because ids of threads can be addresses.
#[inline]
fn home(key: u64) -> usize {
    const DENSE: u64 = 1 << 24;
    let spread = if key < DENSE { key } else { spread(key) >> 33 };
    // At most 31 bits are left, so the number fits.
    usize::try_from(spread).unwrap_or(0)
}

/// Returns the bits that select the path of an id. They are different for each id, and the first bits differ for most
/// ids.
#[inline]
const fn spread(key: u64) -> u64 {
    // 2^64 divided by the golden ratio. The factor is odd, so no two products are equal.
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
