//! Stacks without the innermost frames that only carry out what a clock counts.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::machinery;
use crate::names::{FrameId, at};
use crate::samples::{Clock, Samples};
use crate::stacks::Snapshot;
use crate::{StackId, Stacks};

/// For each stack, the stack without its innermost machinery; empty if all frames are part of a tree.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// By the number of a stack: itself, or that of the first caller that is not machinery; the empty stack if there is
    /// none.
    origins: Vec<StackId>,
    /// By the number of a stack: its caller in the tree. A label, which is not code, follows the origin of its caller.
    callers: Vec<StackId>,
}

impl Origins {
    pub(crate) fn new(samples: &mut Samples, clock: &Clock) -> Self {
        let tasks = machinery::of(clock);
        if tasks.is_empty() {
            return Self::default();
        }
        let (names, stacks) = samples.names_and_stacks();
        let mut frames = Snapshot::new(names);
        let mut known: BTreeMap<FrameId, bool> = BTreeMap::new();
        let (mut origins, mut callers) = (alloc::vec![StackId::EMPTY], alloc::vec![StackId::EMPTY]);
        // Callers come before their callees.
        for (number, (caller, address)) in (1..).zip(stacks.iter()) {
            let of_caller = at(&origins, caller.0).copied().unwrap_or_default();
            let frame = frames.of(address);
            let names = frames.names();
            let is_label = names.ip(address).is_none();
            let has = || tasks.iter().any(|task| task.has(names.text(frame), names.is_own(frame)));
            let is_machinery = !is_label && *known.entry(frame).or_insert_with(has);
            origins.push(if is_machinery { of_caller } else { StackId(number) });
            callers.push(if is_label && of_caller != StackId::EMPTY { of_caller } else { caller });
        }
        Self { origins, callers }
    }

    /// Returns the stack without its innermost machinery; the stack itself if it has no other frames.
    pub(crate) fn of(&self, stack: StackId) -> StackId {
        at(&self.origins, stack.0).copied().filter(|origin| *origin != StackId::EMPTY).unwrap_or(stack)
    }

    /// Returns the caller of a stack in the tree.
    pub(super) fn caller(&self, stacks: &Stacks, stack: StackId) -> StackId {
        at(&self.callers, stack.0).copied().unwrap_or_else(|| stacks.caller(stack))
    }

    /// Returns the frames of stacks that are not part of the tree.
    pub(super) fn left_out(
        &self,
        samples: &mut Samples,
        needed: impl Iterator<Item = StackId>,
    ) -> BTreeSet<FrameId> {
        let mut left_out = BTreeSet::new();
        if self.origins.is_empty() {
            return left_out;
        }
        let (names, stacks) = samples.names_and_stacks();
        let mut frames = Snapshot::new(names);
        for stack in needed {
            let caller = stacks.caller(stack);
            let (mut next, end) = match self.caller(stacks, stack) {
                origin if origin != caller => (caller, origin),
                _ => (stack, self.of(stack)),
            };
            while next != end && next != StackId::EMPTY {
                left_out.extend(stacks.addresses(next).next().map(|address| frames.of(address)));
                next = stacks.caller(next);
            }
        }
        left_out
    }
}
