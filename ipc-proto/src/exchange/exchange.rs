//! [`Exchange`], the trait of exchanges, and [`Step`], the next action of an exchange.
use crate::ProtocolError;
use crate::wire::copy;

/// The next action of an exchange.
#[derive(Debug)]
pub enum Step<'m> {
    /// Write some of these bytes, then call [`advance`](Exchange::advance) with the number of written bytes.
    ///
    /// Write all bytes in one piece if the transport can: .NET Core 3.1 reads the header and the payload with one read
    /// each, and refuses a header or a payload that arrives in two pieces.
    Send(&'m [u8]),
    /// Read some bytes into this space, then call [`advance`](Exchange::advance) with the number of read bytes.
    Receive(&'m mut [u8]),
    /// Nothing: the exchange is over, or the caller must act first, for example take the entries of an environment.
    Done,
}

/// The conversation on one connection, or a part of it, driven over any transport.
///
/// ```text
///            step() ──► Send(bytes)     write some of them ────┐
///            step() ──► Receive(space)  read some into it ─────┼─► advance(n) ─► step() …
///            step() ──► Done            the exchange is over   ┘
/// ```
///
/// An exchange lends space for exactly the bytes that it needs. So the bytes after the exchange, for example a NetTrace
/// stream, stay on the connection until the caller reads them.
///
/// | exchange | role | ends with |
/// |---|---|---|
/// | [`Call`](crate::Call) | client: one command and its answer | [`Call::finish`](crate::Call::finish): an [`Answer`](crate::Answer) |
/// | [`ReceiveEnvironment`](crate::ReceiveEnvironment) | client: the environment after the answer to `GetProcessEnvironment` | its entries, as they arrive |
/// | [`ReceiveAdvertise`](crate::ReceiveAdvertise) | monitor: the frame of a runtime that connects | [`ReceiveAdvertise::finish`](crate::ReceiveAdvertise::finish): an [`Advertise`](crate::Advertise) |
/// | [`Serve`](crate::Serve) | server: one request | [`Serve::finish`](crate::Serve::finish): the request and the [`Reply`](crate::Reply) to it |
/// | [`Reply`](crate::Reply) | server: the answer | nothing; a stream can follow |
/// | [`SendEnvironment`](crate::SendEnvironment) | server: the environment after its answer to `GetProcessEnvironment` | nothing |
///
/// A client may close its sending half after its request: .NET 8 and 10 answer nevertheless, and write a stream to its
/// end.
///
/// A [`Session`](crate::Session) has two connections and steps of its own. The loop below drives every other exchange. In
/// an `async fn` the loop has two `.await`s; for a transport that is polled, [`poll_exchange`](crate::poll_exchange) is the loop.
///
/// ```
/// use ipc_proto::{Exchange, Step};
/// use std::io::{self, Read, Write};
///
/// fn drive(exchange: &mut impl Exchange, stream: &mut (impl Read + Write)) -> io::Result<()> {
///     loop {
///         let n = match exchange.step() {
///             Step::Send(bytes) => stream.write(bytes)?,
///             Step::Receive(space) => stream.read(space)?,
///             Step::Done => return Ok(()),
///         };
///         exchange.advance(n).map_err(io::Error::other)?; // 0 for a reset or a failed write, too
///     }
/// }
/// ```
pub trait Exchange {
    /// Returns the next action. The action stays the same until [`advance`](Self::advance) is called.
    fn step(&mut self) -> Step<'_>;

    /// Reports how many of the lent bytes were written or filled; 0 means that the peer closed the connection. Also
    /// report 0 if the connection was reset or writing fails: an answer that the peer sent earlier can still be read.
    ///
    /// # Errors
    /// If the received bytes are not a message, or the peer closed too early. [`ProtocolError::Overrun`] if `n` is
    /// larger than the number of lent bytes: the position in the connection is then unknown. Except for
    /// [`ProtocolError::BufferTooSmall`], errors are final: [`step`](Self::step) then returns [`Step::Done`]. An
    /// exchange that was over before the error keeps its result.
    ///
    /// ```
    /// use ipc_proto::{Call, Exchange, ProtocolError, ResumeRuntime, Step};
    ///
    /// let mut buf = [0; 64];
    /// let mut call = Call::new(&ResumeRuntime {}, &mut buf)?; // lends 20 bytes
    /// let overrun = ProtocolError::Overrun { advanced: 21, lent: 20 };
    /// assert_eq!(call.advance(21), Err(overrun));
    /// assert!(matches!(call.step(), Step::Done));
    /// assert_eq!(call.finish(), Err(overrun));
    /// # Ok::<(), ipc_proto::EncodeError>(())
    /// ```
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError>;

    /// Receives bytes that the caller owns, for a transport that has no `read`: a WebSocket, a capture, a test. Returns how
    /// many bytes were taken from the front: fewer if the exchange has something to send before, or does not need more. An
    /// error ends the exchange, and its `finish` returns it.
    ///
    /// ```
    /// use ipc_proto::{Exchange, ReceiveAdvertise};
    ///
    /// let mut receive = ReceiveAdvertise::new();
    /// assert_eq!(receive.supply(b"ADVR_V1\0a runtime's"), 19);
    /// assert_eq!(receive.supply(b" name\x92\x10\0\0\0\0\0\0\0\0, then a request"), 15);
    /// assert_eq!(receive.finish()?.process_id, 4242);
    /// # Ok::<(), ipc_proto::ProtocolError>(())
    /// ```
    fn supply(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0_usize;
        while let (Some(rest), Step::Receive(space)) = (bytes.get(taken..), self.step()) {
            let n = space.len().min(rest.len());
            copy(space, rest);
            taken = taken.saturating_add(n);
            if n == 0 || self.advance(n).is_err() {
                break;
            }
        }
        taken
    }
}

impl<E: Exchange + ?Sized> Exchange for &mut E {
    fn step(&mut self) -> Step<'_> {
        (**self).step()
    }
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        (**self).advance(n)
    }
}
