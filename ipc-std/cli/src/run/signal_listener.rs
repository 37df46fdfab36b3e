//! The threads that receive signals of Unix.
use std::{fs, io, thread};

use signal_hook::iterator::Signals;

/// Calls `on` for these signals, on a thread of its own, instead of their default actions. A signal that the parent
/// process made the tool ignore, as `nohup` does, stays ignored.
pub(super) fn listen(
    name: &str,
    signals: &[i32],
    mut on: impl FnMut(i32) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new(signals.iter().filter(|signal| !is_ignored(**signal)))?;
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(move || signals.forever().for_each(&mut on)).map(drop)
}

/// Returns whether the parent process made the tool ignore a signal.
pub(super) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let bit = u32::try_from(signal).ok().and_then(|signal| 1_u64.checked_shl(signal.checked_sub(1)?));
    matches!((mask, bit), (Some(mask), Some(bit)) if mask & bit != 0)
}
