//! What the benches do with diagnostic ports, to which runtimes connect.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a benchmark")]

use core::hint::black_box;

use ipc_proto::plan::Flavour;
use ipc_proto::port::{Config, ConnectPort, Entry, PortEvent, PortStep, Roster};
use ipc_proto::{Advertise, Encode, Guid, Parsed, wire::Writer};

/// Reads what a runtime's environment says of its ports, and how many it connects to. None of the names of old is there.
#[must_use]
pub fn config(ports: &str) -> usize {
    let config = Config::read(Flavour::CoreClr, |name| match name {
        "DOTNET_DiagnosticPorts" => Some(ports),
        "DOTNET_DefaultDiagnosticPortSuspend" => Some("0"),
        "DOTNET_EnableDiagnostics" => Some("1"),
        _ => None,
    });
    black_box(config.default_port_suspends());
    config.ports().map(black_box).count()
}

/// Four ports, one of which is none: CoreCLR does not listen.
pub const PORTS: &str =
    "/run/monitor/first.sock,nosuspend;/run/monitor/second.sock,connect,suspend;/tmp/here,listen;/tmp/third";

/// What so many runtimes say when they connect.
#[must_use]
pub fn frames(runtimes: u64) -> Vec<[u8; Advertise::LEN]> {
    let frame = |process_id: u64| {
        let mut frame = [0; Advertise::LEN];
        // Multiples of an odd number are as different as random ones.
        let number = u128::from(process_id).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let advertise = Advertise { runtime_cookie: Guid(number.to_le_bytes()), process_id, future: 0 };
        advertise.encode(&mut Writer::new(&mut frame));
        frame
    };
    (1..=runtimes).map(frame).collect()
}

fn parse(frame: &[u8]) -> Advertise {
    let Parsed::Complete { value, .. } = Advertise::parse(frame).unwrap() else { unreachable!() };
    value
}

/// A place in a roster whose connections are numbers.
pub type Slot = Option<Entry<u32>>;

/// All of them arrive at a monitor that knows nobody yet.
pub fn arrive<S: AsRef<[Slot]> + AsMut<[Slot]>>(frames: &[[u8; Advertise::LEN]], slots: S) -> Roster<u32, S> {
    let mut roster = Roster::new(slots);
    for (connection, frame) in (0..).zip(frames) {
        let advertise = parse(frame);
        assert!(roster.arrive(advertise.runtime_cookie, advertise.process_id, connection).unwrap().first);
    }
    roster
}

/// Each of them is sent a command: its connection is taken, and it comes back with another.
pub fn take(frames: &[[u8; Advertise::LEN]], roster: &mut Roster<u32, Vec<Slot>>) {
    for frame in frames {
        let advertise = parse(frame);
        let connection = roster.take(&advertise.runtime_cookie).unwrap();
        roster.arrive(advertise.runtime_cookie, advertise.process_id, connection).unwrap();
    }
}

/// A runtime's port, whose monitor is not there for so many tries, and then has one command: how long the port waited.
#[must_use]
pub fn connect(advertise: &Advertise, mut failures: u32) -> u32 {
    let (mut port, mut waited) = (ConnectPort::new(advertise), 0_u32);
    loop {
        let event = match port.step() {
            PortStep::Connect if failures > 0 => {
                failures = failures.saturating_sub(1);
                PortEvent::Failed
            }
            PortStep::Connect => PortEvent::Connected,
            PortStep::Wait { milliseconds } => {
                waited = waited.saturating_add(milliseconds);
                PortEvent::Waited
            }
            PortStep::Send(bytes) => PortEvent::Sent(bytes.len()),
            PortStep::Await => PortEvent::Readable,
            PortStep::Serve => return waited,
        };
        port.advance(event);
    }
}
