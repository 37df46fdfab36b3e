//! The property of a runtime's connect ports: they agree with a naive reading of the specification, for any monitors.
use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::port::{Backoff, ConnectEvent, ConnectPort, ConnectStep, Suspension};
use ipc_proto::{Advertise, Command, ProtocolError, Request, ResumeRuntime, Serve, encode_to_vec};

use crate::hostile::received;
use crate::message::encoded;

/// For any behaviour of the monitors, each port does what a naive reading of the specification does, waits as the
/// runtime's own arithmetic does, sends its frame on every connection, and suspends the runtime until its own resume.
pub fn connect_port(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let _ = if u.ratio(1, 2).unwrap_or_default() { any_events(&mut u) } else { monitors(&mut u) };
}

/// The next action, by the naive reading.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    Connect,
    Wait,
    Send,
    Serve,
}

/// All waits since the last success, by the runtime's own arithmetic in floats.
#[derive(Default)]
struct Waits(Vec<u32>);

impl Waits {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the runtime does so")]
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

/// Passes any events to a port and to the naive reading.
fn any_events(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let advertise: Advertise = u.arbitrary()?;
    let frame = encoded(&advertise);
    let mut port = ConnectPort::new(&advertise);
    let (mut next, mut waits, mut sent) = (Next::Connect, Waits::default(), 0usize);
    let mut backoff = Backoff::default();
    while !u.is_empty() {
        let event = match u.arbitrary()? {
            // Most numbers are larger than the frame. Half of them become the rest of the frame.
            ConnectEvent::Sent(n) if n > 40 && n % 2 == 0 => ConnectEvent::Sent(Advertise::LEN - sent),
            ConnectEvent::Sent(n) if n > 40 => ConnectEvent::Sent(n % 40),
            event => event,
        };
        next = match (next, event) {
            (Next::Connect, ConnectEvent::Connected) => {
                sent = 0;
                Next::Send
            }
            (Next::Connect | Next::Send, ConnectEvent::Failed) | (Next::Send, ConnectEvent::Sent(0)) => {
                assert_eq!(backoff.next(), waits.next());
                Next::Wait
            }
            // The event reports more bytes than the port lent, which counts as a failure.
            (Next::Send, ConnectEvent::Sent(n)) if n > Advertise::LEN - sent => {
                assert_eq!(backoff.next(), waits.next());
                Next::Wait
            }
            (Next::Wait, ConnectEvent::Waited) => Next::Connect,
            (Next::Send, ConnectEvent::Sent(n)) => {
                sent += n;
                if sent < Advertise::LEN {
                    Next::Send
                } else {
                    waits.0.clear();
                    backoff.reset();
                    Next::Serve
                }
            }
            (Next::Serve, ConnectEvent::HungUp) => {
                waits.0.push(10);
                backoff.hung_up();
                Next::Connect
            }
            (Next::Serve, ConnectEvent::Answered) => Next::Connect,
            (same, _) => same,
        };
        port.advance(event);
        let expected = match next {
            Next::Connect => ConnectStep::Connect,
            Next::Wait => ConnectStep::Wait { milliseconds: *waits.0.last().expect("there is a wait") },
            Next::Send => ConnectStep::Send(&frame[sent..]),
            Next::Serve => ConnectStep::Serve,
        };
        assert_eq!((port.step(), port.step()), (expected, expected), "after {event:?}");
    }
    Ok(())
}

/// The behaviour of a monitor on one connection.
#[derive(Debug, Arbitrary)]
enum Monitor {
    IsAbsent,
    /// The monitor receives this number of bytes, and closes the connection.
    Receives(u8),
    HangsUp,
    Resumes,
    SendsOtherBytes,
}

/// Ports of a runtime, each with a monitor of its own.
fn monitors(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let advertise: Advertise = u.arbitrary()?;
    let flags: Vec<bool> = (0..u.int_in_range(1..=4)?).map(|_| u.arbitrary()).collect::<Result<_, _>>()?;
    let frame = encoded(&advertise);
    let mut ports: Vec<_> = flags.iter().map(|_| ConnectPort::new(&advertise)).collect();
    let (mut suspension, mut waiting) = (Suspension::new(flags.clone()), flags);
    while !u.is_empty() {
        let at = u.choose_index(ports.len())?;
        let port = &mut ports[at];
        if let ConnectStep::Wait { milliseconds } = port.step() {
            assert!((10..=571).contains(&milliseconds), "the wait is too long: {milliseconds}");
            port.advance(ConnectEvent::Waited);
        }
        assert_eq!(port.step(), ConnectStep::Connect);
        match u.arbitrary()? {
            Monitor::IsAbsent => port.advance(ConnectEvent::Failed),
            Monitor::Receives(n) => {
                port.advance(ConnectEvent::Connected);
                let most = usize::from(n) % Advertise::LEN;
                let taken = take(port, most, u);
                assert_eq!(taken, frame[..most]);
                assert_eq!(received(&taken).1, Err(ProtocolError::Closed { received: most }));
                port.advance(ConnectEvent::Failed);
                assert!(matches!(port.step(), ConnectStep::Wait { .. }));
            }
            behaviour => {
                port.advance(ConnectEvent::Connected);
                let taken = take(port, Advertise::LEN, u);
                assert_eq!((&taken, received(&taken).1), (&frame, Ok(advertise)));
                assert_eq!(port.step(), ConnectStep::Serve);
                let request = match behaviour {
                    Monitor::Resumes => {
                        encode_to_vec(ResumeRuntime::CODE, &ResumeRuntime {}).expect("it fits")
                    }
                    Monitor::SendsOtherBytes => {
                        let len = u.arbitrary_len::<u8>()?;
                        u.bytes(len)?.to_vec()
                    }
                    _ => Vec::new(),
                };
                let (event, resumes) = serve(&request);
                assert_eq!(event == ConnectEvent::HungUp, request.is_empty());
                if resumes {
                    assert_eq!(suspension.resume(at), core::mem::take(&mut waiting[at]));
                }
                port.advance(event);
            }
        }
        assert_eq!(suspension.is_suspended(), waiting.iter().any(|waits| *waits));
        let remaining = waiting.iter().enumerate().filter_map(|(port, waits)| waits.then_some(port));
        assert!(suspension.waiting().eq(remaining));
        assert!(!suspension.resume(waiting.len()), "there is no such port");
    }
    Ok(())
}

/// Receives at most this number of bytes from the port, in pieces.
fn take(port: &mut ConnectPort, most: usize, u: &mut Unstructured<'_>) -> Vec<u8> {
    let mut taken = Vec::new();
    while let ConnectStep::Send(bytes) = port.step() {
        if taken.len() == most {
            break;
        }
        let n = u.int_in_range(1..=bytes.len().min(most - taken.len())).unwrap_or(1);
        taken.extend_from_slice(&bytes[..n]);
        port.advance(ConnectEvent::Sent(n));
    }
    taken
}

/// Serves a connection on which a monitor sends these bytes and closes it. Returns the event, and whether they are a
/// `ResumeRuntime`.
fn serve(bytes: &[u8]) -> (ConnectEvent, bool) {
    let (mut receive, mut send) = (vec![0; 1000], [0; 24]);
    let mut serve = Serve::new(&mut receive, &mut send).expect("room for a header and a refusal");
    assert!(serve.is_untouched());
    let _ = crate::wire::feed(&mut serve, &mut &*bytes, &mut core::iter::empty());
    if serve.is_untouched() {
        return (ConnectEvent::HungUp, false);
    }
    (ConnectEvent::Answered, matches!(serve.finish().0, Ok(Request::ResumeRuntime(_))))
}
