//! [`ConnectPort`] against a small world: whatever happens in it, the port does what a runtime does.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what it expects by failing"
)]
use ipc_proto::port::{Backoff, ConnectPort, PortEvent, PortStep};
use ipc_proto::{
    Advertise, DecodeErrorKind, Exchange, Guid, Parsed, ProtocolError, ReceiveAdvertise, Serve, Step,
};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

const ADVERTISE: Advertise = Advertise {
    runtime_cookie: Guid(*b"\x67\x45\x3e\x12\x9b\xe8\xd3\x12\xa4\x56\x42\x66\x14\x17\x40\x00"),
    process_id: 4242,
    future: 0,
};
/// As the specification has it.
const FRAME: [u8; 34] = [
    0x41, 0x44, 0x56, 0x52, 0x5f, 0x56, 0x31, 0x00, 0x67, 0x45, 0x3e, 0x12, 0x9b, 0xe8, 0xd3, 0x12, 0xa4,
    0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00, 0x92, 0x10, 0, 0, 0, 0, 0, 0, 0, 0,
];

fn events() -> impl Strategy<Value = PortEvent> {
    prop_oneof![
        Just(PortEvent::Connected),
        Just(PortEvent::Failed),
        Just(PortEvent::Waited),
        (0..40_usize).prop_map(PortEvent::Sent),
        any::<usize>().prop_map(PortEvent::Sent),
        Just(PortEvent::Readable),
        Just(PortEvent::HungUp),
        Just(PortEvent::Answered),
    ]
}

/// What a port is to do, told in another way: by what has happened since it last began.
#[derive(Debug, PartialEq)]
enum World {
    Disconnected,
    Waiting(u32),
    Connected { said: usize },
    Serving,
}

proptest! {
    #[test]
    fn it_does_what_a_runtime_does(events in proptest::collection::vec(events(), 0..200)) {
        let mut port = ConnectPort::new(&ADVERTISE);
        let (mut world, mut backoff) = (World::Disconnected, Backoff::new());
        for event in events {
            let step = match &world {
                World::Disconnected => PortStep::Connect,
                World::Waiting(milliseconds) => PortStep::Wait { milliseconds: *milliseconds },
                World::Connected { said } if *said < 34 => PortStep::Send(&FRAME[*said..]),
                World::Connected { .. } => PortStep::Await,
                World::Serving => PortStep::Serve,
            };
            assert_eq!(port.step(), step);
            port.advance(event);
            world = match (step, event) {
                (PortStep::Connect, PortEvent::Connected) => World::Connected { said: 0 },
                (PortStep::Connect | PortStep::Send(_), PortEvent::Failed)
                | (PortStep::Send(_), PortEvent::Sent(0)) => World::Waiting(backoff.next()),
                (PortStep::Wait { .. }, PortEvent::Waited) => World::Disconnected,
                (PortStep::Send(rest), PortEvent::Sent(n)) => {
                    let said = 34 - rest.len() + n.min(rest.len());
                    if said == 34 {
                        backoff = Backoff::new();
                    }
                    World::Connected { said }
                }
                (PortStep::Await, PortEvent::HungUp) => {
                    backoff.hung_up();
                    World::Disconnected
                }
                (PortStep::Await, PortEvent::Readable) => World::Serving,
                (PortStep::Serve, PortEvent::Answered) => World::Disconnected,
                _ => world,
            };
        }
    }

    #[test]
    fn a_frame_is_received_in_whatever_pieces(pieces in proptest::collection::vec(1..20_usize, 34), cut in 0..=34_usize) {
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
    fn a_wrong_byte_is_seen_at_once(at in 0..8_usize, flip in 1..=255_u8) {
        let mut receive = ReceiveAdvertise::new();
        for (i, byte) in FRAME[..8].iter().enumerate() {
            let Step::Receive(space) = receive.step() else { panic!("it goes on") };
            space[0] = if i == at { byte ^ flip } else { *byte };
            match receive.advance(1) {
                Ok(()) => assert!(i < at),
                Err(ProtocolError::Decode(e)) => {
                    assert_eq!((i, e.kind, e.offset), (at, DecodeErrorKind::BadAdvertise, at));
                    assert!(matches!(receive.step(), Step::Done));
                    assert_eq!(receive.finish(), Err(ProtocolError::Decode(e)));
                    assert_eq!(receive.advance(1), Err(ProtocolError::Decode(e)), "it stays so");
                    break;
                }
                Err(e) => panic!("{e}"),
            }
        }
        assert!(receive.finish().is_err());
    }
}

#[test]
fn the_frame_is_that_of_the_specification() {
    assert_eq!(Advertise::parse(&FRAME), Ok(Parsed::Complete { value: ADVERTISE, used: 34 }));
    let longer = [&FRAME[..], b"DOTNET_IPC_V1"].concat();
    assert_eq!(Advertise::parse(&longer), Ok(Parsed::Complete { value: ADVERTISE, used: 34 }));
    for cut in 0..34 {
        assert_eq!(Advertise::parse(&FRAME[..cut]), Ok(Parsed::Partial { needed: 34 }));
    }
    // Nobody looks at what is for the future.
    let mut newer = FRAME;
    newer[32] = 7;
    let Ok(Parsed::Complete { value, .. }) = Advertise::parse(&newer) else { panic!("it is whole") };
    assert_eq!(value, Advertise { future: 7, ..ADVERTISE });
}

#[test]
fn a_frame_that_has_come_or_has_not_stays_so() {
    let mut whole = ReceiveAdvertise::new();
    let Step::Receive(space) = whole.step() else { panic!("it waits for a frame") };
    space.copy_from_slice(&FRAME);
    assert_eq!(whole.advance(FRAME.len()), Ok(()));
    assert_eq!(whole.advance(0), Ok(()), "what comes behind it is another's");
    assert_eq!(whole.finish(), Ok(ADVERTISE));

    let mut closed = ReceiveAdvertise::default();
    let error = Err(ProtocolError::Closed { received: 0 });
    assert_eq!((closed.advance(0), closed.advance(3)), (error, error));
    assert_eq!(closed.finish(), Err(ProtocolError::Closed { received: 0 }));
}

#[test]
fn a_runtime_says_who_it_is_and_then_serves() {
    let (mut receive, mut send) = ([0; 64], [0; 64]);
    let mut serve = Serve::announce(&ADVERTISE, &mut receive, &mut send).expect("large enough");
    let mut said = Vec::new();
    while let Step::Send(bytes) = serve.step() {
        said.push(bytes[0]);
        serve.advance(1).expect("it never fails");
    }
    assert_eq!(said, FRAME);
    let request = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
    let Step::Receive(space) = serve.step() else { panic!("it waits for a request") };
    space.copy_from_slice(request);
    serve.advance(request.len()).expect("it never fails");
    assert!(matches!(serve.finish().0, Ok(ipc_proto::Request::ResumeRuntime(_))));

    // A monitor that has gone is no request.
    let (mut receive, mut send) = ([0; 64], [0; 64]);
    let mut serve = Serve::announce(&ADVERTISE, &mut receive, &mut send).expect("large enough");
    serve.advance(0).expect("it never fails");
    assert!(matches!(serve.step(), Step::Done));
    assert!(serve.finish().0.is_err());

    let needed = Serve::announce(&ADVERTISE, &mut [0; 64], &mut [0; 33]).map(|_| ());
    assert_eq!(needed, Err(ipc_proto::EncodeError::BufferTooSmall { needed: 34 }));
}
