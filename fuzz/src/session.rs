use std::collections::VecDeque;

use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::types::SessionId;
use ipc_proto::{
    Answer, Code, HResult, Message, Parsed, Request, Session, SessionEnd, SessionPhase, SessionTimeout,
    StopEvent, StopStep, encode_to_vec,
};

const ID: u64 = 0x7f00_0000_1000;

/// A session with a runtime whose connections hold little, and which answers a stop only when its stream is read to the
/// end, never gets stuck, whatever is done first of what it wants; nothing of the stream is lost. And whatever it is
/// told, in sense or not, it keeps count, wants nothing after its end, and is ended by the deadline of its stop.
pub fn session(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let _ = if u.ratio(1, 2).unwrap_or_default() { with_a_runtime(&mut u) } else { with_anything(&mut u) };
}

/// A runtime with room for a few bytes on either connection.
struct Runtime {
    capacity: usize,
    /// What is still to be written to the stream.
    unwritten: VecDeque<u8>,
    stream: VecDeque<u8>,
    stream_closed: bool,
    /// Whether the stop was read, upon which the rest is written.
    stopping: bool,
    asked: Vec<u8>,
    answer: VecDeque<u8>,
}

impl Runtime {
    /// Does what can be done without waiting.
    fn go_on(&mut self, answer: &[u8]) {
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
    let mut runtime = Runtime {
        capacity: u.int_in_range(1..=40)?,
        unwritten: stream.iter().copied().collect(),
        stream: VecDeque::new(),
        stream_closed: false,
        stopping: false,
        asked: Vec::new(),
        answer: VecDeque::new(),
    };
    let mut session = Session::new(ID);
    let mut read = Vec::new();
    let stop_after = u.int_in_range(0..=stream.len())?;
    let mut steps = 0;
    while session.end().is_none() {
        steps += 1;
        assert!(steps < 20 * (stream.len() + 100), "it is stuck");
        runtime.go_on(&answer);
        if read.len() >= stop_after {
            session.stop(1);
        }
        // One of the two, as it comes; the other if there is nothing to be done on that one.
        let stop_first: bool = u.arbitrary().unwrap_or_default();
        let n = u.int_in_range(1..=50).unwrap_or(50);
        if !stop_first || !go_on_with_stop(&mut session, &mut runtime, n) {
            let n = n.min(runtime.stream.len());
            let piece: Vec<u8> = runtime.stream.drain(..n).collect();
            if !piece.is_empty() || runtime.stream_closed && session.wants_stream() {
                session.stream_advance(&piece);
                read.extend(piece);
            } else {
                go_on_with_stop(&mut session, &mut runtime, n.max(1));
            }
        }
    }
    assert_eq!(session.end(), Some(expected));
    assert_eq!((read, session.received()), (stream.clone(), stream.len() as u64));
    assert_eq!(session.stop_answer(), Some(Ok(Answer::Ok(SessionId { session_id: ID }))));
    Ok(())
}

/// Does something on the Stop's connection; whether there was something to do.
fn go_on_with_stop(session: &mut Session, runtime: &mut Runtime, n: usize) -> bool {
    let event = match session.stop_step() {
        StopStep::Nothing => return false,
        StopStep::Connect => StopEvent::Connected,
        StopStep::Send(bytes) => {
            let n = n.min(bytes.len());
            runtime.asked.extend(&bytes[..n]);
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
    if let Ok(Parsed::Complete { value: message, used }) = Message::parse(&runtime.asked) {
        let Ok(Request::StopTracing(stop)) = message.request() else { panic!("it asks for something else") };
        assert_eq!((stop.session_id, used), (ID, runtime.asked.len()));
        runtime.stopping = true;
    }
    true
}

/// What the end of such a stream is.
fn mark(stream: &[u8]) -> SessionEnd {
    let v6 = stream.starts_with(b"Nettrace\0\0\0\0");
    let marked = if v6 { stream.len() >= 24 && stream.ends_with(&[0; 4]) } else { stream.ends_with(&[6, 1]) };
    if marked { SessionEnd::Complete } else { SessionEnd::CutOff }
}

#[derive(Debug, Arbitrary)]
enum Told {
    Stream(Vec<u8>),
    /// With the end mark.
    Marked,
    Stop(u16),
    Connected,
    Failed,
    Sent(u8),
    /// These bytes, in the space that is lent.
    Received(Vec<u8>),
    /// As much as fits of the answer that is expected, or of a refusal.
    Answer {
        refused: bool,
    },
    /// More than was lent.
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
        let told: Told = u.arbitrary()?;
        match &told {
            Told::Stream(bytes) => {
                if session.wants_stream() {
                    stream.extend(bytes);
                    ended |= bytes.is_empty();
                }
                session.stream_advance(bytes);
            }
            Told::Marked => {
                if session.wants_stream() {
                    stream.extend([6, 1]);
                }
                session.stream_advance(&[6, 1]);
            }
            Told::Stop(at) => {
                session.stop((*at).into());
                assert!(before.is_some() || session.until().is_some_and(|until| until <= (*at).into()));
            }
            Told::Connected => session.stop_advance(StopEvent::Connected),
            Told::Failed => session.stop_advance(StopEvent::Failed),
            Told::Sent(n) => session.stop_advance(StopEvent::Sent((*n).into())),
            Told::Received(bytes) => receive(&mut session, bytes),
            Told::Answer { refused } => {
                let answer = &answers[usize::from(*refused)];
                let rest = answer.get(answered..).unwrap_or_default();
                answered += lent(&mut session).min(rest.len());
                receive(&mut session, rest);
            }
            Told::TooMuch => session.stop_advance(StopEvent::Received(usize::MAX)),
            Told::Tick(now) => {
                session.tick((*now).into());
                if let (None, Some(SessionEnd::TimedOut(timeout))) = (before, session.end()) {
                    assert!(until.is_some_and(|until| until <= u64::from(*now)), "too early");
                    check_timeout(&timeout, stream.len());
                }
            }
            Told::Abandon => session.abandon(),
        }
        assert!(before.is_none() || session.end() == before, "an end is final: {told:?}");
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
                assert!(wanted || !matches!(session.stop_step(), StopStep::Nothing | StopStep::Connect));
            }
        }
    }
    if session.end().is_none() {
        session.stop(7);
        session.tick(7);
        assert!(session.end().is_some(), "no deadline ends it");
    }
    Ok(())
}

/// How much space is lent for an answer.
fn lent(session: &mut Session) -> usize {
    match session.stop_step() {
        StopStep::Receive(space) => space.len(),
        _ => 0,
    }
}

/// Gives it as much of these bytes as it lends space for.
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
