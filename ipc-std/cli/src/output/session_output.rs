//! `SessionOutput`: output of a session. A thread writes it, so that an output that takes nothing never delays the
//! session.
use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use indicatif::{BinaryBytes, DecimalBytes};
use ipc_proto::wire::to_u64;

use crate::run::Failure;
use crate::run::signals;
use crate::run::threads::{lock, spawn};

/// How long the end of a session waits for an output that takes nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Output of a session, which a thread writes. At most [`LIMIT`](Self::LIMIT) bytes wait for the thread.
#[derive(Debug)]
pub(crate) struct SessionOutput<T> {
    queue: Arc<Queue>,
    thread: JoinHandle<T>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that the thread does not have yet.
    pending: Vec<u8>,
    /// The number of bytes that the thread has, and has not taken.
    in_use: usize,
    /// The number of bytes that the thread has taken.
    taken: u64,
    /// Whether no more bytes follow.
    is_complete: bool,
    /// Whether the thread takes no more.
    has_ended: bool,
}

/// The bytes of a [`SessionOutput`], as its thread takes them.
#[derive(Debug)]
pub(crate) struct Batches {
    queue: Arc<Queue>,
    batch: Vec<u8>,
    /// The length of the part of `batch` that was taken, and of the part that is being used.
    taken: usize,
    current: usize,
}

/// Why a [`SessionOutput`] takes no more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Stalled(StalledOutput),
    /// The thread has ended, and its result is known.
    Ended,
}

/// An output that takes no more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StalledOutput {
    /// The number of bytes that the output took.
    taken: u64,
    waiting: usize,
}

impl fmt::Display for StalledOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (taken, waiting) = (DecimalBytes(self.taken), BinaryBytes(to_u64(self.waiting)));
        write!(f, "its reader took {taken} and then no more, and {waiting} waited for it")
    }
}

impl From<StalledOutput> for io::Error {
    fn from(stalled: StalledOutput) -> Self {
        Self::other(stalled.to_string())
    }
}

impl State {
    fn stalled(&self) -> StalledOutput {
        StalledOutput { taken: self.taken, waiting: self.in_use.saturating_add(self.pending.len()) }
    }
}

impl<T: Send + 'static> SessionOutput<T> {
    /// The number of bytes that can wait for the thread.
    pub(crate) const LIMIT: usize = 64 << 20;
    /// How long the end waits after a signal for an output that takes nothing.
    const AFTER_SIGNAL: Duration = Duration::from_secs(10);

    /// Starts the thread, which calls `write`.
    pub(crate) fn spawn(
        name: &str,
        write: impl FnOnce(&mut Batches) -> T + Send + 'static,
    ) -> Result<Self, Failure> {
        let queue = Arc::new(Queue::default());
        let mut batches = Batches { queue: Arc::clone(&queue), batch: Vec::new(), taken: 0, current: 0 };
        let thread = spawn(name, move || write(&mut batches))?;
        Ok(Self { queue, thread })
    }

    /// Passes bytes to the thread. Never waits: fails if more than [`LIMIT`](Self::LIMIT) bytes would wait.
    pub(crate) fn pass(&self, bytes: &[u8]) -> Result<(), Refusal> {
        let mut state = lock(&self.queue.state);
        if state.has_ended {
            return Err(Refusal::Ended);
        }
        let stalled = state.stalled();
        let is_full = stalled.waiting.saturating_add(bytes.len()) > Self::LIMIT;
        if is_full || state.pending.try_reserve(bytes.len()).is_err() {
            return Err(Refusal::Stalled(stalled));
        }
        let was_empty = state.pending.is_empty();
        state.pending.extend_from_slice(bytes);
        // The thread waits only while no bytes do.
        if was_empty {
            self.queue.changed.notify_all();
        }
        Ok(())
    }

    /// Fails if the thread takes no more bytes.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if lock(&self.queue.state).has_ended { Err(Refusal::Ended) } else { Ok(()) }
    }

    /// Waits until the thread has taken all bytes, and returns its result. Fails if the output takes none for `patience`,
    /// or for 10 seconds after a signal. The thread is then left waiting for the output.
    pub(crate) fn finish(self, patience: Option<Duration>) -> Result<T, StalledOutput> {
        let Self { queue, thread } = self;
        let mut state = lock(&queue.state);
        state.is_complete = true;
        queue.changed.notify_all();
        let (mut before, mut since) = (state.taken, Instant::now());
        while !state.has_ended {
            let waited = queue.changed.wait_timeout(state, signals::TICK);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.taken != before {
                (before, since) = (state.taken, Instant::now());
            }
            let after_signal = signals::has_arrived().then_some(Self::AFTER_SIGNAL);
            let limit = patience.into_iter().chain(after_signal).min();
            if !state.has_ended && limit.is_some_and(|limit| since.elapsed() >= limit) {
                return Err(state.stalled());
            }
        }
        let stalled = state.stalled();
        drop(state);
        // A thread that has panicked wrote a message.
        thread.join().map_err(|_| stalled)
    }
}

