//! `AsyncClient`: a client over an asynchronous transport, for every executor.
use core::time::Duration;
use std::sync::Arc;

use ipc_proto::plan::{
    self, DumpConfig, Fallback, Hazard, InfoConfig, PlanStep, Runtime, Single, TraceConfig,
};
use ipc_proto::types::SessionId;
use ipc_proto::{BusyBackoff, Command, Request, ResumeRuntime, StopTracing};
use ipc_std::{DumpOutcome, Environment, Error, ProcessInfo, TimedSession, Timeouts, is_not_ready};

use crate::async_connection::{AsyncConnection, Limits};
use crate::async_connector::AsyncConnector;
use crate::async_trace_session::AsyncTraceSession;
use crate::async_transport::within;

/// A client of one runtime over an [`AsyncConnector`]: a transport of tokio, of `futures-io`, of a browser, or your
/// own.
///
/// The client carries out the same plans as an [`ipc_std::Client`], with the same state machines of `ipc_proto`. Every
/// call has the deadline of the client's [`Timeouts`], by the timer of the transport. Dropping the future of a call
/// closes its connection. A runtime that has received a whole command carries it out, even if nothing reads its answer.
///
/// The example `async_stream` is a client with tokio.
///
/// ```
/// use ipc_async::ipc_proto::SetEnvironmentVariable;
/// use ipc_async::{AsyncClient, AsyncConnector, Error};
///
/// async fn prepare<A: AsyncConnector>(client: &AsyncClient<A>) -> Result<(), Error> {
///     println!("{}", client.process_info().await?.command_line);
///     let set = SetEnvironmentVariable { name: "TRACED".into(), value: "1".into() };
///     client.call(&set, |_| ()).await?;
///     client.resume().await
/// }
/// ```
#[derive(Debug)]
pub struct AsyncClient<A> {
    connector: Arc<A>,
    timeouts: Timeouts,
    /// When the calls of the client end at the latest.
    deadline: Option<Duration>,
}

impl<A> Clone for AsyncClient<A> {
    fn clone(&self) -> Self {
        Self { connector: Arc::clone(&self.connector), ..*self }
    }
}

impl<A: AsyncConnector> AsyncClient<A> {
    /// Creates a client that uses the connections of `connector`. Nothing is connected yet.
    pub fn new(connector: A) -> Self {
        Self { connector: Arc::new(connector), timeouts: Timeouts::default(), deadline: None }
    }

    /// Sets the limits of the calls in place of the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Ends every call at `deadline` at the latest, by the [clock](crate::AsyncTransport::now) of the transport, so
    /// that several calls have one deadline. The Stop of a session has its own limit, [`Timeouts::stop`].
    #[must_use]
    pub fn with_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Opens a connection for one command; [`Timeouts::call`] begins now.
    ///
    /// # Errors
    /// If the transport fails; [`Error::Timeout`] if the runtime does not accept the connection in time.
    pub async fn connect(&self) -> Result<AsyncConnection<A>, Error> {
        self.connect_within(self.limits(self.timeouts.call)).await
    }

    fn limits(&self, limit: Duration) -> Limits {
        let begin = A::now();
        let end = begin.saturating_add(limit);
        Limits { begin, end: self.deadline.map_or(end, |deadline| deadline.min(end)) }
    }

    async fn connect_within(&self, limits: Limits) -> Result<AsyncConnection<A>, Error> {
        let mut backoff = BusyBackoff::new();
        let work = async {
            loop {
                match self.connector.connect().await {
                    Err(e) if is_not_ready(&e) => {
                        self.connector.sleep(Duration::from_millis(backoff.next().into())).await;
                    }
                    opened => return opened,
                }
            }
        };
        let (peer, phase) = (|| self.connector.peer().to_owned(), self.connector.phase());
        match within(&*self.connector, limits.end, work).await {
            Some(Ok(stream)) => Ok(AsyncConnection::new(Arc::clone(&self.connector), stream, limits)),
            Some(Err(e)) => {
                Err(e.downcast().unwrap_or_else(|source| Error::Io { peer: peer(), phase, source }))
            }
            None => {
                let after = A::now().saturating_sub(limits.begin);
                Err(Error::Timeout { peer: peer(), phase, command: None, after, sent: 0, received: 0 })
            }
        }
    }

