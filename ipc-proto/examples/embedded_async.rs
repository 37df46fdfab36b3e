//! A device that answers over an asynchronous serial line: `no_std` and fixed buffers.
//!
//! `cargo run -p ipc-proto --example embedded_async`
//!
//! The device has a driver with poll functions, like a driver whose queues an interrupt fills and empties. It drives
//! its exchanges with `poll_exchange`. The other end has any `embedded_io_async::{Read, Write}`, whose `async fn`s need
//! a loop with two `.await`s.
//!
//! A timer limits each wait: it drops the future, as `embassy_time::with_timeout` does. No byte is lost, because
//! neither end moves bytes outside of a poll, and the exchange keeps its state. So a new future continues the same
//! exchange. The example `embedded` shows how a line is synchronized after noise.
#![no_std]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "an example is short"
)]

/// The loops that drive every exchange.
mod link {
    use core::future::poll_fn;
    use core::task::{Context, Poll};
    use embedded_io_async::{Error, ErrorKind, Read, Write};
    use ipc_proto::{EncodeError, Exchange, PollError, ProtocolError, Step, poll_exchange};

    #[derive(Debug)]
    #[allow(dead_code, reason = "shown by Debug")]
    pub(crate) enum Failure {
        Line(ErrorKind),
        Protocol(ProtocolError),
        Encode(EncodeError),
    }

    /// A driver of a line. Each function transfers some bytes, or returns `Pending` and wakes the task later.
    pub(crate) trait Driver {
        fn poll_read(
            &mut self,
            context: &mut Context<'_>,
            space: &mut [u8],
        ) -> Poll<Result<usize, ErrorKind>>;
        fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, ErrorKind>>;
    }

    /// Drives an exchange over a driver that is polled.
    pub(crate) async fn drive_polled(
        exchange: &mut impl Exchange,
        driver: &mut impl Driver,
    ) -> Result<(), Failure> {
        let mut transfer = |context: &mut Context<'_>, step: Step<'_>| match step {
            Step::Send(bytes) => driver.poll_write(context, bytes),
            Step::Receive(space) => driver.poll_read(context, space),
            Step::Done => Poll::Ready(Ok(0)),
        };
        let driven = poll_fn(|context| poll_exchange(exchange, context, &mut transfer)).await;
        driven.map_err(|error| match error {
            PollError::Send(kind) | PollError::Receive(kind) => Failure::Line(kind),
            PollError::Protocol(error) => Failure::Protocol(error),
        })
    }

    /// Drives an exchange over `async fn`s.
    pub(crate) async fn drive(
        exchange: &mut impl Exchange,
        line: &mut (impl Read + Write),
    ) -> Result<(), Failure> {
        loop {
            let done = match exchange.step() {
                Step::Send(bytes) => line.write(bytes).await,
                Step::Receive(space) => line.read(space).await,
                Step::Done => return line.flush().await.map_err(|e| Failure::Line(e.kind())),
            };
            exchange.advance(done.map_err(|e| Failure::Line(e.kind()))?).map_err(Failure::Protocol)?;
        }
    }
}

/// The device: a runtime that knows two commands.
mod device {
    use ipc_proto::types::{ProcessInfo, Status};
    use ipc_proto::{HResult, Request, Serve};

    use crate::clock::Clock;
    use crate::link::{Driver, Failure, drive_polled};

