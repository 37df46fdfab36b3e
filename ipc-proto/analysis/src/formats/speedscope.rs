//! speedscope's JSON, for stacks that are added up and for intervals.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::json::{write_string, write_text};
use super::stack_frames::StackFrames;
use super::timeline::CallChange;
use super::{Profile, TimeProfile};
use crate::names::FrameId;
use crate::samples::{SampledThread, Unit};

impl Profile<'_> {
    /// Writes a file of speedscope: for each thread a profile of the kind "sampled", named `Thread (ID)` or
    /// `Thread (ID) (NAME)`; if the trace has several processes, `PROCESS (ID) Thread (ID)`. `name` is the name of the
    /// trace, and the file has it if the trace does not state the name of its process.
    ///
    /// The stacks are not in the order of time: use the views "Left Heavy" and "Sandwich", not "Time Order".
    /// [`TimeProfile::write_speedscope`] writes stacks in the order of time.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_speedscope(&self, name: &str, out: &mut dyn Write) -> fmt::Result {
        let unit = match self.unit {
            Unit::Samples | Unit::Events => "none",
            unit => unit.name(),
        };
        let mut file = File::begin(&self.stacks, name, out)?;
        let mut path = Vec::new();
        for (thread, rows) in self.threads() {
            file.begin_profile("sampled", thread, unit)?;
            let total = rows.iter().fold(0_u64, |sum, (_, _, weight)| sum.saturating_add(*weight));
            write!(file.out, "\"startValue\":0,\"endValue\":{total},\"samples\":[")?;
            for (i, (_, stack, _)) in rows.iter().enumerate() {
                self.stacks.path(*stack, &mut path);
                file.out.write_str(if i > 0 { ",\n[" } else { "\n[" })?;
                for (i, frame) in path.iter().rev().enumerate() {
                    let number = file.number(*frame);
                    write!(file.out, "{}{number}", if i > 0 { "," } else { "" })?;
                }
                file.out.write_char(']')?;
            }
            file.out.write_str("],\"weights\":[")?;
            for (i, (_, _, weight)) in rows.iter().enumerate() {
                write!(file.out, "{}{weight}", if i > 0 { "," } else { "" })?;
            }
            file.out.write_str("]}")?;
        }
        file.end()
    }
}

impl TimeProfile<'_> {
    /// Writes a file of speedscope: for each thread a profile of the kind "evented". Names are as in a file of
    /// [`Profile::write_speedscope`]. The values are milliseconds since the start of the trace, with six decimals.
    ///
    /// Only clocks in nanoseconds have intervals to write. For another clock the file has no thread, because its points
    /// in time have no duration.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_speedscope(&self, name: &str, out: &mut dyn Write) -> fmt::Result {
        let mut file = File::begin(&self.stacks, name, out)?;
        for (thread, entries) in self.intervals() {
            file.begin_profile("evented", thread, "milliseconds")?;
            let start = entries.first().map_or(0, |entry| entry.start);
            let end = entries.last().map_or(0, |entry| entry.end());
            write!(file.out, "\"startValue\":{},\"endValue\":{},\"events\":[", Ms(start), Ms(end))?;
            let mut separator = "\n";
            self.changes(entries, |time, change| {
                let (kind, frame) = match change {
                    CallChange::Open(frame) => ('O', frame),
                    CallChange::Close(frame) => ('C', frame),
                };
                let number = file.number(frame);
                let at = Ms(time);
                write!(file.out, "{separator}{{\"type\":\"{kind}\",\"frame\":{number},\"at\":{at}}}")?;
                separator = ",\n";
                Ok(())
            })?;
            file.out.write_str("]}")?;
        }
        file.end()
    }
}

/// Nanoseconds that are written as milliseconds.
struct Ms(u64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// A file between its beginning and its end. Frames are numbered in the order of their first use, and named at the end.
struct File<'s, 'o> {
    out: &'o mut dyn Write,
    stacks: &'s StackFrames<'s>,
    /// The name of the trace.
    name: &'s str,
    has_several_processes: bool,
    frames: Vec<FrameId>,
    numbers: BTreeMap<FrameId, usize>,
    has_profiles: bool,
}

impl<'s, 'o> File<'s, 'o> {
    fn begin(stacks: &'s StackFrames<'s>, name: &'s str, out: &'o mut dyn Write) -> Result<Self, fmt::Error> {
        out.write_str("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":")?;
        write_string(stacks.title(name), out)?;
        out.write_str(",\"exporter\":\"nettrace-analysis\",\"activeProfileIndex\":0,\"profiles\":[")?;
        let has_several_processes = stacks.has_several_processes();
        let (frames, numbers) = (Vec::new(), BTreeMap::new());
        Ok(Self { out, stacks, name, has_several_processes, frames, numbers, has_profiles: false })
    }

    /// Writes the members of a profile up to its values.
    fn begin_profile(&mut self, kind: &str, thread: &SampledThread, unit: &str) -> fmt::Result {
        let separator = if core::mem::replace(&mut self.has_profiles, true) { "," } else { "" };
        write!(self.out, "{separator}\n{{\"type\":\"{kind}\",\"name\":\"")?;
        if self.has_several_processes {
            write_text(self.stacks.process_name(thread.process, self.name), self.out)?;
            write!(self.out, " ({}) ", thread.process)?;
        }
        write!(self.out, "Thread ({})", thread.id)?;
        if !thread.name.is_empty() {
            self.out.write_str(" (")?;
            write_text(&thread.name, self.out)?;
            self.out.write_char(')')?;
        }
        write!(self.out, "\",\"unit\":\"{unit}\",")
    }

    fn number(&mut self, frame: FrameId) -> usize {
        *self.numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            self.frames.len().saturating_sub(1)
        })
    }

    fn end(self) -> fmt::Result {
        let Self { out, stacks, frames, .. } = self;
        let names = stacks.names();
        out.write_str("],\n\"shared\":{\"frames\":[")?;
        for (i, frame) in frames.iter().enumerate() {
            out.write_str(if i > 0 { ",\n{\"name\":" } else { "\n{\"name\":" })?;
            write_string(names.text(*frame), out)?;
            out.write_char('}')?;
        }
        out.write_str("]}}\n")
    }
}
