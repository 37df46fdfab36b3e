use core::fmt;

use super::call::Progress;
use super::{Answer, Step};
use crate::types::SessionId;
use crate::{Command, ProtocolError, StopTracing};

/// A tracing session, from its start to its end, over two connections: the one of its stream, and the one of the
/// [`StopTracing`] that ends it.
///
/// ```text
///  stream          ──► stream_advance(bytes read) … stream_advance(none: its end)
///  Stop connection     stop_step() ──► Nothing ─ stop(until) ─► Connect ──► Send(bytes) ──► Receive(space) ──► Nothing
///                                                                  ▲ Connected, Sent(n), Received(n) or Failed
///                                                                  └─ by stop_advance(event)
///  time                until() ──► when `tick(now)` is to be told of, at the latest
///  end()           ──► None … Some(Complete | CutOff | TimedOut | Abandoned)
/// ```
///
/// A runtime that is asked to stop first writes all that it still has, and the rundown, to the stream, and only then
/// answers: whoever waits for the answer without reading waits for ever, as soon as the connection is full. Here both
/// connections may have work at the same time, and the stream always has until it has ended: **the Stop never wants
/// anything of which the stream is not wanted too**. Do whichever of the two can be done.
///
/// * Reading needs no permission: it is wanted as long as [`wants_stream`](Self::wants_stream) says so. Say what came, in
///   pieces of any size; nothing of it is kept.
/// * [`stop`](Self::stop) only asks, and gives a deadline for all that is then left to do: connecting, sending, the rest
///   of the stream, the answer. It counts in whatever the caller's clock does, milliseconds say; there is no clock here.
/// * If the Stop connection [fails](StopEvent::Failed), or the runtime refuses, the stop is not under way any more, and has
///   no deadline: the stream is still read, and `stop` may be asked for again.
/// * The session is over when the stream has ended and no answer is outstanding, or the deadline passes. What the stream
///   ended with, not the answer, says whether it is complete: a runtime that dies answers nothing more, and an unknown
///   session's id is answered with OK. What was answered is in [`stop_answer`](Self::stop_answer).
///
/// `StopTracing` is section "EventPipe Commands" of the specification; that it is answered last is in none.
///
/// ```
/// use ipc_proto::{Session, SessionEnd, StopEvent, StopStep};
///
/// let mut session = Session::new(0x7f00_0000_1000);
/// session.stream_advance(b"Nettrace...");
/// session.stop(5_000); // by the caller's clock
/// assert!(session.wants_stream() && matches!(session.stop_step(), StopStep::Connect));
/// session.stop_advance(StopEvent::Connected);
/// let StopStep::Send(bytes) = session.stop_step() else { unreachable!() };
/// assert_eq!(bytes, b"DOTNET_IPC_V1\0\x1c\0\x02\x01\0\0\0\x10\0\0\0\x7f\0\0");
/// session.stop_advance(StopEvent::Sent(28));
///
/// session.stream_advance(b"... the rundown ...\x06\x01"); // while the answer is waited for
/// session.stream_advance(b"");
/// let StopStep::Receive(space) = session.stop_step() else { unreachable!() };
/// let n = space.len();
/// space.copy_from_slice(&b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0"[..n]);
/// session.stop_advance(StopEvent::Received(n));
/// let StopStep::Receive(space) = session.stop_step() else { unreachable!() };
/// space.copy_from_slice(b"\0\x10\0\0\0\x7f\0\0");
/// session.stop_advance(StopEvent::Received(8));
/// assert_eq!(session.end(), Some(SessionEnd::Complete));
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    session_id: u64,
    /// The first bytes of the stream, and the last, and how many there were.
    head: [u8; HEAD.len()],
    tail: [u8; 4],
    received: u64,
    /// Whether there will be no more of them.
    stream_ended: bool,
    stop: Stop,
    buf: [u8; BUFFER],
    /// When all is to be over, and how much of the stream had come when that was said.
    until: Option<u64>,
    received_before: u64,
    /// How much of `StopTracing` was sent.
    sent: u64,
    end: Option<SessionEnd>,
}

/// What a V6 stream begins with: those before have the length of a name in place of the zeroes.
const HEAD: [u8; 12] = *b"Nettrace\0\0\0\0";

/// `StopTracing`, and its answer, have 28 bytes.
const BUFFER: usize = 64;

#[derive(Debug, Clone, Copy)]
enum Stop {
    /// Not asked for, or that has failed.
    Idle,
    Connecting,
    Calling(Progress),
    /// The answer is no.
    Refused(Progress),
    /// The answer is none.
    Bad(ProtocolError),
}

