use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::output::failure::Failure;

type Handler = Box<dyn FnMut(i32) + Send>;

/// The last handler.
static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Calls `on` for SIGINT, SIGTERM and SIGHUP, on a thread of its own, instead of their default actions and of the
/// handler before it.
pub(crate) fn handle(on: impl FnMut(i32) + Send + 'static) -> Result<(), Failure> {
    if lock().replace(Box::new(on)).is_some() {
        // The thread is there.
        return Ok(());
    }
    let heard: Vec<i32> =
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)).collect();
    let handled = Signals::new(heard).and_then(|mut signals| {
        let thread = thread::Builder::new().name("signals".to_owned());
        let on = |signal| lock().as_mut().map_or((), |on| on(signal));
        thread.spawn(move || signals.forever().for_each(on))
    });
    handled.map(|_| ()).map_err(|e| Failure::io("cannot handle signals", &e))
}

fn lock() -> MutexGuard<'static, Option<Handler>> {
    HANDLER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the parent process made the tool ignore this signal, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let bit = u32::try_from(signal).ok().and_then(|signal| 1_u64.checked_shl(signal.checked_sub(1)?));
    matches!((mask, bit), (Some(mask), Some(bit)) if mask & bit != 0)
}

/// Performs the default action of the signal: ends the tool immediately.
pub(crate) fn obey(signal: i32) {
    // This fails only for signals other than those above.
    let _ = emulate_default_handler(signal);
}
