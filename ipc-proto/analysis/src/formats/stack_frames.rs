//! The frames of all stacks that a format writes.
use alloc::vec::Vec;

use crate::StackId;
use crate::names::{FrameId, Names, at};
use crate::samples::Samples;
use crate::stacks::Snapshot;

/// The frames of all stacks, as far as they are named now.
#[derive(Debug)]
pub(super) struct StackFrames<'s> {
    pub(super) samples: &'s Samples,
    /// The innermost frame of each stack but the empty one.
    frames: Vec<FrameId>,
}

/// The most frames of a stack that are written: the innermost ones.
const MAX_DEPTH: usize = 256;

impl<'s> StackFrames<'s> {
    pub(super) fn new(samples: &'s mut Samples) -> Self {
        let (names, stacks) = samples.names_and_stacks();
        let mut names = Snapshot::new(names);
        let frames = stacks.iter().map(|(_, address)| names.of(address)).collect();
        Self { samples, frames }
    }

    /// Puts the frames of a stack into `path`, the innermost first.
    pub(super) fn path(&self, stack: StackId, path: &mut Vec<FrameId>) {
        path.clear();
        let stacks = self.samples.stacks();
        let mut stack = stack;
        while stack != StackId::EMPTY && path.len() < MAX_DEPTH {
            let frame = stack.0.checked_sub(1).and_then(|place| at(&self.frames, place));
            path.push(frame.copied().unwrap_or(FrameId::UNKNOWN));
            stack = stacks.caller(stack);
        }
    }

    /// Returns the name of a process, or else that of the trace.
    pub(super) fn process_name<'n>(&'n self, process: u64, trace: &'n str) -> &'n str {
        self.samples.process_name(process).unwrap_or(trace)
    }

    /// Returns the name of the process, or else that of the trace if the threads belong to several processes.
    pub(super) fn title<'n>(&'n self, trace: &'n str) -> &'n str {
        let first = self.samples.threads().first();
        let process = first.map(|thread| thread.process).filter(|_| !self.has_several_processes());
        process.map_or(trace, |process| self.process_name(process, trace))
    }

    /// Returns whether the threads belong to several processes.
    pub(super) fn has_several_processes(&self) -> bool {
        let mut processes = self.samples.threads().iter().map(|thread| thread.process);
        let first = processes.next();
        processes.any(|process| Some(process) != first)
    }

    pub(super) const fn names(&self) -> &Names {
        self.samples.names()
    }
}
