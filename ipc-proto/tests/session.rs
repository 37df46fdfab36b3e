//! The edge cases of a [`Session`]. The property `session` of `ipc-fuzz` covers the other cases.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]
use ipc_proto::types::SessionId;
use ipc_proto::{
    Answer, Code, HResult, ProtocolError, Session, SessionEnd, SessionPhase, SessionTimeout, StopEvent,
    StopStep, encode_to_vec,
};

const ID: u64 = 42;

/// Returns a session whose Stop is sent.
fn stopping() -> Session {
    let mut session = Session::new(ID);
    session.stop(100);
    session.stop_advance(StopEvent::Connected);
    session.stop_advance(StopEvent::Sent(28));
    session
}

fn receive(session: &mut Session, mut bytes: &[u8]) {
    while let StopStep::Receive(space) = session.stop_step() {
        let n = space.len().min(bytes.len());
        let (now, later) = bytes.split_at(n);
        space.get_mut(..n).unwrap().copy_from_slice(now);
        bytes = later;
        session.stop_advance(StopEvent::Received(n));
    }
}

fn timed_out(phase: SessionPhase, sent: u64, received: u64, drained: u64) -> Option<SessionEnd> {
    Some(SessionEnd::TimedOut(SessionTimeout { phase, sent, received, drained }))
}

