use super::Backoff;
use crate::Advertise;
use crate::Encode;
use crate::wire::Writer;

/// A runtime's side of a diagnostic port: connects to a monitor, says who it is, waits for a command, and connects
/// again.
///
/// ```text
///            ┌── Failed, or Sent(0) ──► Wait { milliseconds } ── Waited ──┐
///            │                                                            │
/// Connect ───┴── Connected ──► Send(frame) ── Sent(34) ──► Await ── Readable ──► Serve ── Answered ──┐
///    ▲                                                       │                                       │
///    └──────────────────────────────────── HungUp ───────────┴───────────────────────────────────────┘
/// ```
///
/// [`step`](Self::step) says what to do, [`advance`](Self::advance) is told what came of it; what makes no sense just
/// then changes nothing. As the runtime does:
///
/// * The frame is sent at once, within [`Advertise::SEND_DEADLINE_MS`]; if that fails, so has the connection.
/// * A connection carries one command. `Answered` is said after the answer, or right after the OK of a session that
///   streams: the connection is the session's then, and the port makes another one.
/// * While it waits for a command a hang-up is looked at before data: a monitor that sends and closes at once is not heard.
/// * After a hang-up the first try is immediate, and if it fails the wait is 12 ms, not 10.
///
/// A runtime has one [`Backoff`] for all of its ports, which a command on any of them begins anew; here each port has
/// its own, so that a busy port does not speed up a dead one.
///
/// ```
/// use ipc_proto::port::{ConnectPort, PortEvent, PortStep};
/// use ipc_proto::{Advertise, Guid};
///
/// let mut port = ConnectPort::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 });
/// port.advance(PortEvent::Failed); // nobody listens yet
/// assert_eq!(port.step(), PortStep::Wait { milliseconds: 10 });
/// port.advance(PortEvent::Waited);
/// assert_eq!(port.step(), PortStep::Connect);
/// port.advance(PortEvent::Connected);
/// let PortStep::Send(frame) = port.step() else { unreachable!() };
/// assert_eq!(&frame[..8], b"ADVR_V1\0");
/// port.advance(PortEvent::Sent(34));
/// assert_eq!(port.step(), PortStep::Await);
/// port.advance(PortEvent::Readable);
/// assert_eq!(port.step(), PortStep::Serve); // with `Serve::new`, over that connection
/// port.advance(PortEvent::Answered);
/// assert_eq!(port.step(), PortStep::Connect);
/// ```
#[derive(Debug, Clone)]
pub struct ConnectPort {
    frame: [u8; Advertise::LEN],
    backoff: Backoff,
    state: State,
}

/// What a port has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortStep<'p> {
    /// Connect to the monitor, without waiting for long: then `Connected` or `Failed`.
    Connect,
    /// Do nothing for so long: then `Waited`.
    Wait {
        /// How long.
        milliseconds: u32,
    },
    /// Send these bytes: then `Sent`, with how many; 0 or `Failed` if that fails or takes too long.
    Send(&'p [u8]),
    /// Wait, for as long as it takes, until the connection is readable or hung up: then `HungUp` if it is, even if it is
    /// readable too; else `Readable`.
    Await,
    /// Serve the command on the connection: then `Answered`.
    Serve,
}

/// What came of a [`PortStep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum PortEvent {
    /// The connection is made.
    Connected,
    /// It is not, or it failed while the frame was sent.
    Failed,
    /// The wait is over.
    Waited,
    /// So many bytes were sent.
    Sent(usize),
    /// A command is there.
    Readable,
    /// The monitor has closed the connection.
    HungUp,
    /// The command is answered, or what it asked for streams.
    Answered,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Connecting,
    Waiting { milliseconds: u32 },
    Sending { sent: usize },
    Awaiting,
    Serving,
}

impl ConnectPort {
    /// A port that says this.
    #[must_use]
    pub fn new(advertise: &Advertise) -> Self {
        let mut frame = [0; Advertise::LEN];
        advertise.encode(&mut Writer::new(&mut frame));
        Self { frame, backoff: Backoff::new(), state: State::Connecting }
    }

    /// What to do next. Asking again without [`advance`](Self::advance) gives the same.
    #[must_use]
    pub fn step(&self) -> PortStep<'_> {
        match self.state {
            State::Connecting => PortStep::Connect,
            State::Waiting { milliseconds } => PortStep::Wait { milliseconds },
            State::Sending { sent } => PortStep::Send(self.frame.get(sent..).unwrap_or_default()),
            State::Awaiting => PortStep::Await,
            State::Serving => PortStep::Serve,
        }
    }

    /// Says what came of the step.
    pub fn advance(&mut self, event: PortEvent) {
        self.state = match (self.state, event) {
            (State::Connecting, PortEvent::Connected) => State::Sending { sent: 0 },
            (State::Connecting | State::Sending { .. }, PortEvent::Failed)
            | (State::Sending { .. }, PortEvent::Sent(0)) => {
                State::Waiting { milliseconds: self.backoff.next() }
            }
            (State::Waiting { .. }, PortEvent::Waited) => State::Connecting,
            (State::Sending { sent }, PortEvent::Sent(n)) => match sent.saturating_add(n) {
                sent if sent >= Advertise::LEN => {
                    self.backoff.reset();
                    State::Awaiting
                }
                sent => State::Sending { sent },
            },
            (State::Awaiting, PortEvent::Readable) => State::Serving,
            (State::Awaiting, PortEvent::HungUp) => {
                self.backoff.hung_up();
                State::Connecting
            }
            (State::Serving, PortEvent::Answered) => State::Connecting,
            (state, _) => state,
        };
    }
}
