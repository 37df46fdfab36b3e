use super::{Exchange, Step};
use crate::message::Header;
use crate::wire::{Reader, Writer};
use crate::{
    Advertise, Code, Command, DecodeError, DecodeErrorKind, Encode, EncodeError, HResult, Message,
    ProtocolError, Request, RequestError, ServerError, encode,
};

/// A runtime's side: receives one request.
///
/// It never fails because of what the peer sent. Bytes that are no request end it as a request does, and the
/// [`Reply`] then refuses them by itself, as a runtime would: 20 bytes are received, then the size is looked at, then
/// the payload is received, and only then the magic is looked at. A peer that closes too early gets
/// [`HResult::BAD_ENCODING`].
///
/// One kind of request is not all bytes: before [`Continuation::UserEvents`](crate::Continuation::UserEvents) is
/// answered, a descriptor comes. Drivers that cannot take any leave it, and refuse.
///
/// ```
/// use ipc_proto::{Exchange, HResult, Request, Serve, Step, types::Status};
///
/// let (mut receive, mut send) = ([0; 4096], [0; 4096]);
/// let mut serve = Serve::new(&mut receive, &mut send)?;
/// let mut incoming = &b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0"[..];
/// while let Step::Receive(space) = serve.step() {
///     let n = space.len().min(incoming.len());
///     space[..n].copy_from_slice(&incoming[..n]);
///     incoming = &incoming[n..];
///     serve.advance(n)?;
/// }
/// let (request, mut reply) = serve.finish();
/// match request {
///     Ok(Request::ResumeRuntime(resume)) => reply.answer(&resume, &Status::OK)?,
///     Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
///     Err(_) => {} // the reply refuses already
/// }
/// let Step::Send(bytes) = reply.step() else { unreachable!() };
/// assert_eq!(bytes, b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Serve<'b> {
    receive: &'b mut [u8],
    send: &'b mut [u8],
    /// Bytes of the request that have come.
    received: usize,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// So many bytes of the advertise frame, which lies in `send`, have gone out.
    Announcing {
        sent: usize,
    },
    Receiving {
        needed: usize,
    },
    Done(Header),
    Bad(DecodeError),
}

impl<'b> Serve<'b> {
    /// Waits for a request, to come to lie in `receive`; the answer is built in `send`.
    ///
    /// A request that `receive` cannot hold is refused; 65,535 bytes hold every request.
    ///
    /// # Errors
    /// If `receive` cannot hold a header, or `send` a refusal (24 bytes).
    pub fn new(receive: &'b mut [u8], send: &'b mut [u8]) -> Result<Self, EncodeError> {
        if receive.len() < Message::HEADER_LEN {
            return Err(EncodeError::BufferTooSmall { needed: Message::HEADER_LEN });
        }
        encode_refusal(HResult::FAIL, send)?;
        Ok(Self { receive, send, received: 0, state: State::Receiving { needed: Message::HEADER_LEN } })
    }

    /// As [`new`](Self::new), on a connection that the runtime made to a monitor: first says who it is.
    ///
    /// A [`ConnectPort`](crate::port::ConnectPort) says it by itself, so that no buffers are held while it waits.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if `send` cannot hold the frame (34 bytes).
    ///
    /// ```
    /// use ipc_proto::{Advertise, Exchange, Guid, Serve, Step};
    ///
    /// let (mut receive, mut send) = ([0; 4096], [0; 4096]);
    /// let advertise = Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 };
    /// let mut serve = Serve::announce(&advertise, &mut receive, &mut send)?;
    /// assert!(matches!(serve.step(), Step::Send(frame) if frame.len() == Advertise::LEN));
    /// serve.advance(Advertise::LEN)?;
    /// assert!(matches!(serve.step(), Step::Receive(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn announce(
        advertise: &Advertise,
        receive: &'b mut [u8],
        send: &'b mut [u8],
    ) -> Result<Self, EncodeError> {
        let serve = Self::new(receive, send)?;
        let mut w = Writer::new(serve.send);
        advertise.encode(&mut w);
        w.finish()?;
        Ok(Self { state: State::Announcing { sent: 0 }, ..serve })
    }

    /// The request and the reply to it. For bytes that are no request, or one that [breaks a rule](Request::check), why
    /// not; the reply refuses them already.
    pub fn finish(self) -> (Result<Request<'b>, RequestError>, Reply<'b>) {
        let (message, send) = self.message();
        let request = message.map_err(RequestError::from).and_then(|message| {
            let request = message.request()?;
            request.check()?;
            Ok(request)
        });
        let refusal = match request {
            Ok(Request::Unknown(_)) => HResult::UNKNOWN_COMMAND,
            Ok(_) => HResult::FAIL,
            Err(error) => error.into(),
        };
        // Without a message there is nothing that an answer could belong to.
        let code = message.map_or(Code::ERROR, |message| message.code);
        (request, Reply::refusing(code, refusal, send))
    }

    /// The code of the message that came, whatever its payload holds: for servers that do not know every command, and
    /// refuse those before they look any further.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self.state {
            State::Done(header) => header.check_magic().ok().map(|()| header.code),
            State::Bad(_) | State::Announcing { .. } | State::Receiving { .. } => None,
        }
    }

    fn message(self) -> (Result<Message<'b>, DecodeError>, &'b mut [u8]) {
        let Self { receive, send, received, state } = self;
        let bytes: &'b [u8] = receive;
        let message = match state {
            State::Done(header) => header.check_magic().map(|()| Message {
                code: header.code,
                payload: bytes.get(Message::HEADER_LEN..received).unwrap_or_default(),
            }),
            State::Bad(error) => Err(error),
            State::Announcing { .. } | State::Receiving { .. } => {
                Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: received })
            }
        };
        (message, send)
    }

    /// What has come of the request, as it came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.receive.get(..self.received).unwrap_or_default()
    }

    fn next(&self) -> Result<State, DecodeError> {
        if self.received < Message::HEADER_LEN {
            return Ok(State::Receiving { needed: Message::HEADER_LEN });
        }
        let mut r = Reader::new(self.receive);
        let header = Header::decode(&mut r)?;
        let needed = usize::from(header.size);
        if needed > self.receive.len() {
            return Err(r.error(DecodeErrorKind::TooLong));
        }
        Ok(if self.received < needed { State::Receiving { needed } } else { State::Done(header) })
    }
}

