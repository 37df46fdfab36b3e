//! Signals with which a terminal stops the tool. On Windows, nothing stops it.
use super::failure::Failure;

/// Calls `suspend` for SIGTSTP, and `resume` for SIGCONT, on a thread of its own. `suspend` gets the function that stops
/// the tool.
#[cfg(unix)]
pub(crate) fn handle_stops(suspend: fn(stop: &dyn Fn()), resume: fn()) -> Result<(), Failure> {
    use signal_hook::consts::{SIGCONT, SIGTSTP};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let signals = Signals::new([SIGTSTP, SIGCONT].into_iter().filter(|signal| !is_ignored(*signal)));
    let mut signals = signals.map_err(|e| Failure::io("cannot handle signals", &e))?;
    let listen = move || {
        for signal in signals.forever() {
            match signal {
                // The default action of this signal cannot fail.
                SIGTSTP => suspend(&|| drop(emulate_default_handler(SIGTSTP))),
                _ => resume(),
            }
        }
    };
    super::threads::spawn("stops", listen).map(drop)
}

/// Does nothing.
#[cfg(windows)]
pub(crate) fn handle_stops(_: fn(stop: &dyn Fn()), _: fn()) -> Result<(), Failure> {
    Ok(())
}

/// Returns whether the parent process made the tool ignore this signal, as `nohup` does.
#[cfg(unix)]
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let bit = u32::try_from(signal).ok().and_then(|signal| 1_u64.checked_shl(signal.checked_sub(1)?));
    matches!((mask, bit), (Some(mask), Some(bit)) if mask & bit != 0)
}
