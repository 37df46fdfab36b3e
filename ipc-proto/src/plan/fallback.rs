//! [`Fallback`], the machine that carries out a plan: each command on a connection of its own.
use core::fmt;

use super::step::PlanStep;
use crate::exchange::Progress;
use crate::wire::{copy, to_u64};
use crate::{Answer, BusyBackoff, EncodeError, HResult, ProtocolError, ServerError, Step};

/// Carries out a plan: sends a command and, if the runtime does not know the command, sends the next older command on a
/// new connection. A `Fallback` has no buffer, no transport and no clock.
///
/// ```text
///  step(buf) ──► Connect        open a connection, close the last one ──► connected(), or busy(now)
///            ──► Wait           until the time until() ─────────────────► tick(now)
///            ──► Send(bytes)    write some of them ─────────────────────► advance(n, buf)
///            ──► Receive(space) read some into it ──────────────────────► advance(n, buf)
///            ──► Grow           pass a buffer of `needed` bytes that begins with the same bytes
///            ──► Done ──────────────────────────────────────────────────► finish(buf)
/// ```
///
/// * An older command is sent only after [`UNKNOWN_COMMAND`](HResult::UNKNOWN_COMMAND): after any other answer or a
///   failure, the runtime may have carried out the newer command.
/// * All steps have one deadline, in the caller's clock, which counts milliseconds. While the runtime accepts no
///   connection ([`busy`](Self::busy)), the machine schedules further attempts until that deadline.
/// * Bytes that follow the answer, for example a stream, stay on the last connection, for the caller to read.
/// * If connecting or a transfer fails, drop the machine and return the error of the transport. A connection that was
///   reset counts as closed: `advance(0, buf)`.
///
/// ```
/// use ipc_proto::Answer;
/// use ipc_proto::plan::{Fallback, FallbackStep, InfoConfig, PlanStep, Runtime};
/// use std::io::Read;
///
/// // The answers of .NET 6: it does not know GetProcessInfo3.
/// let mut answers = [
///     &b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80"[..],
///     b"DOTNET_IPC_V1\0\x40\0\xff\0\0\0\
///       \x2a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
/// ]
/// .into_iter();
/// let mut answer = &b""[..];
///
/// let mut fallback = Fallback::new(InfoConfig.first_step(&Runtime::default()), 10_000);
/// let mut buf = [0; 256];
/// loop {
///     match fallback.step(&mut buf) {
///         FallbackStep::Connect => {
///             answer = answers.next().unwrap();
///             fallback.connected();
///         }
///         FallbackStep::Send(bytes) => {
///             let n = bytes.len();
///             fallback.advance(n, &buf);
///         }
///         FallbackStep::Receive(space) => {
///             let n = answer.read(space)?;
///             fallback.advance(n, &buf);
///         }
///         FallbackStep::Wait | FallbackStep::Grow { .. } => unreachable!(),
///         FallbackStep::Done => break,
///     }
/// }
/// assert_eq!(fallback.command().code().0, 0x0404);
/// let Answer::Ok(info) = fallback.finish(&buf)? else { unreachable!() };
/// assert_eq!(info.process_id, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fallback<S> {
    command: S,
    state: State,
    until: u64,
    backoff: BusyBackoff,
    /// The number of bytes sent, and the number of bytes received, on the current connection.
    sent: u64,
    received: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The command is not in the buffer yet.
    New,
    Connecting(Progress),
    /// The runtime was busy; the next attempt is due at this time.
    Paused(Progress, u64),
    Calling(Progress),
    Done(Progress),
    Failed(FallbackError),
}

/// The next action of a [`Fallback`].
#[derive(Debug)]
pub enum FallbackStep<'m> {
    /// Open a new connection, and close the previous one. Then call [`connected`](Fallback::connected), or
    /// [`busy`](Fallback::busy) if the runtime accepts no connection at this time.
    Connect,
    /// Wait until [`until`](Fallback::until), then call [`tick`](Fallback::tick).
    Wait,
    /// Write some of these bytes, then call [`advance`](Fallback::advance).
    Send(&'m [u8]),
    /// Read some bytes into this space, then call [`advance`](Fallback::advance).
    Receive(&'m mut [u8]),
    /// Continue with a larger buffer that begins with the bytes of this one. Without a larger buffer, drop the machine.
    Grow {
        /// The required length.
        needed: usize,
    },
    /// Nothing: call [`finish`](Fallback::finish).
    Done,
}

/// The reason why a plan ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FallbackError {
    /// The command does not fit into any message. It was not sent.
    Encode(EncodeError),
    /// The peer violated the protocol or closed the connection.
    Protocol(ProtocolError),
    /// The deadline passed.
    TimedOut {
        /// Whether a connection was open; otherwise the runtime accepted none.
        connected: bool,
    },
}

