//! The frames of addresses at one moment.
use alloc::vec::Vec;

use crate::names::{AddressId, FrameId, Names, at_mut};

/// The frames of addresses at one moment. The frame of each address is searched once.
#[derive(Debug)]
pub(crate) struct Snapshot<'n> {
    names: &'n mut Names,
    known: Vec<Option<FrameId>>,
}

impl<'n> Snapshot<'n> {
    pub(crate) fn new(names: &'n mut Names) -> Self {
        let known = alloc::vec![None; names.addresses()];
        Self { names, known }
    }

    pub(crate) const fn names(&self) -> &Names {
        self.names
    }

    /// Returns the frame of an address, as [`Names::frame`] does.
    pub(crate) fn of(&mut self, address: AddressId) -> FrameId {
        match at_mut(&mut self.known, address.0) {
            Some(known) => *known.get_or_insert_with(|| self.names.frame(address)),
            None => self.names.frame(address),
        }
    }
}
