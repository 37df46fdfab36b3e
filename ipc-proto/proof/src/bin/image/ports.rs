//! Ports: reads the environment of a runtime, connects, suspends and resumes; serves the port of a monitor; formats
//! socket names.
use ipc_proto::plan::Flavour;
use ipc_proto::port::*;
use ipc_proto::{Guid, SocketName};

use crate::connecting::{connect_port, wait_for_command};
use crate::register::{number, storage, text, write_bytes, write_number};

pub fn run() {
    let config = Config::read(Flavour::CoreClr, |_| (number() > 0).then(text));
    write_number(config.is_enabled().into());
    config.ports().for_each(|port| connect(&port));
    write_number(ToolPort::parse(text(), Transport::UnixSocket).is_ok().into());
    if let Ok(name) = text().parse::<SocketName>() {
        write_bytes(name.to_text().as_str().as_bytes());
    }
    let mut suspension = Suspension::new(storage::<bool>());
    write_number(suspension.resume(number() as usize).into());
    suspension.waiting().for_each(|port| write_number(port as u32));
    monitor();
}

fn connect(port: &Port<'_>) {
    write_bytes(port.address().as_bytes());
    write_number(port.suspends().into());
    let mut port = connect_port();
    loop {
        wait_for_command(&mut port);
        if number() == 0 {
            return;
        }
        port.advance(ConnectEvent::Answered);
    }
}

fn monitor() {
    let mut port = MonitorPort::new(storage::<Option<MonitorSlot<u32, ()>>>());
    while number() > 0 {
        let mut cookie = Guid::NIL;
        cookie.0.iter_mut().for_each(|byte| *byte = number() as u8);
        let now = number().into();
        match number() {
            0 => write_number(port.accept(number(), (), now).map_or(0, |accepted| accepted.token as u32)),
            1 => {
                let token = number().into();
                if let Some((_, space)) = port.receive(token) {
                    space.iter_mut().for_each(|byte| *byte = number() as u8);
                }
                write_number(port.advance(token, number() as usize, now).is_some().into());
            }
            2 => write_number(port.take(&cookie, now).unwrap_or(0)),
            3 => write_number(port.remove(&cookie).is_some().into()),
            4 => write_number(port.on_due(now, |_| number() > 0).is_some().into()),
            _ => port.runtimes().for_each(|runtime| write_number(runtime.process_id as u32)),
        }
    }
}
