//! `Sources`: the connections that a thread waits for; and `Alarm`, by which other threads end its wait.
//!
//! A waiting thread needs no descriptor beside its connections: all threads of the process poll one shared flag.
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use ipc_discover::sys::{remaining, wait};
use rustix::event::{PollFd, PollFlags};

use super::flag::Flag;
use super::poller::Poller;

/// An object with a descriptor that is readable when it has work.
pub(crate) trait Source: AsFd + core::fmt::Debug + Send + Sync {}
impl<S: AsFd + core::fmt::Debug + Send + Sync> Source for S {}

/// An alarm that any thread can raise. It ends the wait of the thread that waits for its [`Sources`].
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    is_raised: AtomicBool,
    /// The flag for event loops: [`Sources::make_pollable`].
    flag: OnceLock<Flag>,
}

/// The connections that one thread waits for, each with a token, and its alarm.
#[derive(Debug)]
pub(crate) struct Sources {
    alarm: Arc<Alarm>,
    /// The flag that all waiting threads poll.
    shared: Arc<Flag>,
    sources: Vec<(u64, Arc<dyn Source>)>,
    /// The poller for event loops: [`make_pollable`](Self::make_pollable).
    poller: Option<Poller>,
}

/// The state of the flag that all waiting threads poll.
#[derive(Debug)]
struct SharedFlag {
    flag: Option<Arc<Flag>>,
    is_raised: bool,
    /// The number of threads that poll.
    polling: usize,
}

static SHARED: Mutex<SharedFlag> = Mutex::new(SharedFlag { flag: None, is_raised: false, polling: 0 });
/// The shared flag was lowered.
static LOWERED: Condvar = Condvar::new();

fn shared() -> MutexGuard<'static, SharedFlag> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Alarm {
    /// The token of the alarm in the poller for event loops.
    const TOKEN: u64 = 2;

    pub(crate) fn raise(&self) {
        let mut shared = shared();
        self.is_raised.store(true, Ordering::SeqCst);
        self.flag.get().into_iter().for_each(Flag::raise);
        if shared.polling > 0 && !shared.is_raised {
            shared.is_raised = true;
            shared.flag.iter().for_each(|flag| flag.raise());
        }
    }

    pub(crate) fn lower(&self) {
        self.is_raised.store(false, Ordering::SeqCst);
        self.flag.get().into_iter().for_each(Flag::lower);
    }

    fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }
}

impl Sources {
    pub(crate) fn new(alarm: &Arc<Alarm>) -> io::Result<Self> {
        let mut state = shared();
        let shared = match &state.flag {
            Some(flag) => Arc::clone(flag),
            None => Arc::clone(state.flag.insert(Arc::new(Flag::new()?))),
        };
        Ok(Self { alarm: Arc::clone(alarm), shared, sources: Vec::new(), poller: None })
    }

    /// Watches a source until [`forget`](Self::forget).
    pub(crate) fn watch(&mut self, source: Arc<dyn Source>, token: u64) -> io::Result<()> {
        if let Some(poller) = &self.poller {
            poller.watch(&source, token)?;
        }
        self.sources.push((token, source));
        Ok(())
    }

    /// Stops watching the source with this token.
    pub(crate) fn forget(&mut self, token: u64) {
        let forgotten = self.sources.iter().position(|(of, _)| *of == token);
        if let Some((_, source)) = forgotten.map(|place| self.sources.swap_remove(place)) {
            // Closing the descriptor also removes it from the poller, so an error does not matter.
            let _ = self.poller.as_ref().map(|poller| poller.forget(&source));
        }
    }

    /// Makes [`as_fd`](AsFd::as_fd) return a descriptor that is readable when a source is ready or the alarm is raised.
    pub(crate) fn make_pollable(&mut self) -> io::Result<()> {
        if self.poller.is_some() {
            return Ok(());
        }
        let poller = Poller::new()?;
        let flag = match self.alarm.flag.get() {
            Some(flag) => flag,
            None => {
                let flag = Flag::new()?;
                self.alarm.flag.get_or_init(|| flag)
            }
        };
        // An alarm that was raised before the flag existed. Without the lock, each thread could miss what the other one
        // does.
        let state = shared();
        if self.alarm.is_raised() {
            flag.raise();
        }
        drop(state);
        poller.watch(flag, Alarm::TOKEN)?;
        for (token, source) in &self.sources {
            poller.watch(source, *token)?;
        }
        self.poller = Some(poller);
        Ok(())
    }

    /// Does nothing: on Unix, a source is reported as long as it is ready.
    pub(crate) const fn rearm(&self) {}

    /// Waits until a source is ready or the alarm is raised; fails with `TimedOut` after `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        let sources = self.sources.iter().map(|(_, source)| source.as_fd());
        let mut fds: Vec<_> = sources
            .chain([self.shared.as_fd()])
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let mut state = shared();
        loop {
            if self.alarm.is_raised() {
                return Ok(());
            }
            if state.is_raised {
                // The threads that the flag has woken lower it.
                state = LOWERED
                    .wait_timeout(state, remaining(deadline)?)
                    .map_or_else(|e| e.into_inner().0, |(state, _)| state);
                continue;
            }
            state.polling = state.polling.saturating_add(1);
            drop(state);
            let waited = wait(&mut fds, deadline);
            state = shared();
            state.polling = state.polling.saturating_sub(1);
            if state.is_raised && state.polling == 0 {
                self.shared.lower();
                state.is_raised = false;
                LOWERED.notify_all();
            }
            waited?;
            // The last one is the shared flag, which can be raised for another thread.
            if fds.iter().rev().skip(1).any(|fd| !fd.revents().is_empty()) {
                return Ok(());
            }
        }
    }
}

impl AsFd for Sources {
    /// Returns the descriptor of the first source, unless the sources are [pollable](Self::make_pollable).
    fn as_fd(&self) -> BorrowedFd<'_> {
        let first = || self.sources.first().map(|(_, source)| source.as_fd());
        self.poller.as_ref().map(AsFd::as_fd).or_else(first).unwrap_or_else(|| self.shared.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::io::ErrorKind;
    use std::thread;

    use super::*;

    #[test]
    fn an_alarm_ends_no_other_wait() {
        let (alarm, other) = (Arc::new(Alarm::default()), Alarm::default());
        let sources = Sources::new(&alarm).unwrap();
        let waiting = thread::spawn(move || {
            sources.wait(Instant::now() + Duration::from_millis(200)).map_err(|e| e.kind())
        });
        while !waiting.is_finished() {
            other.raise();
            thread::yield_now();
        }
        assert_eq!(waiting.join().unwrap(), Err(ErrorKind::TimedOut));
    }
}
