//! A runtime that connects to a monitor, for the parts `ports` and `server`.
use ipc_proto::port::{ConnectEvent, ConnectPort, ConnectStep};
use ipc_proto::{Advertise, Guid};

use crate::register::{number, write_bytes, write_number};

/// Returns a port that is not connected yet.
pub fn connect_port() -> ConnectPort {
    ConnectPort::new(&Advertise { runtime_cookie: Guid::NIL, process_id: number().into(), future: 0 })
}

/// Connects, as often as necessary, until a command arrives.
pub fn wait_for_command(port: &mut ConnectPort) {
    loop {
        let event = match port.step() {
            ConnectStep::Connect if number() == 0 => ConnectEvent::Failed,
            ConnectStep::Connect => ConnectEvent::Connected,
            ConnectStep::Wait { milliseconds } => {
                write_number(milliseconds);
                ConnectEvent::Waited
            }
            ConnectStep::Send(bytes) => {
                write_bytes(bytes);
                ConnectEvent::Sent(bytes.len())
            }
            ConnectStep::Serve if number() == 0 => ConnectEvent::HungUp,
            ConnectStep::Serve => return,
        };
        port.advance(event);
    }
}