    pub(crate) struct Device<'a> {
        pub(crate) info: ProcessInfo<'a>,
        pub(crate) suspended: bool,
        /// How often the watchdog was reset.
        pub(crate) resets: u32,
    }

    impl Device<'_> {
        /// Serves one command, and resets a watchdog every 10 milliseconds while it waits.
        pub(crate) async fn serve(&mut self, driver: &mut impl Driver, clock: &Clock) -> Result<(), Failure> {
            // The two commands have no payload. A request or an answer that does not fit is refused, not cut off.
            let (mut receive, mut send) = ([0; 32], [0; 256]);
            let mut serve = Serve::new(&mut receive, &mut send).map_err(Failure::Encode)?;
            loop {
                match clock.with_timeout(10, drive_polled(&mut serve, driver)).await {
                    Some(driven) => break driven?,
                    None => self.resets += 1, // the loop continues with the same exchange
                }
            }
            let (request, mut reply) = serve.finish();
            match request {
                Ok(Request::GetProcessInfo(get)) => reply.answer(&get, &self.info),
                Ok(Request::ResumeRuntime(resume)) => {
                    self.suspended = false;
                    reply.answer(&resume, &Status::OK)
                }
                Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND),
                Err(_) => Ok(()), // the reply is a refusal already
            }
            .map_err(Failure::Encode)?;
            drive_polled(&mut reply, driver).await
        }
    }
}

/// The other end: a tool, which can also be a device with little memory.
mod tool {
    use embedded_io_async::{Read, Write};
    use ipc_proto::{Answer, Call, Command};

    use crate::clock::Clock;
    use crate::link::{Failure, drive};

    /// Sends a command. Returns `None` if there is no answer within a second.
    pub(crate) async fn call<'b, C: Command>(
        command: &C,
        line: &mut (impl Read + Write),
        clock: &Clock,
        buf: &'b mut [u8],
    ) -> Result<Option<Answer<'b, C::Response<'b>>>, Failure> {
        let mut call = Call::new(command, buf).map_err(Failure::Encode)?;
        match clock.with_timeout(1000, drive(&mut call, line)).await {
            Some(driven) => driven?,
            None => return Ok(None),
        }
        call.finish().map(Some).map_err(Failure::Protocol)
    }
}

/// A clock for this example. It advances only when all tasks wait.
mod clock {
    use core::cell::Cell;
    use core::future::poll_fn;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    #[derive(Default)]
    pub(crate) struct Clock {
        /// The time in milliseconds.
        pub(crate) now: Cell<u64>,
        /// Whether a task has moved bytes since the clock was last checked.
        pub(crate) busy: Cell<bool>,
    }

    impl Clock {
        /// Runs the future, or drops it after this number of milliseconds and returns `None`.
        pub(crate) async fn with_timeout<T>(
            &self,
            milliseconds: u64,
            future: impl Future<Output = T>,
        ) -> Option<T> {
            let (mut future, until) = (pin!(future), self.now.get() + milliseconds);
            poll_fn(|context| match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if self.now.get() >= until => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            })
            .await
        }

        /// Runs two tasks to the end of both.
        pub(crate) fn run<A, B>(&self, a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
            let (mut a, mut b) = (pin!(a), pin!(b));
            let (mut of_a, mut of_b) = (None, None);
            let mut context = Context::from_waker(Waker::noop());
            loop {
                if of_a.is_none() {
                    of_a = ready(a.as_mut().poll(&mut context));
                }
                if of_b.is_none() {
                    of_b = ready(b.as_mut().poll(&mut context));
                }
                match (of_a, of_b) {
                    (Some(of_a), Some(of_b)) => return (of_a, of_b),
                    unfinished => (of_a, of_b) = unfinished,
                }
                if !self.busy.replace(false) {
                    self.now.set(self.now.get() + 1);
                    assert!(self.now.get() < 10_000, "both tasks hang");
                }
            }
        }
    }

    fn ready<T>(poll: Poll<T>) -> Option<T> {
        if let Poll::Ready(output) = poll { Some(output) } else { None }
    }
}

/// A serial line for this example, with a queue of 16 bytes in each direction.
mod line {
    extern crate std;
    use core::cell::RefCell;
    use core::future::poll_fn;
    use core::task::{Context, Poll};
    use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
    use std::collections::VecDeque;

    use crate::clock::Clock;
    use crate::link::Driver;

    const FIFO: usize = 16;

