//! A trace session: the stream on one connection, the Stop on another.
use super::call::Progress;
use super::{Answer, Step};
use crate::sentences::sentences;
use crate::types::SessionId;
use crate::wire::{copy, to_u64};
use crate::{BusyBackoff, Command, ProtocolError, StopTracing};

/// A tracing session over two connections: one carries the stream, the other the [`StopTracing`] that ends it.
///
/// ```text
///  stream          ──► stream_advance(received bytes) … stream_advance(no bytes: the end)
///  Stop connection     stop_step() ──► Nothing ─ stop(until) ─► Connect ──► Send(bytes) ──► Receive(space) ──► Nothing
///                                                                  ▲ Connected, Sent(n), Received(n), Busy or Failed
///                                                                  └─ by stop_advance(event)
///  time                until() ──► the latest time for the next `tick(now)`
///  end()           ──► None … Some(Complete | CutOff | TimedOut | Abandoned)
/// ```
///
/// A runtime that receives the Stop first writes its buffered events and the rundown to the stream. Only then it
/// answers. A client that waits for the answer without reading the stream waits indefinitely, because the connection
/// fills up. So **read the stream while the Stop is under way**: serve whichever connection is ready.
///
/// * Read the stream as long as [`wants_stream`](Self::wants_stream) returns true, and report the bytes in pieces of
///   any size. The session stores none of them.
/// * [`stop`](Self::stop) only requests the Stop, and sets its deadline: for connecting, sending, the rest of the
///   stream and the answer. The session has no clock: all times are in the units of the caller's clock.
/// * While the runtime is [busy](StopEvent::Busy), the session schedules further attempts, until the time that
///   [`limit_connecting`](Self::limit_connecting) sets.
/// * A Stop at a [dangerous time](crate::plan::stop_hazard) can be [delayed](Self::delay_stop). A runtime that sends
///   nothing after the Stop can be abandoned early: see [`limit_silence`](Self::limit_silence).
/// * If the Stop connection [fails](StopEvent::Failed), or the runtime refuses the Stop, the Stop is over and its
///   deadline no longer applies. The stream continues, and `stop` can be called again.
/// * The session ends when the stream has ended and no answer is outstanding, or when the deadline passes. The end of
///   the stream, not the answer, decides whether the trace is complete: a runtime that exits does not answer, and an
///   unknown session id is answered with OK. [`stop_answer`](Self::stop_answer) returns the answer.
///
/// Section "EventPipe Commands" of the specification. It does not state that the answer to `StopTracing` comes last.
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
/// session.stream_advance(b"... the rundown ...\x06\x01"); // before the answer arrives
/// session.stream_advance(b"");
/// session.stop_supply(b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\0\x10\0\0\0\x7f\0\0"); // or `stop_step` and `stop_advance`
/// assert_eq!(session.end(), Some(SessionEnd::Complete));
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    session_id: u64,
    /// The first bytes of the stream, its last bytes, and the number of all bytes.
    head: [u8; HEAD.len()],
    tail: [u8; 4],
    received: u64,
    stream_ended: bool,
    stop: Stop,
    buf: [u8; BUFFER],
    /// The deadline of the Stop, and the number of stream bytes received before the Stop was requested.
    until: Option<u64>,
    received_before: u64,
    /// The time by which the runtime must have accepted the connection and the command.
    connect_until: u64,
    /// The time of the next attempt of the current step, and the pauses before later attempts.
    retry_at: Option<u64>,
    backoff: BusyBackoff,
    /// The number of bytes of `StopTracing` that were sent.
    sent: u64,
    /// The longest time without a received byte during the Stop; since when there was none, and how many there were
    /// before.
    silence: u64,
    quiet_since: Option<u64>,
    heard: u64,
    end: Option<SessionEnd>,
}

/// The first bytes of a NetTrace V6 stream. Earlier versions have the length of a name in place of the zeroes.
const HEAD: [u8; 12] = *b"Nettrace\0\0\0\0";

/// The length of the buffer for the Stop: `StopTracing` and its answer have 28 bytes each.
const BUFFER: usize = 64;

#[derive(Debug, Clone, Copy)]
enum Stop {
    NotRequested,
    Connecting,
    Calling(Progress),
    /// The Stop connection failed.
    Failed,
    /// The runtime answered with an Error.
    Refused(Progress),
    /// Malformed or missing response.
    InvalidResponse(ProtocolError),
}

