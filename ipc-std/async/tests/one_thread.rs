//! Streams that cannot move to another thread, on an executor of one thread with a clock of its own: a monitor with
//! runtimes, servers, deadlines without a wait.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

use core::cell::{Cell, RefCell};
use core::future::{Pending, Ready, pending, poll_fn, ready};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::rc::Rc;

use ipc_async::{
    AsyncClient, AsyncConnector, AsyncMonitor, AsyncMonitorEvent, AsyncServer, AsyncTransport, DumpConfig,
    Error, Phase, Step, Timeouts, TraceConfig, drive,
};
use ipc_proto::plan::{Hazard, InfoStep, Providers};
use ipc_proto::types::{
    DumpFlags, DumpType, EventLevel, PerfMapType, ProcessInfo3, Provider, SessionId, Status,
};
use ipc_proto::{
    Advertise, EnablePerfMap, Encode, Guid, HResult, Reply, Request, ResumeRuntime, Serve, SessionEnd, Text,
    wire::Writer,
};

thread_local! {
    /// The time of the test. It moves when no task has anything to do, to the next time that a task waits for.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static NEXT: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Polls the tasks until the first one is done.
fn run<T>(test: impl Future<Output = T>, other: impl Future) -> T {
    let (mut test, mut other, mut other_ended) = (pin!(test), pin!(other), false);
    let mut context = Context::from_waker(Waker::noop());
    let mut idle = 0;
    for _ in 0..1_000_000 {
        if let Poll::Ready(result) = test.as_mut().poll(&mut context) {
            return result;
        }
        other_ended = other_ended || other.as_mut().poll(&mut context).is_ready();
        // A few rounds in which the tasks can answer each other.
        idle += 1;
        if idle % 8 == 0 {
            if let Some(next) = NEXT.take() {
                NOW.set(next.max(NOW.get()));
            }
        }
    }
    panic!("it does not end");
}

/// A wait until a time.
struct Until(Duration);
impl Future for Until {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if NOW.get() >= self.0 {
            return Poll::Ready(());
        }
        NEXT.set(Some(NEXT.get().map_or(self.0, |next| next.min(self.0))));
        Poll::Pending
    }
}

#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    is_closed: bool,
}

/// An end of a connection in memory. It sends nothing before it is flushed.
struct End {
    from: Rc<RefCell<Pipe>>,
    to: Rc<RefCell<Pipe>>,
    buffered: Vec<u8>,
}

fn pair() -> (End, End) {
    let (a, b) = (Rc::<RefCell<Pipe>>::default(), Rc::<RefCell<Pipe>>::default());
    let end =
        |from: &Rc<_>, to: &Rc<_>| End { from: Rc::clone(from), to: Rc::clone(to), buffered: Vec::new() };
    (end(&a, &b), end(&b, &a))
}

impl Drop for End {
    fn drop(&mut self) {
        self.to.borrow_mut().is_closed = true;
        self.from.borrow_mut().is_closed = true;
    }
}

/// A transport in memory; `accept` gets the other end of each connection.
struct Local<F>(F);

impl<F: Fn(End) -> bool> AsyncTransport for Local<F> {
    type Stream = End;
    type Sleep = Until;

    fn sleep(&self, limit: Duration) -> Until {
        Until(NOW.get().saturating_add(limit))
    }
    fn now() -> Duration {
        NOW.get()
    }
    fn poll_transfer(stream: &mut End, _: &mut Context<'_>, step: Step<'_>) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(match step {
            Step::Send(_) if stream.to.borrow().is_closed => {
                return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
            }
            Step::Send(bytes) => {
                stream.buffered.extend_from_slice(bytes);
                bytes.len()
            }
            Step::Receive(space) => {
                let mut from = stream.from.borrow_mut();
                let n = space.len().min(from.bytes.len());
                if n == 0 && !from.is_closed {
                    return Poll::Pending;
                }
                space.iter_mut().zip(from.bytes.drain(..n)).for_each(|(to, byte)| *to = byte);
                n
            }
            Step::Done => {
                stream.to.borrow_mut().bytes.extend(stream.buffered.drain(..));
                0
            }
        }))
    }
}

impl<F: Fn(End) -> bool> AsyncConnector for Local<F> {
    type Connecting = Ready<io::Result<End>>;

    fn connect(&self) -> Self::Connecting {
        let (ours, other) = pair();
        ready(if (self.0)(other) { Ok(ours) } else { Err(ErrorKind::ConnectionRefused.into()) })
    }
}

