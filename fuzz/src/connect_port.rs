use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::port::{Backoff, ConnectPort, PortEvent, PortStep, Suspension};
use ipc_proto::{Advertise, Command, ProtocolError, Request, ResumeRuntime, Serve, encode_to_vec};

use crate::hostile::received;
use crate::message::encoded;

/// A runtime's connect ports, whatever monitors do to them: each does what a plain reading of the specification says,
/// waits as the runtime's own arithmetic has it, says who it is on every connection, and keeps the runtime from running
/// until it has seen a resume of its own.
pub fn connect_port(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let _ = if u.ratio(1, 2).unwrap_or_default() { any_events(&mut u) } else { monitors(&mut u) };
}

/// What is done next, by the plain reading.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    Connect,
    Wait,
    Send,
    Await,
    Serve,
}

/// How long the tries have been failing, by the runtime's own arithmetic, in floats; all waits since the last success.
#[derive(Default)]
struct Waits(Vec<u32>);

impl Waits {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "this is what the runtime does"
    )]
    fn next(&mut self) -> u32 {
        let wait = match self.0.last() {
            None => 10,
            Some(last) if *last >= 500 => 500,
            Some(last) => (f64::from(*last) * 1.25) as u32,
        };
        self.0.push(wait);
        wait
    }
}

/// Events in sense or not, told to a port and to the plain reading.
fn any_events(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let advertise: Advertise = u.arbitrary()?;
    let frame = encoded(&advertise);
    let mut port = ConnectPort::new(&advertise);
    let (mut next, mut waits, mut sent) = (Next::Connect, Waits::default(), 0usize);
    let mut backoff = Backoff::default();
    while !u.is_empty() {
        let event = match u.arbitrary()? {
            // Most tell of more than there are.
            PortEvent::Sent(n) if n > 40 => PortEvent::Sent(n % 40),
            event => event,
        };
        next = match (next, event) {
            (Next::Connect, PortEvent::Connected) => {
                sent = 0;
                Next::Send
            }
            (Next::Connect | Next::Send, PortEvent::Failed) | (Next::Send, PortEvent::Sent(0)) => {
                assert_eq!(backoff.next(), waits.next());
                Next::Wait
            }
            (Next::Wait, PortEvent::Waited) => Next::Connect,
            (Next::Send, PortEvent::Sent(n)) => {
                sent += n;
                if sent < Advertise::LEN {
                    Next::Send
                } else {
                    waits.0.clear();
                    backoff.reset();
                    Next::Await
                }
            }
            (Next::Await, PortEvent::Readable) => Next::Serve,
            (Next::Await, PortEvent::HungUp) => {
                waits.0.push(10);
                backoff.hung_up();
                Next::Connect
            }
            (Next::Serve, PortEvent::Answered) => Next::Connect,
            (same, _) => same,
        };
        port.advance(event);
        let expected = match next {
            Next::Connect => PortStep::Connect,
            Next::Wait => PortStep::Wait { milliseconds: *waits.0.last().expect("it waits") },
            Next::Send => PortStep::Send(&frame[sent..]),
            Next::Await => PortStep::Await,
            Next::Serve => PortStep::Serve,
        };
        assert_eq!((port.step(), port.step()), (expected, expected), "after {event:?}");
    }
    Ok(())
}

/// What a monitor does when a port has a connection to it.
#[derive(Debug, Arbitrary)]
enum Monitor {
    IsNotThere,
    /// Takes so many bytes, and closes.
    Takes(u8),
    HangsUp,
    Resumes,
    SaysOtherwise,
}

/// Ports of a runtime, each with a monitor that does one thing after the other.
fn monitors(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let advertise: Advertise = u.arbitrary()?;
    let flags: Vec<bool> = (0..u.int_in_range(1..=4)?).map(|_| u.arbitrary()).collect::<Result<_, _>>()?;
    let frame = encoded(&advertise);
    let mut ports: Vec<_> = flags.iter().map(|_| ConnectPort::new(&advertise)).collect();
    let (mut suspension, mut waiting) = (Suspension::new(flags.clone()), flags);
    while !u.is_empty() {
        let at = u.choose_index(ports.len())?;
        let port = &mut ports[at];
        if let PortStep::Wait { milliseconds } = port.step() {
            assert!((10..=571).contains(&milliseconds), "a monitor is found late: {milliseconds}");
            port.advance(PortEvent::Waited);
        }
        assert_eq!(port.step(), PortStep::Connect);
        match u.arbitrary()? {
            Monitor::IsNotThere => port.advance(PortEvent::Failed),
            Monitor::Takes(n) => {
                port.advance(PortEvent::Connected);
                let most = usize::from(n) % Advertise::LEN;
                let taken = take(port, most, u);
                assert_eq!(taken, frame[..most]);
                assert_eq!(received(&taken).1, Err(ProtocolError::Closed { received: most }));
                port.advance(PortEvent::Failed);
                assert!(matches!(port.step(), PortStep::Wait { .. }));
            }
            does => {
                port.advance(PortEvent::Connected);
                let taken = take(port, Advertise::LEN, u);
                assert_eq!((&taken, received(&taken).1), (&frame, Ok(advertise)));
                assert_eq!(port.step(), PortStep::Await);
                if matches!(does, Monitor::HangsUp) {
                    port.advance(PortEvent::HungUp);
                    continue;
                }
                port.advance(PortEvent::Readable);
                assert_eq!(port.step(), PortStep::Serve);
                let said = if matches!(does, Monitor::Resumes) {
                    encode_to_vec(ResumeRuntime::CODE, &ResumeRuntime {}).expect("it fits")
                } else {
                    let len = u.arbitrary_len::<u8>()?;
                    u.bytes(len)?.to_vec()
                };
                if resumes(&said) {
                    assert_eq!(suspension.resume(at), core::mem::take(&mut waiting[at]));
                }
                port.advance(PortEvent::Answered);
            }
        }
        assert_eq!(suspension.is_suspended(), waiting.iter().any(|waits| *waits));
        let left = waiting.iter().enumerate().filter_map(|(port, waits)| waits.then_some(port));
        assert!(suspension.waiting().eq(left));
        assert!(!suspension.resume(waiting.len()), "there is no such port");
    }
    Ok(())
}

/// What the port sends, so many bytes at most, in pieces.
fn take(port: &mut ConnectPort, most: usize, u: &mut Unstructured<'_>) -> Vec<u8> {
    let mut taken = Vec::new();
    while let PortStep::Send(bytes) = port.step() {
        if taken.len() == most {
            break;
        }
        let n = u.int_in_range(1..=bytes.len().min(most - taken.len())).unwrap_or(1);
        taken.extend_from_slice(&bytes[..n]);
        port.advance(PortEvent::Sent(n));
    }
    taken
}

/// Whether a server takes these bytes for the command to resume.
fn resumes(said: &[u8]) -> bool {
    let (mut receive, mut send) = (vec![0; 1000], [0; 24]);
    let mut serve = Serve::new(&mut receive, &mut send).expect("room for a header and a refusal");
    let _ = crate::wire::feed(&mut serve, &mut &*said, &mut core::iter::empty());
    matches!(serve.finish().0, Ok(Request::ResumeRuntime(_)))
}
