//! `MonitorCore`: the loop of an asynchronous monitor around a `MonitorPort` of `ipc_proto`.
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use ipc_proto::port::{
    MonitorChange, MonitorFull, MonitorLimits, MonitorPort, MonitorSlot, Rejection, RuntimeState,
};
use ipc_proto::{Guid, Step};
use ipc_std::{Error, milliseconds};

use super::AsyncMonitorEvent;
use crate::async_transport::AsyncTransport;

/// Drives a [`MonitorPort`], for a monitor and its clients: it has the streams, the timer, and the waiting tasks.
pub(super) struct MonitorCore<T: AsyncTransport> {
    transport: T,
    wakers: Arc<Wakers>,
    state: Mutex<State<T>>,
}

type Slot<S> = Option<MonitorSlot<S, ()>>;

pub(super) struct State<T: AsyncTransport> {
    pub(super) port: MonitorPort<T::Stream, (), Vec<Slot<T::Stream>>>,
    pub(super) events: VecDeque<AsyncMonitorEvent>,
    /// The connections of the port.
    tokens: Vec<u64>,
    /// The next time at which the port has work, and the wait for this time.
    timer: Option<(u64, Pin<Box<T::Sleep>>)>,
}

/// The tasks that wait. Every stream wakes all of them, so that any of them can stop waiting at any time.
#[derive(Debug, Default)]
struct Wakers(Mutex<Vec<Waker>>);

