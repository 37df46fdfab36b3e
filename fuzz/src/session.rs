//! The properties of a session: it never blocks, and it loses no byte.
use std::collections::VecDeque;

use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::types::SessionId;
use ipc_proto::{
    Answer, Code, HResult, Message, Parsed, Request, Session, SessionEnd, SessionPhase, SessionTimeout,
    StopEvent, StopStep, encode_to_vec,
};

const ID: u64 = 0x7f00_0000_1000;
const DEADLINE: u64 = 1_000;

/// Checks two properties of a session.
///
/// * With a runtime whose connections have small buffers, and which answers a Stop only after its stream was read to
///   the end, the session never blocks and loses no byte, whichever of its steps is done first.
/// * Whatever sequence of calls it gets, sensible or not, it counts correctly, wants nothing after its end, and ends at
///   the deadline of its Stop.
pub fn session(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let _ = if u.ratio(1, 2).unwrap_or_default() { with_a_runtime(&mut u) } else { with_anything(&mut u) };
}

/// A model of a runtime with room for a few bytes on each connection.
#[derive(Default)]
struct ModelRuntime {
    capacity: usize,
    /// Bytes that are not written to the stream yet.
    unwritten: VecDeque<u8>,
    stream: VecDeque<u8>,
    stream_closed: bool,
    /// Whether the Stop was received; the runtime then writes the rest of the stream.
    stopping: bool,
    received: Vec<u8>,
    answer: VecDeque<u8>,
    /// How many more connections are not accepted.
    busy: u8,
}

impl ModelRuntime {
    /// Takes all steps that do not block.
    fn advance(&mut self, answer: &[u8]) {
        while self.stream.len() < self.capacity {
            let Some(byte) = self.unwritten.pop_front() else { break };
            self.stream.push_back(byte);
        }
        if self.stopping && self.unwritten.is_empty() && !self.stream_closed {
            self.stream_closed = true;
            self.answer.extend(answer);
        }
    }
}

fn with_a_runtime(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut stream: Vec<u8> = u.arbitrary()?;
    let marked = u.arbitrary()?;
    if marked {
        stream.extend([6, 1]);
    }
    let expected = mark(&stream);
    let answer = encode_to_vec(Code::OK, &SessionId { session_id: ID }).expect("it fits");
    let mut runtime = ModelRuntime {
        capacity: u.int_in_range(1..=40)?,
        unwritten: stream.iter().copied().collect(),
        busy: u.int_in_range(0..=5)?,
        ..ModelRuntime::default()
    };
    let mut session = Session::new(ID);
    let mut read = Vec::new();
    let stop_after = u.int_in_range(0..=stream.len())?;
    let mut steps = 0;
    while session.end().is_none() {
        steps += 1;
        assert!(steps < 20 * (stream.len() + 100), "the session blocks");
        runtime.advance(&answer);
        if read.len() >= stop_after {
            session.stop(DEADLINE);
        }
        // Advances one of the two connections, or the other one if the first has no work.
        let stop_first: bool = u.arbitrary().unwrap_or_default();
        let n = u.int_in_range(1..=50).unwrap_or(50);
        if !stop_first || !advance_stop(&mut session, &mut runtime, n) {
            let n = n.min(runtime.stream.len());
            let piece: Vec<u8> = runtime.stream.drain(..n).collect();
            if !piece.is_empty() || runtime.stream_closed && session.wants_stream() {
                session.stream_advance(&piece);
                read.extend(piece);
            } else {
                advance_stop(&mut session, &mut runtime, n.max(1));
            }
        }
    }
    assert_eq!(session.end(), Some(expected));
    assert_eq!((read, session.received()), (stream.clone(), stream.len() as u64));
    assert_eq!(session.stop_answer(), Some(Ok(Answer::Ok(SessionId { session_id: ID }))));
    Ok(())
}

/// Does one step on the Stop connection; returns whether there was one.
fn advance_stop(session: &mut Session, runtime: &mut ModelRuntime, n: usize) -> bool {
    let event = match session.stop_step() {
        StopStep::Nothing => match session.until() {
            // The end of the pause after an attempt. Only the deadline is later, which this model never reaches.
            Some(until) if until < DEADLINE => {
                session.tick(until);
                return true;
            }
            _ => return false,
        },
        StopStep::Connect if runtime.busy > 0 => {
            runtime.busy -= 1;
            StopEvent::Busy(0)
        }
        StopStep::Connect => StopEvent::Connected,
        StopStep::Send(bytes) => {
            let n = n.min(bytes.len());
            runtime.received.extend(&bytes[..n]);
            StopEvent::Sent(n)
        }
        StopStep::Receive(space) => {
            let n = n.min(space.len()).min(runtime.answer.len());
            if n == 0 {
                return false;
            }
            space[..n].iter_mut().zip(runtime.answer.drain(..n)).for_each(|(slot, byte)| *slot = byte);
            StopEvent::Received(n)
        }
    };
    session.stop_advance(event);
    if let Ok(Parsed::Complete { value: message, used }) = Message::parse(&runtime.received) {
        let Ok(Request::StopTracing(stop)) = message.request() else {
            panic!("the session sent another command")
        };
        assert_eq!((stop.session_id, used), (ID, runtime.received.len()));
        runtime.stopping = true;
    }
    true
}

