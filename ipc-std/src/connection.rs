//! `Connection`: one command over one stream.
use std::io::{self, Read, Write};
use std::time::Instant;

use ipc_proto::plan::{Fallback, FallbackStep, PlanStep, Single};
use ipc_proto::types::ProcessEnvironment;
use ipc_proto::{Answer, Code, Command, Exchange, GetProcessEnvironment, ProtocolError, ReceiveEnvironment};

use crate::drive::{DriveError, drive, is_closed, transferred};
use crate::environment::Environment;
use crate::error::{CallContext, Error, Phase};
use crate::observer::{Observer, Tap};

/// A stream to a runtime and the buffer of the one command that it carries.
///
/// With the [`Stream`](crate::Stream) of [`Client::connect`](crate::Client::connect), every wait has a deadline. With
/// any other `Read + Write`, a wait ends when the `Read + Write` fails with the kind `TimedOut` or `WouldBlock`, as a
/// `TcpStream` with a read timeout does.
///
/// ```no_run
/// use ipc_std::ipc_proto::GetProcessInfo2;
/// use ipc_std::Connection;
///
/// let stream = std::net::TcpStream::connect("127.0.0.1:9000")?; // for example a router
/// let mut connection = Connection::new(stream);
/// println!("{}", connection.call(&GetProcessInfo2 {})?.command_line);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Connection<S> {
    tap: Tap<S>,
    peer: String,
    since: Instant,
    buf: Vec<u8>,
}

/// The initial size of a buffer, in bytes: enough for nearly every command and response. A longer message makes the
/// buffer grow.
const BUFFER: usize = 4096;

impl<S> Connection<S> {
    /// Creates a connection over any stream to a runtime. Errors call the runtime "the peer".
    pub fn new(stream: S) -> Self {
        Self::with_peer("the peer", stream)
    }

    /// Creates a connection over any stream to a runtime that has this name in errors.
    pub fn with_peer(peer: impl Into<String>, stream: S) -> Self {
        Self::begun(peer.into(), Instant::now(), stream)
    }

    /// Creates a connection over a stream to `peer`, for a call that began at `since`.
    pub(crate) fn begun(peer: String, since: Instant, stream: S) -> Self {
        Self { tap: Tap::new(stream), peer, since, buf: vec![0; BUFFER] }
    }

    /// Shows `observer` every message.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Into<Option<Observer>>) -> Self {
        self.tap.observe(observer.into());
        self
    }

    /// Returns the stream, at the first byte after the response.
    pub fn into_stream(self) -> S {
        self.tap.stream
    }

    /// Returns the numbers of bytes sent and received.
    pub(crate) const fn passed(&self) -> (u64, u64) {
        (self.tap.sent, self.tap.received)
    }

    /// Takes over the buffer of the previous connection of a plan. The buffer contains the next command.
    pub(crate) fn continue_with(&mut self, buf: Vec<u8>) {
        self.buf = buf;
    }

    /// Returns the buffer, for the next connection of a plan.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buf
    }

    fn context(&self, command: Code) -> CallContext<'_> {
        context(&self.tap, &self.peer, self.since, command)
    }

    /// Returns the stream.
    pub const fn stream(&self) -> &S {
        &self.tap.stream
    }
}

impl<S: Read + Write> Connection<S> {
    /// Runs an exchange until it is done, as [`drive`] does. The observer sees its messages.
    ///
    /// # Errors
    /// As [`drive`].
    ///
    /// ```
    /// use ipc_std::ipc_proto::{Message, Reply, Serve};
    /// use ipc_std::{Connection, DriveError, Observer};
    /// use std::io::{Read, Write};
    ///
    /// /// Receives a request and refuses it, with both messages shown.
    /// fn refuse(stream: impl Read + Write) -> Result<(), DriveError> {
    ///     let observer = Observer::new(|seen| eprintln!("{:?} {:x?}", seen.direction, seen.bytes));
    ///     let mut connection = Connection::new(stream).with_observer(observer);
    ///     let (mut receive, mut send) = ([0; Message::MAX_LEN], [0; 64]);
    ///     let Ok(mut serve) = Serve::new(&mut receive, &mut send) else { return Ok(()) };
    ///     connection.exchange(&mut serve)?;
    ///     let (_, mut reply) = serve.finish();
    ///     connection.exchange(&mut reply) // a reply without an answer is a refusal
    /// }
    /// ```
    pub fn exchange(&mut self, exchange: &mut impl Exchange) -> Result<(), DriveError> {
        drive(exchange, &mut self.tap)
    }

