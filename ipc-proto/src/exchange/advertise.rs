//! [`ReceiveAdvertise`]: the exchange in which a monitor receives the frame of a runtime.
use super::{Exchange, Step};
use crate::{Advertise, Parsed, ProtocolError};

/// The monitor's role: receives the frame that a runtime sends first on a connection to the monitor.
///
/// Wait at most [`DEADLINE_MS`](Self::DEADLINE_MS), because any process can connect to a monitor and send nothing. A
/// connection that does not begin with the magic of the frame fails at the first wrong byte.
///
/// After the frame, the connection can carry one [`Call`](crate::Call).
///
/// ```
/// use ipc_proto::{Exchange, ReceiveAdvertise};
///
/// let mut receive = ReceiveAdvertise::new();
/// receive.supply(b"ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0\0");
/// assert_eq!(receive.finish()?.process_id, 4242);
/// # Ok::<(), ipc_proto::ProtocolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReceiveAdvertise {
    buf: [u8; Advertise::LEN],
    received: usize,
    failed: Option<ProtocolError>,
}

impl ReceiveAdvertise {
    /// The time in milliseconds after which Microsoft's monitor drops a connection without a frame.
    pub const DEADLINE_MS: u32 = 250;

    /// Creates an exchange that waits for a frame.
    #[must_use]
    pub const fn new() -> Self {
        Self { buf: [0; Advertise::LEN], received: 0, failed: None }
    }

    /// Returns the frame.
    ///
    /// # Errors
    /// The error that ended the exchange before the frame was complete.
    pub fn finish(&self) -> Result<Advertise, ProtocolError> {
        match self.failed {
            Some(error) => Err(error),
            None => match Advertise::parse(self.bytes())? {
                Parsed::Complete { value, .. } => Ok(value),
                Parsed::Partial { .. } => Err(ProtocolError::Closed { received: self.received }),
            },
        }
    }

    /// Returns the received bytes of the frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buf.get(..self.received).unwrap_or_default()
    }
}

impl Default for ReceiveAdvertise {
    fn default() -> Self {
        Self::new()
    }
}

impl Exchange for ReceiveAdvertise {
    fn step(&mut self) -> Step<'_> {
        match self.buf.get_mut(self.received..) {
            Some(space) if !space.is_empty() && self.failed.is_none() => Step::Receive(space),
            _ => Step::Done,
        }
    }

    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        let lent = Advertise::LEN.saturating_sub(self.received);
        if self.failed.is_none() && lent > 0 {
            self.failed = if n > lent {
                Some(ProtocolError::Overrun { advanced: n, lent })
            } else {
                self.received = self.received.saturating_add(n);
                match Advertise::parse(self.bytes()) {
                    Err(e) => Some(e.into()),
                    Ok(_) if n == 0 => Some(ProtocolError::Closed { received: self.received }),
                    Ok(_) => None,
                }
            };
        }
        match self.failed {
            Some(error) => Err(error),
            None if lent == 0 && n > 0 => Err(ProtocolError::Overrun { advanced: n, lent }),
            None => Ok(()),
        }
    }
}
