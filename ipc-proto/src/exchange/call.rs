use super::{Exchange, Step};
use crate::message::Header;
use crate::wire::Reader;
use crate::{
    Code, Command, Decode, Encode, EncodeError, GenerateCoreDump3, HResult, Message, Parsed, ProtocolError,
    ServerError, encode,
};

/// A tool's side: one command and the answer to it.
///
/// It is not tied to a type: which command to send may be known at run time only. A connection carries one.
///
/// The magic, the code and the size of the answer are checked as soon as their bytes are there. Real runtimes have
/// been seen to answer with heap garbage, so none of this is for show.
///
/// ```
/// use ipc_proto::{Answer, Call, Exchange, GetProcessInfo2, HResult, ServerError, Step, types::ProcessInfo2};
///
/// let mut buf = [0; 4096];
/// let mut call = Call::new(&GetProcessInfo2 {}, &mut buf)?;
/// let Step::Send(bytes) = call.step() else { unreachable!() };
/// assert_eq!(bytes, b"DOTNET_IPC_V1\0\x14\0\x04\x04\0\0");
/// let n = bytes.len();
/// call.advance(n)?;
///
/// let answer = b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80";
/// let mut rest = &answer[..];
/// while let Step::Receive(space) = call.step() {
///     let n = space.len().min(rest.len());
///     space[..n].copy_from_slice(&rest[..n]);
///     rest = &rest[n..];
///     call.advance(n)?;
/// }
/// match call.finish::<ProcessInfo2<'_>>()? {
///     Answer::Ok(info) => println!("{}", info.command_line),
///     Answer::Refused(ServerError { hresult, .. }) => assert_eq!(hresult, HResult::UNKNOWN_COMMAND),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Call<'b> {
    progress: Progress,
    buf: &'b mut [u8],
}

/// How far a call has come, apart from the buffer that it lies in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    command: Code,
    /// Bytes of the answer that have come.
    received: usize,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Sending { sent: usize, len: usize },
    Receiving { needed: usize },
    Done,
    Failed(ProtocolError),
}

/// What a runtime answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'b, R> {
    /// It did it.
    Ok(R),
    /// It did not.
    Refused(ServerError<'b>),
}

impl<'b> Call<'b> {
    /// Encodes `command` into `buf`; the answer will come to lie there too.
    ///
    /// 64 KiB are always enough, 4 KiB nearly always.
    ///
    /// # Errors
    /// If the command does not fit `buf`, or any message.
    pub fn new<C: Command>(command: &C, buf: &'b mut [u8]) -> Result<Self, EncodeError> {
        Ok(Self { progress: Progress::new(C::CODE, command, buf)?, buf })
    }

    /// The code of the command that was sent.
    #[must_use]
    pub const fn command(&self) -> Code {
        self.progress.command
    }

    /// How many bytes of the answer have come.
    #[must_use]
    pub const fn received(&self) -> usize {
        self.progress.received
    }

    /// Goes on in a larger buffer after [`ProtocolError::BufferTooSmall`], so that the answer to a command which is
    /// already carried out is not lost.
    #[must_use]
    pub fn into_buffer<'c>(self, buf: &'c mut [u8]) -> Call<'c> {
        for (to, from) in buf.iter_mut().zip(self.buf.iter()) {
            *to = *from;
        }
        Call { progress: self.progress, buf }
    }

    /// The answer.
    ///
    /// # Errors
    /// What ended the exchange before its answer was there; or that the answer does not hold an `R`.
    pub fn finish<R: Decode<'b>>(self) -> Result<Answer<'b, R>, ProtocolError> {
        self.progress.finish(self.buf)
    }
}

impl Progress {
    /// Encodes a command into `buf`. It is `dyn` so that this is there once for all commands.
    pub(super) fn new(command: Code, payload: &dyn Encode, buf: &mut [u8]) -> Result<Self, EncodeError> {
        let len = encode(command, payload, buf)?.len();
        Ok(Self { command, received: 0, state: State::Sending { sent: 0, len } })
    }

    /// How many bytes of the answer have come.
    pub(super) const fn received(&self) -> usize {
        self.received
    }

    /// Whether there is nothing more to send or to receive.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::Done | State::Failed(_))
    }

    pub(super) fn finish<'b, R: Decode<'b>>(&self, buf: &'b [u8]) -> Result<Answer<'b, R>, ProtocolError> {
        Ok(match self.answer(buf)? {
            Answer::Ok(message) => Answer::Ok(message.decode()?),
            Answer::Refused(error) => Answer::Refused(error),
        })
    }

    fn answer<'b>(&self, buf: &'b [u8]) -> Result<Answer<'b, Message<'b>>, ProtocolError> {
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
            Parsed::Complete { value, .. } => {
                let code: HResult = value.decode()?;
                let words = self.command == GenerateCoreDump3::CODE;
                // Words that cannot be read do not take the code away.
                let error = if words { value.decode().ok() } else { None };
                Ok(Answer::Refused(error.unwrap_or_else(|| code.into())))
            }
            Parsed::Partial { .. } => Err(ProtocolError::Closed { received: self.received }),
        }
    }

    /// Checks what has come of the answer, and says how many it takes in all, as far as is known yet.
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

    pub(super) fn step<'m>(&self, buf: &'m mut [u8]) -> Step<'m> {
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

    pub(super) fn advance(&mut self, n: usize, buf: &[u8]) -> Result<(), ProtocolError> {
        match self.state {
            State::Sending { sent, len } => {
                let sent = sent.saturating_add(n);
                self.state = if n == 0 || sent >= len {
                    State::Receiving { needed: Message::HEADER_LEN }
                } else {
                    State::Sending { sent, len }
                };
                Ok(())
            }
            State::Receiving { .. } if n == 0 => self.fail(ProtocolError::Closed { received: self.received }),
            State::Receiving { needed } => {
                self.received = self.received.saturating_add(n).min(needed);
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
                Ok(())
            }
            State::Done => Ok(()),
            State::Failed(error) => Err(error),
        }
    }
}

impl Exchange for Call<'_> {
    fn step(&mut self) -> Step<'_> {
        self.progress.step(self.buf)
    }

    /// A peer that closes while the command is still being sent may have refused it already: that is read then.
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        self.progress.advance(n, self.buf)
    }
}
