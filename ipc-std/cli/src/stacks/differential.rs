//! The difference of two recordings.
use std::io;

use inferno::differential;

/// Returns the stacks of two lists, each on a line with its weights before and after. The weights before are scaled to
/// the total of those after, because recordings differ in length.
pub(super) fn differential(before: &str, after: &str) -> io::Result<String> {
    let options = differential::Options { normalize: true, ..Default::default() };
    let mut lines = Vec::new();
    differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut lines)?;
    // Sorted, so that the same traces make the same file.
    let lines = String::from_utf8_lossy(&lines);
    let mut lines: Vec<_> = lines.split_inclusive('\n').collect();
    lines.sort_unstable();
    Ok(lines.concat())
}
