//! The runtime's role at a port: [`ConnectPort`] and the frame that it sends, [`Backoff`] and [`Suspension`].
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
use std::io::{Read, Write};

use ipc_proto::port::{Backoff, ConnectEvent, ConnectPort, ConnectStep, Suspension};
use ipc_proto::types::Status;
use ipc_proto::{
    Advertise, DecodeErrorKind, Exchange, Guid, Parsed, ProtocolError, ReceiveAdvertise, Request, Serve, Step,
};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

const ADVERTISE: Advertise = Advertise {
    runtime_cookie: Guid(*b"\x67\x45\x3e\x12\x9b\xe8\xd3\x12\xa4\x56\x42\x66\x14\x17\x40\x00"),
    process_id: 4242,
    future: 0,
};
/// The bytes of [`ADVERTISE`]: the example of the specification.
const FRAME: [u8; 34] = [
    0x41, 0x44, 0x56, 0x52, 0x5f, 0x56, 0x31, 0x00, 0x67, 0x45, 0x3e, 0x12, 0x9b, 0xe8, 0xd3, 0x12, 0xa4,
    0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00, 0x92, 0x10, 0, 0, 0, 0, 0, 0, 0, 0,
];

fn events() -> impl Strategy<Value = ConnectEvent> {
    prop_oneof![
        Just(ConnectEvent::Connected),
        Just(ConnectEvent::Failed),
        Just(ConnectEvent::Waited),
        (0..40_usize).prop_map(ConnectEvent::Sent),
        prop_oneof![Just(1), Just(17), Just(33), Just(34)].prop_map(ConnectEvent::Sent),
        any::<usize>().prop_map(ConnectEvent::Sent),
        Just(ConnectEvent::HungUp),
        Just(ConnectEvent::Answered),
    ]
}

/// A model of the port: the state of its connection.
#[derive(Debug, PartialEq)]
enum World {
    Disconnected,
    Waiting(u32),
    Connected { sent: usize },
}

