//! The frames of all stacks that a format writes.
use alloc::vec::Vec;

use crate::StackId;
use crate::names::{FrameId, Names};
use crate::place::at;
use crate::samples::Samples;
use crate::snapshot::Snapshot;

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

    pub(super) const fn names(&self) -> &Names {
        self.samples.names()
    }
}
