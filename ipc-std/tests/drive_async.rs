//! Exchanges over asynchronous transports.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

use ipc_proto::types::Status;
use ipc_proto::{Answer, Call, ProtocolError, ResumeRuntime, Step};
use ipc_std::{Connection, DriveError, drive_async};

const REQUEST: &[u8] = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
const RESPONSE: &[u8] = b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0";

/// Polls a future at most `times` times.
fn poll<F: Future>(future: F, times: usize) -> Poll<F::Output> {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    (0..times).map(|_| future.as_mut().poll(&mut context)).find(Poll::is_ready).unwrap_or(Poll::Pending)
}

/// A transport in memory that moves one byte at a time, and for each byte is not ready at the first poll.
#[derive(Default)]
struct Memory {
    sent: Vec<u8>,
    received: VecDeque<u8>,
    /// How many bytes of `sent` were flushed, and how often there were some to flush.
    passed: usize,
    flushed: usize,
    polls: usize,
    /// Errors that the next operations return, instead of their own results.
    errors: VecDeque<ErrorKind>,
}

impl Memory {
    fn with_response() -> Self {
        Self { received: RESPONSE.iter().copied().collect(), ..Self::default() }
    }

    /// Does a step at every second poll.
    fn transfer(&mut self, _: &mut Context<'_>, step: Step<'_>) -> Poll<io::Result<usize>> {
        if matches!(step, Step::Done) && self.passed == self.sent.len() {
            return Poll::Ready(Ok(7)); // the number is ignored
        }
        self.polls += 1;
        if self.polls % 2 == 1 {
            return Poll::Pending;
        }
        if let Some(error) = self.errors.pop_front() {
            return Poll::Ready(Err(error.into()));
        }
        Poll::Ready(Ok(match step {
            Step::Send(bytes) => {
                self.sent.extend(bytes.first());
                1
            }
            Step::Receive(space) => {
                self.received.pop_front().zip(space.first_mut()).map_or(0, |(byte, space)| {
                    *space = byte;
                    1
                })
            }
            Step::Done => {
                (self.passed, self.flushed) = (self.sent.len(), self.flushed + 1);
                7
            }
        }))
    }
}

fn resume(buf: &mut [u8]) -> Call<'_, ResumeRuntime> {
    Call::new(&ResumeRuntime {}, buf).unwrap()
}

/// Drives a call over `memory`. Returns its error, or checks that the answer is OK.
fn drive_resume(memory: &mut Memory) -> Result<(), DriveError> {
    let mut buf = [0; 64];
    let mut call = resume(&mut buf);
    let driven = poll(drive_async(&mut call, |context, step| memory.transfer(context, step)), 1000);
    let Poll::Ready(driven) = driven else { panic!("it waits without need") };
    driven?;
    assert_eq!(call.finish().unwrap(), Answer::Ok(Status::OK));
    Ok(())
}

#[test]
fn an_exchange_runs_to_its_end() {
    let mut memory = Memory::with_response();
    memory.received.push_back(b'N'); // the first byte of what follows the response
    drive_resume(&mut memory).unwrap();
    assert_eq!((&*memory.sent, memory.flushed, memory.received.len()), (REQUEST, 1, 1));
}

#[test]
fn a_dropped_future_loses_nothing() {
    for polls in 1..50 {
        let (mut memory, mut buf) = (Memory::with_response(), [0; 64]);
        let mut call = resume(&mut buf);
        let mut futures = 0;
        loop {
            futures += 1;
            let future = drive_async(&mut call, |context, step| memory.transfer(context, step));
            if let Poll::Ready(driven) = poll(future, polls) {
                break driven.unwrap();
            }
        }
        assert_eq!(call.finish().unwrap(), Answer::Ok(Status::OK));
        let steps = REQUEST.len() + RESPONSE.len() + 1;
        assert_eq!(
            (&*memory.sent, memory.flushed, memory.polls),
            (REQUEST, 1, 2 * steps),
            "{futures} futures"
        );
    }
}

#[test]
fn an_error_is_of_the_step_that_failed() {
    let failed = |errors: &[ErrorKind], sent: usize| {
        let mut memory = Memory::with_response();
        memory.errors.extend(errors);
        let error = drive_resume(&mut memory).unwrap_err();
        assert_eq!(memory.sent.len(), sent);
        error
    };
    assert!(
        matches!(failed(&[ErrorKind::TimedOut], 0), DriveError::Send(e) if e.kind() == ErrorKind::TimedOut)
    );
    // After a reset nothing is sent, and the next operation is a receive.
    assert!(matches!(
        failed(&[ErrorKind::BrokenPipe, ErrorKind::TimedOut], 0),
        DriveError::Receive(e) if e.kind() == ErrorKind::TimedOut
    ));
    assert!(matches!(
        failed(&[ErrorKind::ConnectionReset, ErrorKind::ConnectionReset], 0),
        DriveError::Protocol(ProtocolError::Closed { received: 0 })
    ));
}

