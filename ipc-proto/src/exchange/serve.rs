//! The server's role: [`Serve`] receives a request, [`Reply`] sends the answer.
use super::{Exchange, Step};
use crate::message::Header;
use crate::wire::Reader;
use crate::{
    Code, Command, DecodeError, DecodeErrorKind, Encode, EncodeError, HResult, Message, ProtocolError,
    Request, RequestError, ServerError, encode,
};

/// The server's role: receives one request.
///
/// The peer cannot make a `Serve` fail; only a caller that reports more bytes than were lent can. Bytes that are not a
/// request also end the exchange, and the [`Reply`] refuses them by default. The order is that of a runtime: receive 20
/// bytes, check the size, receive the payload, check the magic. A peer that closes early gets
/// [`HResult::BAD_ENCODING`].
///
/// A request with [`Continuation::UserEvents`](crate::Continuation::UserEvents) does not consist of bytes only: before
/// the answer, the client sends a descriptor. A driver that cannot receive descriptors must refuse such a request.
///
/// ```
/// use ipc_proto::plan::{Flavour, Runtime};
/// use ipc_proto::{Exchange, HResult, Request, Serve, Step, types::Status};
///
/// // It refuses newer commands, and those of dumps, profilers, perf maps and startup hooks.
/// let kind = Runtime { version: Some(10), flavour: Some(Flavour::Mono), ..Runtime::default() };
/// let (mut receive, mut send) = ([0; 4096], [0; 4096]);
/// let mut serve = Serve::new(&mut receive, &mut send)?;
/// serve.supply(b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0");
/// let (request, mut reply) = serve.finish_for(&kind);
/// match request {
///     Ok(Request::ResumeRuntime(resume)) => reply.answer(&resume, &Status::OK)?,
///     Ok(_) => reply.refuse(HResult::NOT_SUPPORTED)?, // the server leaves the command out
///     Err(_) => {} // the reply is a refusal already
/// }
/// let Step::Send(bytes) = reply.step() else { unreachable!() };
/// assert_eq!(bytes, b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Serve<'b> {
    receive: &'b mut [u8],
    send: &'b mut [u8],
    /// The number of bytes of the request that have arrived.
    received: usize,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Receiving { needed: usize },
    Done(Header),
    Malformed(DecodeError),
}

impl<'b> Serve<'b> {
    /// Creates an exchange that receives a request into `receive`. The reply will be encoded into `send`.
    ///
    /// On a connection to a monitor, a [`ConnectPort`](crate::port::ConnectPort) must send the advertise frame before
    /// this exchange. A monitor that closes without a request is not answered: see
    /// [`is_untouched`](Self::is_untouched).
    ///
    /// A request that is larger than `receive` is refused; 65,535 bytes are always enough.
    ///
    /// # Errors
    /// If `receive` is smaller than a header, or `send` smaller than a refusal (24 bytes).
    pub fn new(receive: &'b mut [u8], send: &'b mut [u8]) -> Result<Self, EncodeError> {
        if receive.len() < Message::HEADER_LEN {
            return Err(EncodeError::BufferTooSmall { needed: Message::HEADER_LEN });
        }
        encode_refusal(HResult::FAIL, send)?;
        Ok(Self { receive, send, received: 0, state: State::Receiving { needed: Message::HEADER_LEN } })
    }

