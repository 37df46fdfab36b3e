//! Addresses that stacks have, each with an id for the lifetime of the code there.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::frame_texts::FrameId;
use crate::place::{at, at_mut, index};

/// An address of a process during the lifetime of the code there, or a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressId(pub(crate) u32);

#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub(super) process: u64,
    pub(super) ip: u64,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    Open,
    /// Its code was freed or replaced.
    Bound {
        method: u32,
    },
    Label(FrameId),
}

/// The addresses and labels by their ids.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    all: Vec<Address>,
    /// The addresses that are not bound.
    open: BTreeMap<(u64, u64), u32>,
    labels: BTreeMap<Arc<str>, u32>,
    /// How often addresses were bound.
    generation: u32,
}

impl Addresses {
    /// How many are stored at most.
    pub(super) const LIMIT: usize = 1 << 20;

    pub(super) fn get(&self, id: AddressId) -> Option<&Address> {
        at(&self.all, id.0)
    }

    /// Returns the id of an address with the code that is there now.
    pub(super) fn open(&mut self, process: u64, ip: u64) -> AddressId {
        if let Some(id) = self.open.get(&(process, ip)) {
            return AddressId(*id);
        }
        let id = self.add(Address { process, ip, state: State::Open });
        if let Some(id) = id {
            self.open.insert((process, ip), id);
        }
        AddressId(id.unwrap_or(u32::MAX))
    }

    /// Returns the id of a label. `frame` returns the frame of a new one, and its text.
    pub(super) fn label(&mut self, text: &str, frame: impl FnOnce() -> (FrameId, Arc<str>)) -> AddressId {
        if let Some(id) = self.labels.get(text) {
            return AddressId(*id);
        }
        if self.all.len() >= Self::LIMIT {
            return AddressId(u32::MAX);
        }
        let (frame, text) = frame();
        let id = self.add(Address { process: 0, ip: 0, state: State::Label(frame) });
        if let Some(id) = id {
            self.labels.insert(text, id);
        }
        AddressId(id.unwrap_or(u32::MAX))
    }

    fn add(&mut self, address: Address) -> Option<u32> {
        if self.all.len() >= Self::LIMIT {
            return None;
        }
        let id = index(self.all.len());
        self.all.push(address);
        Some(id)
    }

    /// Binds the addresses of a range to the method that was there. Returns whether there were some.
    ///
    /// A return address may be the end of the code, if nothing else begins there.
    pub(super) fn bind(&mut self, process: u64, range: Range<u64>, method: u32) -> bool {
        let mut is_seen = false;
        while let Some((key, id)) = self.open.range((process, range.start)..(process, range.end)).next() {
            let (key, id) = (*key, *id);
            self.open.remove(&key);
            if let Some(address) = at_mut(&mut self.all, id) {
                address.state = State::Bound { method };
            }
            is_seen = true;
        }
        if is_seen {
            self.generation = self.generation.wrapping_add(1);
        }
        is_seen
    }

    /// Removes all, and returns the methods that some were bound to.
    pub(super) fn forget(&mut self) -> BTreeSet<u32> {
        self.open.clear();
        self.labels.clear();
        self.generation = self.generation.wrapping_add(1);
        let bound = core::mem::take(&mut self.all).into_iter().filter_map(|address| match address.state {
            State::Bound { method } => Some(method),
            State::Open | State::Label(_) => None,
        });
        // Several addresses can be bound to the same method.
        bound.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns a number that changes when an address gets another id.
    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }
}
