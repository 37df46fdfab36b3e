//! How the frames of stacks are shown.
use std::io::{self, Write};

use nettrace_analysis::call_tree::folded_stack;
use nettrace_analysis::names::{FrameId, Names};

use crate::text::function_name::{FunctionName, mark};
use crate::text::printable::printable_name;

/// How frames are shown.
pub(super) struct ShownFrames<'a> {
    pub(super) names: &'a Names,
    /// Whether all frames are shown, with their exact names.
    pub(super) is_raw: bool,
    /// Whether names have neither module nor arguments.
    pub(super) is_short: bool,
    /// The columns of the terminal.
    pub(super) width: usize,
}

impl ShownFrames<'_> {
    /// Returns the frames of a stack that are shown.
    fn of(&self, frames: &[FrameId]) -> Vec<FrameId> {
        if self.is_raw { frames.to_vec() } else { folded_stack(self.names, frames) }
    }

    fn name(&self, frame: FrameId) -> &str {
        if self.is_short { self.names.short(frame) } else { self.names.text(frame) }
    }

    /// Returns the names of the frames of a stack, and whether they are methods of the program.
    pub(super) fn to_json(&self, frames: &[FrameId]) -> (Vec<String>, Vec<bool>) {
        let frame = |frame| (printable_name(self.name(frame)), self.names.is_own(frame));
        self.of(frames).into_iter().map(frame).unzip()
    }

    /// Writes a stack, the innermost frame first.
    pub(super) fn write(&self, is_managed: bool, frames: &[FrameId], out: &mut dyn Write) -> io::Result<()> {
        /// The columns before a method, the last of which has the mark for code of the program.
        const INDENT: usize = 4;
        if !is_managed {
            writeln!(out, "    [outside managed code]")?;
        }
        self.of(frames).into_iter().try_for_each(|frame| {
            let name = FunctionName::new(self.name(frame), self.is_raw);
            let mark = mark(self.names.is_own(frame));
            writeln!(out, "{mark:>INDENT$}{}", name.fit(self.width.saturating_sub(INDENT)))
        })
    }
}
