//! An observer of a connection, which sees the bytes of both directions.
use crate::message::Header;
use crate::types::ProcessEnvironment;
use crate::wire::{Reader, copy, to_u32, to_u64, to_usize};
use crate::{
    Advertise, Code, Continuation, DecodeError, DecodeErrorKind, EncodeError, Message, Parsed, ProtocolError,
    Request,
};

/// The direction of bytes on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client, or a monitor, to the runtime.
    ToRuntime,
    /// From the runtime to the client, or a monitor.
    ToClient,
}

/// A frame of a connection, or a piece of the data that follows the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed<'m> {
    /// The offset of `bytes` in their direction.
    pub offset: u64,
    /// The bytes as they were sent. Of [`Observation::TooLong`] only the header. Of [`Observation::Lost`] the bytes of the
    /// malformed frame before the offset of its error, and only the header of a message of the other direction.
    pub bytes: &'m [u8],
    /// Their meaning.
    pub observation: Observation<'m>,
}

/// The meaning of bytes that an [`Observe`] has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observation<'m> {
    /// The frame of a runtime that connects to a monitor.
    Advertise(Advertise),
    /// A request. [`Message::request`] decodes it.
    Request(Message<'m>),
    /// An answer. [`Message::response`] decodes it.
    Answer {
        /// The command; `None` if the other direction has not brought the request yet. Keep the bytes then, and decode them
        /// once the request is known.
        to: Option<Code>,
        /// The message.
        message: Message<'m>,
    },
    /// A piece of the following data: after a request the byte that accompanies a descriptor, after an answer the
    /// environment or the stream. Never [`Continuation::Nothing`]. `None` if the request does not determine it: it has
    /// not been seen, is malformed, too long for the buffer, or of an unknown command; or if the length of the
    /// environment is not known.
    Continuation(Option<Continuation>),
    /// A message that is longer than the buffer. Its other bytes are skipped.
    TooLong {
        /// The code of the command or of the answer.
        code: Code,
        /// The length of the message.
        len: usize,
    },
    /// The bytes of this direction have no known meaning from here on: it was observed from its middle, bytes are missing,
    /// the directions are swapped, or the peer violates the protocol, for example by a second request on the connection.
    /// Offsets in the error count from [`Observed::offset`]. Nothing more is returned of this direction.
    Lost(ProtocolError),
}

/// An observer of one connection, for captures, proxies and logs: it receives the bytes of both directions, in pieces
/// of any size, and returns the frames and the data that follows them.
///
/// The order of the two directions does not matter, and one of them can be missing. Only what depends on the request is
/// then unknown: [`Observation::Answer::to`], and the kind of the bytes after the answer, so that surplus bytes after it are
/// not noticed either. The kind of these bytes is decided when the first of them arrives, and does not change. With both
/// directions at hand, supply the one to the runtime first.
///
/// * A connection carries one request. A capture of several connections needs an `Observe` for each.
/// * The runtime accepts most connections; those of a diagnostic port it opens itself. In a capture it is the peer whose
///   first byte is `A`, or whose message has a code of set 0xff.
/// * An `Observe` does not know that bytes are missing: after a gap, or at the end of the connection, look at
///   [`unfinished`](Self::unfinished), and count the bytes of an environment.
///
/// A buffer of 64 KiB for each direction holds every message.
///
/// ```
/// use ipc_proto::types::Status;
/// use ipc_proto::{Answer, Direction, Observation, Observe, Request, Response};
///
/// let mut observe = Observe::new([0; 64], [0; 64])?;
/// let mut seen = (0, 0, 0);
/// for (direction, mut bytes) in [
///     (Direction::ToRuntime, &b"DOTNET_IPC_V1\0\x14\0\x04"[..]),
///     (Direction::ToRuntime, b"\x01\0\0"),
///     (Direction::ToClient, b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0 and more"),
/// ] {
///     while !bytes.is_empty() {
///         let (taken, observed) = observe.supply(direction, bytes);
///         bytes = &bytes[taken..];
///         match observed.map(|observed| observed.observation) {
///             Some(Observation::Request(message)) => {
///                 assert!(matches!(message.request(), Ok(Request::ResumeRuntime(_))));
///                 seen.0 += 1;
///             }
///             Some(Observation::Answer { to: Some(to), message }) => {
///                 assert_eq!(message.response(to), Ok(Answer::Ok(Response::ResumeRuntime(Status::OK))));
///                 seen.1 += 1;
///             }
///             Some(Observation::Lost(_)) => seen.2 += 1, // nothing follows the answer to ResumeRuntime
///             _ => {}
///         }
///     }
/// }
/// assert_eq!(seen, (1, 1, 1));
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Observe<B> {
    to_runtime: Half<B>,
    to_client: Half<B>,
    asked: Option<Asked>,
}

