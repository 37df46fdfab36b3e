//! The client's role: [`Call`] sends a command and receives its [`Answer`]. A [`SuspendedCall`] borrows no buffer.
use core::fmt;
use core::marker::PhantomData;

use super::{Exchange, Step};
use crate::message::Header;
use crate::wire::Reader;
use crate::{
    Answer, Code, Command, Decode, DecodeError, DecodeErrorKind, Encode, EncodeError, Message, Parsed,
    ProtocolError, Response, ServerError, encode,
};

/// The client's role: sends one command and receives the answer to it. A connection carries one call.
///
/// A call checks the magic, the code and the size of the answer as soon as their bytes have arrived. So it fails early
/// if the answer is uninitialised memory, which real runtimes were seen to send.
///
/// [`finish`](Self::finish) returns the response of the command `C`. An [`UntypedCall`] can carry any command.
///
/// ```
/// use ipc_proto::{Answer, Call, Exchange, GetProcessInfo2, HResult, ServerError, Step};
///
/// let mut buf = [0; 4096];
/// let mut call = Call::new(&GetProcessInfo2 {}, &mut buf)?;
/// let Step::Send(bytes) = call.step() else { unreachable!() };
/// assert_eq!(bytes, b"DOTNET_IPC_V1\0\x14\0\x04\x04\0\0");
/// let n = bytes.len();
/// call.advance(n)?;
///
/// call.supply(b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80");
/// match call.finish()? {
///     Answer::Ok(info) => println!("{}", info.command_line),
///     Answer::Refused(ServerError { hresult, .. }) => assert_eq!(hresult, HResult::UNKNOWN_COMMAND),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The response of another command is not accepted:
///
/// ```compile_fail
/// use ipc_proto::{Answer, Call, GetProcessInfo2, types::SessionId};
///
/// let mut buf = [0; 4096];
/// let call = Call::new(&GetProcessInfo2 {}, &mut buf)?;
/// let answer: Answer<'_, SessionId> = call.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Call<'b, C> {
    progress: Progress,
    buf: &'b mut [u8],
    command: PhantomData<fn(C)>,
}

/// The type argument that makes a [`Call`] an [`UntypedCall`].
#[derive(Debug, Clone, Copy)]
pub enum Untyped {}

/// A call whose command is chosen at run time. [`finish_response`](Call::finish_response) returns the response of any
/// command; the caller of [`finish_as`](Call::finish_as) names the type of the response.
///
/// Code that drives an `UntypedCall` is compiled once for all commands.
///
/// ```
/// use ipc_proto::types::Status;
/// use ipc_proto::{Answer, Exchange, Message, Request, Response, Step, UntypedCall};
///
/// let bytes = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
/// # let ipc_proto::Parsed::Complete { value: message, .. } = Message::parse(bytes)? else { unreachable!() };
/// let request: Request<'_> = message.request()?;
/// let mut buf = [0; 64];
/// let mut call = UntypedCall::untyped(request.code(), &request, &mut buf)?;
/// assert!(matches!(call.step(), Step::Send(sent) if sent == bytes));
/// call.advance(20)?;
/// call.supply(b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0");
/// assert_eq!(call.finish_response()?, Answer::Ok(Response::ResumeRuntime(Status::OK)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type UntypedCall<'b> = Call<'b, Untyped>;

/// A [`Call`] without its buffer, for a connection that owns the buffer, or to continue in a larger buffer.
///
/// A struct cannot own both a buffer and a call that borrows the buffer. A struct can own the buffer and a suspended
/// call, and [resume](Self::resume) the call whenever the connection is ready, as in the example `owned`.
///
/// ```
/// use ipc_proto::{Call, Exchange, GetProcessInfo2, Step, SuspendedCall};
///
/// let mut buf = vec![0; 32];
/// let mut suspended: SuspendedCall<_> = Call::new(&GetProcessInfo2 {}, &mut buf)?.suspend();
/// buf.resize(64, 0); // what is in the buffer stays
/// let mut call = suspended.resume(&mut buf)?;
/// assert!(matches!(call.step(), Step::Send(bytes) if bytes.len() == 20));
/// call.advance(20)?;
/// suspended = call.suspend();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SuspendedCall<C> {
    progress: Progress,
    command: PhantomData<fn(C)>,
}

/// The progress of a call, without its buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    command: Code,
    /// The number of bytes of the answer that have arrived.
    pub(crate) received: usize,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Sending { sent: usize, len: usize },
    Receiving { needed: usize },
    Done,
    Failed(ProtocolError),
}

impl<'b, C: Command> Call<'b, C> {
    /// Encodes `command` into `buf`, which will also receive the answer.
    ///
    /// A buffer of 64 KiB is always large enough, one of 4 KiB nearly always.
    ///
    /// # Errors
    /// If the command does not fit into `buf`, or into any message.
    pub fn new(command: &C, buf: &'b mut [u8]) -> Result<Self, EncodeError> {
        Ok(Self { progress: Progress::new(C::CODE, command, buf)?, buf, command: PhantomData })
    }

