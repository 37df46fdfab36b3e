//! The asynchronous client: plans, busy runtimes, slow connects, reads that are dropped, deadlines.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use ipc_async::{
    AsyncClient, AsyncConnector, AsyncTraceSession, AsyncTransport, BoxedFuture, Error, Timeouts, TraceConfig,
};
use ipc_proto::types::{EventLevel, Provider, SessionBufferMode};
use ipc_proto::{Code, ResumeRuntime, SessionEnd, SetEnvironmentVariable, Step};
use ipc_std::{ErrorKind as Kind, Phase};
use ipc_testkit::{FakeRuntime, Fault, Profile};
use tokio::io::AsyncWrite;
use tokio::net::UnixStream;

const SHORT: Duration = Duration::from_millis(300);

#[path = "../examples/async_stream/transport.rs"]
mod transport;

/// A transport that needs several polls to connect, and that fails to connect as long as the runtime is busy.
struct Tokio {
    path: PathBuf,
    busy: Arc<AtomicU32>,
    /// How many polls return `Pending` before the connection is there.
    slow: u32,
}

impl AsyncConnector for Tokio {
    type Connecting = BoxedFuture<io::Result<UnixStream>>;

    fn connect(&self) -> Self::Connecting {
        let (mut pending, busy, path) = (self.slow, Arc::clone(&self.busy), self.path.clone());
        Box::pin(async move {
            poll_fn(|context| match pending.checked_sub(1) {
                None => Poll::Ready(()),
                Some(fewer) => {
                    pending = fewer;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            })
            .await;
            match busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |busy| busy.checked_sub(1)) {
                Ok(_) => Err(ErrorKind::WouldBlock.into()),
                Err(_) => UnixStream::connect(path).await,
            }
        })
    }
    fn peer(&self) -> &str {
        "the far runtime"
    }
}

impl AsyncTransport for Tokio {
    type Stream = UnixStream;
    type Sleep = tokio::time::Sleep;

    fn sleep(&self, limit: Duration) -> Self::Sleep {
        tokio::time::sleep(limit)
    }
    fn poll_transfer(
        stream: &mut UnixStream,
        context: &mut Context<'_>,
        step: Step<'_>,
    ) -> Poll<io::Result<usize>> {
        transport::Tokio::poll_transfer(stream, context, step)
    }
}

fn client(runtime: &FakeRuntime) -> (AsyncClient<Tokio>, Arc<AtomicU32>) {
    let busy = Arc::new(AtomicU32::new(0));
    let path = runtime.path().to_owned();
    (AsyncClient::new(Tokio { path, busy: Arc::clone(&busy), slow: 20 }), busy)
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

async fn start<A: AsyncConnector>(client: &AsyncClient<A>) -> AsyncTraceSession<A> {
    let providers = [Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: "Lab-Workload".into(),
        arguments: "".into(),
    }];
    let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
    client.start_tracing(&config).await.unwrap()
}

#[test]
fn commands_and_their_older_ones() {
    let runtime = FakeRuntime::start(Profile { version: 6, ..Profile::net8() }).unwrap();
    let (client, busy) = client(&runtime);
    run(async {
        busy.store(4, Ordering::SeqCst);
        let info = client.process_info().await.unwrap();
        assert_eq!(info.command_line, "/app/Fake --of-a runtime");
        assert!(info.portable_rid.to_utf8().is_none(), "by GetProcessInfo2");
        let long = "x".repeat(5000); // longer than the first buffer
        let set = SetEnvironmentVariable { name: "A".into(), value: long.as_str().into() };
        client.call(&set, |_| ()).await.unwrap();
        assert_eq!(client.environment().await.unwrap().get("A").unwrap(), long.as_str());
        let empty = SetEnvironmentVariable { name: "".into(), value: "".into() };
        assert_eq!(client.call(&empty, |_| ()).await.unwrap_err().kind(), Kind::Invalid);
    });
}

#[test]
fn reads_that_are_dropped_lose_nothing() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (client, busy) = client(&runtime);
    run(async {
        let mut session = start(&client).await;
        assert_eq!((session.command(), session.lost_features().iter().count()), (Code(0x0203), 1));
        busy.store(3, Ordering::SeqCst); // the runtime is busy when the Stop connects
        session.stop();
        let (mut buf, mut stream) = (vec![0; 4096], Vec::new());
        while session.end().is_none() {
            // Each read is polled once and dropped, also while the Stop connects.
            let n = poll_fn(|context| match session.poll_read(context, &mut buf) {
                Poll::Pending => Poll::Ready(None),
                Poll::Ready(n) => Poll::Ready(Some(n.unwrap())),
            });
            let n = n.await;
            stream.extend_from_slice(buf.get(..n.unwrap_or(0)).unwrap());
            tokio::task::yield_now().await;
            if n.is_none() {
                tokio::select! {
                    n = session.read(&mut buf) => stream.extend_from_slice(buf.get(..n.unwrap()).unwrap()),
                    () = tokio::time::sleep(Duration::from_millis(1)) => {}
                }
            }
        }
        assert_eq!(session.end(), Some(SessionEnd::Complete));
        assert!(stream.starts_with(b"Nettrace") && stream.len() > 1000);
    });
}