    /// For each end: the bytes that it can read.
    #[derive(Default)]
    pub(crate) struct Line([RefCell<VecDeque<u8>>; 2]);

    pub(crate) struct End<'a> {
        line: &'a Line,
        clock: &'a Clock,
        me: usize,
    }

    impl Line {
        pub(crate) fn ends<'a>(&'a self, clock: &'a Clock) -> [End<'a>; 2] {
            [0, 1].map(|me| End { line: self, clock, me })
        }
    }

    impl Driver for End<'_> {
        // `Clock::run` polls both tasks again and again, so these functions need not wake a task.
        fn poll_read(&mut self, _: &mut Context<'_>, space: &mut [u8]) -> Poll<Result<usize, ErrorKind>> {
            let mut bytes = self.line.0[self.me].borrow_mut();
            let n = space.len().min(bytes.len());
            if n == 0 {
                return Poll::Pending;
            }
            space.iter_mut().zip(bytes.drain(..n)).for_each(|(to, byte)| *to = byte);
            self.clock.busy.set(true);
            Poll::Ready(Ok(n))
        }

        fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, ErrorKind>> {
            let mut queue = self.line.0[1 - self.me].borrow_mut();
            let n = bytes.len().min(FIFO - queue.len());
            if n == 0 {
                return Poll::Pending;
            }
            queue.extend(&bytes[..n]);
            self.clock.busy.set(true);
            Poll::Ready(Ok(n))
        }
    }

    impl ErrorType for End<'_> {
        type Error = ErrorKind;
    }

    impl Read for End<'_> {
        async fn read(&mut self, buf: &mut [u8]) -> Result<usize, ErrorKind> {
            poll_fn(|context| self.poll_read(context, buf)).await
        }
    }

    impl Write for End<'_> {
        async fn write(&mut self, buf: &[u8]) -> Result<usize, ErrorKind> {
            poll_fn(|context| self.poll_write(context, buf)).await
        }

        async fn flush(&mut self) -> Result<(), ErrorKind> {
            Ok(())
        }
    }
}

fn main() {
    extern crate std;
    use embedded_io_async::Write;
    use ipc_proto::types::{ProcessInfo, Status};
    use ipc_proto::{Answer, Call, Exchange, GetProcessInfo, Guid, ResumeRuntime, Step};

    let info = ProcessInfo {
        process_id: 1,
        runtime_cookie: Guid(*b"of the one board"),
        command_line: "firmware".into(),
        os: "Unknown".into(),
        arch: "arm32".into(),
    };
    let mut device = device::Device { info, suspended: true, resets: 0 };
    let (line, clock) = (line::Line::default(), clock::Clock::default());
    let [mut far, mut near] = line.ends(&clock);

    let serve = async {
        while device.suspended {
            device.serve(&mut far, &clock).await.expect("the line works");
        }
    };
    let ask = async {
        let mut buf = [0; 256];
        let answer = tool::call(&GetProcessInfo {}, &mut near, &clock, &mut buf).await.expect("it answers");
        assert_eq!(answer, Some(Answer::Ok(info)));

        // The tool sends half a request, and the rest 105 milliseconds later.
        let mut call = Call::new(&ResumeRuntime {}, &mut buf).expect("it fits");
        let Step::Send(bytes) = call.step() else { unreachable!() };
        let n = near.write(&bytes[..10]).await.expect("it takes it");
        call.advance(n).expect("nothing was received");
        assert_eq!(clock.with_timeout(105, core::future::pending::<()>()).await, None);
        link::drive(&mut call, &mut near).await.expect("it answers");
        assert_eq!(call.finish(), Ok(Answer::Ok(Status::OK)));
    };
    clock.run(serve, ask);
    // 10 resets need 100 ms: the watchdog was also reset in the middle of the request.
    assert!(device.resets >= 10 && !device.suspended, "{}", device.resets);
    std::println!("{} on {} was asked, and resumed", info.command_line, info.arch);
}
