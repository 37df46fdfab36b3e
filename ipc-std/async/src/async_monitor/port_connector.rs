//! `PortConnector`: takes the connections of one runtime from the port of an asynchronous monitor.
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use ipc_proto::port::RuntimeState;
use ipc_proto::{Guid, Step};
use ipc_std::{Error, Phase};

use super::monitor_core::{MonitorCore, now};
use crate::async_connector::AsyncConnector;
use crate::async_transport::AsyncTransport;

/// Takes the connections that one runtime opens, for the client of an [`AsyncMonitor`](crate::AsyncMonitor).
#[derive(Debug)]
pub struct PortConnector<T: AsyncTransport> {
    core: Arc<MonitorCore<T>>,
    runtime_cookie: Guid,
    peer: String,
}

/// The next connection of a runtime, as a future.
#[derive(Debug)]
pub struct Taking<T: AsyncTransport>(PortConnector<T>);

/// A connection that was taken from an [`AsyncMonitor`](crate::AsyncMonitor). When it is dropped, the runtime must
/// connect again within a second.
#[derive(Debug)]
pub struct PortStream<T: AsyncTransport> {
    stream: T::Stream,
    core: Arc<MonitorCore<T>>,
    token: u64,
}

impl<T: AsyncTransport> PortConnector<T> {
    pub(super) fn new(core: &Arc<MonitorCore<T>>, runtime_cookie: Guid) -> Self {
        let peer = match core.state().port.runtime(&runtime_cookie) {
            Some(runtime) => format!("process {}", runtime.process_id),
            None => format!("runtime {runtime_cookie}"),
        };
        Self { core: Arc::clone(core), runtime_cookie, peer }
    }
}

impl<T: AsyncTransport> AsyncTransport for PortConnector<T> {
    type Stream = PortStream<T>;
    type Sleep = T::Sleep;

    fn sleep(&self, limit: Duration) -> T::Sleep {
        self.core.transport.sleep(limit)
    }
    fn now() -> Duration {
        T::now()
    }
    fn poll_transfer(s: &mut PortStream<T>, cx: &mut Context<'_>, step: Step<'_>) -> Poll<io::Result<usize>> {
        T::poll_transfer(&mut s.stream, cx, step)
    }
}

impl<T: AsyncTransport> AsyncConnector for PortConnector<T> {
    type Connecting = Taking<T>;

    fn connect(&self) -> Taking<T> {
        let Self { core, runtime_cookie, peer } = self;
        Taking(Self { core: Arc::clone(core), runtime_cookie: *runtime_cookie, peer: peer.clone() })
    }
    fn peer(&self) -> &str {
        &self.peer
    }
    fn phase(&self) -> Phase {
        Phase::AwaitingRuntime
    }
}

impl<T: AsyncTransport> Future for Taking<T> {
    type Output = io::Result<PortStream<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let PortConnector { core, runtime_cookie, peer } = &self.0;
        core.poll(context, |state| match state.port.state(runtime_cookie) {
            None => Some(Err(io::Error::other(Error::Left { peer: peer.clone() }))),
            Some(RuntimeState::Idle) => {
                let (token, _) = state.port.idle(runtime_cookie)?;
                let stream = state.port.take(runtime_cookie, now::<T>())?;
                Some(Ok(PortStream { stream, core: Arc::clone(core), token }))
            }
            Some(_) => None,
        })
    }
}

impl<T: AsyncTransport> Drop for PortStream<T> {
    fn drop(&mut self) {
        self.core.state().port.released(self.token, now::<T>());
        self.core.wake(); // a task that waits now waits for the end of the grace time, too
    }
}