impl Batches {
    /// The maximum number of bytes that [`next`](Self::next) returns.
    const STEP: usize = 64 << 10;
    /// The capacity of the largest buffer that is used again.
    const REUSED: usize = 1 << 20;
    /// How long few bytes wait for more: many sessions write a few lines at a time, and each wake of the thread costs more
    /// than they do.
    const COLLECTING: Duration = Duration::from_millis(10);

    /// Waits for the next bytes. The earlier ones count as taken. Returns `None` after the last bytes.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let mut state = lock(&self.queue.state);
        state.taken = state.taken.saturating_add(to_u64(self.current));
        state.in_use = state.in_use.saturating_sub(self.current);
        self.taken = self.taken.saturating_add(core::mem::take(&mut self.current));
        if self.taken >= self.batch.len() {
            self.taken = 0;
            self.batch.clear();
            if self.batch.capacity() > Self::REUSED {
                self.batch = Vec::new();
            }
            while state.pending.is_empty() {
                if state.is_complete {
                    return None;
                }
                state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                if state.pending.len() < Self::STEP && !state.is_complete {
                    drop(state);
                    thread::sleep(Self::COLLECTING);
                    state = lock(&self.queue.state);
                }
            }
            core::mem::swap(&mut self.batch, &mut state.pending);
            state.in_use = self.batch.len();
        }
        drop(state);
        let rest = self.batch.get(self.taken..).unwrap_or_default();
        let step = rest.get(..Self::STEP).unwrap_or(rest);
        self.current = step.len();
        Some(step)
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        lock(&self.queue.state).has_ended = true;
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_more_than_the_limit_are_refused() {
        let (open, is_open) = mpsc::channel::<()>();
        let output = SessionOutput::spawn("test", move |batches| {
            let _ = is_open.recv();
            let mut all = Vec::new();
            while let Some(bytes) = batches.next() {
                all.extend_from_slice(bytes);
            }
            all
        })
        .unwrap();
        let mut passed = Vec::new();
        let refused = loop {
            let part = vec![u8::try_from(passed.len() / 1_000_000).unwrap(); 1_000_000];
            match output.pass(&part) {
                Ok(()) => passed.extend(part),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused, Refusal::Stalled(StalledOutput { taken: 0, waiting: passed.len() }));
        assert!(passed.len() <= SessionOutput::<()>::LIMIT && passed.len() + 1_000_000 > 64 << 20);
        open.send(()).unwrap();
        assert_eq!(output.finish(None).unwrap(), passed);
    }

    #[test]
    fn an_output_that_takes_nothing_ends_the_wait_after_its_patience() {
        let (_open, is_open) = mpsc::channel::<()>();
        let output = SessionOutput::spawn("test", move |batches| {
            batches.next();
            let _ = is_open.recv();
        })
        .unwrap();
        output.pass(b"abc").unwrap();
        let stalled = output.finish(Some(Duration::from_millis(1))).unwrap_err();
        assert_eq!(stalled, StalledOutput { taken: 0, waiting: 3 });
    }

    #[test]
    fn a_thread_that_ends_early_takes_no_more() {
        let output = SessionOutput::spawn("test", |batches| batches.next().map(<[u8]>::to_vec)).unwrap();
        while output.pass(b"a").is_ok() {}
        assert_eq!(output.pass(b"a"), Err(Refusal::Ended));
        assert!(output.finish(None).unwrap().is_some());
    }
}
