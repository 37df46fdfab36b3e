//! Exchanges: one connection's conversation, without I/O.
//!
//! ```text
//!            step() ──► Send(bytes)     write some of them ────┐
//!            step() ──► Receive(space)  read some into it ─────┼─► advance(n) ─► step() …
//!            step() ──► Done            the exchange is over   ┘
//! ```
//!
//! An exchange lends exactly the space that it wants. It cannot take a byte that is not its own, so what follows it on
//! the connection, a NetTrace stream say, is still there for you to read.
//!
//! | exchange | role | ends with |
//! |---|---|---|
//! | [`Call`] | a tool: one command, one answer | [`Call::finish`]: an [`Answer`] |
//! | [`ReceiveEnvironment`] | a tool: what follows the answer to `GetProcessEnvironment` | its entries, as they come |
//! | [`ReceiveAdvertise`] | a monitor: what a runtime says that connects | [`ReceiveAdvertise::finish`]: an [`Advertise`](crate::Advertise) |
//! | [`Serve`] | a runtime: one request | [`Serve::finish`]: the request and the [`Reply`] to it |
//! | [`Reply`] | a runtime: the answer | nothing; a stream may follow |
//! | [`SendEnvironment`] | a runtime: what follows its answer to `GetProcessEnvironment` | nothing |
//!
//! A [`Session`] is the one thing here that has two connections, and is driven by steps of its own.
//!
//! Every other one is driven by the same loop, over whatever carries bytes; for async, `.await` in two places:
//!
//! ```
//! use ipc_proto::{Exchange, Step};
//! use std::io::{self, Read, Write};
//!
//! fn drive(exchange: &mut impl Exchange, stream: &mut (impl Read + Write)) -> io::Result<()> {
//!     loop {
//!         let n = match exchange.step() {
//!             Step::Send(bytes) => stream.write(bytes)?,
//!             Step::Receive(space) => stream.read(space)?,
//!             Step::Done => return Ok(()),
//!         };
//!         exchange.advance(n).map_err(io::Error::other)?;
//!     }
//! }
//! ```
mod advertise;
mod call;
mod counted;
mod serve;
mod session;

pub use advertise::ReceiveAdvertise;
pub use call::{Answer, Call};
pub use counted::{ReceiveEnvironment, SendEnvironment};
pub use serve::{Reply, Serve};
pub use session::{Session, SessionEnd, SessionPhase, SessionTimeout, StopEvent, StopStep};

use crate::ProtocolError;

/// What to do next.
#[derive(Debug)]
pub enum Step<'m> {
    /// Write some of these bytes, then [`advance`](Exchange::advance) by how many.
    ///
    /// At once, if the transport can: .NET Core 3.1 reads a header, and a payload, in one go each, and refuses one that
    /// comes in two pieces as malformed.
    Send(&'m [u8]),
    /// Read some bytes into this space, then [`advance`](Exchange::advance) by how many.
    Receive(&'m mut [u8]),
    /// Nothing: the exchange is over, or waits for you.
    Done,
}

/// One connection's conversation, or a part of it, driven over any transport.
pub trait Exchange {
    /// What to do next. Asking again without [`advance`](Self::advance) gives the same.
    fn step(&mut self) -> Step<'_>;

    /// Says how many of the bytes last lent were written or filled; 0 means that the peer closed. A connection that was
    /// reset, or can no longer be written to, counts as closed: what the peer sent before is still to be read.
    ///
    /// # Errors
    /// If what came is no message, or the peer closed too early. Each is final, and [`step`](Self::step) is then
    /// [`Step::Done`]; but for [`ProtocolError::BufferTooSmall`].
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError>;
}

impl<E: Exchange + ?Sized> Exchange for &mut E {
    fn step(&mut self) -> Step<'_> {
        (**self).step()
    }
    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        (**self).advance(n)
    }
}