/// Returns the end of a session with this stream.
fn mark(stream: &[u8]) -> SessionEnd {
    let v6 = stream.starts_with(b"Nettrace\0\0\0\0");
    let marked = if v6 { stream.len() >= 24 && stream.ends_with(&[0; 4]) } else { stream.ends_with(&[6, 1]) };
    if marked { SessionEnd::Complete } else { SessionEnd::CutOff }
}

#[derive(Debug, Arbitrary)]
enum Input {
    Stream(Vec<u8>),
    /// The stream with its end mark.
    Marked,
    Stop(u16),
    Connected,
    Failed,
    Busy(u16),
    Sent(u8),
    /// These bytes, up to the length of the space.
    Received(Vec<u8>),
    /// The next part of the expected answer, or of a refusal.
    Answer {
        refused: bool,
    },
    /// More bytes than the space has.
    TooMuch,
    Tick(u16),
    Abandon,
}

fn with_anything(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let answers = [
        encode_to_vec(Code::OK, &SessionId { session_id: ID }).expect("it fits"),
        encode_to_vec(Code::ERROR, &HResult::FAIL).expect("it fits"),
    ];
    let mut session = Session::new(ID);
    let (mut stream, mut ended, mut answered) = (Vec::new(), false, 0);
    while !u.is_empty() {
        let (before, until) = (session.end(), session.until());
        let input: Input = u.arbitrary()?;
        match &input {
            Input::Stream(bytes) => {
                if session.wants_stream() {
                    stream.extend(bytes);
                    ended |= bytes.is_empty();
                }
                session.stream_advance(bytes);
            }
            Input::Marked => {
                if session.wants_stream() {
                    stream.extend([6, 1]);
                }
                session.stream_advance(&[6, 1]);
            }
            Input::Stop(at) => {
                session.stop((*at).into());
                assert!(before.is_some() || session.until().is_some_and(|until| until <= (*at).into()));
            }
            Input::Connected => session.stop_advance(StopEvent::Connected),
            Input::Failed => session.stop_advance(StopEvent::Failed),
            Input::Busy(now) => session.stop_advance(StopEvent::Busy((*now).into())),
            Input::Sent(n) => {
                let lent = match session.stop_step() {
                    StopStep::Send(bytes) => bytes.len(),
                    _ => usize::MAX,
                };
                session.stop_advance(StopEvent::Sent((*n).into()));
                assert!(usize::from(*n) <= lent || session.stop_failed(), "more than {lent} bytes were sent");
            }
            Input::Received(bytes) => receive(&mut session, bytes),
            Input::Answer { refused } => {
                let answer = &answers[usize::from(*refused)];
                let rest = answer.get(answered..).unwrap_or_default();
                answered += space(&mut session).min(rest.len());
                receive(&mut session, rest);
            }
            Input::TooMuch => {
                let receives = space(&mut session) > 0;
                session.stop_advance(StopEvent::Received(usize::MAX));
                assert!(!receives || session.stop_failed(), "more bytes than there is space for");
            }
            Input::Tick(now) => {
                session.tick((*now).into());
                if let (None, Some(SessionEnd::TimedOut(timeout))) = (before, session.end()) {
                    assert!(until.is_some_and(|until| until <= u64::from(*now)), "too early");
                    check_timeout(&timeout, stream.len());
                }
            }
            Input::Abandon => session.abandon(),
        }
        assert!(before.is_none() || session.end() == before, "an end is final: {input:?}");
        assert_eq!(session.received(), stream.len() as u64);
        match session.end() {
            Some(end) => {
                assert!(!session.wants_stream() && session.until().is_none());
                assert!(matches!(session.stop_step(), StopStep::Nothing));
                match end {
                    SessionEnd::Complete | SessionEnd::CutOff => {
                        assert_eq!((end, ended), (mark(&stream), true))
                    }
                    SessionEnd::TimedOut(_) | SessionEnd::Abandoned => {}
                }
            }
            None => {
                let wanted = session.wants_stream();
                let pauses = session.until().is_some() && matches!(session.stop_step(), StopStep::Nothing);
                assert!(
                    wanted || pauses || !matches!(session.stop_step(), StopStep::Nothing | StopStep::Connect)
                );
            }
        }
    }
    if session.end().is_none() {
        session.stop(7);
        // The first tick may end a pause; the second one ends the session.
        session.tick(u64::MAX);
        session.tick(u64::MAX);
        assert!(session.end().is_some(), "the deadline does not end it");
    }
    Ok(())
}

/// Returns the size of the space for an answer.
fn space(session: &mut Session) -> usize {
    match session.stop_step() {
        StopStep::Receive(space) => space.len(),
        _ => 0,
    }
}

/// Copies as many of these bytes as fit into the space for an answer.
fn receive(session: &mut Session, bytes: &[u8]) {
    let mut n = 0;
    if let StopStep::Receive(space) = session.stop_step() {
        n = space.len().min(bytes.len());
        space[..n].copy_from_slice(&bytes[..n]);
    }
    session.stop_advance(StopEvent::Received(n));
}

fn check_timeout(timeout: &SessionTimeout, received: usize) {
    assert!(timeout.drained <= received as u64);
    match timeout.phase {
        SessionPhase::Connecting => assert_eq!((timeout.sent, timeout.received), (0, 0)),
        SessionPhase::Sending => assert!(timeout.sent < 28 && timeout.received == 0),
        SessionPhase::EndOfStream => {}
    }
}