    /// Returns the request and the reply to it. [`finish_for`](Self::finish_for) also refuses the commands that a
    /// server does not have because of its version and kind.
    ///
    /// The reply is a refusal until the caller sets an answer. For bytes that are not a request, or for a request that
    /// [breaks a rule](Request::check), the refusal has the code that a runtime sends. The error of a broken rule
    /// contains the request, for servers that accept more values than a runtime.
    ///
    /// ```
    /// use ipc_proto::types::{PerfMapType, Status};
    /// use ipc_proto::{Exchange, Request, RequestError, Serve, Step, Violation};
    ///
    /// let (mut receive, mut send) = ([0; 64], [0; 64]);
    /// let mut serve = Serve::new(&mut receive, &mut send)?;
    /// serve.supply(b"DOTNET_IPC_V1\0\x18\0\x04\x05\0\0\x04\0\0\0"); // EnablePerfMap, type 4
    /// let (request, mut reply) = serve.finish();
    /// if let Err(RequestError::Violation { request, violation: Violation::PerfMapType, .. }) = request {
    ///     let Request::EnablePerfMap(enable) = request else { unreachable!() };
    ///     assert_eq!(enable.perf_map_type, PerfMapType(4));
    ///     reply.answer(&enable, &Status::OK)?; // this server knows type 4
    /// }
    /// # assert!(matches!(reply.step(), Step::Send(bytes) if bytes[16] == 0xff && bytes[17] == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(self) -> (Result<Request<'b>, RequestError<'b>>, Reply<'b>) {
        let Self { receive, send, received, state } = self;
        let bytes: &'b [u8] = receive;
        let message = match state {
            State::Done(header) => header.check_magic().map(|()| Message {
                code: header.code,
                payload: bytes.get(Message::HEADER_LEN..received).unwrap_or_default(),
            }),
            State::Malformed(error) => Err(error),
            State::Receiving { .. } => {
                Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: received })
            }
        };
        let request = message
            .map_err(Into::into)
            .and_then(|message| Ok(message.request()?))
            .and_then(Request::into_checked);
        let refusal = match request {
            Err(error) => error.into(),
            Ok(Request::Unknown(_)) => HResult::UNKNOWN_COMMAND,
            Ok(_) => HResult::FAIL,
        };
        // Without a message, only a refusal makes sense: `ERROR` is the code of no command, so that `answer` fails.
        let code = message.map_or(Code::ERROR, |message| message.code);
        // A refusal fits: `new` has encoded one into `send`.
        let len = encode_refusal(refusal, send).unwrap_or(0);
        (request, Reply { code, send, sent: 0, len })
    }

    /// Returns the code of the received message, for a server that refuses commands before it decodes their payload.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self.state {
            State::Done(header) => header.check_magic().ok().map(|()| header.code),
            State::Malformed(_) | State::Receiving { .. } => None,
        }
    }

    /// Returns whether no byte of a request has arrived.
    ///
    /// If no byte has arrived before the connection ends, a server at a [`ConnectPort`](crate::port::ConnectPort) sends
    /// no answer: the monitor [hung up](crate::port::ConnectEvent::HungUp). A server at a port at which it listens
    /// sends the refusal, as a runtime does.
    ///
    /// ```
    /// use ipc_proto::port::ConnectEvent;
    /// use ipc_proto::{Exchange, Serve};
    ///
    /// let (mut receive, mut send) = ([0; 64], [0; 64]);
    /// let mut serve = Serve::new(&mut receive, &mut send)?;
    /// serve.advance(0)?; // the end of the connection
    /// let event = if serve.is_untouched() { ConnectEvent::HungUp } else { ConnectEvent::Answered };
    /// assert_eq!(event, ConnectEvent::HungUp);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn is_untouched(&self) -> bool {
        self.received == 0
    }

    /// Returns the received bytes of the request.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.receive.get(..self.received).unwrap_or_default()
    }

    /// Releases the buffers. The exchange continues with [`SuspendedServe::resume`].
    #[must_use]
    pub const fn suspend(self) -> SuspendedServe {
        SuspendedServe { received: self.received, state: self.state }
    }

    fn next(&self) -> Result<State, DecodeError> {
        if self.received < Message::HEADER_LEN {
            return Ok(State::Receiving { needed: Message::HEADER_LEN });
        }
        let mut r = Reader::new(self.receive);
        let header = Header::decode(&mut r)?;
        let needed = header.message_len();
        if needed > self.receive.len() {
            return Err(DecodeError { kind: DecodeErrorKind::TooLong, offset: r.offset() });
        }
        Ok(if self.received < needed { State::Receiving { needed } } else { State::Done(header) })
    }
}

impl Exchange for Serve<'_> {
    fn step(&mut self) -> Step<'_> {
        match self.state {
            State::Receiving { needed } => {
                self.receive.get_mut(self.received..needed).map_or(Step::Done, Step::Receive)
            }
            State::Done(_) | State::Malformed(_) => Step::Done,
        }
    }

    /// Fails only with [`ProtocolError::Overrun`], a fault of the caller; the request then counts as cut off.
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        let closed = DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: self.received };
        let lent = match self.state {
            State::Receiving { needed } => needed.saturating_sub(self.received),
            State::Done(_) | State::Malformed(_) => 0,
        };
        self.state = match self.state {
            State::Receiving { .. } if n == 0 || n > lent => State::Malformed(closed),
            State::Receiving { .. } => {
                self.received = self.received.saturating_add(n);
                self.next().unwrap_or_else(State::Malformed)
            }
            over => over,
        };
        if n > lent { Err(ProtocolError::Overrun { advanced: n, lent }) } else { Ok(()) }
    }
}

/// A [`Serve`] without its buffers, for a connection that owns them: see [`SuspendedCall`](crate::SuspendedCall).
#[derive(Debug, Clone, Copy)]
pub struct SuspendedServe {
    received: usize,
    state: State,
}

impl SuspendedServe {
    /// Continues in buffers with the same contents as those that [`Serve::suspend`] released.
    ///
    /// # Errors
    /// [`EncodeError::BufferTooSmall`] if `receive` is smaller than the request, or `send` smaller than a refusal. The
    /// suspended exchange can be resumed again.
    pub fn resume<'b>(self, receive: &'b mut [u8], send: &'b mut [u8]) -> Result<Serve<'b>, EncodeError> {
        let receive_len = match self.state {
            State::Receiving { needed } => needed,
            State::Done(_) | State::Malformed(_) => self.received,
        };
        for (buf, needed) in [(&*receive, receive_len), (&*send, REFUSAL_LEN)] {
            if buf.len() < needed {
                return Err(EncodeError::BufferTooSmall { needed });
            }
        }
        Ok(Serve { receive, send, received: self.received, state: self.state })
    }
}

