//! `Worker`: the threads of a transport that can only block.
use core::fmt;
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::caught::caught;
use crate::drive::{is_closed, is_not_ready, within};
use crate::sys::Flag;

/// A transport that can only block, and the thread or the two threads that wait for it.
///
/// One thread does one operation at a time: it writes what it was given, then it reads if a caller wants bytes. That is
/// enough for a client, which writes a command before it reads, and for a server, which reads before it writes. A monitor
/// reads while it may have to write a command: for this, one thread reads and the other one writes.
pub(crate) struct Worker {
    shared: Arc<SharedState>,
    /// Whether the transport can be read while nothing is expected: another thread writes, or a read ends soon by itself.
    reads_idle: bool,
}

struct SharedState {
    state: Mutex<State>,
    /// Wakes the threads.
    work: Condvar,
    /// Wakes the callers when the thread has finished an operation.
    progress: Condvar,
    /// A flag that is raised while a read would return immediately.
    flag: Flag,
    /// Interrupts an operation of the transport.
    interrupt: Mutex<Option<Interrupt>>,
}

/// Ends a wait of the transport from another thread.
pub(crate) type Interrupt = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// Bytes to write.
    outgoing: Vec<u8>,
    /// Whether the thread is writing bytes of `outgoing`.
    is_writing: bool,
    /// Bytes that were read, the first `taken` of which a caller has taken.
    incoming: Vec<u8>,
    taken: usize,
    /// Whether a caller wants bytes.
    is_wanted: bool,
    /// How the transport ended.
    end: Option<End>,
    /// Whether the connection was dropped or shut down.
    is_closed: bool,
}

enum End {
    Closed,
    Failed(ErrorKind, Arc<dyn core::error::Error + Send + Sync>),
}

/// The next operation of a thread.
enum Job {
    Write(Vec<u8>),
    Read,
    End,
}

/// The number of bytes that the thread reads at a time.
const BUFFER: usize = 64 << 10;

/// The pause before the next attempt if the transport itself does not wait.
const PAUSE: Duration = Duration::from_millis(1);

impl Worker {
    /// Starts a thread. `interrupt` ends an operation that waits. `reads_idle` states that a read soon ends by itself.
    pub(crate) fn start(
        stream: impl Read + Write + Send + 'static,
        interrupt: Option<Interrupt>,
        reads_idle: bool,
    ) -> io::Result<Self> {
        let worker = Self::new(interrupt, reads_idle)?;
        worker.spawn(|shared| shared.run(stream))?;
        Ok(worker)
    }

    /// Starts a thread that reads and one that writes. `interrupt` ends their operations that wait.
    pub(crate) fn start_halves(
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        interrupt: Interrupt,
    ) -> io::Result<Self> {
        let worker = Self::new(Some(interrupt), true)?;
        worker.spawn(|shared| shared.run_reader(reader))?;
        worker.spawn(|shared| shared.run_writer(writer))?;
        Ok(worker)
    }

    fn new(interrupt: Option<Interrupt>, reads_idle: bool) -> io::Result<Self> {
        let shared = Arc::new(SharedState {
            state: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            flag: Flag::new()?,
            interrupt: Mutex::new(interrupt),
        });
        Ok(Self { shared, reads_idle })
    }

