//! The reverse connection, in which the runtime connects to a monitor: its logic, without clock and without socket.
//!
//! A runtime whose `DOTNET_DiagnosticPorts` names an address connects to that address, sends its
//! [`Advertise`](crate::Advertise) frame, waits for one command, and connects again. Section "Diagnostic Ports".
//!
//! | role | type | decides |
//! |---|---|---|
//! | runtime | [`Config`] | which ports the runtime's environment names, and which variables are probably mistakes |
//! | runtime | [`ConnectPort`] | what to do next at one port; with [`Backoff`], how long to wait before the next attempt |
//! | runtime | [`Suspension`] | which ports still suspend the runtime |
//! | monitor | [`Port`], [`PortList`] | the value of `DOTNET_DiagnosticPorts` that names the monitor's address, alone or with other ports |
//! | monitor | [`MonitorPort`] | which runtimes are at the port, which connection of each is live, and when a runtime has left |
//! | tool | [`ToolPort`] | the address in the user's `--diagnostic-port` |
//! | tool | [`NetworkAddress`] | the TCP port of a runtime on a phone, which is no path |
mod backoff;
mod config;
mod connect;
mod diagnostic_port;
mod finding;
mod monitor;
mod network_address;
mod port_list;
mod rejection;
mod suspend;
mod tool_port;

pub use backoff::Backoff;
pub use config::{Config, Variable};
pub use connect::{ConnectEvent, ConnectPort, ConnectStep};
pub use diagnostic_port::{Port, PortAddressError, PortType, Tag};
pub use finding::Finding;
pub use monitor::{
    Accepted, MonitorChange, MonitorFull, MonitorLimits, MonitorPort, MonitorSlot, RuntimeEntry, RuntimeState,
};
pub use network_address::NetworkAddress;
pub use port_list::PortList;
pub use rejection::Rejection;
pub use suspend::Suspension;
pub use tool_port::{ToolPort, ToolPortError, Transport};
