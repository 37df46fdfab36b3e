//! `AsyncMonitor`: a diagnostic port whose connections the caller accepts.
mod event;
mod monitor_core;
mod port_connector;

use core::future::poll_fn;
use core::task::{Context, Poll};
use std::sync::Arc;

use ipc_proto::Guid;
use ipc_proto::port::{RuntimeEntry, RuntimeState};
use ipc_std::Timeouts;

use crate::async_client::AsyncClient;
use crate::async_transport::AsyncTransport;
use monitor_core::MonitorCore;

pub use event::AsyncMonitorEvent;
pub use port_connector::{PortConnector, PortStream, Taking};

/// A monitor: it has the connections that runtimes open, which the caller accepts over any [`AsyncTransport`].
///
/// A runtime connects, sends its [`Advertise`](ipc_proto::Advertise) frame, and waits for one command; then it connects
/// again. [`MonitorPort`](ipc_proto::port::MonitorPort) makes the decisions, as for an [`ipc_std::Monitor`].
///
/// A monitor spawns no task. While any task waits for an event or for a runtime, it serves the whole port. All methods
/// can be called from any task.
///
/// No process is checked, because a runtime can be on another machine or in a browser. A runtime leaves if its
/// connection ends and it does not connect again within a second. So after a command that is dropped before its answer,
/// a runtime that still carries it out can leave, and arrive again.
///
/// ```
/// use ipc_async::{AsyncMonitor, AsyncMonitorEvent, AsyncTransport, Error};
///
/// /// Resumes each runtime that arrives. Another task gives the monitor the connections, by `push`.
/// async fn resume_all<T: AsyncTransport>(monitor: &AsyncMonitor<T>) -> Result<(), Error> {
///     loop {
///         if let AsyncMonitorEvent::Arrived(runtime) = monitor.next_event().await {
///             let client = monitor.client(runtime.cookie);
///             println!("{}", client.process_info().await?.command_line);
///             client.resume().await?;
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct AsyncMonitor<T: AsyncTransport> {
    core: Arc<MonitorCore<T>>,
    timeouts: Timeouts,
}

impl<T: AsyncTransport> AsyncMonitor<T> {
    /// Creates a monitor without connections.
    pub fn new(transport: T) -> Self {
        Self { core: Arc::new(MonitorCore::new(transport)), timeouts: Timeouts::default() }
    }

    /// Sets the limits of the monitor's clients, in place of the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Gives the monitor a connection that the caller has accepted. The runtime at its other end must send its frame.
    pub fn push(&self, stream: T::Stream) {
        self.core.push(stream);
    }

    /// Waits for the next event. The future can be dropped and the call repeated.
    pub async fn next_event(&self) -> AsyncMonitorEvent {
        poll_fn(|context| self.poll_event(context)).await
    }

    /// Polls for the next event.
    pub fn poll_event(&self, context: &mut Context<'_>) -> Poll<AsyncMonitorEvent> {
        self.core.poll(context, |state| state.events.pop_front())
    }

    /// Returns the known runtimes, which have arrived and not left.
    #[must_use]
    pub fn runtimes(&self) -> Vec<RuntimeEntry<()>> {
        self.core.state().port.runtimes().copied().collect()
    }

    /// Returns whether the runtime waits for a command.
    #[must_use]
    pub fn is_waiting(&self, runtime_cookie: Guid) -> bool {
        self.core.state().port.state(&runtime_cookie) == Some(RuntimeState::Idle)
    }

    /// Forgets a runtime and closes its connection; returns whether the runtime was known.
    pub fn remove(&self, runtime_cookie: Guid) -> bool {
        let removed = self.core.state().port.remove(&runtime_cookie);
        self.core.wake();
        removed.is_some()
    }

    /// Creates a client of a runtime. Each command takes the runtime's next connection. After the runtime has left,
    /// commands fail with [`Error::Left`](crate::Error::Left).
    #[must_use]
    pub fn client(&self, runtime_cookie: Guid) -> AsyncClient<PortConnector<T>> {
        AsyncClient::new(PortConnector::new(&self.core, runtime_cookie)).with_timeouts(self.timeouts)
    }
}