type Tool = Local<fn(End) -> bool>;

fn providers() -> [Provider<'static>; 1] {
    [Provider { keywords: 1, level: EventLevel::ERROR, name: "A".into(), arguments: "".into() }]
}

/// Passes control to the other task.
async fn pause() {
    let mut is_first = true;
    poll_fn(|_| if core::mem::replace(&mut is_first, false) { Poll::Pending } else { Poll::Ready(()) }).await;
}

fn info(process_id: u64) -> ProcessInfo3<'static> {
    ProcessInfo3 {
        version: 1,
        process_id,
        runtime_cookie: Guid::NIL,
        command_line: "/app/one".into(),
        os: "Linux".into(),
        arch: "x64".into(),
        managed_entrypoint_assembly_name: "app".into(),
        clr_product_version: "9.0.1".into(),
        portable_rid: Text::NULL,
    }
}

/// Answers the command of `serve` as a runtime that knows only a few.
fn answer<'b>(serve: Serve<'b>, process_id: u64, commands: &RefCell<Vec<u16>>) -> Reply<'b> {
    let (request, mut reply) = serve.finish();
    let request = request.unwrap();
    commands.borrow_mut().push(request.code().0);
    match (&request, InfoStep::of(request.code())) {
        (_, Some(step)) => reply.answer_untyped(&step.answer(&info(process_id))).unwrap(),
        (Request::ResumeRuntime(_) | Request::GenerateCoreDump2(_), _) => {
            reply.answer_untyped(&Status::OK).unwrap()
        }
        (Request::CollectTracing2(_), _) => reply.answer_untyped(&SessionId { session_id: 7 }).unwrap(),
        _ => reply.refuse(HResult::UNKNOWN_COMMAND).unwrap(),
    }
    reply
}

