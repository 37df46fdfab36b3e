//! `TimedSession`: the state of a tracing session with its clock and its limits.
mod first_collection;

use core::task::Poll;
use core::time::Duration;
use std::io::{self, ErrorKind};

use ipc_proto::plan::{LostFeatures, PlanStep, TraceConfig};
use ipc_proto::{Code, Command, Session, SessionEnd, StopTracing};

use crate::error::{CallContext, Error, Phase};
use crate::timeouts::{Timeouts, milliseconds};

use first_collection::FirstCollection;

/// A tracing session without its connections: the state machine [`Session`] with a clock, the limits of a client, and
/// the delay of a Stop that would block the runtime.
///
/// A [`TraceSession`](crate::TraceSession) and the session of `ipc-async` add two connections. Another session does the
/// same: it calls [`tick`](Self::tick), carries out the steps of [`session`](Self::session), and passes the stream to
/// [`advance`](Self::advance), until [`end_of_reading`](Self::end_of_reading) is ready.
///
/// ```
/// use ipc_std::ipc_proto::StopStep;
/// use ipc_std::ipc_proto::plan::{Runtime, TraceConfig};
/// use ipc_std::ipc_proto::types::{EventLevel, Provider};
/// use ipc_std::{TimedSession, Timeouts, clock};
///
/// let (level, name) = (EventLevel::INFORMATIONAL, "Microsoft-Windows-DotNETRuntime".into());
/// let providers = [Provider { keywords: 1, level, name, arguments: "".into() }];
/// let config = TraceConfig::new(&providers);
/// let accepted = config.first_step(&Runtime::default());
/// let mut session = TimedSession::new(7, &config, &accepted, Timeouts::default(), clock);
/// session.request_stop();
/// session.tick();
/// assert!(matches!(session.session_mut().stop_step(), StopStep::Connect));
/// assert!(session.due().is_some());
/// ```
#[derive(Debug)]
pub struct TimedSession {
    session: Session,
    command: Code,
    lost_features: LostFeatures,
    first_collection: FirstCollection,
    timeouts: Timeouts,
    clock: fn() -> Duration,
    /// The zero of the session's own clock, which counts milliseconds.
    epoch: Duration,
    /// When the Stop was requested: errors state the time since then.
    requested: Duration,
}

impl TimedSession {
    /// Creates the state of a session that begins now, by `clock`: the time since any moment. `accepted` is the command
    /// that the runtime accepted.
    #[must_use]
    pub fn new(
        session_id: u64,
        config: &TraceConfig<'_>,
        accepted: &impl PlanStep,
        timeouts: Timeouts,
        clock: fn() -> Duration,
    ) -> Self {
        let mut session = Session::new(session_id);
        session.limit_silence(milliseconds(timeouts.stop_silence));
        let epoch = clock();
        Self {
            session,
            command: accepted.code(),
            lost_features: accepted.lost_features(),
            first_collection: FirstCollection::new(config),
            timeouts,
            clock,
            epoch,
            requested: epoch,
        }
    }

    /// Returns the state machine.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the state machine, to carry out its steps.
    pub const fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Returns the command that the runtime accepted.
    #[must_use]
    pub const fn command(&self) -> Code {
        self.command
    }

    /// Returns the features of the configuration that the [accepted command](Self::command) does not carry.
    #[must_use]
    pub const fn lost_features(&self) -> LostFeatures {
        self.lost_features
    }

    /// Returns the time by the session's clock, in milliseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        milliseconds(self.since(self.epoch))
    }

    fn since(&self, time: Duration) -> Duration {
        (self.clock)().saturating_sub(time)
    }

    /// Returns when the session has work by the caller's clock, even if nothing arrives on its connections.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.epoch.checked_add(Duration::from_millis(self.session.until()?))
    }

    /// Tells the state machine the time.
    pub fn tick(&mut self) {
        let now = self.now();
        self.session.tick(now);
    }

    /// Takes the next bytes of the stream; none at its end.
    pub fn advance(&mut self, bytes: &[u8]) {
        let now = self.now();
        self.session.stream_advance(bytes);
        self.first_collection.see(bytes, now, &mut self.session);
    }

    /// Requests the Stop, with the limits of the [`Timeouts`]. Does nothing while the session is stopping, and after
    /// its end.
    pub fn request_stop(&mut self) {
        if self.session.is_stopping() || self.session.end().is_some() {
            return;
        }
        self.requested = (self.clock)();
        let Timeouts { call, stop, .. } = self.timeouts;
        // Rounded up, so that the end is not due too early.
        let now = self.now().saturating_add(1);
        self.session.stop(now.saturating_add(milliseconds(stop)));
        self.session.limit_connecting(now.saturating_add(milliseconds(call.min(stop))));
        self.first_collection.delay_stop(self.now(), &mut self.session);
    }

    /// Returns the state of the Stop, for its errors.
    #[must_use]
    pub fn stop_context<'a>(&self, peer: &'a str) -> CallContext<'a> {
        CallContext {
            peer,
            command: StopTracing::CODE,
            sent: 0,
            received: 0,
            waited: self.since(self.requested),
        }
    }

    /// Returns `Ready(0)` at the end of the session, and `Pending` before it. `connecting` is the phase in which a
    /// connection for the Stop is opened.
    ///
    /// # Errors
    /// [`Error::Timeout`] if the Stop did not end in time, or [`Error::Cancelled`]; both inside the [`io::Error`].
    pub fn end_of_reading(&self, peer: &str, connecting: Phase) -> io::Result<Poll<usize>> {
        match self.session.end() {
            None => Ok(Poll::Pending),
            Some(SessionEnd::Complete | SessionEnd::CutOff) => Ok(Poll::Ready(0)),
            Some(SessionEnd::TimedOut(timeout)) => {
                let phase = Phase::of_stop(&timeout, connecting);
                let (sent, received) = (timeout.sent, timeout.received);
                let context = CallContext { sent, received, ..self.stop_context(peer) };
                Err(io::Error::new(ErrorKind::TimedOut, context.io(ErrorKind::TimedOut.into(), phase)))
            }
            Some(SessionEnd::Abandoned) => {
                let cancelled = Error::Cancelled { peer: peer.to_owned() };
                Err(io::Error::new(ErrorKind::ConnectionAborted, cancelled))
            }
        }
    }
}