impl fmt::Display for FallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode(e) => e.fmt(f),
            Self::Protocol(e) => e.fmt(f),
            Self::TimedOut { connected: false } => f.write_str("the runtime accepted no connection in time"),
            Self::TimedOut { connected: true } => f.write_str("the runtime did not answer in time"),
        }
    }
}
impl core::error::Error for FallbackError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Encode(e) => Some(e),
            Self::Protocol(e) => Some(e),
            Self::TimedOut { .. } => None,
        }
    }
}
impl From<ProtocolError> for FallbackError {
    fn from(e: ProtocolError) -> Self {
        Self::Protocol(e)
    }
}

impl<S: PlanStep> Fallback<S> {
    /// Creates a machine that begins with `first` and gives up at the time `until` of the caller's clock, which counts
    /// milliseconds. `until` is usually the current time plus [`PlanStep::LIMIT_MS`].
    pub const fn new(first: S, until: u64) -> Self {
        Self { command: first, state: State::New, until, backoff: BusyBackoff::new(), sent: 0, received: 0 }
    }

    /// Returns the command that is being sent, or that was answered.
    #[must_use]
    pub const fn command(&self) -> &S {
        &self.command
    }

    /// Returns how many bytes were sent and received on the current connection.
    #[must_use]
    pub const fn transferred(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Returns the next action. `buf` contains the command and then its answer: pass the same bytes in every call. A
    /// buffer of 64 KiB is always large enough, one of 4 KiB nearly always.
    pub fn step<'m>(&mut self, buf: &'m mut [u8]) -> FallbackStep<'m> {
        if let State::New = self.state {
            match Progress::new(self.command.code(), &self.command, buf) {
                Ok(progress) => self.state = State::Connecting(progress),
                Err(EncodeError::BufferTooSmall { needed }) => return FallbackStep::Grow { needed },
                Err(e) => self.state = State::Failed(FallbackError::Encode(e)),
            }
        }
        match self.state {
            State::Connecting(_) => FallbackStep::Connect,
            State::Paused(..) => FallbackStep::Wait,
            State::Calling(progress) if progress.needed() > buf.len() => {
                FallbackStep::Grow { needed: progress.needed() }
            }
            State::Calling(progress) => match progress.step(buf) {
                Step::Send(bytes) => FallbackStep::Send(bytes),
                Step::Receive(space) => FallbackStep::Receive(space),
                Step::Done => FallbackStep::Done,
            },
            State::New | State::Done(_) | State::Failed(_) => FallbackStep::Done,
        }
    }

    /// Reports that the connection is open.
    pub const fn connected(&mut self) {
        if let State::Connecting(progress) = self.state {
            self.state = State::Calling(progress);
            (self.sent, self.received) = (0, 0);
        }
    }

    /// Reports that the runtime accepted no connection at the time `now`. The next attempt is due after 1, 2, 4 … 50
    /// milliseconds.
    pub fn busy(&mut self, now: u64) {
        if let State::Connecting(progress) = self.state {
            self.state = State::Paused(progress, now.saturating_add(self.backoff.next().into()));
            self.tick(now);
        }
    }

    /// Reports how many of the lent bytes were written or filled; 0 means that the peer closed.
    pub fn advance(&mut self, n: usize, buf: &[u8]) {
        let State::Calling(mut progress) = self.state else { return };
        let before = progress.received;
        let advanced = progress.advance(n, buf);
        match progress.received.saturating_sub(before) {
            0 if before == 0 => self.sent = self.sent.saturating_add(to_u64(n)),
            received => self.received = self.received.saturating_add(to_u64(received)),
        }
        self.state = match advanced {
            Ok(()) if progress.is_over() => match (progress.answer(buf), self.command.older()) {
                (Ok(Answer::Refused(ServerError { hresult: HResult::UNKNOWN_COMMAND, .. })), Some(older)) => {
                    self.command = older;
                    self.backoff = BusyBackoff::new();
                    State::New
                }
                _ => State::Done(progress),
            },
            // The call continues. After `BufferTooSmall`, `step` returns `Grow`.
            Ok(()) | Err(ProtocolError::BufferTooSmall { .. }) => State::Calling(progress),
            Err(e) => State::Failed(e.into()),
        };
    }

    /// Receives bytes that the caller owns, as [`Exchange::supply`](crate::Exchange::supply) does. Returns how many
    /// bytes were taken from the front. If some are left, see [`step`](Self::step): after [`Grow`](FallbackStep::Grow),
    /// supply the rest with the larger buffer.
    ///
    /// ```
    /// use ipc_proto::plan::{Fallback, FallbackStep, InfoConfig, PlanStep, Runtime};
    ///
    /// let net_5 = Runtime { version: Some(5), ..Runtime::default() };
    /// let mut fallback = Fallback::new(InfoConfig.first_step(&net_5), 10_000);
    /// let mut buf = vec![0; 24]; // enough for the command
    /// # let FallbackStep::Connect = fallback.step(&mut buf) else { unreachable!() };
    /// fallback.connected();
    /// fallback.advance(20, &buf); // the command is sent
    /// let answer = b"DOTNET_IPC_V1\0\x38\0\xff\0\0\0\
    ///     \x2a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    /// let taken = fallback.supply(answer, &mut buf);
    /// let FallbackStep::Grow { needed } = fallback.step(&mut buf) else { unreachable!() };
    /// assert_eq!((taken, needed), (20, 56));
    /// buf.resize(needed, 0);
    /// assert_eq!(fallback.supply(&answer[taken..], &mut buf), 36);
    /// assert!(matches!(fallback.step(&mut buf), FallbackStep::Done));
    /// ```
    pub fn supply(&mut self, bytes: &[u8], buf: &mut [u8]) -> usize {
        let mut taken = 0_usize;
        while let (Some(rest), FallbackStep::Receive(space)) = (bytes.get(taken..), self.step(buf)) {
            let n = space.len().min(rest.len());
            copy(space, rest);
            if n == 0 {
                break;
            }
            taken = taken.saturating_add(n);
            self.advance(n, buf);
        }
        taken
    }

    /// Returns the latest time of the next [`tick`](Self::tick): the next attempt or the deadline; `None` at the end.
    #[must_use]
    pub const fn until(&self) -> Option<u64> {
        match self.state {
            State::Done(_) | State::Failed(_) => None,
            State::Paused(_, next) if next < self.until => Some(next),
            _ => Some(self.until),
        }
    }

    /// Reports the current time. At the deadline, an unfinished plan fails.
    pub const fn tick(&mut self, now: u64) {
        let connected = match self.state {
            State::Done(_) | State::Failed(_) => return,
            State::New | State::Connecting(_) | State::Paused(..) => false,
            State::Calling(_) => true,
        };
        if now >= self.until {
            self.state = State::Failed(FallbackError::TimedOut { connected });
        } else if let State::Paused(progress, next) = self.state {
            if now >= next {
                self.state = State::Connecting(progress);
            }
        }
    }

    /// Returns the answer to the last command, from the buffer that contains it.
    ///
    /// # Errors
    /// The error that ended the plan, or the decode error of an answer that is not a response to the command.
    pub fn finish<'b>(&self, buf: &'b [u8]) -> Result<Answer<'b, S::Response<'b>>, FallbackError> {
        let progress = match self.state {
            State::Failed(e) => return Err(e),
            State::New => return Err(ProtocolError::Closed { received: 0 }.into()),
            State::Connecting(progress)
            | State::Paused(progress, _)
            | State::Calling(progress)
            | State::Done(progress) => progress,
        };
        Ok(match progress.answer(buf)? {
            Answer::Ok(message) => Answer::Ok(self.command.response(&message).map_err(ProtocolError::from)?),
            Answer::Refused(error) => Answer::Refused(error),
        })
    }
}
