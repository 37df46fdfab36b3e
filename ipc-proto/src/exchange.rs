//! Exchanges: the conversation on one connection, without I/O.
//!
//! ```text
//!            step() ──► Send(bytes)     write some of them ────┐
//!            step() ──► Receive(space)  read some into it ─────┼─► advance(n) ─► step() …
//!            step() ──► Done            the exchange is over   ┘
//! ```
//!
//! An exchange lends space for exactly the bytes that it needs. So the bytes after the exchange, for example a NetTrace
//! stream, stay on the connection until the caller reads them.
//!
//! | exchange | role | ends with |
//! |---|---|---|
//! | [`Call`] | client: one command and its answer | [`Call::finish`]: an [`Answer`] |
//! | [`ReceiveEnvironment`] | client: the environment after the answer to `GetProcessEnvironment` | its entries, as they arrive |
//! | [`ReceiveAdvertise`] | monitor: the frame of a runtime that connects | [`ReceiveAdvertise::finish`]: an [`Advertise`](crate::Advertise) |
//! | [`Serve`] | server: one request | [`Serve::finish`]: the request and the [`Reply`] to it |
//! | [`Reply`] | server: the answer | nothing; a stream can follow |
//! | [`SendEnvironment`] | server: the environment after its answer to `GetProcessEnvironment` | nothing |
//!
//! A [`Session`] has two connections and steps of its own. One loop drives every other exchange: see [`Exchange`]. In
//! an `async fn` the loop has two `.await`s; for a transport that is polled, [`poll_exchange`] is the loop.
mod advertise;
mod answer;
mod call;
mod counted;
mod exchange;
mod observe;
mod poll;
mod serve;
mod session;

pub use advertise::ReceiveAdvertise;
pub use answer::Answer;
pub(crate) use call::Progress;
pub use call::{Call, SuspendedCall, Untyped, UntypedCall};
pub use counted::{ReceiveEnvironment, SendEnvironment, SuspendedEnvironment};
pub use exchange::{Exchange, Step};
pub use observe::{Direction, Observation, Observe, Observed};
pub use poll::{PollError, poll_exchange};
pub use serve::{Reply, Serve, SuspendedReply, SuspendedServe};
pub use session::{Session, SessionEnd, SessionPhase, SessionTimeout, StopEvent, StopStep};