    fn spawn(&self, run: impl FnOnce(&SharedState) + Send + 'static) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("ipc-transport".to_owned()).spawn(move || {
            if let Err(panic) = caught(|| run(&shared)) {
                shared.finish(|state| {
                    state.is_writing = false;
                    state.outgoing.clear();
                    state.end = None;
                    Some(End::failed(panic))
                });
            }
        });
        thread.map(drop)
    }

    /// Returns the flag that is raised while a read would return immediately.
    pub(crate) fn flag(&self) -> &Flag {
        &self.shared.flag
    }

    /// Reads bytes that have arrived. If there are none, fails with `WouldBlock` and requests that the thread read
    /// some.
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.shared.read(&mut self.shared.state(), buf)
    }

    /// Waits for bytes and reads them; fails with `TimedOut` after `deadline`.
    pub(crate) fn read_by(&self, buf: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.wait(deadline, |state| self.shared.read(state, buf))
    }

    /// Requests that the thread write bytes. Fails with `WouldBlock` while the thread still writes earlier bytes.
    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        self.shared.write(&mut self.shared.state(), buf)
    }

    /// Writes bytes, and waits until the transport has taken them; fails with `TimedOut` after `deadline`.
    pub(crate) fn write_by(&self, buf: &[u8], deadline: Instant) -> io::Result<usize> {
        let n = self.wait(deadline, |state| self.shared.write(state, buf))?;
        self.wait(deadline, |state| match state.is_writing || !state.outgoing.is_empty() {
            true => Err(ErrorKind::WouldBlock.into()),
            false => state.error().map_or(Ok(n), Err),
        })
    }

    /// Requests that the thread read before a caller wants bytes, so that the flag is raised when bytes arrive.
    pub(crate) fn expect_bytes(&self) {
        self.shared.want(&mut self.shared.state());
    }

    /// Requests that the thread read although no bytes are expected, so that the flag is raised at the end; not if no write
    /// could then interrupt the read.
    pub(crate) fn expect_end(&self) {
        if self.reads_idle {
            self.expect_bytes();
        }
    }

    /// Returns whether the transport has ended and all bytes were read.
    pub(crate) fn has_ended(&self) -> bool {
        let state = self.shared.state();
        state.end.is_some() && state.taken == state.incoming.len()
    }

    /// Ends the connection: the thread drops the transport as soon as its operation returns.
    pub(crate) fn close(&self) {
        self.shared.state().is_closed = true;
        self.shared.work.notify_all();
        self.shared.progress.notify_all();
        self.shared.flag.raise();
        let interrupt = self.shared.interrupt.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(interrupt) = interrupt {
            // It is called in `drop`, where a panic could end the process.
            let _ = caught(interrupt);
        }
    }

    /// Calls `attempt` until it no longer fails with `WouldBlock`.
    fn wait<T>(
        &self,
        deadline: Instant,
        mut attempt: impl FnMut(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.shared.state();
        loop {
            match attempt(&mut state) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            let limit = deadline.saturating_duration_since(Instant::now());
            if limit.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            let waited = self.shared.progress.wait_timeout(state, limit);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl State {
    /// Returns the error of the transport, if the transport has failed or this process has closed it.
    fn error(&self) -> Option<io::Error> {
        match &self.end {
            _ if self.is_closed => Some(ErrorKind::ConnectionAborted.into()),
            Some(End::Failed(kind, error)) => Some(io::Error::new(*kind, Arc::clone(error))),
            Some(End::Closed) | None => None,
        }
    }
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, state: &mut State) {
        if !state.is_wanted && state.taken == state.incoming.len() && state.end.is_none() {
            state.is_wanted = true;
            self.work.notify_all();
        }
    }

    fn read(&self, state: &mut State, buf: &mut [u8]) -> io::Result<usize> {
        let available = state.incoming.get(state.taken..).unwrap_or_default();
        if available.is_empty() {
            if let Some(error) = state.error() {
                return Err(error);
            }
            if let Some(End::Closed) = state.end {
                return Ok(0);
            }
            self.flag.lower();
            self.want(state);
            return Err(ErrorKind::WouldBlock.into());
        }
        let n = available.len().min(buf.len());
        buf.iter_mut().zip(available).for_each(|(to, from)| *to = *from);
        state.taken = state.taken.saturating_add(n);
        if state.taken == state.incoming.len() && state.end.is_none() {
            self.flag.lower();
        }
        Ok(n)
    }

    fn write(&self, state: &mut State, buf: &[u8]) -> io::Result<usize> {
        match state.error() {
            Some(error) => return Err(error),
            None if state.is_writing || !state.outgoing.is_empty() => {
                return Err(ErrorKind::WouldBlock.into());
            }
            None => {}
        }
        state.outgoing.extend_from_slice(buf);
        self.work.notify_all();
        Ok(buf.len())
    }

    /// Does the operations, until the connection is closed.
    fn run(&self, mut stream: impl Read + Write) {
        let mut buf = vec![0; BUFFER];
        loop {
            match self.next_job(true, true) {
                Job::Write(bytes) => self.write_job(&mut stream, &bytes),
                Job::Read => self.read_job(&mut stream, &mut buf),
                Job::End => return,
            }
        }
    }

    /// Reads until the connection is closed.
    fn run_reader(&self, mut reader: impl Read) {
        let mut buf = vec![0; BUFFER];
        while let Job::Read = self.next_job(true, false) {
            self.read_job(&mut reader, &mut buf);
        }
    }

    /// Writes until the connection is closed.
    fn run_writer(&self, mut writer: impl Write) {
        while let Job::Write(bytes) = self.next_job(false, true) {
            self.write_job(&mut writer, &bytes);
        }
    }

    fn write_job(&self, writer: &mut impl Write, bytes: &[u8]) {
        let written = self.write_all(writer, bytes);
        self.finish(|state| {
            state.is_writing = false;
            match written {
                // A closed connection is not a failure: bytes that the peer sent before can still be read.
                Err(e) if !is_closed(&e) => Some(End::failed(e)),
                Ok(()) | Err(_) => None,
            }
        });
    }

    fn read_job(&self, reader: &mut impl Read, buf: &mut [u8]) {
        match reader.read(buf).and_then(|n| within(n, buf.len())) {
            Ok(n) => self.finish(|state| {
                state.is_wanted = false;
                state.incoming.clear();
                state.taken = 0;
                state.incoming.extend_from_slice(buf.get(..n).unwrap_or_default());
                (n == 0).then_some(End::Closed)
            }),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if is_not_ready(&e) => self.pause(),
            Err(e) if is_closed(&e) => self.finish(|_| Some(End::Closed)),
            Err(e) => self.finish(|_| Some(End::failed(e))),
        }
    }

    /// Waits for work of a thread that reads, writes, or does both.
    fn next_job(&self, reads: bool, writes: bool) -> Job {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return Job::End;
            }
            if writes && !state.outgoing.is_empty() {
                state.is_writing = true;
                return Job::Write(core::mem::take(&mut state.outgoing));
            }
            if reads && state.is_wanted && state.end.is_none() {
                return Job::Read;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn write_all(&self, stream: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match stream.write(bytes).and_then(|n| within(n, bytes.len())) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if is_not_ready(&e) => {
                    if self.state().is_closed {
                        return Ok(());
                    }
                    thread::sleep(PAUSE);
                }
                Err(e) => return Err(e),
            }
        }
        stream.flush()
    }

    /// Reports the result of an operation to the callers.
    fn finish(&self, change: impl FnOnce(&mut State) -> Option<End>) {
        let mut state = self.state();
        let end = change(&mut state);
        state.end = state.end.take().or(end);
        let is_readable = state.taken < state.incoming.len() || state.end.is_some();
        drop(state);
        if is_readable {
            self.flag.raise();
        }
        self.progress.notify_all();
    }

    /// Waits for other work. Without this pause, a transport whose reads return at once would be read in a busy loop.
    fn pause(&self) {
        let state = self.state();
        if !state.is_closed && state.outgoing.is_empty() {
            let _ = self.work.wait_timeout(state, PAUSE);
        }
    }
}

impl End {
    fn failed(error: io::Error) -> Self {
        let kind = error.kind();
        let inner: Box<dyn core::error::Error + Send + Sync> = Box::new(error);
        Self::Failed(kind, inner.into())
    }
}
