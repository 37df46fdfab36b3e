//! `AsyncClient`: a client over an asynchronous transport, for every executor.
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use ipc_proto::plan::{
    Fallback, FallbackError, FallbackStep, InfoConfig, PlanStep, Runtime, Single, TraceConfig,
};
use ipc_proto::types::SessionId;
use ipc_proto::{Answer, Command, GetProcessEnvironment, ProtocolError, ReceiveEnvironment, Step};

use ipc_std::{
    CallContext, Client, DriveError, Environment, Error, Phase, ProcessInfo, TimedSession, Timeouts,
    drive_async, is_not_ready, milliseconds, transferred,
};

use crate::async_connector::{AsyncConnector, poll_receive};
use crate::async_trace_session::AsyncTraceSession;

/// A client of one runtime over an [`AsyncConnector`]: a transport of tokio, of `futures-io`, or your own.
///
/// The client carries out the same plans as a [`Client`], with the same state machines of `ipc_proto`. Every call has
/// the deadline of the client's [`Timeouts`]. Dropping the future of a call closes its connection. A runtime that has
/// received a whole command carries it out, even if nothing reads its answer.
///
/// The example `async_stream` is a client with tokio; [`AsyncConnector`] has its transport.
///
/// ```
/// use ipc_proto::SetEnvironmentVariable;
/// use ipc_async::{AsyncClient, AsyncConnector, Error};
///
/// async fn prepare<A: AsyncConnector>(client: &AsyncClient<A>) -> Result<(), Error> {
///     println!("{}", client.process_info().await?.command_line);
///     let set = SetEnvironmentVariable { name: "TRACED".into(), value: "1".into() };
///     client.call(&set, |_| ()).await
/// }
/// ```
#[derive(Debug)]
pub struct AsyncClient<A> {
    connector: Arc<A>,
    timeouts: Timeouts,
}

impl<A> Clone for AsyncClient<A> {
    fn clone(&self) -> Self {
        Self { connector: Arc::clone(&self.connector), timeouts: self.timeouts }
    }
}

/// The initial size of a buffer, in bytes: enough for nearly every command and response. A longer message makes the
/// buffer grow.
const BUFFER: usize = 4096;

/// A plan that was carried out: its last connection, and the buffer with the answer.
struct AsyncCarriedPlan<A: AsyncConnector, P> {
    stream: A::Stream,
    fallback: Fallback<P>,
    buf: Vec<u8>,
}

impl<A: AsyncConnector> AsyncClient<A> {
    /// Creates a client that uses the connections of `connector`. Nothing is connected yet.
    pub fn new(connector: A) -> Self {
        Self { connector: Arc::new(connector), timeouts: Timeouts::default() }
    }

    /// Sets the deadlines in place of the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Returns what the runtime reports about its process, as [`Client::process_info`] does.
    ///
    /// # Errors
    /// As [`Client::process_info`].
    pub async fn process_info(&self) -> Result<ProcessInfo, Error> {
        let first = InfoConfig.first_step(&Runtime::default());
        let carried = self.carry_out(first, self.timeouts.call).await?;
        self.response(&carried).map(Into::into)
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
        let carried = self.carry_out(Single(command), self.timeouts.call).await?;
        self.response(&carried).map(read)
    }

    /// Returns the current environment of the process.
    ///
    /// # Errors
    /// If connecting or the call fails, or the environment is longer than [`Client::ENVIRONMENT_LIMIT`].
    pub async fn environment(&self) -> Result<Environment, Error> {
        let command = GetProcessEnvironment {};
        let receive = async {
            let mut carried = self.carry_out(Single(&command), self.timeouts.call).await?;
            let announced = self.response(&carried)?;
            let (mut environment, stream) = (Environment::default(), &mut carried.stream);
            let received = async {
                let buf = &mut carried.buf;
                let mut receive = ReceiveEnvironment::new(&announced, Client::ENVIRONMENT_LIMIT, buf)?;
                loop {
                    let transfer =
                        |cx: &mut core::task::Context<'_>, step: Step<'_>| A::poll_transfer(stream, cx, step);
                    drive_async(&mut receive, transfer).await?;
                    match environment.receive(&mut receive) {
                        Ok(true) => return Ok(()),
                        Ok(false) => {}
                        Err(ProtocolError::BufferTooSmall { needed }) => {
                            // The buffer at most doubles, so it grows with the received bytes. A false length from the
                            // peer allocates no memory.
                            let suspended = receive.suspend();
                            buf.resize(needed.min(buf.len().saturating_mul(2)), 0);
                            receive = suspended.resume(buf)?;
                        }
                        Err(e) => return Err(DriveError::Protocol(e)),
                    }
                }
            };
            let received: Result<(), DriveError> = received.await;
            let context = self.context(&carried.fallback, Instant::now());
            received.map_err(|e| context.drive(e, Phase::ReceivingContinuation))?;
            Ok(environment)
        };
        let begin = Instant::now();
        self.within(self.timeouts.call, receive).await.unwrap_or_else(|| {
            let (peer, after) = (self.connector.peer().to_owned(), begin.elapsed());
            let (phase, command) = (Phase::ReceivingContinuation, Some(GetProcessEnvironment::CODE));
            Err(Error::Timeout { peer, phase, command, after, sent: 0, received: 0 })
        })
    }