/// What to do next on the connection of the Stop.
#[derive(Debug)]
pub enum StopStep<'s> {
    /// Nothing: the stop was not asked for, has failed, is answered, or not needed any more.
    Nothing,
    /// Connect to the runtime, without waiting for long: then `Connected` or `Failed`. One that is busy may be tried again
    /// before either is said.
    Connect,
    /// Write some of these bytes: then `Sent`.
    Send(&'s [u8]),
    /// Read some bytes into this space: then `Received`.
    Receive(&'s mut [u8]),
}

/// What came of a [`StopStep`]. What makes no sense just then changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopEvent {
    /// There is a connection.
    Connected,
    /// There is none to be had, or it is broken.
    Failed,
    /// So many bytes were written; 0 means that the peer closed.
    Sent(usize),
    /// So many bytes were read; 0 means that the peer closed.
    Received(usize),
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The stream was read to its end, and has the end mark of its format: nothing is cut off.
    ///
    /// Looked at are its last bytes: `06 01`, or in V6, which no runtime sends so far, four zeroes.
    /// [`Parser`](crate::nettrace::Parser) tells for certain.
    Complete,
    /// The stream ended without that mark: mostly because the runtime is gone. One that is stopped before it runs sends
    /// nothing at all.
    CutOff,
    /// The deadline passed.
    TimedOut(SessionTimeout),
    /// It was [abandoned](Session::abandon).
    Abandoned,
}

/// What was being done when the deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimeout {
    /// What was missing.
    pub phase: SessionPhase,
    /// Bytes of `StopTracing` that were sent.
    pub sent: u64,
    /// Bytes of its answer that were received.
    pub received: u64,
    /// Bytes of the stream that came after the stop was asked for: 0 tells a runtime that stands still from one that was
    /// not given enough time.
    pub drained: u64,
}

/// What a session that is to stop waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionPhase {
    /// The connection on which to ask.
    Connecting,
    /// Room for the command.
    Sending,
    /// The end of the stream; the command is sent.
    EndOfStream,
}

impl fmt::Display for SessionPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connecting => "connecting to ask for the stop",
            Self::Sending => "sending the stop",
            Self::EndOfStream => "waiting for the end of the trace",
        })
    }
}

impl Session {
    /// A session that the runtime has just started.
    #[must_use]
    pub const fn new(session_id: u64) -> Self {
        Self {
            session_id,
            head: [0; HEAD.len()],
            tail: [0; 4],
            received: 0,
            stream_ended: false,
            stop: Stop::Idle,
            buf: [0; BUFFER],
            until: None,
            received_before: 0,
            sent: 0,
            end: None,
        }
    }

    /// Its id.
    #[must_use]
    pub const fn session_id(&self) -> u64 {
        self.session_id
    }

    /// How many bytes of the stream have come.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Whether the stream is to be read.
    #[must_use]
    pub const fn wants_stream(&self) -> bool {
        !self.stream_ended && self.end.is_none()
    }

    /// Says what was read of the stream; nothing means that it has ended, or broken off.
    pub fn stream_advance(&mut self, bytes: &[u8]) {
        if !self.wants_stream() {
            return;
        }
        let before = usize::try_from(self.received).unwrap_or(usize::MAX);
        for (slot, byte) in self.head.iter_mut().skip(before).zip(bytes) {
            *slot = *byte;
        }
        match bytes {
            [] => self.stream_ended = true,
            [.., a, b, c, d] => self.tail = [*a, *b, *c, *d],
            few => {
                for byte in few {
                    let [_, a, b, c] = self.tail;
                    self.tail = [a, b, c, *byte];
                }
            }
        }
        self.received = self.received.saturating_add(bytes.len() as u64);
        self.settle();
    }

    /// Asks for the stop, and for all to be over when the caller's clock says `until`.
    ///
    /// While it is under way, asking again can only bring the deadline forward; after a failure, or a refusal, it begins
    /// anew.
    pub fn stop(&mut self, until: u64) {
        match self.stop {
            _ if self.end.is_some() => {}
            Stop::Idle | Stop::Refused(_) => {
                self.stop = Stop::Connecting;
                self.until = Some(until);
                self.sent = 0;
                self.received_before = self.received;
            }
            Stop::Connecting | Stop::Calling(_) | Stop::Bad(_) => self.until = self.until.min(Some(until)),
        }
    }