/// The next step on the Stop connection.
#[derive(Debug)]
pub enum StopStep<'s> {
    /// Nothing: the Stop is not requested, waits for its next attempt, has failed, is answered, or is no longer needed.
    Nothing,
    /// Connect to the runtime without blocking for long, then report `Connected`, `Busy` or `Failed`.
    Connect,
    /// Write some of these bytes, then report `Sent`.
    Send(&'s [u8]),
    /// Read some bytes into this space, then report `Received`.
    Receive(&'s mut [u8]),
}

/// The result of a [`StopStep`]. An event that does not fit the current step is ignored. `Sent` and `Received` with
/// more bytes than the step lent count as `Failed`: the position in the connection is then unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopEvent {
    /// The connection is established.
    Connected,
    /// The runtime accepts no connection, or no bytes, at this time of the caller's clock.
    ///
    /// The step is attempted again after the pauses of [`BusyBackoff`] in units of the clock, which should be
    /// milliseconds. From the time of [`limit_connecting`](Session::limit_connecting) on, `Busy` counts as `Failed`.
    Busy(u64),
    /// The runtime is not reachable, or the connection is broken.
    Failed,
    /// This number of bytes was written. 0 means that the peer closed the connection.
    Sent(usize),
    /// This number of bytes was read. 0 means that the peer closed the connection.
    Received(usize),
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The stream was read to its end and has the end mark of its format.
    ///
    /// Only the last bytes are checked: `06 01`, or four zeroes in NetTrace V6, a version that no runtime sends so far.
    /// `nettrace::Parser` checks the whole stream.
    Complete,
    /// The stream ended without the end mark, in most cases because the process exited. A session that is stopped while
    /// its runtime is suspended receives no bytes at all before .NET 11, and a complete stream since then.
    CutOff,
    /// The deadline of the Stop passed.
    TimedOut(SessionTimeout),
    /// The session was [abandoned](Session::abandon).
    Abandoned,
}

/// The wait of the session when the deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimeout {
    /// The step that did not happen in time.
    pub phase: SessionPhase,
    /// The number of bytes of `StopTracing` that were sent.
    pub sent: u64,
    /// The number of received bytes of the answer to the Stop.
    pub received: u64,
    /// The number of stream bytes that were received after the Stop was requested. 0 means that the runtime hangs; any
    /// other number means that the runtime needs more time.
    pub drained: u64,
}

sentences! {
    /// The step that a stopping session waits for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SessionPhase {
        /// Establishing the Stop connection.
        Connecting = "connecting to stop the session",
        /// Sending `StopTracing` on the Stop connection.
        Sending = "sending StopTracing",
        /// The end of the stream, after `StopTracing` was sent.
        EndOfStream = "waiting for the end of the trace",
    }
}

impl Session {
    /// The default time limit from the Stop to the end of the session, in milliseconds. It is long, because the rundown
    /// at the end of the stream describes every compiled method.
    pub const STOP_LIMIT_MS: u64 = 120_000;

    /// The default time without a byte after which a client abandons a session that is stopped, in milliseconds.
    pub const STOP_SILENCE_MS: u64 = 10_000;

    /// Creates the client's state of a session that the runtime has just started.
    #[must_use]
    pub const fn new(session_id: u64) -> Self {
        Self {
            session_id,
            head: [0; HEAD.len()],
            tail: [0; 4],
            received: 0,
            stream_ended: false,
            stop: Stop::NotRequested,
            buf: [0; BUFFER],
            until: None,
            received_before: 0,
            connect_until: u64::MAX,
            retry_at: None,
            backoff: BusyBackoff::new(),
            sent: 0,
            silence: u64::MAX,
            quiet_since: None,
            heard: 0,
            end: None,
        }
    }

    /// Returns the session's id.
    #[must_use]
    pub const fn session_id(&self) -> u64 {
        self.session_id
    }

    /// Returns the number of stream bytes received.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Returns whether the stream must be read.
    #[must_use]
    pub const fn wants_stream(&self) -> bool {
        !self.stream_ended && self.end.is_none()
    }