#[test]
fn deadlines_hold() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (client, busy) = client(&runtime);
    let timeouts = Timeouts { call: SHORT, stop: SHORT, ..Timeouts::default() };
    let client = client.with_timeouts(timeouts);
    run(async {
        let mut session = start(&client).await;
        busy.store(u32::MAX, Ordering::SeqCst);
        let error = client.call(&ResumeRuntime {}, |_| ()).await.unwrap_err();
        assert!(matches!(error, Error::Timeout { phase: Phase::Connecting, .. }), "{error}");
        session.stop();
        let error = loop {
            if let Err(e) = session.read(&mut [0; 4096]).await {
                break e;
            }
        };
        assert!(error.to_string().contains("the far runtime"), "{error}");
        busy.store(0, Ordering::SeqCst);
        runtime.set_fault(Fault::Silent);
        let error = client.process_info().await.unwrap_err();
        let Error::Timeout { phase, sent: 20, received: 0, .. } = error else { panic!("{error}") };
        assert_eq!(phase, Phase::AwaitingAnswer);
    });
}

/// A transport that sends nothing before it is flushed, as WebSockets do.
struct Buffered(PathBuf);

impl AsyncConnector for Buffered {
    type Connecting = BoxedFuture<io::Result<Self::Stream>>;

    fn connect(&self) -> Self::Connecting {
        let path = self.0.clone();
        Box::pin(async move { Ok((UnixStream::connect(path).await?, Vec::new())) })
    }
}

impl AsyncTransport for Buffered {
    type Stream = (UnixStream, Vec<u8>);
    type Sleep = tokio::time::Sleep;

    fn sleep(&self, limit: Duration) -> Self::Sleep {
        tokio::time::sleep(limit)
    }
    fn poll_transfer(
        (stream, buffered): &mut Self::Stream,
        context: &mut Context<'_>,
        step: Step<'_>,
    ) -> Poll<io::Result<usize>> {
        match step {
            Step::Send(bytes) => {
                buffered.extend_from_slice(bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            Step::Receive(_) => Tokio::poll_transfer(stream, context, step),
            Step::Done => {
                while !buffered.is_empty() {
                    let n = ready!(Pin::new(&mut *stream).poll_write(context, buffered))?;
                    buffered.drain(..n);
                }
                Poll::Ready(Ok(0))
            }
        }
    }
}

#[test]
fn a_transport_with_a_buffer_is_flushed_before_an_answer() {
    let runtime = FakeRuntime::start(Profile { version: 6, ..Profile::net8() }).unwrap();
    let client = AsyncClient::new(Buffered(runtime.path().to_owned()));
    run(async {
        assert_eq!(client.process_info().await.unwrap().os, "Linux");
        assert!(client.environment().await.unwrap().get("HOME").is_some());
        let providers = [Provider {
            keywords: u64::MAX,
            level: EventLevel::VERBOSE,
            name: "Lab-Workload".into(),
            arguments: "".into(),
        }];
        let mut session = client.start_tracing(&TraceConfig::new(&providers)).await.unwrap();
        session.stop();
        while session.read(&mut [0; 4096]).await.unwrap() > 0 {}
        assert!(session.is_complete());
    });
}

#[test]
fn a_refused_stop_is_an_error_with_the_code_and_can_be_repeated() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (client, _) = client(&runtime);
    run(async {
        let mut session = start(&client).await;
        runtime.on(Code(0x0201), |_| ipc_testkit::Response::Refuse(ipc_proto::HResult::FAIL));
        session.stop();
        let error = loop {
            if let Err(e) = session.read(&mut [0; 4096]).await {
                break e;
            }
        };
        assert!(error.to_string().contains("refuses StopTracing"), "{error}");
        assert_eq!(session.end(), None);
    });
}

/// A transport that misbehaves once the flag is set: a read fails, or reports more bytes than it was lent.
struct Misbehaving(Tokio, Arc<AtomicU32>);

impl AsyncTransport for Misbehaving {
    type Stream = (UnixStream, Arc<AtomicU32>);
    type Sleep = tokio::time::Sleep;

    fn sleep(&self, limit: Duration) -> Self::Sleep {
        self.0.sleep(limit)
    }
    fn poll_transfer(
        (stream, fault): &mut Self::Stream,
        context: &mut Context<'_>,
        step: Step<'_>,
    ) -> Poll<io::Result<usize>> {
        match (&step, fault.load(Ordering::SeqCst)) {
            (Step::Receive(space), 1) => Poll::Ready(Ok(space.len().saturating_add(1))),
            (Step::Receive(_), 2) => Poll::Ready(Err(io::Error::other("the cable is broken"))),
            _ => Tokio::poll_transfer(stream, context, step),
        }
    }
}

impl AsyncConnector for Misbehaving {
    type Connecting = BoxedFuture<io::Result<Self::Stream>>;

    fn connect(&self) -> Self::Connecting {
        let (connecting, fault) = (self.0.connect(), Arc::clone(&self.1));
        Box::pin(async move { Ok((connecting.await?, fault)) })
    }
    fn peer(&self) -> &str {
        self.0.peer()
    }
}

/// A fault of the transport within a trace is an error with the peer and the phase, and the session has ended.
#[test]
fn a_transport_that_misbehaves_in_a_trace_is_an_error() {
    for (number, text) in [(1, "101 bytes are reported, and 100 were lent"), (2, "the cable is broken")] {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        let (fault, busy) = (Arc::new(AtomicU32::new(0)), Arc::default());
        let tokio = Tokio { path: runtime.path().to_owned(), busy, slow: 0 };
        let client = AsyncClient::new(Misbehaving(tokio, Arc::clone(&fault)));
        run(async {
            let mut session = start(&client).await;
            let mut buf = [0; 100];
            assert!(session.read(&mut buf).await.unwrap() > 0);
            fault.store(number, Ordering::SeqCst);
            let error = session.read(&mut buf).await.unwrap_err();
            let error = error.downcast::<Error>().unwrap().to_string();
            assert!(error.starts_with("the far runtime: ") && error.contains(text), "{error}");
            assert_eq!(session.end(), Some(SessionEnd::CutOff));
            assert_eq!(session.read(&mut buf).await.unwrap(), 0);
        });
    }
}
