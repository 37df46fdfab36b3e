//! What a stack shows about its thread.
use alloc::vec::Vec;

use super::method_table::{MethodNumber, OwnMethods};
use crate::names::{FrameId, Names};
use crate::samples::ThreadRoles;
use crate::stacks::ThreadState;
use crate::{StackId, Stacks};

/// What a thread is for, by the outermost frames of its stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum ThreadRole {
    /// The runtime's own, or not known.
    #[default]
    Other,
    /// Began with a method of the program that no code of the runtime called: the main thread, or a native one.
    Main,
    /// Started by the program.
    Started,
    /// Of the thread pool.
    Pool,
    /// Runs finalizers.
    Finalizer,
}

impl ThreadRole {
    /// Returns the role by the outermost frames, the outermost first, and whether the outermost one is of the program.
    fn of<'n>(mut frames: impl Iterator<Item = &'n str>, is_own: bool) -> Self {
        const STARTED: [&str; 2] = ["System.Threading.Thread.Start", "System.Threading.ThreadHelper."];
        let Some(outermost) = frames.next() else { return Self::Other };
        // Since .NET 10, `GC.RunFinalizers` calls the finalizers; before, native code does.
        if outermost == "System.GC.RunFinalizers" || outermost.ends_with(".Finalize") {
            return Self::Finalizer;
        }
        if is_own {
            return Self::Main;
        }
        let mut roles = ThreadRoles::default();
        core::iter::once(outermost).chain(frames.take(4)).for_each(|name| roles.add(name));
        let is_started = STARTED.iter().any(|start| outermost.starts_with(start));
        match roles.has_name(ThreadRoles::POOL) {
            true => Self::Pool,
            false if is_started => Self::Started,
            false => Self::Other,
        }
    }
}

/// What a stack shows about its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// What the thread does in samples outside managed code.
    pub state: ThreadState,
    /// The role of the thread.
    pub role: ThreadRole,
    /// The methods of the program, the innermost first. A method that calls itself is there once.
    pub own: Vec<MethodNumber>,
    /// Whether an exception is thrown again here, as by an `await`.
    pub is_rethrow: bool,
}

impl Place {
    pub(super) fn new(stack: StackId, stacks: &Stacks, names: &mut Names, methods: &mut OwnMethods) -> Self {
        const RETHROW: &str = "System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw";
        let ids: Vec<FrameId> = stacks.addresses(stack).map(|address| names.frame(address)).collect();
        let (state, innermost) = ThreadState::of_stack(&ids, names, false);
        let mut own: Vec<MethodNumber> = ids.iter().filter_map(|frame| methods.of(*frame, names)).collect();
        own.dedup();
        let callees = ids.get(..innermost.unwrap_or(ids.len())).unwrap_or_default();
        let is_own = ids.last().is_some_and(|outermost| names.is_own(*outermost));
        let role = ThreadRole::of(ids.iter().rev().map(|frame| names.short(*frame)), is_own);
        let is_rethrow = callees.iter().any(|frame| names.short(*frame) == RETHROW);
        Self { state, role, own, is_rethrow }
    }
}