    /// Returns the answer.
    ///
    /// # Errors
    /// The error that ended the exchange, or the decode error of an answer that is not a response to this command.
    pub fn finish(self) -> Result<Answer<'b, C::Response<'b>>, ProtocolError> {
        self.progress.finish(self.buf)
    }
}

impl<'b> UntypedCall<'b> {
    /// Encodes the command with this code and payload into `buf`, which will also receive the answer.
    ///
    /// # Errors
    /// As [`new`](Call::new).
    pub fn untyped(code: Code, payload: &dyn Encode, buf: &'b mut [u8]) -> Result<Self, EncodeError> {
        Ok(Self { progress: Progress::new(code, payload, buf)?, buf, command: PhantomData })
    }

    /// Sends the message of `len` bytes at the front of `buf`, which will also receive the answer.
    ///
    /// ```
    /// use ipc_proto::{DecodeErrorKind, Exchange, Step, UntypedCall};
    ///
    /// let mut buf = *b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0 and space for the answer";
    /// assert_eq!(UntypedCall::encoded(19, &mut buf).unwrap_err().kind, DecodeErrorKind::UnexpectedEnd);
    /// let mut call = UntypedCall::encoded(20, &mut buf)?;
    /// assert!(matches!(call.step(), Step::Send(bytes) if bytes.len() == 20));
    /// # Ok::<(), ipc_proto::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// If the `len` bytes are not exactly one message.
    pub fn encoded(len: usize, buf: &'b mut [u8]) -> Result<Self, DecodeError> {
        Ok(Self { progress: Progress::encoded(len, buf)?, buf, command: PhantomData })
    }

    /// Returns the answer, with the payload of an OK answer decoded as the response to the command.
    ///
    /// # Errors
    /// The error that ended the exchange; or that the answer is not a response to this command.
    pub fn finish_response(self) -> Result<Answer<'b, Response<'b>>, ProtocolError> {
        Ok(match self.progress.answer(self.buf)? {
            Answer::Ok(message) => Answer::Ok(Response::decode(self.progress.command, &message)?),
            Answer::Refused(error) => Answer::Refused(error),
        })
    }

    /// Returns the answer, with the payload of an OK answer decoded as an `R`.
    ///
    /// # Errors
    /// The error that ended the exchange, or the decode error of an answer that does not contain an `R`.
    pub fn finish_as<R: Decode<'b>>(self) -> Result<Answer<'b, R>, ProtocolError> {
        self.progress.finish(self.buf)
    }
}

impl<'b, C> Call<'b, C> {
    /// Returns the code of the command.
    #[must_use]
    pub const fn command(&self) -> Code {
        self.progress.command
    }

    /// Returns how many bytes of the answer have arrived.
    #[must_use]
    pub const fn received(&self) -> usize {
        self.progress.received
    }

    /// Releases the buffer. The call continues with [`SuspendedCall::resume`].
    #[must_use]
    pub fn suspend(self) -> SuspendedCall<C> {
        SuspendedCall { progress: self.progress, command: PhantomData }
    }
}

impl<C> SuspendedCall<C> {
    /// Continues the call in `buf`, which must begin with the bytes of the buffer that [`Call::suspend`] released.
    /// After [`ProtocolError::BufferTooSmall`], pass a larger `buf` to receive the rest of the answer.
    ///
    /// # Errors
    /// [`ProtocolError::BufferTooSmall`] if `buf` is smaller than the message. The call can then be resumed again.
    pub fn resume(self, buf: &mut [u8]) -> Result<Call<'_, C>, ProtocolError> {
        let needed = self.progress.needed();
        if buf.len() < needed {
            return Err(ProtocolError::BufferTooSmall { needed });
        }
        Ok(Call { progress: self.progress, buf, command: PhantomData })
    }
}

impl<C> Clone for SuspendedCall<C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C> Copy for SuspendedCall<C> {}

impl<C> fmt::Debug for Call<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("progress", &self.progress).finish_non_exhaustive()
    }
}
impl<C> fmt::Debug for SuspendedCall<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedCall").field("progress", &self.progress).finish()
    }
}

impl Progress {
    /// Encodes a command into `buf`. The payload is `dyn`, so that this function is compiled once for all commands.
    pub(crate) fn new(command: Code, payload: &dyn Encode, buf: &mut [u8]) -> Result<Self, EncodeError> {
        let len = encode(command, payload, buf)?.len();
        Ok(Self { command, received: 0, state: State::Sending { sent: 0, len } })
    }