impl Wakers {
    fn add(&self, waker: &Waker) {
        let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|other| other.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The number of stored events from which on rejections are not stored.
const MAX_EVENTS: usize = 1024;

/// No process is checked.
const LIMITS: MonitorLimits =
    MonitorLimits { in_use_check_ms: u64::MAX, disconnected_check_ms: u64::MAX, ..MonitorLimits::DEFAULT };

impl<T: AsyncTransport> MonitorCore<T> {
    pub(super) fn new(transport: T) -> Self {
        let port = MonitorPort::with_limits(Vec::new(), LIMITS);
        let state = State { port, events: VecDeque::new(), tokens: Vec::new(), timer: None };
        Self { transport, wakers: Arc::default(), state: Mutex::new(state) }
    }

    pub(super) const fn transport(&self) -> &T {
        &self.transport
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.wakers.wake_by_ref();
    }

    pub(super) fn push(&self, stream: T::Stream) {
        let mut state = self.state();
        let mut accepted = state.port.accept(stream, (), now::<T>());
        while let Err(MonitorFull { connection, peer: () }) = accepted {
            state.port.grow(1);
            accepted = state.port.accept(connection, (), now::<T>());
        }
        if let Ok(accepted) = accepted {
            state.tokens.push(accepted.token);
            state.apply(accepted.evicted);
        }
        drop(state);
        self.wake();
    }

    /// Serves the port, then makes an attempt. If it returns nothing, the task of `context` is woken for the next one.
    pub(super) fn poll<R>(
        &self,
        context: &mut Context<'_>,
        attempt: impl FnOnce(&mut State<T>) -> Option<R>,
    ) -> Poll<R> {
        self.wakers.add(context.waker());
        let waker = Waker::from(Arc::clone(&self.wakers));
        let mut state = self.state();
        let happened = state.serve(&self.transport, &mut Context::from_waker(&waker));
        let result = attempt(&mut state);
        drop(state);
        if happened {
            self.wake();
        }
        result.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T: AsyncTransport> State<T> {
    /// Does all work that needs no wait; returns whether anything happened.
    fn serve(&mut self, transport: &T, context: &mut Context<'_>) -> bool {
        let mut happened = false;
        loop {
            let mut tokens = core::mem::take(&mut self.tokens);
            tokens.retain(|token| {
                loop {
                    let Some((stream, space)) = self.port.receive(*token) else { return false };
                    let n = match T::poll_transfer(stream, context, Step::Receive(space)) {
                        Poll::Pending => return true,
                        Poll::Ready(Err(e)) if e.kind() == ErrorKind::Interrupted => continue,
                        Poll::Ready(read) => read.unwrap_or(0),
                    };
                    let change = self.port.advance(*token, n, now::<T>());
                    happened |= self.apply(change);
                }
            });
            self.tokens = tokens;
            while let Some(change) = self.port.on_due(now::<T>(), |_| false) {
                happened |= self.apply(Some(change));
            }
            let due = self.port.due().filter(|due| *due < u64::MAX);
            let Some(due) = due else { return happened };
            if self.timer.as_ref().is_none_or(|(of, _)| *of != due) {
                let limit = Duration::from_millis(due.saturating_sub(now::<T>()));
                self.timer = Some((due, Box::pin(transport.sleep(limit))));
            }
            if self.timer.as_mut().is_some_and(|(_, timer)| timer.as_mut().poll(context).is_pending()) {
                return happened;
            }
            self.timer = None;
        }
    }

    fn apply(&mut self, change: Option<MonitorChange<T::Stream, ()>>) -> bool {
        let event = match change {
            None => return false,
            Some(MonitorChange::Arrived { runtime_cookie, first: true, .. }) => {
                self.port.runtime(&runtime_cookie).copied().map(AsyncMonitorEvent::Arrived)
            }
            Some(MonitorChange::Rejected { rejection, .. }) if !rejection.is_probe() => {
                Some(AsyncMonitorEvent::Rejected(rejection))
            }
            Some(MonitorChange::Disconnected { unsolicited: true, .. }) => {
                Some(AsyncMonitorEvent::Rejected(Rejection::Unsolicited))
            }
            Some(MonitorChange::Left(runtime)) => Some(AsyncMonitorEvent::Left(runtime)),
            Some(_) => None,
        };
        let is_full = self.events.len() >= MAX_EVENTS;
        let kept = event.filter(|event| !is_full || !matches!(event, AsyncMonitorEvent::Rejected(_)));
        self.events.extend(kept);
        true
    }
}

fn now<T: AsyncTransport>() -> u64 {
    milliseconds(T::now())
}

/// The next connection of a runtime, which a client of an [`AsyncMonitor`](crate::AsyncMonitor) waits for.
#[derive(Debug)]
pub struct Taking<T: AsyncTransport> {
    core: Arc<MonitorCore<T>>,
    runtime_cookie: Guid,
    peer: String,
}

impl<T: AsyncTransport> Taking<T> {
    pub(super) const fn new(core: Arc<MonitorCore<T>>, runtime_cookie: Guid, peer: String) -> Self {
        Self { core, runtime_cookie, peer }
    }

    pub(super) fn poll_stream(&self, context: &mut Context<'_>) -> Poll<io::Result<PortStream<T>>> {
        let cookie = &self.runtime_cookie;
        self.core.poll(context, |State { port, .. }| match port.state(cookie) {
            None => Some(Err(io::Error::other(Error::Left { peer: self.peer.clone() }))),
            Some(RuntimeState::Idle) => {
                let (token, _) = port.idle(cookie)?;
                let stream = port.take(cookie, now::<T>())?;
                Some(Ok(PortStream { stream, core: Arc::clone(&self.core), token }))
            }
            Some(_) => None,
        })
    }
}

/// A connection that was taken from an [`AsyncMonitor`](crate::AsyncMonitor). When it is dropped, the runtime must
/// connect again within a second.
#[derive(Debug)]
pub struct PortStream<T: AsyncTransport> {
    stream: T::Stream,
    core: Arc<MonitorCore<T>>,
    token: u64,
}

impl<T: AsyncTransport> Deref for PortStream<T> {
    type Target = T::Stream;

    fn deref(&self) -> &T::Stream {
        &self.stream
    }
}
impl<T: AsyncTransport> DerefMut for PortStream<T> {
    fn deref_mut(&mut self) -> &mut T::Stream {
        &mut self.stream
    }
}

impl<T: AsyncTransport> Drop for PortStream<T> {
    fn drop(&mut self) {
        self.core.state().port.released(self.token, now::<T>());
        // The grace time must wake a task that waits.
        self.core.wake();
    }
}

impl<T: AsyncTransport> fmt::Debug for MonitorCore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorCore").finish_non_exhaustive()
    }
}
