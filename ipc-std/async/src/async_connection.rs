//! `AsyncConnection`: one command over one asynchronous stream.
use core::time::Duration;
use std::io;
use std::sync::Arc;

use ipc_proto::plan::{Fallback, FallbackStep, PlanStep, Single};
use ipc_proto::{
    Answer, Code, Command, Exchange, GetProcessEnvironment, ProtocolError, ReceiveEnvironment, Step,
};
use ipc_std::{CallContext, DriveError, Environment, Error, Phase};

use crate::async_connector::AsyncConnector;
use crate::async_transport::{drive, within};

/// A connection to a runtime, for one command, from [`AsyncClient::connect`](crate::AsyncClient::connect). All its
/// waits have one deadline.
///
/// ```
/// use ipc_async::{AsyncClient, AsyncConnector, Error};
/// use ipc_async::ipc_proto::ResumeRuntime;
///
/// /// Connects now, and resumes the runtime when `is_ready` is done.
/// async fn resume<A: AsyncConnector>(client: &AsyncClient<A>, is_ready: impl Future) -> Result<(), Error> {
///     let mut connection = client.connect().await?;
///     is_ready.await;
///     connection.call(&ResumeRuntime {}, |_| ()).await
/// }
/// ```
#[derive(Debug)]
pub struct AsyncConnection<A: AsyncConnector> {
    connector: Arc<A>,
    stream: A::Stream,
    buf: Vec<u8>,
    /// When the call began and when it ends at the latest.
    limits: Limits,
}

/// The begin and the end of a call, by the clock of the transport.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
}

/// The initial size of a buffer, in bytes: enough for nearly every command and response. A longer message makes the
/// buffer grow.
const BUFFER: usize = 4096;

impl<A: AsyncConnector> AsyncConnection<A> {
    pub(crate) fn new(connector: Arc<A>, stream: A::Stream, limits: Limits) -> Self {
        Self { connector, stream, buf: vec![0; BUFFER], limits }
    }

    /// Returns the stream, at the first byte after the response.
    pub fn into_stream(self) -> A::Stream {
        self.stream
    }

    /// Takes over the buffer of the previous connection of a plan. The buffer contains the next command.
    pub(crate) fn continue_from(self, previous: Self) -> Self {
        Self { buf: previous.buf, ..self }
    }

    /// Sends `command`, and returns what `read` makes of the response. Data that follows the response stays on the
    /// stream. The values of the command are not checked, as in [`ipc_std::Connection::call`].
    ///
    /// # Errors
    /// If the call fails or its deadline passes.
    pub async fn call<C: Command, T>(
        &mut self,
        command: &C,
        read: impl FnOnce(C::Response<'_>) -> T,
    ) -> Result<T, Error> {
        let mut fallback = Fallback::new(Single(command), u64::MAX);
        self.drive(&mut fallback).await?;
        self.response(&fallback).map(read)
    }

    /// Requests and receives the environment of the process.
    ///
    /// # Errors
    /// As [`call`](Self::call), and if the environment is malformed or longer than [`Environment::LIMIT`].
    pub async fn environment(&mut self) -> Result<Environment, Error> {
        let mut fallback = Fallback::new(Single(&GetProcessEnvironment {}), u64::MAX);
        self.drive(&mut fallback).await?;
        let announced = self.response(&fallback)?;
        let Self { connector, stream, buf, limits } = self;
        let receive = async {
            let mut environment = Environment::default();
            let mut receive = ReceiveEnvironment::new(&announced, Environment::LIMIT, buf)?;
            loop {
                drive::<A>(&mut receive, stream).await?;
                match environment.receive(&mut receive) {
                    Ok(true) => return Ok(environment),
                    Ok(false) => {}
                    Err(ProtocolError::BufferTooSmall { needed }) => {
                        // The buffer at most doubles, so it grows with the received bytes. A false length from the peer
                        // allocates no memory.
                        let suspended = receive.suspend();
                        buf.resize(needed.min(buf.len().saturating_mul(2)), 0);
                        receive = suspended.resume(buf)?;
                    }
                    Err(e) => return Err(DriveError::Protocol(e)),
                }
            }
        };
        let environment = within(&**connector, limits.end, receive).await;
        let context = context(&**connector, *limits, GetProcessEnvironment::CODE, fallback.transferred());
        let environment = environment.unwrap_or_else(|| Err(timed_out()));
        environment.map_err(|e| context.drive(e, Phase::ReceivingContinuation))
    }

    /// Sends the current command of a plan, and receives its answer.
    pub(crate) async fn drive<P: PlanStep>(&mut self, fallback: &mut Fallback<P>) -> Result<(), Error> {
        let Self { connector, stream, buf, limits } = self;
        let code = fallback.command().code();
        let mut calling = Calling { fallback, buf };
        calling.step(); // encodes the command
        calling.fallback.connected();
        let driven = within(&**connector, limits.end, drive::<A>(&mut calling, stream)).await;
        let (sent, received) = calling.fallback.transferred();
        let phase = match calling.step() {
            // The answer is complete, so it does not matter that the connection failed later.
            Step::Done => return Ok(()),
            Step::Send(_) => Phase::Sending,
            Step::Receive(_) => Phase::of_answer(received),
        };
        let failed = driven.unwrap_or_else(|| Err(timed_out()));
        failed.map_err(|e| context(&**connector, *limits, code, (sent, received)).drive(e, phase))
    }

    /// Returns the response to the last command of a plan.
    pub(crate) fn response<'c, P: PlanStep>(
        &'c self,
        fallback: &Fallback<P>,
    ) -> Result<P::Response<'c>, Error> {
        let passed = fallback.transferred();
        let context = context(&*self.connector, self.limits, fallback.command().code(), passed);
        match fallback.finish(&self.buf) {
            Ok(Answer::Ok(response)) => Ok(response),
            Ok(Answer::Refused(error)) => Err(context.refused(&error)),
            Err(e) => Err(context.fallback(e, Phase::of_answer(passed.1))),
        }
    }
}

/// The command that a plan sends on the current connection, and its answer, as an exchange.
struct Calling<'c, P> {
    fallback: &'c mut Fallback<P>,
    buf: &'c mut Vec<u8>,
}

impl<P: PlanStep> Exchange for Calling<'_, P> {
    fn step(&mut self) -> Step<'_> {
        if let FallbackStep::Grow { needed } = self.fallback.step(self.buf) {
            self.buf.resize(needed, 0);
        }
        match self.fallback.step(self.buf) {
            FallbackStep::Send(bytes) => Step::Send(bytes),
            FallbackStep::Receive(space) => Step::Receive(space),
            _ => Step::Done,
        }
    }

    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        self.fallback.advance(n, self.buf);
        Ok(())
    }
}

/// Returns the error of an exchange that was not done at its deadline.
fn timed_out() -> DriveError {
    DriveError::Receive(io::ErrorKind::TimedOut.into())
}

fn context<A: AsyncConnector>(
    connector: &A,
    limits: Limits,
    command: Code,
    (sent, received): (u64, u64),
) -> CallContext<'_> {
    let waited = A::now().saturating_sub(limits.begin);
    CallContext { peer: connector.peer(), command, sent, received, waited }
}
