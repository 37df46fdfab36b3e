//! A terminal that a full screen has changed, which must be as before when the tool ends.
use std::sync::OnceLock;

static RESTORE: OnceLock<fn()> = OnceLock::new();

/// Stores the function that restores the terminal if it is changed.
pub(crate) fn restore_by(function: fn()) {
    let _ = RESTORE.set(function);
}

/// Restores the terminal before the tool ends. It needs no memory and no lock.
pub(crate) fn restore() {
    if let Some(restore) = RESTORE.get() {
        restore();
    }
}
