//! The exchange of a case, without I/O.
use ipc_proto::{Exchange, Message, Parsed, ProtocolError, Step};

use super::answer::{ReceivedAnswer, whole_message};
use super::case::Case;

/// The exchange of a case: sends the request and receives the answer, over any transport.
///
/// A [`Call`](ipc_proto::Call) cannot do this: it sends only valid requests and does not return invalid answers. After
/// a timeout of the transport, [`finish`](Self::finish) returns the bytes that arrived before.
///
/// ```
/// use ipc_testkit::ipc_proto::{Exchange, Step};
/// use ipc_testkit::conformance::{self, Against, CaseExchange};
///
/// let cases = conformance::cases();
/// let case = cases.iter().find(|case| case.name == "hdr/ok-empty-info").ok_or("it has another name")?;
/// let mut exchange = CaseExchange::new(case);
/// let Step::Send(request) = exchange.step() else { unreachable!() };
/// let sent = request.len(); // written to the transport
/// exchange.advance(sent)?;
/// assert!(matches!(exchange.step(), Step::Receive(_)));
/// exchange.advance(0)?; // the server has closed the connection
/// assert!(matches!(exchange.step(), Step::Done));
/// assert!(case.judge(Against::Expected, &exchange.finish()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CaseExchange<'c> {
    /// The bytes that are not sent yet.
    request: &'c [u8],
    half_close: bool,
    descriptor: bool,
    phase: Phase,
    /// The received bytes, and the space for the bytes that are needed next.
    buffer: Vec<u8>,
    received: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Sending,
    SendingDescriptor,
    HalfClosing,
    Receiving,
    Received,
    Closed,
}

impl<'c> CaseExchange<'c> {
    /// Creates the exchange.
    #[must_use]
    pub fn new(case: &'c Case) -> Self {
        let &Case { ref request, half_close, descriptor, .. } = case;
        let (phase, buffer) = (Phase::Sending, Vec::new());
        let mut exchange = Self { request, half_close, descriptor, phase, buffer, received: 0 };
        exchange.sent(0);
        exchange
    }

    /// Returns whether the request is sent and the case has a [half-close](Case::half_close). Close the sending direction
    /// of the transport then, and call [`receive`](Self::receive).
    #[must_use]
    pub fn awaits_half_close(&self) -> bool {
        self.phase == Phase::HalfClosing
    }

    /// Returns whether the request is sent and the case has a [descriptor](Case::descriptor). Send a descriptor of any
    /// file with one byte then, and call [`receive`](Self::receive).
    #[must_use]
    pub fn awaits_descriptor(&self) -> bool {
        self.phase == Phase::SendingDescriptor
    }

    /// Sends nothing more, and receives the answer: after a half-close or a descriptor, or if the server does not read the whole request.
    pub fn receive(&mut self) {
        self.phase = Phase::Receiving;
        self.make_space();
    }

    /// Returns the received answer, complete or not.
    #[must_use]
    pub fn finish(mut self) -> ReceivedAnswer {
        self.buffer.truncate(self.received);
        match self.phase {
            _ if whole_message(&self.buffer).is_some() => ReceivedAnswer::Message(self.buffer),
            _ if !self.buffer.is_empty() => ReceivedAnswer::Garbage(self.buffer),
            Phase::Closed => ReceivedAnswer::Closed,
            _ => ReceivedAnswer::Silence,
        }
    }

    fn sent(&mut self, n: usize) {
        self.request = self.request.get(n..).unwrap_or_default();
        match self.request {
            [] if self.descriptor => self.phase = Phase::SendingDescriptor,
            [] if self.half_close => self.phase = Phase::HalfClosing,
            [] => self.receive(),
            _ => {}
        }
    }

    /// Makes space for the bytes that are needed next; ends the exchange if no bytes are needed.
    fn make_space(&mut self) {
        match Message::parse(self.buffer.get(..self.received).unwrap_or_default()) {
            Ok(Parsed::Partial { needed }) => self.buffer.resize(needed, 0),
            Ok(Parsed::Complete { .. }) | Err(_) => self.phase = Phase::Received,
        }
    }
}

impl Exchange for CaseExchange<'_> {
    fn step(&mut self) -> Step<'_> {
        match self.phase {
            Phase::Sending => Step::Send(self.request),
            Phase::Receiving => Step::Receive(self.buffer.get_mut(self.received..).unwrap_or_default()),
            Phase::SendingDescriptor | Phase::HalfClosing | Phase::Received | Phase::Closed => Step::Done,
        }
    }

    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        let lent = match self.step() {
            Step::Send(bytes) => bytes.len(),
            Step::Receive(space) => space.len(),
            Step::Done => 0,
        };
        if n > lent {
            self.phase = Phase::Received;
            return Err(ProtocolError::Overrun { advanced: n, lent });
        }
        match self.phase {
            // The server has closed the connection. Bytes that it sent before can still be read.
            Phase::Sending if n == 0 => self.receive(),
            Phase::Sending => self.sent(n),
            Phase::Receiving if n == 0 => self.phase = Phase::Closed,
            Phase::Receiving => {
                self.received = self.received.saturating_add(n);
                self.make_space();
            }
            Phase::SendingDescriptor | Phase::HalfClosing | Phase::Received | Phase::Closed => {}
        }
        Ok(())
    }
}
