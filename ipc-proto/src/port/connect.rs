use super::Backoff;
use crate::Advertise;
use crate::Encode;
use crate::wire::Writer;

/// The runtime's role at a diagnostic port: it connects to a monitor, sends its advertise frame, waits for a command, and
/// connects again.
///
/// ```text
///            ┌── Failed, or Sent(0) ──► Wait { milliseconds } ── Waited ──┐
///            │                                                            │
/// Connect ───┴── Connected ──► Send(frame) ── Sent(34) ──► Await ── Readable ──► Serve ── Answered ──┐
///    ▲                                                       │                                       │
///    └──────────────────────────────────── HungUp ───────────┴───────────────────────────────────────┘
/// ```
///
/// [`step`](Self::step) returns what to do. Pass the outcome to [`advance`](Self::advance), which ignores an event that
/// does not belong to the step. The machine does what the runtime does:
///
/// * It sends the frame immediately, within [`Advertise::SEND_DEADLINE_MS`]; otherwise the connection has failed.
/// * A connection carries one command. Pass `Answered` after the response, or immediately after the OK of a session with
///   a stream: the connection then belongs to the session, and the port makes another one.
/// * While it waits for a command, it checks for a hang-up before data: the command of a monitor that closes immediately
///   is lost.
/// * After a hang-up, the first attempt is immediate. If it fails, the wait is 12 ms instead of 10.
///
/// A runtime has one [`Backoff`] for all of its ports, and resets it for a command on any of them. Here, each port has its
/// own, so that a busy port does not cause more attempts of the others.
///
/// ```
/// use ipc_proto::port::{ConnectPort, ConnectEvent, ConnectStep};
/// use ipc_proto::{Advertise, Guid};
///
/// let mut port = ConnectPort::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 });
/// port.advance(ConnectEvent::Failed); // no monitor listens yet
/// assert_eq!(port.step(), ConnectStep::Wait { milliseconds: 10 });
/// port.advance(ConnectEvent::Waited);
/// assert_eq!(port.step(), ConnectStep::Connect);
/// port.advance(ConnectEvent::Connected);
/// let ConnectStep::Send(frame) = port.step() else { unreachable!() };
/// assert_eq!(&frame[..8], b"ADVR_V1\0");
/// port.advance(ConnectEvent::Sent(34));
/// assert_eq!(port.step(), ConnectStep::Await);
/// port.advance(ConnectEvent::Readable);
/// assert_eq!(port.step(), ConnectStep::Serve); // with `Serve::new`, over that connection
/// port.advance(ConnectEvent::Answered);
/// assert_eq!(port.step(), ConnectStep::Connect);
/// ```
#[derive(Debug, Clone)]
pub struct ConnectPort {
    frame: [u8; Advertise::LEN],
    backoff: Backoff,
    state: State,
}

/// The next action at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectStep<'p> {
    /// Connect to the monitor without a long wait: then `Connected` or `Failed`.
    Connect,
    /// Wait for this time: then `Waited`.
    Wait {
        /// The time.
        milliseconds: u32,
    },
    /// Send these bytes: then `Sent` with their number; 0 or `Failed` if sending fails or takes too long.
    Send(&'p [u8]),
    /// Wait without a limit until the connection is hung up or readable: then `HungUp` if it is, even if it is readable
    /// too; otherwise `Readable`.
    Await,
    /// Serve the command on the connection: then `Answered`.
    Serve,
}

/// The outcome of a [`ConnectStep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum ConnectEvent {
    /// The connection is open.
    Connected,
    /// Connecting failed, or sending the frame did.
    Failed,
    /// The wait is over.
    Waited,
    /// This number of bytes was sent. More than the step lent count as `Failed`: what the monitor received is then unknown.
    Sent(usize),
    /// A command has arrived.
    Readable,
    /// The monitor closed the connection.
    HungUp,
    /// The command is answered, or its stream has started.
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
    /// Creates a port that sends this frame.
    #[must_use]
    pub fn new(advertise: &Advertise) -> Self {
        let mut frame = [0; Advertise::LEN];
        advertise.encode(&mut Writer::new(&mut frame));
        Self { frame, backoff: Backoff::new(), state: State::Connecting }
    }

    /// Returns the next action. It changes only in [`advance`](Self::advance).
    #[must_use]
    pub fn step(&self) -> ConnectStep<'_> {
        match self.state {
            State::Connecting => ConnectStep::Connect,
            State::Waiting { milliseconds } => ConnectStep::Wait { milliseconds },
            State::Sending { sent } => ConnectStep::Send(self.frame.get(sent..).unwrap_or_default()),
            State::Awaiting => ConnectStep::Await,
            State::Serving => ConnectStep::Serve,
        }
    }

    /// Processes the outcome of the step.
    pub fn advance(&mut self, event: ConnectEvent) {
        self.state = match (self.state, event) {
            (State::Connecting, ConnectEvent::Connected) => State::Sending { sent: 0 },
            (State::Waiting { .. }, ConnectEvent::Waited) => State::Connecting,
            (State::Sending { sent }, ConnectEvent::Sent(n @ 1..))
                if sent.saturating_add(n) < Advertise::LEN =>
            {
                State::Sending { sent: sent.saturating_add(n) }
            }
            (State::Sending { sent }, ConnectEvent::Sent(n)) if sent.saturating_add(n) == Advertise::LEN => {
                self.backoff.reset();
                State::Awaiting
            }
            (State::Connecting, ConnectEvent::Failed)
            | (State::Sending { .. }, ConnectEvent::Failed | ConnectEvent::Sent(_)) => {
                State::Waiting { milliseconds: self.backoff.next() }
            }
            (State::Awaiting, ConnectEvent::Readable) => State::Serving,
            (State::Awaiting, ConnectEvent::HungUp) => {
                self.backoff.hung_up();
                State::Connecting
            }
            (State::Serving, ConnectEvent::Answered) => State::Connecting,
            (state, _) => state,
        };
    }
}
