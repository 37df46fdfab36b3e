//! A tree of calls that takes few bytes, also if its paths have little in common.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;

use crate::names::at;

/// A tree of calls by their numbers. A caller has a smaller number than its callees; the root has 0.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    /// The calls that do not come directly after their caller, by their caller and code. A path that no other one
    /// shares has none.
    apart: BTreeMap<(u32, u32), u32>,
}

/// A call of some code: an address, or a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) caller: u32,
    pub(crate) code: u32,
}

impl Calls {
    /// The root of a tree.
    pub(crate) const ROOT: u32 = 0;

    /// Creates a tree that has only a root.
    pub(crate) fn new() -> Self {
        let root = Call { caller: Self::ROOT, code: u32::MAX };
        Self { calls: alloc::vec![root], apart: BTreeMap::new() }
    }

    /// Returns the call of some code by a caller, if there is one.
    pub(crate) fn find(&self, caller: u32, code: u32) -> Option<u32> {
        let next = caller.saturating_add(1);
        // No call comes after the last one, so that it calls nothing.
        let is_next = self.get(next)? == Call { caller, code };
        if is_next { Some(next) } else { self.apart.get(&(caller, code)).copied() }
    }

    /// Adds the call of some code that its caller does not call yet.
    pub(crate) fn add(&mut self, caller: u32, code: u32) -> u32 {
        let number = to_u32(self.calls.len());
        self.calls.push(Call { caller, code });
        if caller.saturating_add(1) != number {
            self.apart.insert((caller, code), number);
        }
        number
    }

    /// Returns a call by its number.
    pub(crate) fn get(&self, number: u32) -> Option<Call> {
        at(&self.calls, number).copied()
    }

    /// Returns the calls of a caller.
    pub(crate) fn of(&self, caller: u32) -> impl Iterator<Item = u32> + '_ {
        let next = caller.saturating_add(1);
        let next = self.get(next).filter(|call| call.caller == caller).map(|_| next);
        let apart = self.apart.range((caller, 0)..=(caller, u32::MAX)).map(|(_, number)| *number);
        next.into_iter().chain(apart)
    }

    /// Returns all calls with their numbers, but not the root.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Call)> + '_ {
        (0..).zip(self.calls.iter().copied()).skip(1)
    }

    /// Returns the number of calls, with the root.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }
}