    /// Starts a call whose message of `len` bytes is in `buf` already.
    fn encoded(len: usize, buf: &[u8]) -> Result<Self, DecodeError> {
        let cut_off = DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: len.min(buf.len()) };
        match Message::parse(buf.get(..len).ok_or(cut_off)?)? {
            Parsed::Complete { value, used } if used == len => {
                Ok(Self { command: value.code, received: 0, state: State::Sending { sent: 0, len } })
            }
            Parsed::Complete { used, .. } => {
                Err(DecodeError { kind: DecodeErrorKind::TrailingBytes, offset: used })
            }
            Parsed::Partial { .. } => Err(cut_off),
        }
    }

    /// Returns the length of the message that is sent or received, as far as the length is known yet.
    pub(crate) const fn needed(&self) -> usize {
        match self.state {
            State::Sending { len, .. } => len,
            State::Receiving { needed } => needed,
            State::Done | State::Failed(_) => self.received,
        }
    }

    /// Returns whether nothing remains to be sent or received.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, State::Done | State::Failed(_))
    }

    pub(super) fn finish<'b, R: Decode<'b>>(&self, buf: &'b [u8]) -> Result<Answer<'b, R>, ProtocolError> {
        Ok(match self.answer(buf)? {
            Answer::Ok(message) => Answer::Ok(message.decode()?),
            Answer::Refused(error) => Answer::Refused(error),
        })
    }

    pub(crate) fn answer<'b>(&self, buf: &'b [u8]) -> Result<Answer<'b, Message<'b>>, ProtocolError> {
        match self.state {
            State::Done => {}
            State::Failed(error) => return Err(error),
            State::Receiving { needed } if needed > buf.len() => {
                return Err(ProtocolError::BufferTooSmall { needed });
            }
            State::Sending { .. } | State::Receiving { .. } => {
                return Err(ProtocolError::Closed { received: self.received });
            }
        }
        match Message::parse(buf.get(..self.received).unwrap_or_default())? {
            Parsed::Complete { value, .. } if value.code == Code::OK => Ok(Answer::Ok(value)),
            Parsed::Complete { value, .. } => Ok(Answer::Refused(ServerError::of(self.command, &value)?)),
            Parsed::Partial { .. } => Err(ProtocolError::Closed { received: self.received }),
        }
    }

    /// Checks the received part of the answer. Returns the length of the whole answer, as far as it is known yet.
    fn check(&self, buf: &[u8]) -> Result<usize, ProtocolError> {
        let bytes = buf.get(..self.received).unwrap_or_default();
        let needed = match Message::parse(bytes)? {
            Parsed::Partial { needed } => needed,
            Parsed::Complete { used, .. } => used,
        };
        if bytes.len() < Message::HEADER_LEN {
            return Ok(needed);
        }
        match Header::decode(&mut Reader::new(bytes))?.code {
            Code::OK | Code::ERROR => Ok(needed),
            other => Err(ProtocolError::Unexpected(other)),
        }
    }

    fn fail(&mut self, error: ProtocolError) -> Result<(), ProtocolError> {
        self.state = State::Failed(error);
        Err(error)
    }

    pub(crate) fn step<'m>(&self, buf: &'m mut [u8]) -> Step<'m> {
        match self.state {
            State::Sending { sent, len } => Step::Send(buf.get(sent..len).unwrap_or_default()),
            State::Receiving { needed } => {
                let end = needed.min(buf.len());
                buf.get_mut(self.received..end)
                    .filter(|space| !space.is_empty())
                    .map_or(Step::Done, Step::Receive)
            }
            State::Done | State::Failed(_) => Step::Done,
        }
    }

    pub(crate) fn advance(&mut self, n: usize, buf: &[u8]) -> Result<(), ProtocolError> {
        let lent = match self.state {
            State::Sending { sent, len } => len.saturating_sub(sent),
            State::Receiving { needed } => needed.min(buf.len()).saturating_sub(self.received),
            State::Done => 0,
            State::Failed(error) => return Err(error),
        };
        if n > lent {
            let error = ProtocolError::Overrun { advanced: n, lent };
            return if let State::Done = self.state { Err(error) } else { self.fail(error) };
        }
        match self.state {
            State::Sending { sent, len } => {
                self.state = if n == 0 || n == lent {
                    State::Receiving { needed: Message::HEADER_LEN }
                } else {
                    State::Sending { sent: sent.saturating_add(n), len }
                };
            }
            State::Receiving { .. } if n == 0 => {
                return self.fail(ProtocolError::Closed { received: self.received });
            }
            State::Receiving { .. } => {
                self.received = self.received.saturating_add(n);
                match self.check(buf) {
                    Ok(needed) if needed == self.received => self.state = State::Done,
                    Ok(needed) => {
                        self.state = State::Receiving { needed };
                        if needed > buf.len() {
                            return Err(ProtocolError::BufferTooSmall { needed });
                        }
                    }
                    Err(error) => return self.fail(error),
                }
            }
            State::Done | State::Failed(_) => {}
        }
        Ok(())
    }
}

impl<C> Exchange for Call<'_, C> {
    fn step(&mut self) -> Step<'_> {
        self.progress.step(self.buf)
    }

    /// If the peer closes while the command is being sent, the call receives the answer: it may be a refusal already.
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        self.progress.advance(n, self.buf)
    }
}
