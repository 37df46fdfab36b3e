//! Ports: the environment of a runtime read, connected to, suspended; a monitor's roster; names of sockets.
use ipc_proto::plan::Flavour;
use ipc_proto::port::*;
use ipc_proto::{Advertise, Guid, SocketName};

use crate::{number, put, storage, tell, text};

pub fn run() {
    let config = Config::read(Flavour::CoreClr, |_| (number() > 0).then(text));
    tell(config.is_enabled().into());
    config.ports().for_each(|port| connect(&port));
    tell(ToolPort::parse(text(), Transport::UnixSocket).is_ok().into());
    if let Ok(name) = text().parse::<SocketName>() {
        put(name.to_text().as_str().as_bytes());
    }
    let mut suspension = Suspension::new(storage::<bool>());
    tell(suspension.resume(number() as usize).into());
    suspension.waiting().for_each(|port| tell(port as u32));
    roster();
}

fn connect(port: &Port<'_>) {
    put(port.address().as_bytes());
    tell(port.suspends().into());
    let mut port =
        ConnectPort::new(&Advertise { runtime_cookie: Guid::NIL, process_id: number().into(), future: 0 });
    loop {
        let event = match port.step() {
            PortStep::Connect if number() == 0 => PortEvent::Failed,
            PortStep::Connect => PortEvent::Connected,
            PortStep::Wait { milliseconds } => {
                tell(milliseconds);
                PortEvent::Waited
            }
            PortStep::Send(bytes) => {
                put(bytes);
                PortEvent::Sent(bytes.len())
            }
            PortStep::Await if number() == 0 => PortEvent::HungUp,
            PortStep::Await => PortEvent::Readable,
            PortStep::Serve if number() == 0 => return,
            PortStep::Serve => PortEvent::Answered,
        };
        port.advance(event);
    }
}

fn roster() {
    let mut roster = Roster::new(storage::<Option<Entry<u32>>>());
    while number() > 0 {
        let mut cookie = Guid::NIL;
        cookie.0.iter_mut().for_each(|byte| *byte = number() as u8);
        match number() {
            0 => tell(roster.arrive(cookie, number().into(), number()).is_ok().into()),
            1 => tell(roster.take(&cookie).unwrap_or(0)),
            2 => tell(roster.remove(&cookie).is_some().into()),
            _ => roster.iter().for_each(|entry| tell(entry.process_id as u32)),
        }
    }
}
