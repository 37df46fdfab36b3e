use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::Profile;
use crate::names::FrameId;
use crate::samples::Unit;

impl Profile<'_> {
    /// Writes a file of speedscope: for each thread a profile of the kind "sampled", named `Thread (ID)` and
    /// `Thread (ID) (NAME)`.
    ///
    /// The order of the stacks is not that of time: use the views "Left Heavy" and "Sandwich", not "Time Order".
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_speedscope(&self, name: &str, out: &mut dyn Write) -> fmt::Result {
        out.write_str("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":")?;
        write_json_string(name, out)?;
        out.write_str(",\"exporter\":\"nettrace-analysis\",\"activeProfileIndex\":0,\"profiles\":[")?;
        let unit = match self.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Samples | Unit::Events => "none",
        };
        // Frames are numbered in the order of their first use, and named at the end.
        let (mut frames, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut path = Vec::new();
        for (i, (thread, rows)) in self.threads().enumerate() {
            if i > 0 {
                out.write_char(',')?;
            }
            write!(out, "\n{{\"type\":\"sampled\",\"name\":\"Thread ({})", thread.id)?;
            if !thread.name.is_empty() {
                out.write_str(" (")?;
                write_json_text(&thread.name, out)?;
                out.write_char(')')?;
            }
            let total = rows.iter().fold(0_u64, |sum, (_, _, weight)| sum.saturating_add(*weight));
            write!(out, "\",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{total},\"samples\":[")?;
            for (i, (_, stack, _)) in rows.iter().enumerate() {
                self.path(*stack, &mut path);
                out.write_str(if i > 0 { ",\n[" } else { "\n[" })?;
                for (i, frame) in path.iter().rev().enumerate() {
                    let number = *numbers.entry(*frame).or_insert_with(|| {
                        frames.push(*frame);
                        frames.len().saturating_sub(1)
                    });
                    write!(out, "{}{number}", if i > 0 { "," } else { "" })?;
                }
                out.write_char(']')?;
            }
            out.write_str("],\"weights\":[")?;
            for (i, (_, _, weight)) in rows.iter().enumerate() {
                write!(out, "{}{weight}", if i > 0 { "," } else { "" })?;
            }
            out.write_str("]}")?;
        }
        out.write_str("],\n\"shared\":{\"frames\":[")?;
        self.write_frames(&frames, out)?;
        out.write_str("]}}\n")
    }

    fn write_frames(&self, frames: &[FrameId], out: &mut dyn Write) -> fmt::Result {
        for (i, frame) in frames.iter().enumerate() {
            out.write_str(if i > 0 { ",\n{\"name\":" } else { "\n{\"name\":" })?;
            write_json_string(self.names().text(*frame), out)?;
            out.write_char('}')?;
        }
        Ok(())
    }
}

/// Writes a string of JSON.
fn write_json_string(text: &str, out: &mut dyn Write) -> fmt::Result {
    out.write_char('"')?;
    write_json_text(text, out)?;
    out.write_char('"')
}

/// Writes a string of JSON without its quotation marks.
fn write_json_text(text: &str, out: &mut dyn Write) -> fmt::Result {
    let needs_escape = |c: char| c == '"' || c == '\\' || c.is_control();
    let mut rest = text;
    while let Some((before, after)) = rest.find(needs_escape).and_then(|place| rest.split_at_checked(place)) {
        out.write_str(before)?;
        let mut chars = after.chars();
        if let Some(c) = chars.next() {
            write!(out, "\\u{:04x}", u32::from(c))?;
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}
