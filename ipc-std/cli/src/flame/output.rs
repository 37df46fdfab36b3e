//! `FlameOutput`: one kind of file that `flame` writes, with its clocks and the function that writes it.
use std::io::{self, Write};

use nettrace_analysis::formats::TimeProfile;
use nettrace_analysis::samples::{Clock, Unit};

use super::flame_page::Recording;

/// A kind of file that `flame` writes.
#[derive(Debug)]
pub(crate) struct FlameOutput {
    /// The value of `--format`.
    pub(super) name: &'static str,
    /// The end of the name of a file that has this format without `--format`.
    pub(super) suffix: &'static str,
    pub(super) help: &'static str,
    pub(super) clocks: Clocks,
    /// Whether the file can show the difference from an older recording.
    pub(super) has_diff: bool,
    pub(super) writer: Writer,
}

/// The clocks of a file.
#[derive(Debug)]
pub(super) enum Clocks {
    /// The chosen clock.
    Chosen,
    /// The chosen clock, which must have times.
    Times,
    /// Several clocks, which this function returns for the chosen clock.
    Several(fn(&Clock) -> Vec<Clock>),
}

/// The function that writes a file, and whether the file has the stacks in the order of time.
#[derive(Debug)]
pub(super) enum Writer {
    AddedUp(WriteAddedUp),
    InTime(WriteInTime),
    /// In the order of time if the clock has times.
    Either(WriteAddedUp, WriteInTime),
}

type WriteAddedUp = fn(AddedUp<'_, '_>, &mut dyn Write) -> io::Result<()>;
type WriteInTime = fn(InTime<'_>, &mut dyn Write) -> io::Result<()>;

/// Stacks that are added up.
pub(super) struct AddedUp<'r, 's> {
    pub(super) new: &'r mut Recording<'s>,
    /// The older recording to compare with.
    pub(super) old: Option<Recording<'s>>,
    pub(super) clock: &'r Clock,
    /// Whether a graph has all frames, with their exact names.
    pub(super) is_exact: bool,
    /// The start of the trace, in nanoseconds since 1970, if the trace states it.
    pub(super) unix_start: Option<i128>,
}

/// Stacks in the order of time.
pub(super) struct InTime<'r> {
    pub(super) profile: &'r TimeProfile<'r>,
    pub(super) name: &'r str,
    pub(super) process_id: u32,
    /// The start of the trace, in nanoseconds since 1970, if the trace states it.
    pub(super) unix_start: Option<i128>,
}

impl FlameOutput {
    /// Returns the clocks that a file has for the chosen one.
    pub(super) fn clocks(&self, chosen: &Clock) -> Vec<Clock> {
        match self.clocks {
            Clocks::Several(clocks) => clocks(chosen),
            Clocks::Chosen | Clocks::Times => vec![chosen.clone()],
        }
    }

    /// Returns whether a file has the stacks of a clock in the order of time.
    pub(super) fn is_in_time(&self, clock: &Clock) -> bool {
        match self.writer {
            Writer::AddedUp(_) => false,
            Writer::InTime(_) => true,
            Writer::Either(..) => clock.unit() == Unit::Nanoseconds,
        }
    }
}
