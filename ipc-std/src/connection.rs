use std::io::{Read, Write};
use std::time::Instant;

use ipc_proto::types::{self, ProcessEnvironment};
use ipc_proto::wire::decode_prefix;
use ipc_proto::{
    Answer, Call, Code, Command, DecodeError, DecodeErrorKind, Exchange, GetProcessEnvironment, Message,
    ProtocolError,
};

use crate::error::Context;
use crate::observer::{Observer, Tap};
use crate::{DriveError, Environment, Error, Phase, drive};

/// A stream to a runtime, and the buffer of the one command that it carries.
///
/// Over [`Stream`](crate::Stream), which [`Client::connect`](crate::Client::connect) gives, every wait has a deadline.
/// Over somebody else's `Read + Write` it has what that one gives: an error of kind `TimedOut` is understood.
///
/// ```no_run
/// use ipc_proto::GetProcessInfo2;
/// use ipc_std::Connection;
///
/// let stream = std::net::TcpStream::connect("127.0.0.1:9000")?; // what a router gives, say
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
    /// For an answer that `buf` cannot hold.
    larger: Vec<u8>,
}

/// Holds nearly every command and answer; what is longer makes it grow.
const BUFFER: usize = 4096;

impl<S> Connection<S> {
    /// Over any stream to a runtime.
    pub fn new(stream: S) -> Self {
        Self::to("the peer".to_owned(), Instant::now(), stream)
    }

    /// Over a stream to `peer`, for a call that began `since`.
    pub(crate) fn to(peer: String, since: Instant, stream: S) -> Self {
        Self { tap: Tap::new(stream), peer, since, buf: vec![0; BUFFER], larger: Vec::new() }
    }

    /// Shows `observer` what is sent and received.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Into<Option<Observer>>) -> Self {
        self.tap.observe(observer.into());
        self
    }

    /// The stream, at the first byte behind the answer.
    pub fn into_stream(self) -> S {
        self.tap.stream
    }

    /// How many bytes were sent and received.
    pub(crate) const fn passed(&self) -> (u64, u64) {
        (self.tap.sent, self.tap.received)
    }

    fn context(&self, command: Code) -> Context<'_> {
        context(&self.tap, &self.peer, self.since, command)
    }

    /// The stream.
    pub const fn stream(&self) -> &S {
        &self.tap.stream
    }
}

impl<S: Read + Write> Connection<S> {
    /// Sends `command` and receives the answer. What follows the answer is left on the stream.
    ///
    /// The answer borrows from the connection; [`Client`](crate::Client) has owned ones.
    ///
    /// # Errors
    /// If the stream fails, the peer does not keep to the protocol, or refuses ([`Error::Refused`]).
    pub fn call<C: Command>(&mut self, command: &C) -> Result<C::Response<'_>, Error> {
        self.exchange(command, 0)
    }

    /// Sends `command`, whose answer [`receive`](Self::receive) will take.
    #[cfg(unix)]
    pub(crate) fn send<C: Command>(&mut self, command: &C) -> Result<(), Error> {
        let message = ipc_proto::encode_to_vec(C::CODE, command)?;
        self.tap.begin();
        let sent = self.tap.write_all(&message);
        sent.map_err(|e| self.context(C::CODE).io(e, Phase::Sending))
    }

    /// Receives the answer to `command`, which was sent.
    #[cfg(unix)]
    pub(crate) fn receive<C: Command>(&mut self, command: &C) -> Result<C::Response<'_>, Error> {
        self.exchange(command, Message::HEADER_LEN.saturating_add(command.encoded_len()))
    }

    /// A call of which so many bytes are sent already.
    fn exchange<C: Command>(&mut self, command: &C, sent: usize) -> Result<C::Response<'_>, Error> {
        let needed = Message::HEADER_LEN.saturating_add(command.encoded_len());
        if needed > self.buf.len() {
            self.buf.resize(needed.min(Message::MAX_LEN), 0);
        }
        let mut call = Call::new(command, &mut self.buf)?;
        let mut driven = match sent {
            0 => Ok(()),
            sent => call.advance(sent).map_err(DriveError::from),
        };
        self.tap.begin();
        driven = driven.and_then(|()| drive(&mut call, &mut self.tap));
        if let Err(DriveError::Protocol(ProtocolError::BufferTooSmall { needed })) = driven {
            self.larger.resize(needed, 0);
            call = call.into_buffer(&mut self.larger);
            driven = drive(&mut call, &mut self.tap);
        }
        self.tap.end();
        let phase = match call.received() {
            0 => Phase::AwaitingAnswer,
            received if received < Message::HEADER_LEN => Phase::ReceivingHeader,
            _ => Phase::ReceivingAnswer,
        };
        let context = context(&self.tap, &self.peer, self.since, C::CODE);
        driven.map_err(|e| context.drive(e, phase))?;
        match call.finish().map_err(|e| context.protocol(e, phase))? {
            Answer::Ok(response) => Ok(response),
            Answer::Refused(error) => Err(Error::Refused {
                peer: self.peer.clone(),
                command: C::CODE,
                hresult: error.hresult,
                message: error
                    .message
                    .map(|message| message.to_string())
                    .filter(|message| !message.is_empty()),
            }),
        }
    }

    /// Asks for the environment of the process, and receives it: at most `limit` bytes.
    ///
    /// # Errors
    /// As [`call`](Self::call), and if the environment is longer than `limit` or is no such list.
    pub fn environment(&mut self, limit: u32) -> Result<Environment, Error> {
        const COMMAND: Code = GetProcessEnvironment::CODE;
        const PHASE: Phase = Phase::ReceivingContinuation;
        let ProcessEnvironment { incoming_bytes, .. } = self.call(&GetProcessEnvironment {})?;
        if incoming_bytes > limit {
            let too_long = ProtocolError::TooLong { len: incoming_bytes.into(), limit: limit.into() };
            return Err(self.context(COMMAND).protocol(too_long, PHASE));
        }
        // Grows with what comes, not by what was announced.
        let mut bytes = Vec::new();
        let read = (&mut self.tap).take(incoming_bytes.into()).read_to_end(&mut bytes);
        let context = self.context(COMMAND);
        let received = read.map_err(|e| context.io(e, PHASE))?;
        if received as u64 != u64::from(incoming_bytes) {
            return Err(context.protocol(ProtocolError::Closed { received }, PHASE));
        }
        match decode_prefix::<types::Environment<'_>>(&bytes) {
            Ok((entries, [])) => Ok(Environment::from_entries(entries)),
            Ok((_, rest)) => {
                let offset = bytes.len().saturating_sub(rest.len());
                let trailing = DecodeError { kind: DecodeErrorKind::TrailingBytes, offset };
                Err(context.protocol(trailing.into(), PHASE))
            }
            Err(e) => Err(context.protocol(e.into(), PHASE)),
        }
    }
}

/// How far a connection has come.
fn context<'a, S>(tap: &Tap<S>, peer: &'a str, since: Instant, command: Code) -> Context<'a> {
    Context { peer, command, sent: tap.sent, received: tap.received, waited: since.elapsed() }
}
