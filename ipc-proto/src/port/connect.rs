//! [`ConnectPort`], the machine of a runtime that connects to a monitor and, after each command, reconnects.
use super::Backoff;
use crate::wire::Writer;
use crate::{Advertise, Encode};

/// The runtime's role at a diagnostic port: connects to a monitor, advertises, waits for a command, and reconnects.
///
/// ```text
///            ┌── Failed, or Sent(0) ──► Wait { milliseconds } ── Waited ───┐
///            │                                                             │
/// Connect ───┴── Connected ──► Send(frame) ── Sent(34) ──► Serve ──────────┤
///    ▲                                                       Answered,     │
///    └────────────────────────────────────────────────────── or HungUp ────┘
/// ```
///
/// [`step`](Self::step) returns the next action. Pass its outcome to [`advance`](Self::advance), which ignores an event
/// that does not belong to the step. The machine behaves as a .NET runtime:
///
/// * The frame must be sent within [`Advertise::SEND_DEADLINE_MS`]; otherwise pass `Failed`.
/// * A connection carries one command. Pass `Answered` after the response, or immediately after the OK of a session
///   with a stream: the connection then belongs to the session, and the port opens a new connection.
/// * A monitor that closes the connection before a command is not answered: pass `HungUp`. The next attempt is
///   immediate. If that attempt fails, the wait is 12 ms instead of 10 ms.
///
/// The transport only has to connect, read and write. A [`Serve`](crate::Serve) waits for the command and receives it;
/// [`Serve::is_untouched`](crate::Serve::is_untouched) returns whether the monitor hung up instead. A transport that
/// can poll needs no buffers before a command arrives. It must check for a hang-up before data, as a runtime does: the
/// command of a monitor that closes immediately after sending is lost.
///
/// A .NET runtime has one [`Backoff`] for all of its ports, and resets it for a command at any port. A `ConnectPort`
/// has its own, so that commands at one port do not cause more attempts at other ports.
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
    /// Connect to the monitor without a long wait, then pass `Connected` or `Failed`.
    Connect,
    /// Wait for this time, then pass `Waited`.
    Wait {
        /// The time.
        milliseconds: u32,
    },
    /// Send these bytes, then pass `Sent` with the number of sent bytes; `Failed` if sending fails or takes too long.
    Send(&'p [u8]),
    /// Wait for a command on the connection, without a time limit, and serve it. Then pass `Answered`, or `HungUp` if
    /// the monitor closed the connection before the first byte of a command.
    Serve,
}

/// The outcome of a [`ConnectStep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum ConnectEvent {
    /// The connection is open.
    Connected,
    /// Connecting failed, or sending the frame failed.
    Failed,
    /// The wait is over.
    Waited,
    /// This number of bytes was sent. 0, or more bytes than the step has, counts as `Failed`.
    Sent(usize),
    /// The monitor closed the connection before a command.
    HungUp,
    /// The command is answered, or its stream has started.
    Answered,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Connecting,
    Waiting { milliseconds: u32 },
    Sending { sent: usize },
    Serving,
}

impl ConnectPort {
    /// Creates a port that sends `advertise` on each connection.
    #[must_use]
    pub fn new(advertise: &Advertise) -> Self {
        let mut frame = [0; Advertise::LEN];
        advertise.encode(&mut Writer::new(&mut frame));
        Self { frame, backoff: Backoff::new(), state: State::Connecting }
    }

    /// Returns the next action. Only [`advance`](Self::advance) changes the action.
    #[must_use]
    pub fn step(&self) -> ConnectStep<'_> {
        match self.state {
            State::Connecting => ConnectStep::Connect,
            State::Waiting { milliseconds } => ConnectStep::Wait { milliseconds },
            State::Sending { sent } => ConnectStep::Send(self.frame.get(sent..).unwrap_or_default()),
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
                State::Serving
            }
            (State::Connecting, ConnectEvent::Failed)
            | (State::Sending { .. }, ConnectEvent::Failed | ConnectEvent::Sent(_)) => {
                State::Waiting { milliseconds: self.backoff.next() }
            }
            (State::Serving, ConnectEvent::HungUp) => {
                self.backoff.hung_up();
                State::Connecting
            }
            (State::Serving, ConnectEvent::Answered) => State::Connecting,
            (state, _) => state,
        };
    }
}