/// The request, and the data that follows the answer to it: `None` if it is malformed, too long or of an unknown
/// command.
#[derive(Debug, Clone, Copy)]
struct Asked {
    code: Code,
    then: Option<Continuation>,
}

/// One direction.
#[derive(Debug, Clone)]
struct Half<B> {
    buf: B,
    /// Bytes of an unfinished frame in `buf`.
    len: usize,
    /// The offset of that frame, or of the next byte.
    offset: u64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// In a message, or at the first byte, with which a runtime can begin the advertise frame instead.
    Frame {
        first: bool,
    },
    /// In the rest of a message that is too long.
    Skipping {
        left: usize,
        then: After,
    },
    /// At the first byte after the message.
    After(After),
    /// In what follows the message. It ends with the connection, or after so many bytes.
    Continuing {
        kind: Option<Continuation>,
        left: Option<u32>,
    },
    Lost,
}

/// The data that follows the message of a direction.
#[derive(Debug, Clone, Copy)]
enum After {
    Nothing,
    /// The byte that accompanies a descriptor.
    Descriptor,
    /// The continuation that the request states. A counted continuation has this number of bytes, if the message states
    /// it.
    Continuation {
        counted: Option<u32>,
    },
}

impl After {
    /// Returns the state of the first byte, if a byte may follow.
    fn state(self, asked: Option<Asked>) -> Option<State> {
        let (kind, left) = match (self, asked.and_then(|asked| asked.then)) {
            (Self::Nothing, _) => return None,
            (Self::Descriptor, _) => (Some(Continuation::UserEvents), Some(1)),
            (Self::Continuation { counted: Some(0) }, Some(Continuation::Counted)) => return None,
            (Self::Continuation { counted: Some(n) }, kind @ Some(Continuation::Counted)) => (kind, Some(n)),
            (Self::Continuation { counted: None }, Some(Continuation::Counted)) => (None, None),
            (Self::Continuation { .. }, Some(Continuation::Nothing | Continuation::UserEvents)) => {
                return None;
            }
            (Self::Continuation { .. }, kind) => (kind, None),
        };
        Some(State::Continuing { kind, left })
    }
}

enum Frame<'m> {
    Advertise(Advertise),
    Message(Message<'m>),
}

