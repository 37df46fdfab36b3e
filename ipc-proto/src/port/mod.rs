//! The reverse connection, in which the runtime calls: its logic, without clock and without socket.
//!
//! A runtime whose `DOTNET_DiagnosticPorts` names an address connects to it, says who it is, waits for one command, and
//! connects again. Section "Diagnostic Ports" of the specification.
//!
//! | side | type | says |
//! |---|---|---|
//! | runtime | [`Config`] | which ports its environment gives it, and what in there was probably not meant |
//! | runtime | [`ConnectPort`] | what to do next at one port; with [`Backoff`], how long to wait before the next try |
//! | runtime | [`Suspension`] | which ports still keep it from running |
//! | monitor | [`Port`] | the value of `DOTNET_DiagnosticPorts` that leads to it |
//! | monitor | [`Roster`] | which runtimes there are, and the newest connection of each |
//! | tool | [`ToolPort`] | the address that its user has given it |
mod backoff;
mod config;
mod connect;
mod finding;
mod roster;
mod suspend;
mod tool_port;

pub use backoff::Backoff;
pub use config::{Config, Port, PortAddressError, PortType, Tag, Variable};
pub use connect::{ConnectPort, PortEvent, PortStep};
pub use finding::Finding;
pub use roster::{Arrival, Entry, Full, Roster};
pub use suspend::Suspension;
pub use tool_port::{ToolPort, ToolPortError, Transport};