/// A stream that reports more bytes than it was given violates the contract of `Read` and `Write`. The peer does not.
#[test]
fn a_stream_that_reports_too_many_bytes() {
    struct Lying;
    impl Read for Lying {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            Ok(buf.len() + 1)
        }
    }
    impl Write for Lying {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            Ok(buf.len() + 1)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut buf = [0; 64];
    let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
    let overrun = ProtocolError::Overrun { advanced: 21, lent: 20 };
    let error = ipc_std::drive(&mut call, &mut Lying).unwrap_err();
    assert!(matches!(error, DriveError::Protocol(e) if e == overrun), "{error}");
    let error = Connection::new(Lying).call(&ResumeRuntime {}).unwrap_err();
    assert_eq!(error.kind(), ipc_std::ErrorKind::Io);
    assert!(error.to_string().contains(&overrun.to_string()), "{error}");
}

#[test]
fn an_interrupted_operation_is_repeated() {
    let mut memory = Memory::with_response();
    memory.errors.extend([ErrorKind::Interrupted, ErrorKind::Interrupted]);
    drive_resume(&mut memory).unwrap();
    assert_eq!(memory.sent, REQUEST);
}

#[test]
fn a_failed_flush_is_a_failed_send() {
    let mut buf = [0; 64];
    let mut call = resume(&mut buf);
    let mut memory = Memory::with_response();
    let driven = poll(
        drive_async(&mut call, |context, step| match step {
            Step::Done => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            step => memory.transfer(context, step),
        }),
        1000,
    );
    assert!(matches!(driven, Poll::Ready(Err(DriveError::Send(_)))), "{driven:?}");
}

/// A transport that buffers never has to flush when it is polled to receive.
#[test]
fn a_request_is_flushed_before_the_answer_is_received() {
    let drive = |flush: Option<ErrorKind>| {
        let mut buf = [0; 64];
        let mut call = resume(&mut buf);
        let mut memory = Memory::with_response();
        let mut is_flushed = false;
        let driven = poll(
            drive_async(&mut call, |context, step| match step {
                Step::Done => {
                    is_flushed = true;
                    Poll::Ready(flush.map_or(Ok(0), |kind| Err(kind.into())))
                }
                Step::Receive(_) if !is_flushed => panic!("the request was not sent"),
                step => memory.transfer(context, step),
            }),
            1000,
        );
        (driven, call.finish().is_ok())
    };
    assert!(matches!(drive(None), (Poll::Ready(Ok(())), true)));
    // The peer has answered and closed: the answer counts, and the last flush fails.
    let closed = drive(Some(ErrorKind::BrokenPipe));
    assert!(matches!(closed, (Poll::Ready(Err(DriveError::Send(_))), true)), "{closed:?}");
}

/// Exchanges over streams of tokio with a fake runtime.
#[cfg(unix)]
mod tokio_streams {
    use core::pin::Pin;
    use core::task::{Poll, ready};
    use core::time::Duration;
    use std::path::PathBuf;

    use ipc_proto::types::{EventLevel, Format, Provider, SessionId};
    use ipc_proto::{
        Answer, Array, Call, Code, CollectTracing2, Command, Exchange, GetProcessInfo2, HResult, Step,
        StopTracing,
    };
    use ipc_std::{DriveError, drive_async};
    use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    async fn drive(exchange: &mut impl Exchange, stream: &mut UnixStream) -> Result<(), DriveError> {
        drive_async(exchange, |context, step| match step {
            Step::Send(bytes) => Pin::new(&mut *stream).poll_write(context, bytes),
            Step::Receive(space) => {
                let mut space = ReadBuf::new(space);
                ready!(Pin::new(&mut *stream).poll_read(context, &mut space))?;
                Poll::Ready(Ok(space.filled().len()))
            }
            Step::Done => Pin::new(&mut *stream).poll_flush(context).map_ok(|()| 0),
        })
        .await
    }

    async fn version(path: PathBuf) -> String {
        let (mut stream, mut buf) = (UnixStream::connect(path).await.unwrap(), [0; 4096]);
        let mut call = Call::new(&GetProcessInfo2 {}, &mut buf).unwrap();
        drive(&mut call, &mut stream).await.unwrap();
        let Answer::Ok(info) = call.finish().unwrap() else { panic!("the runtime refuses") };
        info.clr_product_version.to_string()
    }