/// The server's role: sends one answer.
///
/// A reply begins as a refusal: of bytes that [`Serve`] could not decode, of an unknown command, else with
/// [`HResult::FAIL`]. So the peer always gets an answer, and an answer that does not fit is not sent in part.
#[derive(Debug)]
pub struct Reply<'b> {
    /// The code of the request.
    code: Code,
    send: &'b mut [u8],
    sent: usize,
    len: usize,
}

/// The length of a refusal in bytes: a header and a result code.
const REFUSAL_LEN: usize = 24;

/// Encodes a refusal into `send` and returns its length. The payload is `dyn`, so that `encode` is compiled once.
fn encode_refusal(refusal: HResult, send: &mut [u8]) -> Result<usize, EncodeError> {
    let payload: &dyn Encode = &refusal;
    encode(Code::ERROR, payload, send).map(|bytes| bytes.len())
}

impl Reply<'_> {
    /// Answers OK to `request`, whose type determines the type of the response.
    ///
    /// # Errors
    /// If the answer does not fit into the buffer or any message: the reply is then [`HResult::FAIL`]. If `request` is
    /// not the received command, or an answer is being sent already: the reply then stays unchanged.
    pub fn answer<C: Command>(
        &mut self,
        _request: &C,
        response: &C::Response<'_>,
    ) -> Result<(), EncodeError> {
        if C::CODE != self.code {
            return Err(EncodeError::WrongCommand { request: self.code, answer: C::CODE });
        }
        self.set(Code::OK, response)
    }

    /// Answers OK with a payload of any type, for proxies and scripted runtimes.
    ///
    /// # Errors
    /// As [`answer`](Self::answer), but the type of the payload is not checked.
    pub fn answer_untyped(&mut self, payload: &(impl Encode + ?Sized)) -> Result<(), EncodeError> {
        self.set(Code::OK, &payload)
    }

    /// Refuses the request.
    ///
    /// # Errors
    /// If an answer is being sent already.
    pub fn refuse(&mut self, hresult: HResult) -> Result<(), EncodeError> {
        self.set(Code::ERROR, &hresult)
    }

    /// Refuses the request with a code and an error message. Clients read the message only after GenerateCoreDump3.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn refuse_with(&mut self, error: &ServerError<'_>) -> Result<(), EncodeError> {
        self.set(Code::ERROR, error)
    }

    /// Returns the bytes of the answer that have not been sent yet.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.send.get(self.sent..self.len).unwrap_or_default()
    }

    /// Releases the buffer. The exchange continues with [`SuspendedReply::resume`].
    #[must_use]
    pub const fn suspend(self) -> SuspendedReply {
        SuspendedReply { code: self.code, sent: self.sent, len: self.len }
    }

    fn set(&mut self, code: Code, payload: &dyn Encode) -> Result<(), EncodeError> {
        if self.sent > 0 {
            return Err(EncodeError::AlreadySending);
        }
        let encoded = encode(code, payload, self.send).map(|bytes| bytes.len());
        self.len = match encoded {
            Ok(len) => len,
            Err(_) => encode_refusal(HResult::FAIL, self.send).unwrap_or(0),
        };
        encoded.map(|_| ())
    }
}

impl Exchange for Reply<'_> {
    fn step(&mut self) -> Step<'_> {
        match self.bytes() {
            [] => Step::Done,
            bytes => Step::Send(bytes),
        }
    }

    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        let lent = self.len.saturating_sub(self.sent);
        if n > lent {
            self.len = self.sent;
            return Err(ProtocolError::Overrun { advanced: n, lent });
        }
        if n == 0 && lent > 0 {
            self.len = self.sent;
            return Err(ProtocolError::Closed { received: 0 });
        }
        self.sent = self.sent.saturating_add(n);
        Ok(())
    }
}

/// A [`Reply`] without its buffer, for a connection that owns it: see [`SuspendedCall`](crate::SuspendedCall), and the
/// example `owned`.
#[derive(Debug, Clone, Copy)]
pub struct SuspendedReply {
    code: Code,
    sent: usize,
    len: usize,
}

impl SuspendedReply {
    /// Continues in a buffer with the same contents as the one that [`Reply::suspend`] released.
    ///
    /// # Errors
    /// [`EncodeError::BufferTooSmall`] if `send` is smaller than the answer. The reply can be resumed again.
    pub fn resume(self, send: &mut [u8]) -> Result<Reply<'_>, EncodeError> {
        if send.len() < self.len {
            return Err(EncodeError::BufferTooSmall { needed: self.len });
        }
        Ok(Reply { code: self.code, send, sent: self.sent, len: self.len })
    }
}