impl Exchange for Serve<'_> {
    fn step(&mut self) -> Step<'_> {
        match self.state {
            State::Announcing { sent } => Step::Send(self.send.get(sent..Advertise::LEN).unwrap_or_default()),
            State::Receiving { needed } => {
                self.receive.get_mut(self.received..needed).map_or(Step::Done, Step::Receive)
            }
            State::Done(_) | State::Bad(_) => Step::Done,
        }
    }

    /// Never fails.
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        let closed = DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: self.received };
        self.state = match self.state {
            State::Announcing { .. } | State::Receiving { .. } if n == 0 => State::Bad(closed),
            State::Announcing { sent } => match sent.saturating_add(n) {
                sent if sent < Advertise::LEN => State::Announcing { sent },
                _ => State::Receiving { needed: Message::HEADER_LEN },
            },
            State::Receiving { needed } => {
                self.received = self.received.saturating_add(n).min(needed);
                self.next().unwrap_or_else(State::Bad)
            }
            over => over,
        };
        Ok(())
    }
}

/// A runtime's side: sends one answer.
///
/// It begins as a refusal: of what [`Serve`] could not read, of a command that is not in the table, else with
/// [`HResult::FAIL`]. So a peer always gets an answer, and an answer that did not fit has not gone out in part.
#[derive(Debug)]
pub struct Reply<'b> {
    /// Of the request.
    code: Code,
    send: &'b mut [u8],
    sent: usize,
    len: usize,
}

/// The length of a refusal, encoded into `send`. It is `dyn`, as every other answer, so that `encode` is there once.
fn encode_refusal(refusal: HResult, send: &mut [u8]) -> Result<usize, EncodeError> {
    let payload: &dyn Encode = &refusal;
    encode(Code::ERROR, payload, send).map(|bytes| bytes.len())
}

impl<'b> Reply<'b> {
    fn refusing(code: Code, refusal: HResult, send: &'b mut [u8]) -> Self {
        // `Serve::new` has seen that a refusal fits.
        let len = encode_refusal(refusal, send).unwrap_or(0);
        Self { code, send, sent: 0, len }
    }

    /// Answers `request`, which says what the answer holds.
    ///
    /// # Errors
    /// If the answer does not fit the buffer or any message: then [`HResult::FAIL`] is what will be sent. If it is to
    /// another command than the one received, or one is on its way already: then that stays as it was.
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

    /// Answers with a payload of whatever type: for proxies and scripted runtimes.
    ///
    /// # Errors
    /// As [`answer`](Self::answer), but nothing is known here of what the command expects.
    pub fn answer_untyped(&mut self, payload: &(impl Encode + ?Sized)) -> Result<(), EncodeError> {
        self.set(Code::OK, &payload)
    }

    /// Refuses the request.
    ///
    /// # Errors
    /// If an answer is on its way already.
    pub fn refuse(&mut self, hresult: HResult) -> Result<(), EncodeError> {
        self.set(Code::ERROR, &hresult)
    }

    /// Refuses the request, in words too; only tools that sent GenerateCoreDump3 look for them.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn refuse_with(&mut self, error: &ServerError<'_>) -> Result<(), EncodeError> {
        self.set(Code::ERROR, error)
    }

    /// The answer, as far as it has not been sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.send.get(self.sent..self.len).unwrap_or_default()
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
        if n == 0 && self.sent < self.len {
            self.len = self.sent;
            return Err(ProtocolError::Closed { received: 0 });
        }
        self.sent = self.sent.saturating_add(n).min(self.len);
        Ok(())
    }
}
