//! `StopConnection`: the second connection of a session, on which the session is stopped. It never waits.
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use ipc_discover::Deadline;
use ipc_proto::{Session, StopEvent, StopStep};

use crate::client::Client;
use crate::drive::is_closed;
use crate::error::{CallContext, Error, Phase};
use crate::observer::Tap;
use crate::sys::Sources;
use crate::timed_session::TimedSession;
use crate::transport::{Channel, ConnectError, Dialer, Stream, connect};

/// Connects, sends the Stop and receives its answer, as the steps of a [`Session`] require.
#[derive(Debug)]
pub(super) struct StopConnection {
    tap: Option<Tap<NonBlocking>>,
    /// The thread that is opening the connection, for a connector that can block.
    dialer: Option<Dialer>,
    /// The error of the answer to the Stop.
    error: Option<Error>,
}

/// A connection that never waits.
#[derive(Debug)]
struct NonBlocking(Arc<Channel>);

impl Read for NonBlocking {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}
impl Write for NonBlocking {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StopConnection {
    /// The token of the connection in the sources.
    pub(super) const TOKEN: u64 = 1;

    pub(super) const fn new() -> Self {
        Self { tap: None, dialer: None, error: None }
    }

    /// Returns the error of the answer to the Stop.
    pub(super) const fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Connects and sends the command, as far as possible without waiting. After an error the Stop has failed.
    pub(super) fn drive(
        &mut self,
        state: &mut TimedSession,
        client: &Client,
        sources: &mut Sources,
    ) -> io::Result<()> {
        loop {
            let now = state.now();
            let session = state.session_mut();
            let (result, phase) = match (session.stop_step(), &mut self.tap) {
                (StopStep::Connect, _) => {
                    let Some(connected) = self.connect(client, sources) else { return Ok(()) };
                    (connected.map(|()| StopEvent::Connected), client.connector().phase())
                }
                (StopStep::Send(bytes), Some(tap)) => {
                    let sent = match tap.write(bytes) {
                        Err(e) if is_closed(&e) => Ok(StopEvent::Sent(0)),
                        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                            Err(ConnectError::NotReady)
                        }
                        Ok(n) => Ok(StopEvent::Sent(n)),
                        Err(e) => Err(io_error(client, e, Phase::Sending).into()),
                    };
                    (sent, Phase::Sending)
                }
                _ => return Ok(()),
            };
            let error = match result {
                Ok(event) => {
                    session.stop_advance(event);
                    continue;
                }
                Err(e) => e,
            };
            session.stop_advance(if error.is_transient() { StopEvent::Busy(now) } else { StopEvent::Failed });
            if session.is_stopping() {
                return Ok(()); // the session schedules the next attempt
            }
            self.close(sources);
            return Err(match error {
                ConnectError::NotReady => {
                    let context = state.stop_context(client.peer());
                    io::Error::new(ErrorKind::TimedOut, context.io(ErrorKind::TimedOut.into(), phase))
                }
                ConnectError::Failed(e) => io::Error::other(e),
                ConnectError::Io(source) => io::Error::other(io_error(client, source, phase)),
            });
        }
    }

    /// Receives the available bytes of the answer. After an error the Stop has failed.
    pub(super) fn receive(
        &mut self,
        session: &mut Session,
        client: &Client,
        sources: &mut Sources,
    ) -> io::Result<()> {
        while let (StopStep::Receive(space), Some(tap)) = (session.stop_step(), &mut self.tap) {
            let n = match tap.read(space) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // A broken connection counts as closed (0 bytes): no answer comes.
                Err(e) if is_closed(&e) => 0,
                Ok(n) => n,
                Err(source) => {
                    let phase = Phase::of_answer(tap.received);
                    session.stop_advance(StopEvent::Failed);
                    return self.fail(io_error(client, source, phase), session.wants_stream(), sources);
                }
            };
            session.stop_advance(StopEvent::Received(n));
        }
        Ok(())
    }

    /// Ends the connection. The error is returned while the stream continues, and stored after the end of the stream.
    fn fail(&mut self, error: Error, is_reading: bool, sources: &mut Sources) -> io::Result<()> {
        self.close(sources);
        if is_reading {
            return Err(io::Error::other(error));
        }
        self.error = Some(error);
        Ok(())
    }

    /// Ends the connection if the answer is complete. A refusal while the stream continues is returned: the Stop has
    /// failed. Any other error of the answer is stored.
    pub(super) fn conclude(
        &mut self,
        state: &mut TimedSession,
        client: &Client,
        sources: &mut Sources,
    ) -> io::Result<()> {
        if self.tap.is_none() || !matches!(state.session_mut().stop_step(), StopStep::Nothing) {
            return Ok(());
        }
        match self.response_error(state, client) {
            Some(error) => {
                let is_reading = matches!(error, Error::Refused { .. }) && state.session().wants_stream();
                self.fail(error, is_reading, sources)
            }
            None => {
                self.close(sources);
                Ok(())
            }
        }
    }

    /// Returns the error of the answer to the Stop; `None` if the runtime has stopped the session.
    fn response_error(&self, state: &TimedSession, client: &Client) -> Option<Error> {
        let tap = self.tap.as_ref()?;
        let context =
            CallContext { sent: tap.sent, received: tap.received, ..state.stop_context(client.peer()) };
        context.stop_answer(state.session())
    }

    /// Opens the connection. Returns `None` while a thread is opening it.
    fn connect(&mut self, client: &Client, sources: &mut Sources) -> Option<Result<(), ConnectError>> {
        let connector = client.connector();
        let opened = match &self.dialer {
            _ if connector.is_prompt() => connect(&**connector, Instant::now()),
            None => {
                let deadline = Deadline::after(client.timeouts().call).end;
                let dialer = Dialer::start(Arc::clone(connector), deadline);
                let watched = dialer.and_then(|dialer| {
                    sources.watch(Arc::clone(dialer.flag()) as _, Self::TOKEN).map(|()| dialer)
                });
                match watched {
                    Ok(dialer) => self.dialer = Some(dialer),
                    Err(e) => return Some(Err(ConnectError::Io(e))),
                }
                return None;
            }
            Some(dialer) => {
                let result = dialer.take()?;
                sources.forget(Self::TOKEN);
                self.dialer = None;
                result
            }
        };
        Some(opened.and_then(|stream| self.begin(&stream, client, sources)))
    }

    fn begin(&mut self, stream: &Stream, client: &Client, sources: &mut Sources) -> Result<(), ConnectError> {
        let channel = Arc::clone(stream.channel());
        sources.watch(Arc::clone(&channel) as _, Self::TOKEN).map_err(ConnectError::Io)?;
        let mut tap = Tap::new(NonBlocking(channel));
        tap.observe(client.observer());
        self.tap = Some(tap);
        Ok(())
    }

    fn close(&mut self, sources: &mut Sources) {
        self.dialer = None;
        self.tap = None;
        sources.forget(Self::TOKEN);
    }
}

fn io_error(client: &Client, source: io::Error, phase: Phase) -> Error {
    Error::Io { peer: client.peer().to_owned(), phase, source }
}
