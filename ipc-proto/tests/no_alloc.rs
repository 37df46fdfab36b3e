//! The crate without the feature `alloc` allocates nothing: a counting allocator checks it.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod allocations;

use core::convert::Infallible;
use core::iter;
use core::task::{Context, Poll, Waker};
use std::io::Write;

use allocations::allocations;
use ipc_fuzz::wire::feed;
use ipc_proto::plan::{
    self, DumpConfig, Fallback, FallbackStep, Flavour, InfoConfig, InfoStep, LostFeature, PlanStep,
    Providers, Runtime, TraceConfig,
};
use ipc_proto::port::{Config, ConnectEvent, ConnectPort, MonitorPort, Port, PortList, Suspension};
use ipc_proto::types::{
    DumpFlags, DumpType, EnvironmentEntry, EventFilter, EventLevel, Format, ProcessInfo3, Provider,
    SessionBufferMode, SessionId, StreamingProvider,
};
use ipc_proto::{
    Advertise, Answer, Array, Call, Code, CollectTracing2, Exchange, Guid, HResult, Message, Parsed,
    PollError, ReceiveAdvertise, Request, RequestError, Serve, ServerError, Step, Text, encode,
    poll_exchange,
};

/// Returns providers with names in every form of a text.
fn providers() -> [Provider<'static>; 8] {
    const UNITS: [u16; 3] = [b'A' as u16, 0xd800, 0x20ac];
    let name = |i| match i % 3 {
        0 => Text::from("Microsoft-Windows-DotNETRuntime"),
        1 => Text::from("Ångström-世"),
        _ => Text::from_utf16(&UNITS),
    };
    core::array::from_fn(|i| Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: name(i),
        arguments: if i == 0 { Text::NULL } else { Text::from("key=value") },
    })
}

fn collect<'a>(providers: &'a [Provider<'a>]) -> CollectTracing2<'a> {
    CollectTracing2 {
        buffer_mb: 256,
        format: Format::NET_TRACE,
        rundown: true,
        providers: Array::from(providers),
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(Box::new(1))), 1);
}

#[test]
fn codec() {
    let (providers, mut buf) = (providers(), [0; 4096]);
    let work = || {
        let command = collect(&providers);
        let bytes = encode(Request::CollectTracing2(command).code(), &command, &mut buf).unwrap();
        let Ok(Parsed::Complete { value, .. }) = Message::parse(bytes) else { panic!("it was encoded") };
        assert_eq!(value.request(), Ok(Request::CollectTracing2(command)));
        let mut end = 0;
        assert_eq!(Message::inspect(bytes, None, &mut |part| end = part.offset + part.bytes.len()), Ok(()));
        assert_eq!(end, bytes.len());
        assert!(Message::parse(b"DOTNET_IPC_V2").is_err());
        assert_eq!(EnvironmentEntry::parse("Ångström=1".into()).unwrap().value, "1");
    };
    assert_eq!(allocations(work), 0);
}

/// Passes the bytes that `from` sends to `to`.
fn carry(from: &mut impl Exchange, to: &mut impl Exchange) {
    while let Step::Send(bytes) = from.step() {
        let mut wire = bytes;
        feed(to, &mut wire, &mut iter::empty()).unwrap();
        let n = bytes.len() - wire.len();
        from.advance(n).unwrap();
    }
}

#[test]
fn exchange() {
    let (providers, mut buffers) = (providers(), [[0; 4096]; 3]);
    let work = || {
        let command = collect(&providers);
        let [tool, receive, send] = &mut buffers;
        let mut call = Call::new(&command, tool).unwrap();
        let mut serve = Serve::new(receive, send).unwrap();
        carry(&mut call, &mut serve);
        let (request, mut reply) = serve.finish();
        let Ok(Request::CollectTracing2(asked)) = request else { panic!("{request:?}") };
        reply.answer(&asked, &SessionId { session_id: 7 }).unwrap();
        carry(&mut reply, &mut call);
        assert_eq!(call.finish(), Ok(Answer::Ok(SessionId { session_id: 7 })));

        let mut receive = ReceiveAdvertise::new();
        let polled = poll_exchange(&mut receive, &mut Context::from_waker(Waker::noop()), |_, step| {
            Poll::Ready(Ok::<_, Infallible>(if let Step::Receive(_) = step { 0 } else { 1 }))
        });
        assert!(matches!(polled, Poll::Ready(Err(PollError::Protocol(_)))));
    };
    assert_eq!(allocations(work), 0);
}

