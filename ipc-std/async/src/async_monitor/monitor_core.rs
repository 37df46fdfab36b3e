//! `MonitorCore`: the loop of an asynchronous monitor around a `MonitorPort` of `ipc_proto`.
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use ipc_proto::Step;
use ipc_proto::port::{MonitorChange, MonitorFull, MonitorLimits, MonitorPort, MonitorSlot, Rejection};
use ipc_std::milliseconds;

use super::event::AsyncMonitorEvent;
use crate::async_transport::AsyncTransport;

/// Drives a [`MonitorPort`], for a monitor and its clients: it has the streams, the timer, and the waiting tasks.
pub(super) struct MonitorCore<T: AsyncTransport> {
    pub(super) transport: T,
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

impl<T: AsyncTransport> MonitorCore<T> {
    pub(super) fn new(transport: T) -> Self {
        // No process is checked.
        let (in_use_check_ms, disconnected_check_ms) = (u64::MAX, u64::MAX);
        let limits = MonitorLimits { in_use_check_ms, disconnected_check_ms, ..MonitorLimits::DEFAULT };
        let port = MonitorPort::with_limits(Vec::new(), limits);
        let state = State { port, events: VecDeque::new(), tokens: Vec::new(), timer: None };
        Self { transport, wakers: Arc::default(), state: Mutex::new(state) }
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

/// Returns the time by the clock of the port.
pub(super) fn now<T: AsyncTransport>() -> u64 {
    milliseconds(T::now())
}

impl<T: AsyncTransport> fmt::Debug for MonitorCore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorCore").finish_non_exhaustive()
    }
}