impl<'m> Frame<'m> {
    /// Parses a message; the advertise frame if `or_advertise` and if the first byte is that of its magic.
    fn parse(bytes: &'m [u8], or_advertise: bool) -> Result<Parsed<Self>, DecodeError> {
        if or_advertise && bytes.first() == Advertise::MAGIC.first() {
            return Ok(Advertise::parse(bytes)?.map(Self::Advertise));
        }
        Ok(Message::parse(bytes)?.map(Self::Message))
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Observe<B> {
    /// Creates an observer of a new connection, with a buffer for each direction. Buffers of different lengths have the same
    /// type as slices or as `Vec`s.
    ///
    /// # Errors
    /// If a buffer is smaller than the advertise frame (34 bytes).
    pub fn new(to_runtime: B, to_client: B) -> Result<Self, EncodeError> {
        if to_runtime.as_ref().len().min(to_client.as_ref().len()) < Advertise::LEN {
            return Err(EncodeError::BufferTooSmall { needed: Advertise::LEN });
        }
        let half = |buf| Half { buf, len: 0, offset: 0, state: State::Frame { first: true } };
        Ok(Self { to_runtime: half(to_runtime), to_client: half(to_client), asked: None })
    }

    /// Receives the next bytes of a direction. Returns the number of bytes that were taken from their front, and the
    /// frame or piece that these complete. If there are bytes, at least one is taken; call this again with the others.
    pub fn supply<'m>(&'m mut self, direction: Direction, bytes: &'m [u8]) -> (usize, Option<Observed<'m>>) {
        let half = match direction {
            Direction::ToRuntime => &mut self.to_runtime,
            Direction::ToClient => &mut self.to_client,
        };
        if bytes.is_empty() {
            return (0, None);
        }
        if let State::After(after) = half.state {
            let Some(state) = after.state(self.asked) else {
                let error = DecodeError { kind: DecodeErrorKind::TrailingBytes, offset: 0 };
                half.state = State::Lost;
                let lost = Observed {
                    offset: half.offset,
                    bytes: &[],
                    observation: Observation::Lost(error.into()),
                };
                half.pass(bytes);
                return (bytes.len(), Some(lost));
            };
            half.state = state;
        }
        match half.state {
            State::Frame { first } => half.frame(direction, first, bytes, &mut self.asked),
            State::Skipping { left, then } => {
                let n = left.min(bytes.len());
                half.pass(bytes.get(..n).unwrap_or_default());
                half.state = match left.saturating_sub(n) {
                    0 => State::After(then),
                    left => State::Skipping { left, then },
                };
                (n, None)
            }
            State::Continuing { kind, left } => {
                let n = left.map_or(usize::MAX, to_usize).min(bytes.len());
                let left = left.map(|left| left.saturating_sub(to_u32(n)));
                let piece = bytes.get(..n).unwrap_or_default();
                let observation = Observation::Continuation(kind);
                let observed = Observed { offset: half.offset, bytes: piece, observation };
                half.pass(piece);
                half.state = match left {
                    Some(0) => State::After(After::Nothing),
                    left => State::Continuing { kind, left },
                };
                (n, Some(observed))
            }
            State::After(_) | State::Lost => {
                half.pass(bytes);
                (bytes.len(), None)
            }
        }
    }

    /// Returns the received bytes of an unfinished frame, which is cut off if the connection has ended; or those of the
    /// malformed frame at which the direction was lost, as many as were taken until then.
    #[must_use]
    pub fn unfinished(&self, direction: Direction) -> &[u8] {
        match direction {
            Direction::ToRuntime => self.to_runtime.received(),
            Direction::ToClient => self.to_client.received(),
        }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Half<B> {
    /// Counts bytes that are not stored.
    fn pass(&mut self, bytes: &[u8]) {
        self.offset = self.offset.saturating_add(to_u64(bytes.len()));
    }

    /// Receives bytes of a frame, up to its end.
    fn frame<'m>(
        &'m mut self,
        direction: Direction,
        first: bool,
        bytes: &[u8],
        asked: &mut Option<Asked>,
    ) -> (usize, Option<Observed<'m>>) {
        let or_advertise = first && direction == Direction::ToClient;
        let mut taken = 0_usize;
        while let Ok(Parsed::Partial { needed }) = Frame::parse(self.received(), or_advertise) {
            if self.unexpected(direction).is_some() {
                break;
            }
            let Some(space) = self.buf.as_mut().get_mut(self.len..needed) else { break };
            let rest = bytes.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                return (taken, None);
            }
            let n = space.len().min(rest.len());
            copy(space, rest);
            self.len = self.len.saturating_add(n);
            taken = taken.saturating_add(n);
        }
        let unexpected = self.unexpected(direction);
        let Self { buf, len, offset, state } = self;
        let frame = B::as_ref(buf).get(..*len).unwrap_or_default();
        let observation;
        (observation, *state) = match (Frame::parse(frame, or_advertise), unexpected) {
            (_, Some(code)) => (Observation::Lost(ProtocolError::Unexpected(code)), State::Lost),
            (Ok(Parsed::Complete { value: Frame::Advertise(advertise), .. }), None) => {
                (Observation::Advertise(advertise), State::Frame { first: false })
            }
            (Ok(Parsed::Complete { value: Frame::Message(message), .. }), None) => match direction {
                Direction::ToRuntime => request(message, asked),
                Direction::ToClient => answer(message, *asked),
            },
            // It has its header, and is longer than the buffer.
            (Ok(Parsed::Partial { needed }), None) => too_long(direction, frame, needed, asked),
            (Err(error), None) => (Observation::Lost(error.into()), State::Lost),
        };
        let seen = match observation {
            Observation::Lost(ProtocolError::Decode(error)) => frame.get(..error.offset).unwrap_or(frame),
            _ => frame,
        };
        let observed = Observed { offset: *offset, bytes: seen, observation };
        // A malformed frame stays, for `unfinished`.
        if !matches!(state, State::Lost) {
            *offset = offset.saturating_add(to_u64(*len));
            *len = 0;
        }
        (taken, Some(observed))
    }

    /// Returns the code in the header of the message, if no message of this direction has such a code.
    fn unexpected(&self, direction: Direction) -> Option<Code> {
        let header = Header::decode(&mut Reader::new(self.received())).ok()?;
        let unexpected = header.check_magic().is_ok() && !belongs(header.code, direction);
        unexpected.then_some(header.code)
    }

    /// Returns the bytes of the unfinished frame.
    fn received(&self) -> &[u8] {
        self.buf.as_ref().get(..self.len).unwrap_or_default()
    }
}

/// Returns whether a code belongs to messages of this direction.
const fn belongs(code: Code, direction: Direction) -> bool {
    match direction {
        Direction::ToRuntime => code.set() != Code::OK.set(),
        Direction::ToClient => matches!(code, Code::OK | Code::ERROR),
    }
}

fn request<'m>(message: Message<'m>, asked: &mut Option<Asked>) -> (Observation<'m>, State) {
    let then = match message.request() {
        Ok(Request::Unknown(_)) | Err(_) => None,
        Ok(request) => Some(request.continuation()),
    };
    *asked = Some(Asked { code: message.code, then });
    let has_descriptor = then == Some(Continuation::UserEvents);
    let after = if has_descriptor { After::Descriptor } else { After::Nothing };
    (Observation::Request(message), State::After(after))
}

fn answer(message: Message<'_>, asked: Option<Asked>) -> (Observation<'_>, State) {
    let answer = Observation::Answer { to: asked.map(|asked| asked.code), message };
    match message.code {
        Code::OK => {
            let environment = message.decode::<ProcessEnvironment>().ok();
            let counted = environment.map(|environment| environment.incoming_bytes);
            (answer, State::After(After::Continuation { counted }))
        }
        _ => (answer, State::After(After::Nothing)),
    }
}

/// Skips the rest of a message of `len` bytes, of which `received` contains the header.
fn too_long<'m>(
    direction: Direction,
    received: &[u8],
    len: usize,
    asked: &mut Option<Asked>,
) -> (Observation<'m>, State) {
    let code = Header::decode(&mut Reader::new(received)).map_or(Code::ERROR, |header| header.code);
    if direction == Direction::ToRuntime {
        *asked = Some(Asked { code, then: None });
    }
    let then = if code == Code::ERROR { After::Nothing } else { After::Continuation { counted: None } };
    (Observation::TooLong { code, len }, State::Skipping { left: len.saturating_sub(received.len()), then })
}