/// Encodes each step of a plan. Passes the step, and the request that a server receives, to `read`.
fn each_step<S: PlanStep + Clone>(first: S, buf: &mut [u8], read: &mut dyn FnMut(&S, Request<'_>)) {
    for step in first.steps() {
        assert_eq!(step.check(), Ok(()));
        let bytes = encode(step.code(), &step, buf).unwrap();
        let Ok(Parsed::Complete { value, .. }) = Message::parse(bytes) else { panic!("it was encoded") };
        read(&step, value.request().unwrap());
    }
}

#[test]
fn plans() {
    let (plain, mut buf, mut steps, mut lost) = (providers(), [0; 4096], 0, 0);
    let filter = EventFilter { enable: true, event_ids: Array::from(&[1, 2]) };
    let filtered = plain.map(|provider| StreamingProvider { filter, ..provider.into() });
    let work = || {
        let runtime = Runtime::default();
        for providers in [Providers::from(&plain), Providers::from(&filtered)] {
            let config = TraceConfig {
                rundown_keyword: 1,
                stackwalk: false,
                buffer_mode: SessionBufferMode::BLOCK,
                ..TraceConfig::new(providers)
            };
            each_step(config.first_step(&runtime), &mut buf, &mut |step, request| {
                let received = TraceConfig::try_from(&request).unwrap();
                assert_eq!(received, *step.config());
                let passes =
                    |id| received.includes("Microsoft-Windows-DotNETRuntime", 1, EventLevel::ERROR, id);
                let filters = providers == Providers::from(&filtered)
                    && !step.lost_features().contains(LostFeature::EventFilters);
                assert!(passes(1) && passes(3) != filters && received.includes_rundown(1));
                lost += step.lost_features().iter().count();
                steps += 1;
            });
        }
        let dump =
            DumpConfig { path: "/core".into(), dump_type: DumpType::FULL, flags: DumpFlags::LOGGING_ENABLED };
        each_step(dump.first_step(&runtime), &mut buf, &mut |_, _| steps += 1);
        each_step(InfoConfig.first_step(&runtime), &mut buf, &mut |step, request| {
            assert_eq!(InfoStep::of(request.code()), Some(*step));
            assert!(plan::hazard(&request, &runtime, None).is_none());
            assert!(plan::explain(step.code(), HResult::UNKNOWN_COMMAND).is_some());
            steps += 1;
        });
    };
    assert_eq!(allocations(work), 0);
    assert_eq!((steps, lost), (4 + 5 + 3 + 3, 6 + 10));
}

/// A [`Fallback`] with a server of .NET 7, which is busy at first, and does not know the newest of three commands.
#[test]
fn fallback() {
    let [mut buf, mut receive, mut send] = [[0; 512]; 3];
    let net_7 = Runtime { version: Some(7), ..Runtime::default() };
    let info = ProcessInfo3 {
        version: 1,
        process_id: 42,
        runtime_cookie: Guid::NIL,
        command_line: "app".into(),
        os: "Linux".into(),
        arch: "x64".into(),
        managed_entrypoint_assembly_name: "app".into(),
        clr_product_version: "7.0.20".into(),
        portable_rid: "linux-x64".into(),
    };
    let work = || {
        let mut fallback = Fallback::new(InfoConfig.first_step(&Runtime::default()), 1_000);
        assert!(matches!(fallback.step(&mut []), FallbackStep::Grow { needed: 20 }));
        assert!(matches!(fallback.step(&mut buf), FallbackStep::Connect));
        fallback.busy(0);
        assert!(matches!(fallback.step(&mut buf), FallbackStep::Wait));
        fallback.tick(fallback.until().unwrap());
        for knows_it in [false, true] {
            assert!(matches!(fallback.step(&mut buf), FallbackStep::Connect));
            fallback.connected();
            let mut serve = Serve::new(&mut receive, &mut send).unwrap();
            while let FallbackStep::Send(bytes) = fallback.step(&mut buf) {
                let n = bytes.len();
                feed(&mut serve, &mut &*bytes, &mut iter::empty()).unwrap();
                fallback.advance(n, &buf);
            }
            let (request, mut reply) = serve.finish_for(&net_7);
            match request {
                Ok(request) => {
                    let step = InfoStep::of(request.code()).unwrap();
                    reply.answer_untyped(&step.answer(&info)).unwrap();
                }
                Err(error) => assert_eq!(error, RequestError::Refused(HResult::UNKNOWN_COMMAND)),
            }
            assert_eq!(request.is_ok(), knows_it);
            while let (FallbackStep::Receive(space), Step::Send(bytes)) =
                (fallback.step(&mut buf), reply.step())
            {
                let n = space.len().min(bytes.len());
                space[..n].copy_from_slice(&bytes[..n]);
                reply.advance(n).unwrap();
                fallback.advance(n, &buf);
            }
        }
        assert_eq!(fallback.command().code(), Code(0x0404));
        let Ok(Answer::Ok(received)) = fallback.finish(&buf) else { panic!("it was answered") };
        assert_eq!(received, ProcessInfo3 { version: 0, portable_rid: Text::NULL, ..info });
        assert_eq!(Runtime::from(&received).version, Some(7));
        assert!(ServerError::has_message(Code(0x0103)));
    };
    assert_eq!(allocations(work), 0);
}

#[test]
fn ports() {
    let advertise = Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 };
    let value = "/tmp/a,nosuspend;/tmp/b,,supsend;,;c,listen";
    let (mut seen, mut text) = (0, [0; 100]);
    let count = allocations(|| {
        let config =
            Config::read(Flavour::CoreClr, |name| (name == "DOTNET_DiagnosticPorts").then_some(value));
        seen = config.ports().count() + config.findings().count();
        let ours = [Port::connect("/tmp/a", true).unwrap()];
        write!(&mut text[..], "{}", PortList::new(&ours).followed_by(value)).unwrap();
        let mut port = ConnectPort::new(&advertise);
        port.advance(ConnectEvent::Failed);
        let mut receive = ReceiveAdvertise::new();
        while let Step::Receive(space) = receive.step() {
            space.fill(0);
            let _ = receive.advance(1);
        }
        let mut monitor = MonitorPort::new([const { None }; 2]);
        let token = monitor.accept((), (), 0).unwrap().token;
        let (_, space) = monitor.receive(token).unwrap();
        space.copy_from_slice(b"ADVR_V1\0a runtime's name\x2a\0\0\0\0\0\0\0\0\0");
        assert!(monitor.advance(token, 34, 0).is_some());
        assert!(monitor.take(&Guid(*b"a runtime's name"), 0).is_some());
        assert!(monitor.on_due(100, |_| true).is_some());
        assert!(!Suspension::new([true, false]).resume(1));
    });
    assert_eq!(count, 0);
    assert!(seen > 3 && text.starts_with(b"/tmp/a,suspend;/tmp/b,,supsend;,;c,listen\0"));
}