    /// Reports bytes read from the stream. No bytes mean that the stream has ended or is broken.
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
        self.received = self.received.saturating_add(to_u64(bytes.len()));
        self.settle();
    }

    /// Requests the Stop, with `until` as the deadline by the caller's clock.
    ///
    /// During a Stop, a call can only make the deadline earlier. After a failed or refused Stop, it starts a new Stop.
    pub fn stop(&mut self, until: u64) {
        match self.stop {
            _ if self.end.is_some() => {}
            Stop::NotRequested | Stop::Failed | Stop::Refused(_) => {
                self.stop = Stop::Connecting;
                self.until = Some(until);
                self.connect_until = until;
                self.backoff = BusyBackoff::new();
                self.sent = 0;
                self.quiet_since = None;
                self.received_before = self.received;
            }
            Stop::Connecting | Stop::Calling(_) | Stop::InvalidResponse(_) => {
                self.until = self.until.min(Some(until));
            }
        }
    }

    /// Sets the time from which [`Busy`](StopEvent::Busy) counts as [`Failed`](StopEvent::Failed). The default, and the
    /// latest possible time, is the deadline of the Stop.
    pub fn limit_connecting(&mut self, until: u64) {
        self.connect_until = self.connect_until.min(until);
    }

    /// Sets for how long a stopped session may receive no byte: from then on, it has timed out. A runtime that
    /// does so hangs. There is no limit by default; [`STOP_SILENCE_MS`](Self::STOP_SILENCE_MS) is a usual one.
    pub fn limit_silence(&mut self, milliseconds: u64) {
        self.silence = milliseconds;
    }

    /// Delays a requested Stop: the first [`stop_step`](Self::stop_step) is returned from the time `until` on. A Stop
    /// that was begun continues, and the deadline of the Stop does not change.
    pub fn delay_stop(&mut self, until: u64) {
        if matches!(self.stop, Stop::Connecting) {
            self.retry_at = Some(until.min(self.connect_until));
        }
    }

    /// Ends the delay of [`delay_stop`](Self::delay_stop).
    pub fn send_stop(&mut self) {
        if matches!(self.stop, Stop::Connecting) {
            self.retry_at = None;
        }
    }

    /// Returns whether a Stop is under way: requested, and neither failed nor refused.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.until().is_some()
    }

    /// Returns whether the last Stop failed or was refused, and no new Stop was requested since.
    #[must_use]
    pub const fn stop_failed(&self) -> bool {
        matches!(self.stop, Stop::Failed | Stop::Refused(_))
    }

    /// Returns the next step on the Stop connection. The step stays the same until a call of
    /// [`stop_advance`](Self::stop_advance) or [`tick`](Self::tick).
    pub fn stop_step(&mut self) -> StopStep<'_> {
        if self.retry_at.is_some() { StopStep::Nothing } else { self.pending_step() }
    }

    /// Returns the step on the Stop connection, even during a pause between two attempts.
    fn pending_step(&mut self) -> StopStep<'_> {
        match self.stop {
            _ if self.end.is_some() => StopStep::Nothing,
            Stop::Connecting => StopStep::Connect,
            Stop::Calling(progress) => match progress.step(&mut self.buf) {
                Step::Send(bytes) => StopStep::Send(bytes),
                Step::Receive(space) => StopStep::Receive(space),
                Step::Done => StopStep::Nothing,
            },
            _ => StopStep::Nothing,
        }
    }

    /// Reports the result of the last [`stop_step`](Self::stop_step).
    pub fn stop_advance(&mut self, event: StopEvent) {
        let connect_until = self.connect_until;
        let next = match (self.stop_step(), event) {
            (StopStep::Connect, StopEvent::Connected) => {
                // Encoding cannot fail: the buffer is large enough.
                let command = StopTracing { session_id: self.session_id };
                Progress::new(StopTracing::CODE, &command, &mut self.buf).map_or(Stop::Failed, Stop::Calling)
            }
            (StopStep::Connect | StopStep::Send(_), StopEvent::Busy(now)) if now < connect_until => {
                let pause = self.backoff.next();
                self.retry_at = Some(now.saturating_add(pause.into()).min(connect_until));
                return;
            }
            (StopStep::Send(_), StopEvent::Sent(n)) => {
                self.sent = self.sent.saturating_add(to_u64(n));
                self.advance(n)
            }
            (StopStep::Receive(_), StopEvent::Received(n)) => self.advance(n),
            (StopStep::Receive(_), StopEvent::Busy(_)) | (StopStep::Nothing, _) => return,
            (_, StopEvent::Failed | StopEvent::Busy(_)) => self.fail(),
            _ => return,
        };
        self.stop = next;
        if let (Stop::Calling(progress), Some(Ok(Answer::Refused(_)))) = (next, self.stop_answer()) {
            self.stop = Stop::Refused(progress);
            self.until = None;
        }
        self.settle();
    }

    /// Receives bytes of the Stop connection that the caller owns, as [`Exchange::supply`](crate::Exchange::supply)
    /// does. Returns how many bytes were taken from the front; 0 unless the [step](Self::stop_step) is to receive.
    pub fn stop_supply(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0_usize;
        while let (Some(rest), StopStep::Receive(space)) = (bytes.get(taken..), self.stop_step()) {
            let n = space.len().min(rest.len());
            copy(space, rest);
            if n == 0 {
                break;
            }
            taken = taken.saturating_add(n);
            self.stop_advance(StopEvent::Received(n));
        }
        taken
    }

    const fn fail(&mut self) -> Stop {
        self.until = None;
        Stop::Failed
    }

    fn advance(&mut self, n: usize) -> Stop {
        match self.stop {
            Stop::Calling(mut progress) => match progress.advance(n, &self.buf) {
                Ok(()) => Stop::Calling(progress),
                Err(ProtocolError::Overrun { .. }) => self.fail(),
                Err(error) => Stop::InvalidResponse(error),
            },
            other => other,
        }
    }

    /// Returns the runtime's answer to the Stop. `None` before the answer arrives, and after the connection has failed.
    #[must_use]
    pub fn stop_answer(&self) -> Option<Result<Answer<'_, SessionId>, ProtocolError>> {
        match self.stop {
            Stop::Calling(progress) | Stop::Refused(progress) if progress.is_over() => {
                Some(progress.finish(&self.buf))
            }
            Stop::InvalidResponse(error) => Some(Err(error)),
            _ => None,
        }
    }

    /// Returns the latest time for the next [`tick`](Self::tick): the next attempt, or the deadline of the Stop.
    #[must_use]
    pub const fn until(&self) -> Option<u64> {
        match (self.end, self.deadline(), self.retry_at) {
            (Some(_), ..) | (None, None, _) => None,
            (None, Some(until), Some(retry_at)) if retry_at < until => Some(retry_at),
            (None, until, _) => until,
        }
    }

    /// Returns the deadline of the Stop, which is earlier if no byte arrives.
    const fn deadline(&self) -> Option<u64> {
        match (self.until, self.quiet_since) {
            (Some(until), Some(since)) if since.saturating_add(self.silence) < until => {
                Some(since.saturating_add(self.silence))
            }
            (until, _) => until,
        }
    }

    /// Remembers since when no byte was received. The bytes that the client has sent are not a sign of life.
    fn observe_silence(&mut self, now: u64) {
        let answered = match self.stop {
            Stop::Calling(progress) => to_u64(progress.received),
            _ => 0,
        };
        let heard = self.received.saturating_add(answered);
        // A Stop that is not sent yet is not silence of the runtime.
        if heard != self.heard || self.quiet_since.is_none() || self.retry_at.is_some() {
            self.heard = heard;
            self.quiet_since = Some(now);
        }
    }

    /// Reports the current time. After the deadline of the Stop, the session has ended.
    ///
    /// If an attempt is due at the same time, [`stop_step`](Self::stop_step) first returns its step; the next `tick`
    /// checks the deadline.
    pub fn tick(&mut self, now: u64) {
        if self.is_stopping() {
            self.observe_silence(now);
        }
        let Some(until) = self.until() else { return };
        if now < until || self.retry_at.take().is_some() {
            return;
        }
        let received = match self.stop {
            Stop::Calling(progress) => to_u64(progress.received),
            _ => 0,
        };
        let phase = match self.pending_step() {
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

    /// Abandons the session. The caller must then close both connections. The runtime ends the session when the
    /// connections are closed, without an orderly Stop, so the stream is cut off.
    pub const fn abandon(&mut self) {
        if self.end.is_none() {
            self.end = Some(SessionEnd::Abandoned);
        }
    }

    /// Returns how the session ended. `None` while the session runs.
    #[must_use]
    pub const fn end(&self) -> Option<SessionEnd> {
        self.end
    }

    /// Ends the session if the stream has ended and no answer is outstanding.
    fn settle(&mut self) {
        let outstanding = matches!(self.stop, Stop::Calling(progress) if !progress.is_over());
        if self.stream_ended && !outstanding && self.end.is_none() {
            self.end = Some(self.end_of_stream());
        }
    }

    fn end_of_stream(&self) -> SessionEnd {
        let marked = if self.head == HEAD {
            // V6 ends with a block of kind 0 and size 0 (4 bytes), after at least the 20 bytes of the header.
            self.received >= 24 && self.tail == [0; 4]
        } else {
            // Earlier versions end with the tag of the end of an object (6) and the null tag (1).
            matches!(self.tail, [_, _, 6, 1])
        };
        if marked { SessionEnd::Complete } else { SessionEnd::CutOff }
    }
}