    /// Sends `command` and receives the response. Data that follows the response stays on the stream.
    ///
    /// The response borrows from the connection; the methods of [`Client`](crate::Client) return owned responses. Those
    /// methods also check the values of a command before they send it. This method does not check, so that a test can
    /// send to a server what the server must refuse. Call [`Command::check`] for values that come from a user.
    ///
    /// # Errors
    /// If the stream fails, or the peer violates the protocol or refuses the command ([`Error::Refused`]).
    pub fn call<C: Command>(&mut self, command: &C) -> Result<C::Response<'_>, Error> {
        let mut fallback = Fallback::new(Single(command), u64::MAX);
        self.drive(&mut fallback, |_| Ok(()))?;
        self.response(&fallback)
    }

    /// Sends the current command of a plan on a new connection, and receives its answer. `after_sending` is called
    /// before the answer is received.
    pub(crate) fn drive<P: PlanStep>(
        &mut self,
        fallback: &mut Fallback<P>,
        after_sending: impl FnOnce(&S) -> io::Result<()>,
    ) -> Result<(), Error> {
        if self.passed() != (0, 0) {
            // An earlier call has used the connection: this one counts its own bytes and its own time.
            (self.tap.sent, self.tap.received, self.since) = (0, 0, Instant::now());
        }
        let command = fallback.command().code();
        let mut is_new = true;
        let mut after_sending = Some(after_sending);
        let driven = loop {
            let (result, phase) = match fallback.step(&mut self.buf) {
                FallbackStep::Connect if is_new => {
                    is_new = false;
                    fallback.connected();
                    continue;
                }
                FallbackStep::Connect | FallbackStep::Wait | FallbackStep::Done => break Ok(()),
                FallbackStep::Grow { needed } => {
                    self.buf.resize(needed, 0);
                    continue;
                }
                FallbackStep::Send(bytes) => (self.tap.write(bytes), Phase::Sending),
                FallbackStep::Receive(space) => match after_sending.take() {
                    Some(after_sending) => {
                        let flushed = self.tap.flush().and_then(|()| after_sending(&self.tap.stream));
                        match flushed {
                            // A closed connection is still read, because the peer may have answered before it closed
                            // the connection.
                            Err(e) if !is_closed(&e) => break Err((e, Phase::Sending)),
                            Ok(()) | Err(_) => continue,
                        }
                    }
                    None => (self.tap.read(space), Phase::of_answer(self.tap.received)),
                },
            };
            match transferred(result) {
                Ok(Some(n)) => fallback.advance(n, &self.buf),
                Ok(None) => {}
                Err(e) => break Err((e, phase)),
            }
        };
        driven.map_err(|(e, phase)| self.context(command).io(e, phase))
    }

    /// Returns the response to the last command of a plan.
    pub(crate) fn response<'c, P: PlanStep>(
        &'c self,
        fallback: &Fallback<P>,
    ) -> Result<P::Response<'c>, Error> {
        let context = self.context(fallback.command().code());
        match fallback.finish(&self.buf) {
            Ok(Answer::Ok(response)) => Ok(response),
            Ok(Answer::Refused(error)) => Err(context.refused(&error)),
            Err(e) => {
                let received = self.tap.received;
                let answer = usize::try_from(received).ok().and_then(|n| self.buf.get(..n));
                Err(context.fallback(e, Phase::of_answer(received)).quoting(answer.unwrap_or_default()))
            }
        }
    }

    /// Requests and receives the environment of the process, of at most `limit` bytes.
    ///
    /// # Errors
    /// As [`call`](Self::call), and if the environment is malformed or longer than `limit`.
    pub fn environment(&mut self, limit: u32) -> Result<Environment, Error> {
        let announced = self.call(&GetProcessEnvironment {})?;
        let received = receive_environment(&announced, limit, &mut self.buf, &mut self.tap);
        let context = context(&self.tap, &self.peer, self.since, GetProcessEnvironment::CODE);
        received.map_err(|e| context.drive(e, Phase::ReceivingContinuation))
    }
}

/// Receives the environment that follows the response, of at most `limit` bytes.
fn receive_environment(
    announced: &ProcessEnvironment,
    limit: u32,
    buf: &mut Vec<u8>,
    stream: &mut (impl Read + Write),
) -> Result<Environment, DriveError> {
    let mut environment = Environment::default();
    let mut receive = ReceiveEnvironment::new(announced, limit, buf)?;
    loop {
        drive(&mut receive, stream)?;
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
            Err(e) => return Err(e.into()),
        }
    }
}

/// Returns the state of a call for its error.
fn context<'a, S>(tap: &Tap<S>, peer: &'a str, since: Instant, command: Code) -> CallContext<'a> {
    CallContext { peer, command, sent: tap.sent, received: tap.received, waited: since.elapsed() }
}