/// Serves the connections of a tool, one after the other.
async fn serve(connections: &RefCell<VecDeque<End>>, commands: &RefCell<Vec<u16>>, kept: &RefCell<Vec<End>>) {
    loop {
        let Some(mut stream) = connections.borrow_mut().pop_front() else {
            pause().await;
            continue;
        };
        let (mut receive, mut send) = ([0; 4096], [0; 4096]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        drive::<Tool>(&mut serve, &mut stream).await.unwrap();
        let is_trace = serve.code().is_some_and(|code| code.set() == 2);
        drive::<Tool>(&mut answer(serve, 42, commands), &mut stream).await.unwrap();
        if is_trace {
            kept.borrow_mut().push(stream);
        }
    }
}

#[test]
fn a_client_has_what_the_blocking_one_has() {
    let (connections, commands, kept) =
        <(RefCell<VecDeque<End>>, RefCell<Vec<u16>>, RefCell<Vec<End>>)>::default();
    let client = AsyncClient::new(Local(|end| {
        connections.borrow_mut().push_back(end);
        true
    }));
    let client = client.with_timeouts(Timeouts { silence: Duration::from_secs(60), ..Timeouts::default() });
    let test = async {
        assert_eq!(client.process_info().await.unwrap().process_id, 42);
        client.resume().await.unwrap();
        let mut connection = client.connect().await.unwrap();
        connection.call(&ResumeRuntime {}, |_| ()).await.unwrap();
        let config = DumpConfig { path: "/tmp/d".into(), dump_type: DumpType::FULL, flags: DumpFlags(0) };
        let outcome = client.write_dump(&config).await.unwrap();
        assert_eq!((outcome.command.0, outcome.lost_features.is_empty()), (0x0102, false));
        // A .NET 9 that may be suspended ends.
        let perf = Request::EnablePerfMap(EnablePerfMap { perf_map_type: PerfMapType::ALL });
        assert_eq!(client.hazard(&perf).await.unwrap(), Some(Hazard::PerfMapWhileSuspended));
        assert_eq!(client.hazard(&Request::ResumeRuntime(ResumeRuntime {})).await.unwrap(), None);
        assert_eq!(commands.take(), [0x0408, 0x0401, 0x0401, 0x0103, 0x0102, 0x0408]);

        let nothing = client.start_tracing(&TraceConfig::new(Providers::NONE)).await.unwrap_err();
        assert!(matches!(nothing, Error::Invalid { .. }), "{nothing}");
        let mut session = client.start_tracing(&TraceConfig::new(&providers())).await.unwrap();
        let begin = NOW.get();
        let silent = session.read(&mut [0; 64]).await.unwrap_err().downcast::<Error>().unwrap();
        let Error::Timeout { phase: Phase::ReadingTrace, after, .. } = silent else { panic!("{silent}") };
        assert_eq!((after, NOW.get() - begin), (Duration::from_secs(60), Duration::from_secs(60)));
        kept.borrow_mut().first_mut().unwrap().to.borrow_mut().bytes.extend(b"Nettrace");
        assert_eq!(session.read(&mut [0; 64]).await.unwrap(), 8, "reading continues");
        assert_eq!(session.received(), 8);
    };
    run(test, serve(&connections, &commands, &kept));
}

#[test]
fn every_wait_has_a_deadline() {
    let silent = RefCell::new(Vec::new());
    let client = AsyncClient::new(Local(|end| {
        silent.borrow_mut().push(end);
        true
    }));
    let seconds = |wait: Duration| (NOW.get() - wait).as_secs();
    run(
        async {
            let begin = NOW.get();
            let error = client.process_info().await.unwrap_err();
            let Error::Timeout { phase: Phase::AwaitingAnswer, sent: 20, received: 0, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(seconds(begin), 10);
            let config = DumpConfig { path: "/d".into(), dump_type: DumpType::FULL, flags: DumpFlags(0) };
            assert!(client.write_dump(&config).await.is_err());
            assert_eq!(seconds(begin), 610);
            // Both calls have one deadline.
            let short = client.clone().with_deadline(NOW.get() + Duration::from_secs(3));
            assert!(short.resume().await.is_err() && short.environment().await.is_err());
            assert_eq!(seconds(begin), 613);
        },
        pending::<()>(),
    );
}

/// A transport whose `connect` never ends.
struct Hangs;
impl AsyncTransport for Hangs {
    type Stream = End;
    type Sleep = Until;

    fn sleep(&self, limit: Duration) -> Until {
        Until(NOW.get().saturating_add(limit))
    }
    fn now() -> Duration {
        NOW.get()
    }
    fn poll_transfer(_: &mut End, _: &mut Context<'_>, _: Step<'_>) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
}
impl AsyncConnector for Hangs {
    type Connecting = Pending<io::Result<End>>;
    fn connect(&self) -> Self::Connecting {
        pending()
    }
}

#[test]
fn a_connect_that_hangs_has_a_deadline() {
    let error = run(AsyncClient::new(Hangs).resume(), pending::<()>()).unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::Connecting, command: None, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "the runtime: timed out after 10.0 s while connecting (0 bytes sent, 0 received)"
    );
}

/// Waits for this time, while nothing happens at the port.
async fn no_event<T: AsyncTransport<Sleep = Until>>(monitor: &AsyncMonitor<T>, limit: Duration) {
    let (mut end, mut event) = (Until(NOW.get() + limit), pin!(monitor.next_event()));
    poll_fn(|context| match event.as_mut().poll(context) {
        Poll::Ready(event) => panic!("{event:?}"),
        Poll::Pending => Pin::new(&mut end).poll(context),
    })
    .await;
}

/// Two runtimes connect to a monitor, take commands and connect again; one of them leaves, the other stays.
#[test]
fn a_monitor_and_its_runtimes() {
    let monitor = AsyncMonitor::new(Local(|_: End| false));
    let (commands, is_gone) = (RefCell::default(), Cell::new(false));
    let runtime = async |number: u8| {
        let advertise =
            Advertise { runtime_cookie: Guid([number; 16]), process_id: number.into(), future: 0 };
        let to_monitor = Local(|end| {
            monitor.push(end);
            true
        });
        let mut server = AsyncServer::new(to_monitor, &advertise);
        loop {
            let (mut receive, mut send) = ([0; 4096], [0; 4096]);
            let (mut stream, serve) = server.accept(&mut receive, &mut send).await.unwrap();
            if is_gone.get() {
                return; // in the middle of a command
            }
            drive::<Tool>(&mut answer(serve, number.into(), &commands), &mut stream).await.unwrap();
        }
    };
    let (first, second) = (runtime(1), runtime(2));
    let runtimes = async {
        let (mut first, mut second) = (pin!(first), pin!(second));
        let mut has_ended = false;
        poll_fn(|context| {
            has_ended = has_ended || first.as_mut().poll(context).is_ready();
            second.as_mut().poll(context)
        })
        .await;
    };
    let test = async {
        let mut arrived = Vec::new();
        for _ in 0..2 {
            let AsyncMonitorEvent::Arrived(runtime) = monitor.next_event().await else { panic!("it left") };
            arrived.push(runtime.process_id);
        }
        assert_eq!(arrived, [1, 2]);
        for number in [1, 2, 1, 2] {
            let client = monitor.client(Guid([number; 16]));
            assert_eq!(client.process_info().await.unwrap().process_id, u64::from(number));
            client.resume().await.unwrap();
        }
        // Time passes: the runtimes wait, so they stay.
        no_event(&monitor, Duration::from_secs(60)).await;
        assert!(monitor.is_waiting(Guid([1; 16])) && monitor.is_waiting(Guid([2; 16])));
        is_gone.set(true);
        let error = monitor.client(Guid([1; 16])).resume().await.unwrap_err();
        assert!(matches!(error, Error::Gone { .. }), "{error}");
        is_gone.set(false);
        let event = monitor.next_event().await;
        assert!(matches!(event, AsyncMonitorEvent::Left(runtime) if runtime.process_id == 1), "{event:?}");
        let error = monitor.client(Guid([1; 16])).resume().await.unwrap_err();
        assert_eq!(error.to_string(), format!("runtime {} is not connected to the port", Guid([1; 16])));
        assert_eq!(monitor.runtimes().len(), 1);

        // A connection that sends no frame, and one that sends something else.
        let (mut other, end) = pair();
        monitor.push(end);
        let event = monitor.next_event().await;
        assert!(matches!(event, AsyncMonitorEvent::Rejected(_)), "{event:?}");
        assert!(other.from.borrow().is_closed);
        (other, _) = {
            let (other, end) = pair();
            other.to.borrow_mut().bytes.extend(b"GET / HTTP/1.1");
            monitor.push(end);
            (other, monitor.next_event().await)
        };
        assert!(other.from.borrow().is_closed);
        assert!(monitor.remove(Guid([2; 16])) && monitor.runtimes().is_empty());
    };
    run(test, runtimes);
}

/// A runtime that closes an idle connection has a second to connect again.
#[test]
fn an_idle_connection_that_ends_is_noticed() {
    let monitor = AsyncMonitor::new(Local(|_: End| false));
    let connect = || {
        let (other, end) = pair();
        let mut frame = [0; Advertise::LEN];
        Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 }
            .encode(&mut Writer::new(&mut frame));
        other.to.borrow_mut().bytes.extend(frame);
        monitor.push(end);
        other
    };
    let test = async {
        let other = connect();
        assert!(matches!(monitor.next_event().await, AsyncMonitorEvent::Arrived(_)));
        drop(other);
        let again = connect();
        no_event(&monitor, Duration::from_secs(30)).await;
        let begin = NOW.get();
        drop(again);
        assert!(matches!(monitor.next_event().await, AsyncMonitorEvent::Left(_)));
        assert_eq!(NOW.get() - begin, Duration::from_secs(1));
    };
    run(test, pending::<()>());
}