    /// `spawn` accepts only futures that can move to another thread.
    #[test]
    fn a_command_can_be_a_task() {
        let fake = FakeRuntime::start(Profile::net9()).unwrap();
        let path = fake.path().to_owned();
        assert_eq!(block_on(async { tokio::spawn(version(path)).await.unwrap() }), "9.0.20");
    }

    #[test]
    fn a_timeout_ends_the_wait_for_a_silent_runtime() {
        let fake = FakeRuntime::start(Profile::net9()).unwrap();
        fake.set_fault(Fault::Silent);
        block_on(async {
            assert!(timeout(Duration::from_millis(50), version(fake.path().to_owned())).await.is_err());
            fake.set_fault(None);
            assert_eq!(version(fake.path().to_owned()).await, "9.0.20"); // on a new connection
        });
    }

    /// Many short timeouts, each of which drops the future, and one exchange.
    #[test]
    fn an_exchange_continues_after_a_timeout() {
        let fake = FakeRuntime::start(Profile::net9()).unwrap();
        fake.set_fault(Fault::Drip(Duration::from_millis(1)));
        block_on(async {
            let (mut stream, mut buf) = (UnixStream::connect(fake.path()).await.unwrap(), [0; 4096]);
            let mut call = Call::new(&GetProcessInfo2 {}, &mut buf).unwrap();
            let mut timeouts = 0;
            while timeout(Duration::from_millis(5), drive(&mut call, &mut stream))
                .await
                .map(Result::unwrap)
                .is_err()
            {
                timeouts += 1;
            }
            let Answer::Ok(info) = call.finish().unwrap() else { panic!("the runtime refuses") };
            assert_eq!(info.clr_product_version, "9.0.20");
            assert!(timeouts > 1, "{timeouts}");
        });
        assert_eq!(fake.requests().len(), 1);
    }

    async fn call<'b, C: Command>(
        command: &C,
        stream: &mut UnixStream,
        buf: &'b mut [u8],
    ) -> Result<C::Response<'b>, HResult> {
        let mut call = Call::new(command, buf).unwrap();
        drive(&mut call, stream).await.unwrap();
        match call.finish().unwrap() {
            Answer::Ok(response) => Ok(response),
            Answer::Refused(error) => Err(error.hresult),
        }
    }

    /// The stream follows the answer, and is read while the runtime is stopping the session.
    #[test]
    fn a_trace_is_read_and_stopped_at_the_same_time() {
        const TRACE: &[u8] = include_bytes!("../../testdata/nettrace/gen-net10-lab-small.nettrace");
        let fake = FakeRuntime::start(Profile::net10()).unwrap();
        fake.on(Code(0x0203), |_| Response::Trace(TRACE.to_vec()));
        let providers = [Provider {
            keywords: u64::MAX,
            level: EventLevel::VERBOSE,
            name: "Lab-Workload".into(),
            arguments: "".into(),
        }];
        let start = CollectTracing2 {
            buffer_mb: 16,
            format: Format::NET_TRACE,
            rundown: false,
            providers: Array::from(&providers),
        };
        let trace = block_on(async {
            let (mut stream, mut buf) = (UnixStream::connect(fake.path()).await.unwrap(), [0; 4096]);
            let SessionId { session_id } = call(&start, &mut stream, &mut buf).await.unwrap();
            let mut trace = Vec::new();
            let stop = async {
                let (mut stream, mut buf) = (UnixStream::connect(fake.path()).await.unwrap(), [0; 4096]);
                call(&StopTracing { session_id }, &mut stream, &mut buf).await.map(|_| ())
            };
            let (read, stopped) = tokio::join!(stream.read_to_end(&mut trace), stop);
            assert_eq!((read.unwrap(), stopped), (TRACE.len(), Ok(())));
            trace
        });
        assert_eq!(trace, TRACE);
    }
}

/// A stream that sends nothing before it is flushed. Its peer answers a whole command.
#[derive(Default)]
struct Buffered {
    written: usize,
    flushed: usize,
    answer: Vec<u8>,
}

impl Read for Buffered {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        assert_eq!(self.flushed, 20, "the peer waits for the command");
        let n = buf.len().min(self.answer.len());
        buf.iter_mut().zip(self.answer.drain(..n)).for_each(|(to, from)| *to = from);
        Ok(n)
    }
}
impl Write for Buffered {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.written += buf.len();
        Ok(buf.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.flushed = self.written;
        Ok(())
    }
}

#[test]
fn a_stream_with_a_buffer_is_flushed_before_the_answer() {
    let answer = b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0".to_vec();
    let mut stream = Buffered { answer, ..Buffered::default() };
    let mut buf = [0; 64];
    let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
    ipc_std::drive(&mut call, &mut stream).unwrap();
    assert!(matches!(call.finish(), Ok(Answer::Ok(_))));
}
