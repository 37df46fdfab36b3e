//! The names of stacks, and the methods that matter in them.
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::names::{FrameId, Names};
use crate::snapshot::Snapshot;
use crate::{OwnCode, StackId, Stacks, WaitKind, outline};

/// Names stacks.
pub(super) struct Frames<'a> {
    frames: Snapshot<'a>,
    stacks: &'a Stacks,
    own: &'a OwnCode,
    /// Whether methods belong to the program.
    known: BTreeMap<FrameId, bool>,
}

/// The method that a stack is shown by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StackMethod {
    pub(super) name: Arc<str>,
    /// Whether the method belongs to the program.
    pub(super) is_own: bool,
}

impl<'a> Frames<'a> {
    pub(super) fn new(names: &'a mut Names, stacks: &'a Stacks, own: &'a OwnCode) -> Self {
        Self { frames: Snapshot::new(names), stacks, own, known: BTreeMap::new() }
    }

    /// Returns the full names of a stack, the innermost first.
    pub(super) fn names(&mut self, stack: StackId) -> Vec<Arc<str>> {
        let Self { frames, stacks, .. } = self;
        let ids = stacks.addresses(stack).map(|address| {
            let frame = frames.of(address);
            frames.names().shared_text(frame)
        });
        ids.collect()
    }

    /// Returns what tells a stack of these full names apart from others.
    pub(super) fn outline(&self, names: &[Arc<str>]) -> Vec<Arc<str>> {
        outline(names, |name| self.own.owns(name))
    }

    /// Returns the innermost method of the program; without one, the innermost that does not only wait. `None` for an
    /// empty stack.
    pub(super) fn method(&mut self, stack: StackId) -> Option<StackMethod> {
        let Self { frames, stacks, own, known } = self;
        for address in stacks.addresses(stack) {
            let frame = frames.of(address);
            let is_own = *known.entry(frame).or_insert_with(|| own.owns(frames.names().text(frame)));
            if is_own {
                return Some(StackMethod { name: frames.names().shared_text(frame), is_own });
            }
        }
        let names = self.names(stack);
        let waiting = WaitKind::leading_frames(names.iter().map(|name| &**name));
        names.into_iter().nth(waiting).map(|name| StackMethod { name, is_own: false })
    }
}