/// A runtime that has left is not an error of its Stop: its trace is read to the end.
#[test]
fn the_trace_of_a_runtime_that_has_left_is_read_to_its_end() {
    let monitor = AsyncMonitor::new(Local(|_: End| false));
    let (commands, kept) = (RefCell::default(), RefCell::new(None));
    let to_monitor = Local(|end| {
        monitor.push(end);
        true
    });
    let runtime = async {
        let advertise = Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 };
        let (mut receive, mut send) = ([0; 4096], [0; 4096]);
        let mut server = AsyncServer::new(to_monitor, &advertise);
        let (mut stream, serve) = server.accept(&mut receive, &mut send).await.unwrap();
        drive::<Tool>(&mut answer(serve, 42, &commands), &mut stream).await.unwrap();
        kept.replace(Some(stream));
    };
    let test = async {
        assert!(matches!(monitor.next_event().await, AsyncMonitorEvent::Arrived(_)));
        let client = monitor.client(Guid::NIL);
        let mut session = client.start_tracing(&TraceConfig::new(&providers())).await.unwrap();
        monitor.remove(Guid::NIL);
        session.stop();
        while kept.borrow().is_none() {
            pause().await;
        }
        let Some(stream) = kept.take() else { panic!("it has none") };
        stream.to.borrow_mut().bytes.extend(b"Nettrace");
        assert_eq!(session.read(&mut [0; 64]).await.unwrap(), 8);
        drop(stream);
        assert_eq!(session.read(&mut [0; 64]).await.unwrap(), 0);
        assert_eq!(session.end(), Some(SessionEnd::CutOff));
    };
    run(test, runtime);
}