#[test]
fn a_stream_can_end_without_a_stop() {
    for (stream, end) in [
        (&b""[..], SessionEnd::CutOff),
        (b"\x06", SessionEnd::CutOff),
        (b"Nettrace and so on\x06\x01", SessionEnd::Complete),
        (b"Nettrace and so on\x06\x01\x00", SessionEnd::CutOff),
        (b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0", SessionEnd::CutOff), // only the header of V6
        (b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0\0\0\0\0", SessionEnd::Complete),
        (b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0\0\0\x06\x01", SessionEnd::CutOff),
    ] {
        for size in [1, 2, 3, 5, 100] {
            let mut session = Session::new(ID);
            stream.chunks(size).for_each(|piece| session.stream_advance(piece));
            assert_eq!(session.end(), None);
            session.stream_advance(b"");
            assert_eq!(session.end(), Some(end), "{stream:?} in pieces of {size}");
            assert_eq!((session.received(), session.stop_answer()), (stream.len() as u64, None));
        }
    }
}

#[test]
fn a_timeout_names_the_missing_step() {
    let mut session = Session::new(ID);
    session.stream_advance(b"before");
    session.tick(u64::MAX); // nothing is due
    session.stop(100);
    session.stream_advance(b"after");
    let mut sending = session.clone();
    session.tick(99);
    assert_eq!((session.until(), session.end()), (Some(100), None));
    session.tick(100);
    assert_eq!(session.end(), timed_out(SessionPhase::Connecting, 0, 0, 5));

    sending.stop_advance(StopEvent::Connected);
    sending.stop_advance(StopEvent::Sent(3));
    sending.tick(101);
    assert_eq!(sending.end(), timed_out(SessionPhase::Sending, 3, 0, 5));

    let mut reading = stopping();
    let answer = encode_to_vec(Code::OK, &SessionId { session_id: ID }).unwrap();
    let StopStep::Receive(space) = reading.stop_step() else { panic!("the answer is outstanding") };
    space.get_mut(..7).unwrap().copy_from_slice(answer.get(..7).unwrap());
    reading.stop_advance(StopEvent::Received(7));
    reading.tick(100);
    assert_eq!(reading.end(), timed_out(SessionPhase::EndOfStream, 28, 7, 0));
}

#[test]
fn the_stream_decides_about_the_end_whatever_the_answer() {
    let mut silent = stopping();
    silent.stream_advance(b"\x06\x01");
    silent.stream_advance(b"");
    assert_eq!(silent.end(), None, "the answer is outstanding");
    silent.tick(100);
    assert_eq!((silent.end(), silent.stop_answer()), (Some(SessionEnd::Complete), None));

    let mut closed = stopping();
    closed.stop_advance(StopEvent::Received(0));
    assert_eq!(closed.end(), None, "the stream has not ended");
    closed.stream_advance(b"");
    assert_eq!(closed.end(), Some(SessionEnd::CutOff));
    assert_eq!(closed.stop_answer(), Some(Err(ProtocolError::Closed { received: 0 })));

    let mut refused = stopping();
    receive(&mut refused, &encode_to_vec(Code::ERROR, &HResult::FAIL).unwrap());
    assert_eq!((refused.until(), refused.end()), (None, None), "the session continues");
    let mut again = refused.clone();
    again.stop(300);
    assert!(matches!(again.stop_step(), StopStep::Connect) && again.stop_answer().is_none());
    assert_eq!(again.until(), Some(300));
    refused.stream_advance(b"\x06\x01");
    refused.stream_advance(b"");
    assert_eq!(refused.end(), Some(SessionEnd::Complete));
    refused.stop(400); // has no effect after the end
    assert!(matches!(refused.stop_answer(), Some(Ok(Answer::Refused(e))) if e.hresult == HResult::FAIL));

    let mut huge = stopping();
    receive(&mut huge, b"DOTNET_IPC_V1\0\xff\xff\xff\0\0\0 and so on");
    assert_eq!(huge.stop_answer(), Some(Err(ProtocolError::BufferTooSmall { needed: 65_535 })));
    assert!(matches!(huge.stop_step(), StopStep::Nothing) && huge.wants_stream());
}

#[test]
fn a_failed_stop_can_be_requested_again() {
    let mut session = stopping();
    session.stream_advance(b"12345");
    session.stop_advance(StopEvent::Failed);
    assert!(matches!(session.stop_step(), StopStep::Nothing));
    session.tick(u64::MAX);
    assert_eq!((session.until(), session.end()), (None, None), "the Stop is over");
    assert!(session.wants_stream());
    session.stop(500);
    assert_eq!(session.until(), Some(500));
    assert!(matches!(session.stop_step(), StopStep::Connect));
    session.stream_advance(b"678");
    session.tick(500);
    assert_eq!(session.end(), timed_out(SessionPhase::Connecting, 0, 0, 3));
}

#[test]
fn a_connection_that_fails_after_its_answer_changes_nothing() {
    let mut session = stopping();
    receive(&mut session, &encode_to_vec(Code::OK, &SessionId { session_id: ID }).unwrap());
    session.stop_advance(StopEvent::Failed);
    assert_eq!(session.stop_answer(), Some(Ok(Answer::Ok(SessionId { session_id: ID }))));
    assert_eq!(session.until(), Some(100), "the stream has not ended");
}

#[test]
fn a_second_stop_only_moves_the_deadline_forward() {
    let mut session = stopping();
    session.stop(200);
    assert_eq!(session.until(), Some(100));
    session.stop(50);
    assert_eq!(session.until(), Some(50));
    assert!(matches!(session.stop_step(), StopStep::Receive(_)), "the command is sent already");
}

#[test]
fn an_abandoned_session_wants_nothing() {
    let mut session = stopping();
    assert_eq!(session.session_id(), ID);
    session.abandon();
    session.stream_advance(b"more");
    session.stop(1);
    session.tick(u64::MAX);
    assert_eq!((session.end(), session.received()), (Some(SessionEnd::Abandoned), 0));
    assert!(!session.wants_stream() && matches!(session.stop_step(), StopStep::Nothing));
    assert_eq!(session.until(), None);
}

#[test]
fn a_busy_runtime_is_tried_again_with_growing_pauses() {
    let mut session = Session::new(ID);
    session.stop(10_000);
    session.limit_connecting(1_000);
    assert!(session.is_stopping() && !session.stop_failed());
    let (mut now, mut pauses) = (0, Vec::new());
    while session.is_stopping() {
        assert!(matches!(session.stop_step(), StopStep::Connect), "the attempt is due");
        session.stop_advance(StopEvent::Busy(now));
        let Some(next) = session.until() else { break };
        pauses.push(next - now);
        session.tick(next - 1);
        assert!(matches!(session.stop_step(), StopStep::Nothing), "the attempt is not due yet");
        session.stop_advance(StopEvent::Connected); // ignored during a pause
        now = next;
        session.tick(now);
    }
    assert_eq!(pauses.get(..8).unwrap(), [1, 2, 4, 8, 16, 32, 50, 50]);
    assert_eq!((now, session.until(), session.end()), (1_000, None, None));
    assert!(session.stop_failed() && session.wants_stream());
    session.stop(20_000);
    assert!(matches!(session.stop_step(), StopStep::Connect), "a new Stop has no pause");
    assert!(!session.stop_failed());
}

#[test]
fn the_last_attempt_precedes_the_deadline() {
    let mut session = Session::new(ID);
    session.stop(3);
    session.stop_advance(StopEvent::Busy(2));
    session.tick(3);
    assert!(session.end().is_none() && matches!(session.stop_step(), StopStep::Connect));
    let mut connected = session.clone();
    connected.stop_advance(StopEvent::Connected);
    connected.tick(3);
    assert_eq!(connected.end(), timed_out(SessionPhase::Sending, 0, 0, 0));
    let mut busy = session.clone();
    busy.stop_advance(StopEvent::Busy(3));
    assert!(busy.stop_failed() && busy.end().is_none());
    session.tick(3);
    assert_eq!(session.end(), timed_out(SessionPhase::Connecting, 0, 0, 0));
}

#[test]
fn a_stream_that_ends_during_a_pause_ends_the_session() {
    let mut session = Session::new(ID);
    session.stop(100);
    session.stop_advance(StopEvent::Busy(1));
    session.stream_advance(b"\x06\x01");
    session.stream_advance(b"");
    assert_eq!((session.end(), session.until()), (Some(SessionEnd::Complete), None));
}

#[test]
fn a_delayed_stop_is_sent_at_its_time_or_when_the_danger_is_over() {
    let mut session = Session::new(ID);
    session.delay_stop(50); // no Stop is requested
    session.stop(1_000);
    session.delay_stop(50);
    assert!(matches!(session.stop_step(), StopStep::Nothing) && session.wants_stream());
    assert_eq!(session.until(), Some(50));
    session.tick(49);
    assert!(matches!(session.stop_step(), StopStep::Nothing));
    session.tick(50);
    assert!(matches!(session.stop_step(), StopStep::Connect));
    session.delay_stop(900);
    session.send_stop();
    assert!(matches!(session.stop_step(), StopStep::Connect));
    session.stop_advance(StopEvent::Connected);
    session.delay_stop(900); // it has begun
    assert!(matches!(session.stop_step(), StopStep::Send(_)));
    session.send_stop();
    assert!(matches!(session.stop_step(), StopStep::Send(_)));
}

#[test]
fn a_silent_runtime_is_given_up() {
    let mut session = Session::new(ID);
    session.limit_silence(10);
    session.tick(500); // silence before the Stop does not count
    session.stop(1_000);
    session.tick(500);
    assert_eq!(session.until(), Some(510));
    session.stop_advance(StopEvent::Connected);
    session.stop_advance(StopEvent::Sent(28));
    session.tick(505);
    assert_eq!(session.until(), Some(510), "what the client sends is no sign of life");
    session.stream_advance(b"more");
    session.tick(509);
    assert_eq!((session.until(), session.end()), (Some(519), None));
    let StopStep::Receive(space) = session.stop_step() else { panic!() };
    *space.first_mut().unwrap() = b'D';
    session.stop_advance(StopEvent::Received(1));
    session.tick(518);
    assert_eq!(session.until(), Some(528));
    session.tick(527);
    assert_eq!(session.end(), None);
    session.tick(528);
    assert_eq!(session.end(), timed_out(SessionPhase::EndOfStream, 28, 1, 4));

    // The time of a delay is not silence.
    let mut session = Session::new(ID);
    session.limit_silence(10);
    session.stop(1_000);
    session.delay_stop(100);
    for now in [0, 50, 100, 105] {
        session.tick(now);
    }
    assert_eq!((session.until(), session.end()), (Some(110), None));
}
