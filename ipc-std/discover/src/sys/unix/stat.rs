//! `/proc/PID/stat`, parsed without access to files.

/// Returns the start time in clock ticks since boot, and whether the process has ended.
pub fn start_and_end(stat: &[u8]) -> Option<(u64, bool)> {
    /// Field 22, counted from field 3. The program's name is field 2 and can contain any character, so it is skipped
    /// first.
    const START_TIME: usize = 22 - 3;
    let after_name = stat.iter().rposition(|byte| *byte == b')')?.checked_add(1)?;
    let mut fields = core::str::from_utf8(stat.get(after_name..)?).ok()?.split_ascii_whitespace();
    let state = fields.clone().next()?;
    let started = fields.nth(START_TIME)?.parse().ok()?;
    Some((started, matches!(state, "Z" | "X")))
}
