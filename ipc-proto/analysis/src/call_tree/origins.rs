//! Stacks without the innermost frames that only carry out what a clock counts.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::machinery;
use crate::names::{FrameId, Known};
use crate::samples::{Clock, Samples};
use crate::{StackId, Stacks};

/// The stacks of a clock without their innermost machinery; empty if all frames are part of a tree.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The origins of stacks that end with machinery: the first caller that is none, or else the empty stack.
    origins: BTreeMap<StackId, StackId>,
    /// The callers of labels in the tree. A label, which is not code, follows the origin of its caller.
    callers: BTreeMap<StackId, StackId>,
    /// The frames of stacks that are not part of the tree.
    pub(super) left_out: BTreeSet<FrameId>,
}

impl Origins {
    pub(crate) fn new(samples: &mut Samples, clock: &Clock) -> Self {
        let Self { mut origins, mut callers, mut left_out } = Self::default();
        let tasks = machinery::of(clock);
        if tasks.is_empty() {
            return Self::default();
        }
        let ends: BTreeSet<_> = samples.weights(clock).map(|(_, stack, _)| stack).collect();
        let (names, stacks) = samples.names_and_stacks();
        stacks.name(names);
        let mut is_machinery = Known::new();
        for end in ends {
            let is_label = |address| names.ip(address).is_none();
            let is_label = stacks.addresses(end).next().is_some_and(is_label);
            let called = if is_label { stacks.caller(end) } else { end };
            let origin = origins.get(&called).copied().unwrap_or_else(|| {
                let mut origin = called;
                let mut passed = Vec::new();
                for address in stacks.addresses(called) {
                    let frame = names.frame(address);
                    let has = || tasks.iter().any(|task| task.has(names.text(frame), names.is_own(frame)));
                    if !is_machinery.of(frame.0, has) {
                        left_out.extend(passed);
                        break;
                    }
                    passed.push(frame);
                    origin = stacks.caller(origin);
                }
                origin
            });
            if origin != called {
                origins.insert(called, origin);
            }
            if is_label && origin != StackId::EMPTY {
                callers.insert(end, origin);
            }
        }
        Self { origins, callers, left_out }
    }

    /// Returns the stack without its innermost machinery; the stack itself if it has no other frames.
    pub(crate) fn of(&self, stack: StackId) -> StackId {
        self.origins.get(&stack).copied().filter(|origin| *origin != StackId::EMPTY).unwrap_or(stack)
    }

    /// Returns the caller of a stack in the tree.
    pub(super) fn caller(&self, stacks: &Stacks, stack: StackId) -> StackId {
        self.callers.get(&stack).copied().unwrap_or_else(|| stacks.caller(stack))
    }
}
