//! The names of stacks, and the methods that matter in them.
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::names::Names;
use crate::samples::ThreadRoles;
use crate::stacks::ThreadState;
use crate::{StackId, Stacks, WaitKind, outline};

/// Names stacks. Each stack is named once, because any number of events can refer to it.
pub(super) struct Frames<'a> {
    names: &'a mut Names,
    stacks: &'a Stacks,
    named: BTreeMap<StackId, Arc<NamedStack>>,
}

/// A stack, and the facts that its names show.
#[derive(Debug)]
pub(super) struct NamedStack {
    /// The full names, the innermost first.
    pub(super) names: Arc<[Arc<str>]>,
    /// Whether each method belongs to the program.
    are_own: Vec<bool>,
    /// The innermost method of the program; without one, the innermost that does not only wait. `None` for an empty
    /// stack.
    pub(super) method: Option<StackMethod>,
    /// The kind of object for which the innermost frames wait, and the number of these frames.
    pub(super) wait: Option<(WaitKind, usize)>,
    /// Whether a thread that was sampled here in managed code runs.
    pub(super) runs: bool,
    pub(super) roles: ThreadRoles,
    /// The number of innermost frames that only wait.
    waiting: usize,
    /// The outermost place of each name.
    places: BTreeMap<Arc<str>, usize>,
}

/// The method that a stack is shown by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StackMethod {
    pub(super) name: Arc<str>,
    /// Whether the method belongs to the program.
    pub(super) is_own: bool,
}

impl<'a> Frames<'a> {
    pub(super) fn new(names: &'a mut Names, stacks: &'a Stacks) -> Self {
        Self { names, stacks, named: BTreeMap::new() }
    }

    /// Returns a stack with its names.
    pub(super) fn stack(&mut self, stack: StackId) -> Arc<NamedStack> {
        if let Some(named) = self.named.get(&stack) {
            return Arc::clone(named);
        }
        let named = Arc::new(self.read(stack));
        self.named.insert(stack, Arc::clone(&named));
        named
    }

    fn read(&mut self, stack: StackId) -> NamedStack {
        let ids: Vec<_> = self.stacks.addresses(stack).map(|address| self.names.frame(address)).collect();
        let (state, own) = ThreadState::of_stack(&ids, self.names, false);
        let runs = ThreadState::of_stack(&ids, self.names, true).0 == ThreadState::Runs;
        let are_own = ids.iter().map(|frame| self.names.is_own(*frame)).collect();
        let names: Vec<_> = ids.iter().map(|frame| self.names.shared_text(*frame)).collect();
        let texts = || names.iter().map(|name| &**name);
        let waiting = WaitKind::leading_frames(texts());
        let mut roles = ThreadRoles::default();
        texts().for_each(|name| roles.add(name));
        let method = names.get(own.unwrap_or(waiting));
        NamedStack {
            method: method.map(|name| StackMethod { name: Arc::clone(name), is_own: own.is_some() }),
            runs,
            wait: WaitKind::of(texts()).filter(|_| state != ThreadState::Idle),
            roles,
            waiting,
            places: names.iter().cloned().zip(0..).collect(),
            names: names.into(),
            are_own,
        }
    }
}

impl NamedStack {
    /// Returns what distinguishes the stack from others, without some innermost frames.
    pub(super) fn outline(&self, without: usize) -> Vec<Arc<str>> {
        let frames = self.names.iter().cloned().zip(self.are_own.iter().copied());
        let outline = outline(&frames.skip(without).collect::<Vec<_>>(), |(_, is_own)| *is_own);
        outline.into_iter().map(|(name, _)| name).collect()
    }

    /// Returns whether the stack has this method.
    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Returns the method that begins the wait of the stack.
    pub(super) fn acquiring(&self) -> Option<&Arc<str>> {
        self.names.get(self.waiting)
    }

    /// Returns whether this method is one of the callers of [`acquiring`](Self::acquiring).
    pub(super) fn has_caller(&self, name: &str) -> bool {
        self.places.get(name).is_some_and(|place| *place > self.waiting)
    }
}
