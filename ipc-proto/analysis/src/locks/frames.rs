//! The names of stacks, and the methods that matter in them.
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::names::{FrameId, Names};
use crate::samples::ThreadRoles;
use crate::stacks::Snapshot;
use crate::{OwnCode, StackId, Stacks, WaitKind, outline};

/// Names stacks. Each stack is named once, because any number of events can refer to it.
pub(super) struct Frames<'a> {
    frames: Snapshot<'a>,
    stacks: &'a Stacks,
    own: &'a OwnCode,
    /// Whether methods belong to the program.
    known: BTreeMap<FrameId, bool>,
    named: BTreeMap<StackId, Arc<NamedStack>>,
}

/// A stack, and the facts that its names show.
#[derive(Debug)]
pub(super) struct NamedStack {
    /// The full names, the innermost first.
    pub(super) names: Arc<[Arc<str>]>,
    /// The innermost method of the program; without one, the innermost that does not only wait. `None` for an empty
    /// stack.
    pub(super) method: Option<StackMethod>,
    /// The kind of object for which the innermost frames wait, and the number of these frames.
    pub(super) wait: Option<(WaitKind, usize)>,
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
    pub(super) fn new(names: &'a mut Names, stacks: &'a Stacks, own: &'a OwnCode) -> Self {
        Self { frames: Snapshot::new(names), stacks, own, known: BTreeMap::new(), named: BTreeMap::new() }
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

    /// Returns what tells a stack of these full names apart from others.
    pub(super) fn outline(&self, names: &[Arc<str>]) -> Vec<Arc<str>> {
        outline(names, |name| self.own.owns(name))
    }

    fn read(&mut self, stack: StackId) -> NamedStack {
        let Self { frames, stacks, own, known, .. } = self;
        let (mut names, mut method) = (Vec::new(), None);
        for address in stacks.addresses(stack) {
            let frame = frames.of(address);
            let name = frames.names().shared_text(frame);
            let is_own = *known.entry(frame).or_insert_with(|| own.owns(&name));
            if is_own && method.is_none() {
                method = Some(StackMethod { name: Arc::clone(&name), is_own });
            }
            names.push(name);
        }
        let texts = || names.iter().map(|name| &**name);
        let waiting = WaitKind::leading_frames(texts());
        let mut roles = ThreadRoles::default();
        texts().for_each(|name| roles.add(name));
        let innermost =
            || names.get(waiting).map(|name| StackMethod { name: Arc::clone(name), is_own: false });
        NamedStack {
            method: method.or_else(innermost),
            wait: WaitKind::of(texts()),
            roles,
            waiting,
            places: names.iter().cloned().zip(0..).collect(),
            names: names.into(),
        }
    }
}

impl NamedStack {
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
