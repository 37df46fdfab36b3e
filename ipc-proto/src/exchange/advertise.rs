use super::{Exchange, Step};
use crate::{Advertise, Parsed, ProtocolError};

/// A monitor's side: receives what a runtime says first on a connection that it made.
///
/// Give it [`DEADLINE_MS`](Self::DEADLINE_MS) and no more: anybody can connect to a monitor and be silent. A connection
/// that does not begin with the frame's magic fails at the first wrong byte.
///
/// After it, the connection can carry one [`Call`](crate::Call).
///
/// ```
/// use ipc_proto::{Exchange, ReceiveAdvertise, Step};
///
/// let mut incoming = &b"ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0\0"[..];
/// let mut receive = ReceiveAdvertise::new();
/// while let Step::Receive(space) = receive.step() {
///     let n = space.len().min(incoming.len());
///     space[..n].copy_from_slice(&incoming[..n]);
///     incoming = &incoming[n..];
///     receive.advance(n)?;
/// }
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
    /// How long Microsoft's monitor waits for the frame before it drops a connection, in milliseconds.
    pub const DEADLINE_MS: u32 = 250;

    /// Waits for a frame.
    #[must_use]
    pub const fn new() -> Self {
        Self { buf: [0; Advertise::LEN], received: 0, failed: None }
    }

    /// The frame.
    ///
    /// # Errors
    /// What ended the exchange before the frame was there.
    pub fn finish(&self) -> Result<Advertise, ProtocolError> {
        match self.failed {
            Some(error) => Err(error),
            None => match Advertise::parse(self.bytes())? {
                Parsed::Complete { value, .. } => Ok(value),
                Parsed::Partial { .. } => Err(ProtocolError::Closed { received: self.received }),
            },
        }
    }

    /// What has come of it.
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
        if self.failed.is_none() && self.received < Advertise::LEN {
            self.received = self.received.saturating_add(n).min(Advertise::LEN);
            self.failed = match Advertise::parse(self.bytes()) {
                Err(e) => Some(e.into()),
                Ok(_) if n == 0 => Some(ProtocolError::Closed { received: self.received }),
                Ok(_) => None,
            };
        }
        self.failed.map_or(Ok(()), Err)
    }
}
