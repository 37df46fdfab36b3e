//! Transports of the protocol: connections of any kind (`Stream`, `Channel`), and the connectors that open them.
mod caught;
mod channel;
mod child;
mod connector;
mod dialer;
mod socket_connector;
mod stream;
mod worker;

pub(crate) use channel::{Channel, Lease};
pub(crate) use connector::FnConnector;
pub use connector::{ConnectError, Connector};
pub(crate) use dialer::{Dialer, connect};
pub(crate) use socket_connector::SocketConnector;
pub use stream::Stream;