    /// What to do next for the Stop. Asking again without [`stop_advance`](Self::stop_advance) gives the same.
    pub fn stop_step(&mut self) -> StopStep<'_> {
        match self.stop {
            _ if self.end.is_some() => StopStep::Nothing,
            Stop::Connecting => StopStep::Connect,
            Stop::Calling(progress) => match progress.step(&mut self.buf) {
                Step::Send(bytes) => StopStep::Send(bytes),
                Step::Receive(space) => StopStep::Receive(space),
                Step::Done => StopStep::Nothing,
            },
            Stop::Idle | Stop::Refused(_) | Stop::Bad(_) => StopStep::Nothing,
        }
    }

    /// Says what came of the last [`stop_step`](Self::stop_step).
    pub fn stop_advance(&mut self, event: StopEvent) {
        let moved = match (self.stop_step(), event) {
            (StopStep::Connect, StopEvent::Connected) => {
                // It fits.
                let command = StopTracing { session_id: self.session_id };
                Progress::new(StopTracing::CODE, &command, &mut self.buf).map_or(Stop::Idle, Stop::Calling)
            }
            (StopStep::Send(_), StopEvent::Sent(n)) => {
                self.sent = self.sent.saturating_add(n as u64);
                self.advance(n)
            }
            (StopStep::Receive(_), StopEvent::Received(n)) => self.advance(n),
            (StopStep::Nothing, _) => return,
            (_, StopEvent::Failed) => {
                self.until = None;
                Stop::Idle
            }
            _ => return,
        };
        self.stop = moved;
        if let (Stop::Calling(progress), Some(Ok(Answer::Refused(_)))) = (moved, self.stop_answer()) {
            self.stop = Stop::Refused(progress);
            self.until = None;
        }
        self.settle();
    }

    fn advance(&self, n: usize) -> Stop {
        match self.stop {
            Stop::Calling(mut progress) => match progress.advance(n, &self.buf) {
                Ok(()) => Stop::Calling(progress),
                Err(error) => Stop::Bad(error),
            },
            other => other,
        }
    }

    /// What the runtime answered to the stop, once it has; nothing if the connection has failed.
    #[must_use]
    pub fn stop_answer(&self) -> Option<Result<Answer<'_, SessionId>, ProtocolError>> {
        match self.stop {
            Stop::Calling(progress) | Stop::Refused(progress) if progress.is_over() => {
                Some(progress.finish(&self.buf))
            }
            Stop::Bad(error) => Some(Err(error)),
            _ => None,
        }
    }

    /// When [`tick`](Self::tick) has something to say at the latest, if ever.
    #[must_use]
    pub const fn until(&self) -> Option<u64> {
        match self.end {
            None => self.until,
            Some(_) => None,
        }
    }

    /// Says what time it is: whatever else goes on, the deadline of the stop ends the session.
    pub fn tick(&mut self, now: u64) {
        if self.until().is_none_or(|until| now < until) {
            return;
        }
        let received = match self.stop {
            Stop::Calling(progress) => progress.received() as u64,
            _ => 0,
        };
        let phase = match self.stop_step() {
            StopStep::Connect => SessionPhase::Connecting,
            StopStep::Send(_) => SessionPhase::Sending,
            StopStep::Receive(_) | StopStep::Nothing => SessionPhase::EndOfStream,
        };
        let (sent, drained) = (self.sent, self.received.saturating_sub(self.received_before));
        self.end = Some(if self.stream_ended {
            self.end_of_stream()
        } else {
            SessionEnd::TimedOut(SessionTimeout { phase, sent, received, drained })
        });
    }

    /// Gives the session up: there is nothing to be done any more but to close both connections, upon which the runtime
    /// ends it too. It is not stopped in an orderly way, and its stream is cut off.
    pub const fn abandon(&mut self) {
        if self.end.is_none() {
            self.end = Some(SessionEnd::Abandoned);
        }
    }

    /// How it ended, once it has.
    #[must_use]
    pub const fn end(&self) -> Option<SessionEnd> {
        self.end
    }

    /// Whether it is over by what has come.
    fn settle(&mut self) {
        let outstanding = matches!(self.stop, Stop::Calling(progress) if !progress.is_over());
        if self.stream_ended && !outstanding && self.end.is_none() {
            self.end = Some(self.end_of_stream());
        }
    }

    fn end_of_stream(&self) -> SessionEnd {
        let marked = if self.head == HEAD {
            // Of V6, behind the 20 bytes of its header: a block of no kind and no size.
            self.received >= 24 && self.tail == [0; 4]
        } else {
            // The end of an object, and the tag of no object.
            matches!(self.tail, [_, _, 6, 1])
        };
        if marked { SessionEnd::Complete } else { SessionEnd::CutOff }
    }
}
