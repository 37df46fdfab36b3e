//! The operations on diagnostic ports that the benchmarks measure.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a benchmark")]

use core::hint::black_box;

use ipc_proto::plan::Flavour;
use ipc_proto::port::{
    Config, ConnectEvent, ConnectPort, ConnectStep, MonitorChange, MonitorPort, MonitorSlot,
};
use ipc_proto::{Advertise, Encode, Guid, Parsed, wire::Writer};

/// Reads a runtime's ports from its environment, without the old names of variables. Returns the number of ports.
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

/// Four ports. CoreCLR ignores the one that listens.
pub const PORTS: &str =
    "/run/monitor/first.sock,nosuspend;/run/monitor/second.sock,connect,suspend;/tmp/here,listen;/tmp/third";

/// Returns the frames of this number of runtimes.
#[must_use]
pub fn frames(runtimes: u64) -> Vec<[u8; Advertise::LEN]> {
    let frame = |process_id: u64| {
        let mut frame = [0; Advertise::LEN];
        // The multiples of an odd number are as different as random numbers.
        let number = u128::from(process_id).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let advertise = Advertise { runtime_cookie: Guid(number.to_le_bytes()), process_id, future: 0 };
        advertise.encode(&mut Writer::new(&mut frame));
        frame
    };
    (1..=runtimes).map(frame).collect()
}

/// A slot of a monitor whose connections are numbers.
pub type Slot = Option<MonitorSlot<u32, ()>>;

fn receive<S: AsRef<[Slot]> + AsMut<[Slot]>>(
    port: &mut MonitorPort<u32, (), S>,
    connection: u32,
    frame: &[u8; Advertise::LEN],
) -> bool {
    let token = port.accept(connection, (), 0).unwrap().token;
    port.receive(token).unwrap().1.copy_from_slice(frame);
    let Some(MonitorChange::Arrived { first, .. }) = port.advance(token, Advertise::LEN, 0) else {
        unreachable!()
    };
    first
}

/// Lets all runtimes arrive at a monitor that knows none.
pub fn arrive<S: AsRef<[Slot]> + AsMut<[Slot]>>(
    frames: &[[u8; Advertise::LEN]],
    slots: S,
) -> MonitorPort<u32, (), S> {
    let mut port = MonitorPort::new(slots);
    for (connection, frame) in (0..).zip(frames) {
        assert!(receive(&mut port, connection, frame));
    }
    port
}

/// Takes the connection of each runtime for a command, and lets the runtime connect again. There must be a free slot.
pub fn take(frames: &[[u8; Advertise::LEN]], port: &mut MonitorPort<u32, (), Vec<Slot>>) {
    for frame in frames {
        let Parsed::Complete { value, .. } = Advertise::parse(frame).unwrap() else { unreachable!() };
        let connection = port.take(&value.runtime_cookie, 0).unwrap();
        assert!(!receive(port, connection, frame));
    }
}

/// Drives a runtime's port whose monitor is absent for this number of attempts, and then sends one command; returns the
/// sum of the waits.
#[must_use]
pub fn connect(advertise: &Advertise, mut failures: u32) -> u32 {
    let (mut port, mut waited) = (ConnectPort::new(advertise), 0_u32);
    loop {
        let event = match port.step() {
            ConnectStep::Connect if failures > 0 => {
                failures = failures.saturating_sub(1);
                ConnectEvent::Failed
            }
            ConnectStep::Connect => ConnectEvent::Connected,
            ConnectStep::Wait { milliseconds } => {
                waited = waited.saturating_add(milliseconds);
                ConnectEvent::Waited
            }
            ConnectStep::Send(bytes) => ConnectEvent::Sent(bytes.len()),
            ConnectStep::Serve => return waited,
        };
        port.advance(event);
    }
}
