//! `spawn` starts a thread, and `lock` locks a mutex, also after a panic.
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::failure::Failure;

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|e| Failure::io("cannot start a thread", &e))
}

/// Locks a mutex, also one that a thread held when it panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