    /// Starts a session with the oldest command that carries the configuration, as
    /// [`Client::start_tracing`] does.
    ///
    /// # Errors
    /// As [`Client::start_tracing`].
    pub async fn start_tracing(&self, config: &TraceConfig<'_>) -> Result<AsyncTraceSession<A>, Error> {
        let first = config.first_step(&Runtime::default());
        let carried = self.carry_out(first, self.timeouts.call).await?;
        let SessionId { session_id } = self.response(&carried)?;
        let AsyncCarriedPlan { stream, fallback, .. } = carried;
        let state = TimedSession::new(session_id, config, fallback.command(), self.timeouts);
        Ok(AsyncTraceSession::new(Arc::clone(&self.connector), stream, state))
    }

    /// Carries out a plan within `limit`.
    async fn carry_out<P: PlanStep>(
        &self,
        first: P,
        limit: Duration,
    ) -> Result<AsyncCarriedPlan<A, P>, Error> {
        first.check().map_err(|value| Error::invalid(first.code(), value))?;
        let begin = Instant::now();
        let now = || milliseconds(begin.elapsed());
        let until = milliseconds(limit);
        let (mut fallback, mut buf, mut stream) = (Fallback::new(first, until), vec![0; BUFFER], None);
        let run = async {
            loop {
                match fallback.step(&mut buf) {
                    FallbackStep::Connect => {
                        stream = None;
                        match self.connector.connect().await {
                            Ok(opened) => {
                                stream = Some(opened);
                                fallback.connected();
                            }
                            Err(e) if is_not_ready(&e) => fallback.busy(now()),
                            Err(e) => return Err((e, Phase::Connecting)),
                        }
                    }
                    FallbackStep::Wait => {
                        let pause = fallback.until().unwrap_or(0).saturating_sub(now());
                        self.connector.sleep(Duration::from_millis(pause)).await;
                        fallback.tick(now());
                    }
                    FallbackStep::Grow { needed } => buf.resize(needed, 0),
                    FallbackStep::Done => return Ok(()),
                    FallbackStep::Send(_) | FallbackStep::Receive(_) => {
                        let Some(stream) = &mut stream else { return Ok(()) };
                        let received = fallback.transferred().1;
                        let moved = poll_fn(|cx| match fallback.step(&mut buf) {
                            FallbackStep::Send(bytes) => A::poll_transfer(stream, cx, Step::Send(bytes)),
                            FallbackStep::Receive(space) => poll_receive::<A>(stream, cx, space),
                            _ => Poll::Ready(Ok(0)),
                        });
                        match transferred(moved.await) {
                            Ok(Some(n)) => fallback.advance(n, &buf),
                            Ok(None) => {}
                            Err(e) => return Err((e, Phase::of_answer(received))),
                        }
                    }
                }
            }
        };
        let ran = self.within(limit, run).await;
        let phase =
            if stream.is_some() { Phase::of_answer(fallback.transferred().1) } else { Phase::Connecting };
        match ran {
            Some(Ok(())) => {}
            Some(Err((e, phase))) => return Err(self.context(&fallback, begin).io(e, phase)),
            None => fallback.tick(u64::MAX),
        }
        let answered = fallback.finish(&buf).map(|_| ());
        match (answered, stream) {
            (Ok(()), Some(stream)) => Ok(AsyncCarriedPlan { stream, fallback, buf }),
            (answered, _) => {
                let error = answered.err().unwrap_or(FallbackError::TimedOut { connected: false });
                Err(self.context(&fallback, begin).fallback(error, phase))
            }
        }
    }

    fn response<'c, P: PlanStep>(
        &self,
        carried: &'c AsyncCarriedPlan<A, P>,
    ) -> Result<P::Response<'c>, Error> {
        let context = self.context(&carried.fallback, Instant::now());
        match carried.fallback.finish(&carried.buf) {
            Ok(Answer::Ok(response)) => Ok(response),
            Ok(Answer::Refused(error)) => Err(context.refused(&error)),
            Err(e) => Err(context.fallback(e, Phase::ReceivingAnswer)),
        }
    }

    fn context<P: PlanStep>(&self, fallback: &Fallback<P>, begin: Instant) -> CallContext<'_> {
        let (sent, received) = fallback.transferred();
        let (peer, command) = (self.connector.peer(), fallback.command().code());
        CallContext { peer, command, sent, received, waited: begin.elapsed() }
    }

    /// Returns the result of `work`; `None` if the work takes longer than `limit`.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut timer) = (pin!(work), pin!(self.connector.sleep(limit)));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
        })
        .await
    }
}
