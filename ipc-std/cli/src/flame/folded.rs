//! Folded stacks: a line for each stack.
use std::collections::HashMap;
use std::io::{self, Write};

use nettrace_analysis::call_tree::CallTree;
use nettrace_analysis::samples::{Clock, Samples};

use super::output::AddedUp;
use super::text_writer::TextWriter;

/// Writes stacks, or the difference from those of an older recording.
pub(super) fn write(AddedUp { new, old, clock, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    if let Some(old) = old {
        let lines = difference(&folded(old.samples, clock), &folded(new.samples, clock));
        return out.write_all(lines.as_bytes());
    }
    let tree = CallTree::new(new.samples, clock, |_, weight| weight.total());
    TextWriter::write(out, |text| tree.write_folded(new.samples.names(), text))
}

/// Returns the stacks, each on a line with its weight.
fn folded(samples: &mut Samples, clock: &Clock) -> String {
    let tree = CallTree::new(samples, clock, |_, weight| weight.total());
    let mut folded = String::new();
    // Writing to a string cannot fail.
    let _ = tree.write_folded(samples.names(), &mut folded);
    folded
}

/// Returns the stacks of two recordings, each on a line with its weights before and after. The weights before are
/// scaled to the total of those after, because recordings differ in length.
fn difference(before: &str, after: &str) -> String {
    let mut stacks: HashMap<&str, (u64, u64)> = HashMap::new();
    let (mut total_before, mut total_after) = (0_u64, 0_u64);
    for (stack, weight) in weights(before) {
        total_before = total_before.saturating_add(weight);
        let (before, _) = stacks.entry(stack).or_default();
        *before = before.saturating_add(weight);
    }
    for (stack, weight) in weights(after) {
        total_after = total_after.saturating_add(weight);
        let (_, after) = stacks.entry(stack).or_default();
        *after = after.saturating_add(weight);
    }
    let scaled = |weight: u64| {
        if total_before == total_after {
            return weight;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a weight has no fraction")]
        let scaled = (weight as f64 * total_after as f64 / total_before as f64) as u64;
        scaled
    };
    let line = |(stack, (before, after))| format!("{stack} {} {after}\n", scaled(before));
    let mut lines: Vec<_> = stacks.into_iter().map(line).collect();
    // Sorted, so that the same traces make the same file.
    lines.sort_unstable();
    lines.concat()
}

/// Returns the stacks of lines, each with its weight.
fn weights(lines: &str) -> impl Iterator<Item = (&str, u64)> {
    lines.lines().filter_map(|line| {
        let (stack, weight) = line.rsplit_once(' ')?;
        Some((stack.trim_end(), weight.parse().ok()?))
    })
}
