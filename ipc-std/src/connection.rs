use std::io::{Read, Write};
use std::time::Instant;

use ipc_proto::types::ProcessEnvironment;
use ipc_proto::{
    Answer, Code, Command, Encode, Exchange, GetProcessEnvironment, Message, ProtocolError,
    ReceiveEnvironment, UntypedCall,
};

use crate::drive::{DriveError, drive};
use crate::environment::Environment;
use crate::error::{Context, Error, Phase};
use crate::observer::{Observer, Tap};

/// A stream to a runtime and the buffer of the one command that it carries.
///
/// With the [`Stream`](crate::Stream) of [`Client::connect`](crate::Client::connect), every wait has a deadline. With
/// any other `Read + Write`, waits end when that stream fails with the kind `TimedOut`.
///
/// ```no_run
/// use ipc_proto::GetProcessInfo2;
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

/// Large enough for nearly every command and response; longer ones make it grow.
const BUFFER: usize = 4096;

impl<S> Connection<S> {
    /// Creates a connection over any stream to a runtime.
    pub fn new(stream: S) -> Self {
        Self::to("the peer".to_owned(), Instant::now(), stream)
    }

    /// Creates a connection over a stream to `peer`, for a call that began at `since`.
    pub(crate) fn to(peer: String, since: Instant, stream: S) -> Self {
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

    #[cfg(unix)]
    pub(crate) fn context(&self, command: Code) -> Context<'_> {
        context(&self.tap, &self.peer, self.since, command)
    }

    /// Returns the stream.
    pub const fn stream(&self) -> &S {
        &self.tap.stream
    }
}

impl<S: Read + Write> Connection<S> {
    /// Sends `command` and receives the response. Data that follows the response stays on the stream.
    ///
    /// The response borrows from the connection; the methods of [`Client`](crate::Client) return owned ones. They also
    /// check the values first. This method does not, so that a test can send to a server what it must refuse: call
    /// [`Command::check`] for values that come from a user.
    ///
    /// # Errors
    /// If the stream fails, or the peer violates the protocol or refuses the command ([`Error::Refused`]).
    pub fn call<C: Command>(&mut self, command: &C) -> Result<C::Response<'_>, Error> {
        self.exchange(command, 0)
    }

    /// Sends `command`; [`receive`](Self::receive) receives its response.
    #[cfg(unix)]
    pub(crate) fn send<C: Command>(&mut self, command: &C) -> Result<(), Error> {
        let message = ipc_proto::encode_to_vec(C::CODE, command)?;
        self.tap.begin();
        let sent = self.tap.write_all(&message);
        sent.map_err(|e| self.context(C::CODE).io(e, Phase::Sending))
    }

    /// Receives the response to `command`, which was sent.
    #[cfg(unix)]
    pub(crate) fn receive<C: Command>(&mut self, command: &C) -> Result<C::Response<'_>, Error> {
        self.exchange(command, Message::HEADER_LEN.saturating_add(command.encoded_len()))
    }

    /// Continues a call of which so many bytes were sent.
    fn exchange<C: Command>(&mut self, command: &C, sent: usize) -> Result<C::Response<'_>, Error> {
        let (call, context) = self.complete(C::CODE, command, sent)?;
        match call.finish_as().map_err(|e| context.protocol(e, Phase::ReceivingAnswer))? {
            Answer::Ok(response) => Ok(response),
            Answer::Refused(error) => Err(context.refused(&error)),
        }
    }

    /// Runs a call of which so many bytes were sent to its end. All commands share this function.
    fn complete(
        &mut self,
        code: Code,
        payload: &dyn Encode,
        sent: usize,
    ) -> Result<(UntypedCall<'_>, Context<'_>), Error> {
        let needed = Message::HEADER_LEN.saturating_add(payload.encoded_len());
        if needed > self.buf.len() {
            self.buf.resize(needed.min(Message::MAX_LEN), 0);
        }
        let mut call = UntypedCall::untyped(code, payload, &mut self.buf)?;
        let mut driven = match sent {
            0 => Ok(()),
            sent => call.advance(sent).map_err(DriveError::from),
        };
        self.tap.begin();
        driven = driven.and_then(|()| drive(&mut call, &mut self.tap));
        let mut suspended = call.suspend();
        if let Err(DriveError::Protocol(ProtocolError::BufferTooSmall { needed })) = driven {
            self.buf.resize(needed, 0);
            driven = suspended.resume(&mut self.buf).map_err(DriveError::from).and_then(|mut call| {
                let driven = drive(&mut call, &mut self.tap);
                suspended = call.suspend();
                driven
            });
        }
        self.tap.end();
        let context = context(&self.tap, &self.peer, self.since, code);
        let resumed = suspended.resume(&mut self.buf);
        let call = resumed.map_err(|e| context.protocol(e, Phase::ReceivingAnswer))?;
        let phase = match call.received() {
            0 => Phase::AwaitingAnswer,
            received if received < Message::HEADER_LEN => Phase::ReceivingHeader,
            _ => Phase::ReceivingAnswer,
        };
        driven.map_err(|e| context.drive(e, phase))?;
        Ok((call, context))
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

/// Receives an environment.
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
        loop {
            match receive.next_entry().map(|entry| entry.map(|entry| environment.push(entry))) {
                Ok(Some(())) => {}
                Ok(None) if receive.is_finished() => return Ok(environment),
                Ok(None) => break,
                Err(ProtocolError::BufferTooSmall { needed }) => {
                    // The buffer grows with the received bytes, not with the announced length.
                    let suspended = receive.suspend();
                    buf.resize(needed.min(buf.len().saturating_mul(2)), 0);
                    receive = suspended.resume(buf)?;
                    break;
                }
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// Returns the state of a call for its error.
fn context<'a, S>(tap: &Tap<S>, peer: &'a str, since: Instant, command: Code) -> Context<'a> {
    Context { peer, command, sent: tap.sent, received: tap.received, waited: since.elapsed() }
}
