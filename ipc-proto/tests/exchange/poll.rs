//! [`poll_exchange`] with a transport that is often not ready, or that fails.
use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use super::*;

/// The answer to ResumeRuntime.
const ANSWER: &[u8] = b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0";

/// The error of the transport, a type without `std`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parity;

/// A transport that is ready at every second poll, and then transfers one byte. It sends nothing before it is flushed.
#[derive(Default)]
struct Slow<'t> {
    incoming: &'t [u8],
    buffered: Vec<u8>,
    outgoing: Vec<u8>,
    polls: usize,
    flushes: usize,
    fails_after: Option<usize>,
}

impl Slow<'_> {
    fn transfer(&mut self, step: Step<'_>) -> Poll<Result<usize, Parity>> {
        if matches!(step, Step::Done) && self.buffered.is_empty() {
            return Poll::Ready(Ok(usize::MAX)); // ignored
        }
        self.polls += 1;
        if self.polls % 2 == 1 {
            return Poll::Pending;
        }
        if self.fails_after.is_some_and(|limit| self.polls > limit) {
            return Poll::Ready(Err(Parity));
        }
        Poll::Ready(Ok(match step {
            Step::Send(bytes) => {
                self.buffered.push(bytes[0]);
                1
            }
            Step::Receive(_) if self.outgoing.is_empty() => {
                panic!("nobody answers: the request was not flushed")
            }
            Step::Receive(space) => match self.incoming.split_first() {
                Some((byte, rest)) => {
                    (space[0], self.incoming) = (*byte, rest);
                    1
                }
                None => 0,
            },
            Step::Done => {
                self.flushes += 1;
                self.outgoing.append(&mut self.buffered);
                usize::MAX
            }
        }))
    }

    /// Polls until the end, each time with a new future.
    fn drive(&mut self, exchange: &mut impl Exchange) -> Result<(), PollError<Parity>> {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..1000 {
            let poll = poll_fn(|context| poll_exchange(exchange, context, |_, step| self.transfer(step)));
            if let Poll::Ready(driven) = pin!(poll).poll(&mut context) {
                return driven;
            }
        }
        panic!("it does not end");
    }
}

#[test]
fn future_that_is_dropped_after_each_poll_loses_nothing() {
    let mut buf = [0; 64];
    let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
    let mut transport = Slow { incoming: ANSWER, ..Slow::default() };
    assert_eq!(transport.drive(&mut call), Ok(()));
    assert_eq!(call.finish(), Ok(Answer::Ok(Status::OK)));
    assert_eq!(transport.outgoing, message(0x0401, 20, &[]));
    // Two polls, one pending and one ready, for each byte and for the flush before the answer.
    assert_eq!((transport.polls, transport.flushes), (2 * (20 + 24 + 1), 1));
}

#[test]
fn failure_is_that_of_its_direction() {
    let drive = |incoming, fails_after| {
        let mut buf = [0; 64];
        let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
        Slow { incoming, fails_after, ..Slow::default() }.drive(&mut call).unwrap_err()
    };
    assert_eq!(drive(ANSWER, Some(39)), PollError::Send(Parity));
    assert_eq!(drive(ANSWER, Some(40)), PollError::Send(Parity), "the flush");
    assert_eq!(drive(ANSWER, Some(43)), PollError::Receive(Parity));
    let closed = PollError::Protocol(ProtocolError::Closed { received: 5 });
    assert_eq!(drive(&ANSWER[..5], None), closed);
}

#[test]
fn exchange_can_be_a_trait_object() {
    let mut receive = ReceiveAdvertise::new();
    let exchange: &mut dyn Exchange = &mut receive;
    let polled = poll_exchange(exchange, &mut Context::from_waker(Waker::noop()), |_, step| match step {
        Step::Receive(space) => {
            space.fill(b'A');
            Poll::Ready(Ok::<_, core::convert::Infallible>(1))
        }
        Step::Done => Poll::Ready(Ok(0)),
        Step::Send(_) => panic!("it sends nothing"),
    });
    let Poll::Ready(Err(error)) = polled else { panic!("{polled:?}") };
    assert!(matches!(error, PollError::Protocol(ProtocolError::Decode(_))));
    assert_eq!(error.to_string(), receive.finish().unwrap_err().to_string());
}

#[test]
fn message_names_the_direction_and_the_cause() {
    let error = PollError::Send(core::fmt::Error);
    let source = core::error::Error::source(&error).unwrap();
    assert_eq!(error.to_string(), format!("sending failed: {source}"));
    assert_eq!(PollError::Receive("parity").to_string(), "receiving failed: parity");
}