proptest! {
    #[test]
    fn port_does_what_a_runtime_does(events in proptest::collection::vec(events(), 0..200)) {
        let mut port = ConnectPort::new(&ADVERTISE);
        let (mut world, mut backoff) = (World::Disconnected, Backoff::new());
        for event in events {
            let step = match &world {
                World::Disconnected => ConnectStep::Connect,
                World::Waiting(milliseconds) => ConnectStep::Wait { milliseconds: *milliseconds },
                World::Connected { sent } if *sent < 34 => ConnectStep::Send(&FRAME[*sent..]),
                World::Connected { .. } => ConnectStep::Serve,
            };
            assert_eq!(port.step(), step);
            port.advance(event);
            world = match (step, event) {
                (ConnectStep::Connect, ConnectEvent::Connected) => World::Connected { sent: 0 },
                (ConnectStep::Connect | ConnectStep::Send(_), ConnectEvent::Failed)
                | (ConnectStep::Send(_), ConnectEvent::Sent(0)) => World::Waiting(backoff.next()),
                (ConnectStep::Wait { .. }, ConnectEvent::Waited) => World::Disconnected,
                // More than the step lent: the monitor may not have the whole frame.
                (ConnectStep::Send(rest), ConnectEvent::Sent(n)) if n > rest.len() => {
                    World::Waiting(backoff.next())
                }
                (ConnectStep::Send(rest), ConnectEvent::Sent(n)) => {
                    let sent = 34 - rest.len() + n;
                    if sent == 34 {
                        backoff = Backoff::new();
                    }
                    World::Connected { sent }
                }
                (ConnectStep::Serve, ConnectEvent::HungUp) => {
                    backoff.hung_up();
                    World::Disconnected
                }
                (ConnectStep::Serve, ConnectEvent::Answered) => World::Disconnected,
                _ => world,
            };
        }
    }

    #[test]
    fn frame_is_received_in_any_pieces(pieces in proptest::collection::vec(1..20_usize, 34), cut in 0..=34_usize) {
        let mut receive = ReceiveAdvertise::new();
        let mut rest = &FRAME[..cut];
        let mut pieces = pieces.into_iter();
        while let Step::Receive(space) = receive.step() {
            let n = space.len().min(rest.len()).min(pieces.next().unwrap_or(1));
            space[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            let advanced = receive.advance(n);
            assert_eq!(advanced.is_err(), n == 0);
        }
        let received = if cut < 34 { Err(ProtocolError::Closed { received: cut }) } else { Ok(ADVERTISE) };
        assert_eq!((receive.finish(), rest), (received, &[][..]));
    }

    #[test]
    fn wrong_byte_is_found_immediately(at in 0..8_usize, flip in 1..=255_u8) {
        let mut receive = ReceiveAdvertise::new();
        for (i, byte) in FRAME[..8].iter().enumerate() {
            let Step::Receive(space) = receive.step() else { panic!("it does not end") };
            space[0] = if i == at { byte ^ flip } else { *byte };
            match receive.advance(1) {
                Ok(()) => assert!(i < at),
                Err(ProtocolError::Decode(e)) => {
                    assert_eq!((i, e.kind, e.offset), (at, DecodeErrorKind::BadAdvertise, at));
                    assert!(matches!(receive.step(), Step::Done));
                    assert_eq!(receive.finish(), Err(ProtocolError::Decode(e)));
                    assert_eq!(receive.advance(1), Err(ProtocolError::Decode(e)), "the error remains");
                    break;
                }
                Err(e) => panic!("{e}"),
            }
        }
        assert!(receive.finish().is_err());
    }
}

#[test]
fn frame_is_that_of_the_specification() {
    assert_eq!(Advertise::parse(&FRAME), Ok(Parsed::Complete { value: ADVERTISE, used: 34 }));
    let longer = [&FRAME[..], b"DOTNET_IPC_V1"].concat();
    assert_eq!(Advertise::parse(&longer), Ok(Parsed::Complete { value: ADVERTISE, used: 34 }));
    for cut in 0..34 {
        assert_eq!(Advertise::parse(&FRAME[..cut]), Ok(Parsed::Partial { needed: 34 }));
    }
    // Monitors ignore the field `future`.
    let mut newer = FRAME;
    newer[32] = 7;
    let Ok(Parsed::Complete { value, .. }) = Advertise::parse(&newer) else { panic!("it is whole") };
    assert_eq!(value, Advertise { future: 7, ..ADVERTISE });
}

#[test]
fn end_of_a_frame_is_final() {
    let mut whole = ReceiveAdvertise::new();
    let Step::Receive(space) = whole.step() else { panic!("it waits for a frame") };
    space.copy_from_slice(&FRAME);
    assert_eq!(whole.advance(FRAME.len()), Ok(()));
    assert_eq!(whole.advance(0), Ok(()), "the following bytes do not belong to it");
    assert_eq!(whole.finish(), Ok(ADVERTISE));

    let mut closed = ReceiveAdvertise::default();
    let error = Err(ProtocolError::Closed { received: 0 });
    assert_eq!((closed.advance(0), closed.advance(3)), (error, error));
    assert_eq!(closed.finish(), Err(ProtocolError::Closed { received: 0 }));
}

#[test]
fn runtime_sends_its_frame_and_then_serves() {
    let mut port = ConnectPort::new(&ADVERTISE);
    port.advance(ConnectEvent::Connected);
    let mut sent = Vec::new();
    while let ConnectStep::Send(bytes) = port.step() {
        sent.push(bytes[0]);
        port.advance(ConnectEvent::Sent(1));
    }
    assert_eq!(sent, FRAME);
    assert_eq!(port.step(), ConnectStep::Serve);
    let (mut receive, mut send) = ([0; 20], [0; 24]);
    let mut serve = Serve::new(&mut receive, &mut send).expect("large enough");
    let request = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
    let Step::Receive(space) = serve.step() else { panic!("it waits for a request") };
    space.copy_from_slice(request);
    serve.advance(request.len()).expect("it never fails");
    assert!(matches!(serve.finish().0, Ok(Request::ResumeRuntime(_))));
}

/// A connection that has only blocking `read` and `write`, as of a pipe, TLS or a WebSocket.
struct Blocking {
    /// The bytes that the monitor sends before it closes the connection.
    incoming: &'static [u8],
    outgoing: Vec<u8>,
}

impl Blocking {
    fn drive(&mut self, exchange: &mut impl Exchange) {
        loop {
            let n = match exchange.step() {
                Step::Send(bytes) => self.outgoing.write(bytes).unwrap(),
                Step::Receive(space) => self.incoming.read(space).unwrap(),
                Step::Done => return,
            };
            exchange.advance(n).unwrap();
        }
    }

    /// Serves a command. Returns whether a command arrived.
    fn serve(&mut self) -> bool {
        let (mut receive, mut send) = ([0; 20], [0; 24]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        self.drive(&mut serve);
        if serve.is_untouched() {
            return false;
        }
        let (request, mut reply) = serve.finish();
        if let Ok(Request::ResumeRuntime(resume)) = request {
            reply.answer(&resume, &Status::OK).unwrap();
        }
        self.drive(&mut reply);
        true
    }
}

#[test]
fn transport_that_only_reads_and_writes_is_enough() {
    const RESUME: &[u8] = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
    // The bytes that the monitor sends on each connection; `None` if no monitor listens.
    let mut monitors = [Some(&[][..]), None, Some(RESUME), Some(&RESUME[..7]), None].into_iter();
    let mut port = ConnectPort::new(&ADVERTISE);
    let (mut log, mut connection): (Vec<String>, Option<Blocking>) = (Vec::new(), None);
    loop {
        let event = match (port.step(), &mut connection) {
            (ConnectStep::Connect, _) => {
                let Some(monitor) = monitors.next() else { break };
                connection = monitor.map(|incoming| Blocking { incoming, outgoing: Vec::new() });
                if connection.is_some() { ConnectEvent::Connected } else { ConnectEvent::Failed }
            }
            (ConnectStep::Wait { milliseconds }, _) => {
                log.push(format!("wait {milliseconds}"));
                ConnectEvent::Waited
            }
            (ConnectStep::Send(frame), Some(connection)) => {
                ConnectEvent::Sent(connection.outgoing.write(frame).unwrap())
            }
            (ConnectStep::Serve, Some(connection)) => {
                let served = connection.serve();
                let (frame, reply) = connection.outgoing.split_at(FRAME.len());
                assert_eq!(frame, FRAME);
                log.push(format!(
                    "reply of {} bytes: {:x?}",
                    reply.len(),
                    reply.get(20..).unwrap_or_default()
                ));
                if served { ConnectEvent::Answered } else { ConnectEvent::HungUp }
            }
            (ConnectStep::Send(_) | ConnectStep::Serve, None) => panic!("there is no connection"),
        };
        port.advance(event);
    }
    // The attempts after a hang-up and after a command are immediate: the log has no wait before them.
    let expected = [
        "reply of 0 bytes: []",
        "wait 12",
        "reply of 24 bytes: [0, 0, 0, 0]",
        "reply of 24 bytes: [84, 13, 13, 80]",
        "wait 10",
    ];
    assert_eq!(log, expected);
}

/// Returns the next wait as the runtime's source code computes it: with a float that is truncated.
fn next_of_the_runtime(timeout: u32) -> u32 {
    match timeout {
        u32::MAX => 10,
        500.. => 500,
        #[expect(clippy::cast_possible_truncation, reason = "as the runtime does")]
        timeout => (timeout as f32 * 1.25) as u32,
    }
}

#[test]
fn back_off_is_that_of_the_runtime() {
    let waits = |backoff: &mut Backoff, n: usize| (0..n).map(|_| backoff.next()).collect::<Vec<_>>();
    let expected = [
        10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97, 121, 151, 188, 235, 293, 366, 457, 571, 500, 500, 500,
    ];
    assert_eq!(waits(&mut Backoff::new(), 23), expected);
    for hung_up_after in 0..25 {
        let (mut backoff, mut timeout) = (Backoff::default(), u32::MAX);
        for _ in 0..hung_up_after {
            timeout = next_of_the_runtime(timeout);
            assert_eq!(backoff.next(), timeout);
        }
        backoff.hung_up();
        timeout = 10;
        for _ in 0..25 {
            timeout = next_of_the_runtime(timeout);
            assert_eq!(backoff.next(), timeout);
        }
        backoff.reset();
        assert_eq!(backoff, Backoff::new());
    }
}

#[test]
fn resume_counts_for_its_own_port_only() {
    let mut flags = [true, false, true, true];
    let mut suspension = Suspension::new(&mut flags[..]);
    assert_eq!(suspension.waiting().collect::<Vec<_>>(), [0, 2, 3]);
    assert!(suspension.resume(2));
    assert!(!suspension.resume(2), "a second resume has no effect");
    assert!(!suspension.resume(1), "the port does not suspend");
    assert!(!suspension.resume(4), "there is no such port");
    assert!(suspension.is_suspended());
    assert_eq!(suspension.waiting().collect::<Vec<_>>(), [0, 3]);
    assert!(suspension.resume(3) && suspension.is_suspended());
    assert!(suspension.resume(0) && !suspension.is_suspended());
    assert_eq!(suspension.waiting().count(), 0);
    assert!(!Suspension::new(vec![false; 3]).is_suspended());
    assert!(!Suspension::new([false; 0]).is_suspended());
}
