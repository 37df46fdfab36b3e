//! A caller that reports more bytes than a step lent to it.
use super::*;
use ipc_proto::ReceiveAdvertise;
use ipc_proto::port::{ConnectEvent, ConnectPort, ConnectStep};
use ipc_proto::{Advertise, Session, StopEvent, StopStep};

/// Returns how many bytes the step lends.
fn lent(exchange: &mut impl Exchange) -> usize {
    match exchange.step() {
        Step::Send(bytes) => bytes.len(),
        Step::Receive(space) => space.len(),
        Step::Done => 0,
    }
}

/// Reports `n` bytes, more than the step lent: this must end the exchange.
fn overrun(mut exchange: impl Exchange, n: usize) {
    let lent = lent(&mut exchange);
    assert!(lent > 0 && n > lent);
    assert_eq!(exchange.advance(n), Err(ProtocolError::Overrun { advanced: n, lent }));
    assert!(matches!(exchange.step(), Step::Done), "continues after {n} of {lent}");
}

#[test]
fn every_exchange_fails() {
    let answer = message(0xff00, 24, &[0; 4]);
    let texts = [Text::from("A=b"), Text::from("C")];
    let announced = ProcessEnvironment { incoming_bytes: 24, future: 0 };
    for more in [1, 100, usize::MAX] {
        let beyond = |lent: usize| lent.saturating_add(more);
        let (mut buf, mut other) = ([0; 64], [0; 64]);
        overrun(Call::new(&ResumeRuntime {}, &mut buf).unwrap(), beyond(20));
        for received in 0..answer.len() {
            let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
            take(&mut call, &mut iter::empty(), usize::MAX);
            let mut wire = &answer[..received];
            while !wire.is_empty() {
                let Step::Receive(space) = call.step() else { panic!("waits for the answer") };
                let n = space.len().min(wire.len());
                space[..n].copy_from_slice(&wire[..n]);
                wire = &wire[n..];
                call.advance(n).unwrap();
            }
            let lent = lent(&mut call);
            overrun(call, beyond(lent));
        }
        let mut serve = Serve::new(&mut buf, &mut other).unwrap();
        overrun(&mut serve, beyond(20));
        let (request, reply) = serve.finish();
        assert_eq!(request, Err(decode_error(DecodeErrorKind::UnexpectedEnd, 0).into()));
        overrun(reply, beyond(24));
        overrun(ReceiveAdvertise::new(), beyond(34));
        overrun(ReceiveEnvironment::new(&announced, 100, &mut buf).unwrap(), beyond(24));
        overrun(ReceiveEnvironment::new(&announced, 100, &mut buf[..9]).unwrap(), beyond(9));
        overrun(SendEnvironment::new(Array::from(&texts), &mut buf).unwrap(), beyond(24));
        overrun(SendEnvironment::new(Array::from(&texts), &mut buf[..9]).unwrap(), beyond(9));
    }
}

/// The result of an exchange that is over does not change.
#[test]
fn a_result_is_not_lost() {
    let answer = message(0xff00, 24, &[0; 4]);
    let (mut buf, mut other) = ([0; 64], [0; 64]);
    let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
    take(&mut call, &mut iter::empty(), usize::MAX);
    feed(&mut call, &mut &answer[..], &mut iter::empty()).unwrap();
    let overrun = Err(ProtocolError::Overrun { advanced: 1, lent: 0 });
    assert_eq!((call.advance(1), call.advance(0)), (overrun, Ok(())));
    assert_eq!(call.finish(), Ok(Answer::Ok(Status::OK)));

    let mut serve = Serve::new(&mut buf, &mut other).unwrap();
    feed(&mut serve, &mut &message(0x0401, 20, &[])[..], &mut iter::empty()).unwrap();
    assert_eq!((serve.advance(1), serve.advance(0)), (overrun, Ok(())));
    let (request, mut reply) = serve.finish();
    assert_eq!(request, Ok(Request::ResumeRuntime(ResumeRuntime {})));
    assert_eq!(take(&mut reply, &mut iter::empty(), usize::MAX).len(), 24);
    assert_eq!((reply.advance(1), reply.advance(0)), (overrun, Ok(())));

    let mut receive = ReceiveAdvertise::new();
    let frame = b"ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0\0";
    feed(&mut receive, &mut &frame[..], &mut iter::empty()).unwrap();
    assert_eq!((receive.advance(1), receive.advance(0)), (overrun, Ok(())));
    assert_eq!(receive.finish().map(|advertise| advertise.process_id), Ok(4242));
}

/// After an overrun, the position in the connection is unknown, so the Stop has failed.
#[test]
fn a_session_counts_it_as_failed() {
    for (sent, event) in [
        (0, StopEvent::Sent(29)),
        (27, StopEvent::Sent(2)),
        (28, StopEvent::Received(21)),
        (28, StopEvent::Received(usize::MAX)),
    ] {
        let mut session = Session::new(7);
        session.stop(100);
        session.stop_advance(StopEvent::Connected);
        if sent > 0 {
            session.stop_advance(StopEvent::Sent(sent));
        }
        session.stop_advance(event);
        assert!(session.stop_failed() && session.stop_answer().is_none(), "{event:?}");
        assert!(matches!(session.stop_step(), StopStep::Nothing), "{event:?}");
        session.stop(100);
        assert!(matches!(session.stop_step(), StopStep::Connect), "another Stop is possible after {event:?}");
    }
}

/// After an overrun, the monitor may not have the whole frame, so the connection has failed.
#[test]
fn a_port_counts_it_as_failed() {
    for (sent, n) in [(0, 35), (33, 2), (0, usize::MAX)] {
        let mut port = ConnectPort::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 7, future: 0 });
        port.advance(ConnectEvent::Connected);
        if sent > 0 {
            port.advance(ConnectEvent::Sent(sent));
        }
        port.advance(ConnectEvent::Sent(n));
        assert_eq!(port.step(), ConnectStep::Wait { milliseconds: 10 }, "{n} after {sent}");
    }
}