    /// Carries out a plan: each command on a connection of its own, and all of them within `limit`.
    async fn carry_out<P: PlanStep>(
        &self,
        first: P,
        limit: Duration,
    ) -> Result<(AsyncConnection<A>, Fallback<P>), Error> {
        first.check().map_err(|value| Error::invalid(first.code(), value))?;
        let limits = self.limits(limit);
        let mut fallback = Fallback::new(first, u64::MAX);
        let mut connection = self.connect_within(limits).await?;
        loop {
            connection.drive(&mut fallback).await?;
            if fallback.until().is_none() {
                return Ok((connection, fallback));
            }
            connection = self.connect_within(limits).await?.continue_from(connection);
        }
    }

    /// Returns what the runtime reports about its process, as [`ipc_std::Client::process_info`] does.
    ///
    /// # Errors
    /// As [`ipc_std::Client::process_info`].
    pub async fn process_info(&self) -> Result<ProcessInfo, Error> {
        let first = InfoConfig.first_step(&Runtime::default());
        let (connection, fallback) = self.carry_out(first, self.timeouts.call).await?;
        connection.response(&fallback).map(Into::into)
    }

    /// Sends one command on a connection of its own, and returns what `read` makes of the response.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value that runtimes refuse; nothing is sent then. If connecting or the call fails.
    pub async fn call<C: Command, T>(
        &self,
        command: &C,
        read: impl FnOnce(C::Response<'_>) -> T,
    ) -> Result<T, Error> {
        self.call_within(self.timeouts.call, command, read).await
    }

    /// Calls a command with another limit than [`Timeouts::call`]: `AttachProfiler` needs its own timeout in addition.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_within<C: Command, T>(
        &self,
        limit: Duration,
        command: &C,
        read: impl FnOnce(C::Response<'_>) -> T,
    ) -> Result<T, Error> {
        let (connection, fallback) = self.carry_out(Single(command), limit).await?;
        connection.response(&fallback).map(read)
    }

    /// Returns the current environment of the process.
    ///
    /// # Errors
    /// If connecting or the call fails, or the environment is longer than [`Environment::LIMIT`].
    pub async fn environment(&self) -> Result<Environment, Error> {
        self.connect().await?.environment().await
    }

    /// Resumes a runtime that is suspended at startup; has no effect on any other runtime.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub async fn resume(&self) -> Result<(), Error> {
        self.call(&ResumeRuntime {}, |_| ()).await
    }

    /// Stops a session by its id, within [`Timeouts::stop`]. An [`AsyncTraceSession`] is stopped by its own method,
    /// because the answer arrives only after a client has read the stream to its end.
    ///
    /// # Errors
    /// If connecting or the call fails. No runtime refuses an unknown id.
    pub async fn stop_tracing(&self, session_id: u64) -> Result<(), Error> {
        self.call_within(self.timeouts.stop, &StopTracing { session_id }, |_| ()).await
    }

    /// Makes the runtime write a dump of its process, with the newest command that it knows and within
    /// [`Timeouts::dump`].
    ///
    /// # Errors
    /// If connecting or the call fails; since .NET 7 a refusal has a message.
    pub async fn write_dump(&self, config: &DumpConfig<'_>) -> Result<DumpOutcome, Error> {
        let first = config.first_step(&Runtime::default());
        let (connection, fallback) = self.carry_out(first, self.timeouts.dump).await?;
        connection.response(&fallback)?;
        Ok(DumpOutcome::of(fallback.command()))
    }

    /// Returns whether the request may end the process; see [`plan::hazard`]. If the answer depends on the runtime, the
    /// client requests its version. A property that no runtime reports counts as dangerous: whether it is suspended, is
    /// compiled by NativeAOT, or has a file.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub async fn hazard(&self, request: &Request<'_>) -> Result<Option<Hazard>, Error> {
        if plan::hazard(request, &Runtime::default(), None).is_none() {
            return Ok(None);
        }
        let runtime = ProcessInfo::runtime(self.process_info().await)?;
        Ok(plan::hazard(request, &runtime, None))
    }

    /// Starts a session with the oldest command that carries the configuration, as
    /// [`ipc_std::Client::start_tracing`] does.
    ///
    /// # Errors
    /// As [`ipc_std::Client::start_tracing`].
    pub async fn start_tracing(&self, config: &TraceConfig<'_>) -> Result<AsyncTraceSession<A>, Error> {
        let first = config.first_step(&Runtime::default());
        let (connection, fallback) = self.carry_out(first, self.timeouts.call).await?;
        let SessionId { session_id } = connection.response(&fallback)?;
        let state = TimedSession::new(session_id, config, fallback.command(), self.timeouts, A::now);
        let stream = connection.into_stream();
        Ok(AsyncTraceSession::new(Arc::clone(&self.connector), stream, state, self.timeouts.silence))
    }
}
