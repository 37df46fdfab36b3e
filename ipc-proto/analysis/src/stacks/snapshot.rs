//! The frames of addresses at one moment, and a value for each stack from those of its frames.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::stacks::Stacks;
use crate::names::{AddressId, FrameId, Names, at, at_mut};

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

    pub(crate) fn no_frame(&mut self) -> FrameId {
        self.names.no_frame()
    }

    /// Returns the frame of an address, as [`Names::frame`] does.
    pub(crate) fn of(&mut self, address: AddressId) -> FrameId {
        match at_mut(&mut self.known, address.0) {
            Some(known) => *known.get_or_insert_with(|| self.names.frame(address)),
            None => self.names.frame(address),
        }
    }
}

/// Returns a value for each stack by the number of the stack: that of its innermost method, joined with the value of its
/// caller.
pub(crate) fn stack_values<T: Copy + Default>(
    names: &mut Names,
    stacks: &Stacks,
    mut of_method: impl FnMut(&str) -> T,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut frames = Snapshot::new(names);
    let mut of_frames = BTreeMap::new();
    let mut values = alloc::vec![T::default()];
    // Callers come before their callees.
    for (caller, address) in stacks.iter() {
        let of_caller = at(&values, caller.0).copied().unwrap_or_default();
        let frame = frames.of(address);
        let names = frames.names();
        let of_frame = *of_frames.entry(frame).or_insert_with(|| of_method(names.text(frame)));
        values.push(join(of_caller, of_frame));
    }
    values
}
