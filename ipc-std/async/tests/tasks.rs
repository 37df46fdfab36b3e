//! A monitor in an executor: several tasks wait at once, and each is woken for its own reason.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use core::time::Duration;
use std::sync::Arc;

use ipc_async::{AsyncClient, AsyncMonitor, AsyncMonitorEvent, AsyncServer, Timeouts, TraceConfig, drive};
use ipc_proto::types::{EventLevel, Provider, Status};
use ipc_proto::{Advertise, Guid, HResult, Request};
use ipc_testkit::{FakePort, FakeRuntime, Profile};
use tokio::net::UnixListener;

#[path = "../examples/async_stream/transport.rs"]
mod transport;
use transport::Tokio;

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// A task accepts, another waits for events, others wait for runtimes. The runtimes are a fake one and a server.
#[test]
fn tasks_wait_for_events_and_for_runtimes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("port");
    run(async {
        let monitor = Arc::new(
            AsyncMonitor::new(Tokio(path.clone()))
                .with_timeouts(Timeouts { call: Duration::from_secs(60), ..Timeouts::default() }),
        );
        let (listener, inlet) = (UnixListener::bind(&path).unwrap(), Arc::clone(&monitor));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                inlet.push(stream);
            }
        });
        let (to, events) = (tokio::sync::mpsc::unbounded_channel(), Arc::clone(&monitor));
        let (sender, mut arrivals) = to;
        tokio::spawn(async move { while sender.send(events.next_event().await).is_ok() {} });

        let ports = vec![FakePort { path: path.clone(), suspended: false }];
        let fake = FakeRuntime::start(Profile { ports, ..Profile::net10() }).unwrap();
        let Some(AsyncMonitorEvent::Arrived(first)) = arrivals.recv().await else {
            panic!("nothing arrived")
        };

        let advertise = Advertise { runtime_cookie: Guid([2; 16]), process_id: 2, future: 0 };
        let mut server = AsyncServer::new(Tokio(path.clone()), &advertise);
        let server = tokio::spawn(async move {
            let (mut receive, mut send) = ([0; 4096], [0; 4096]);
            for _ in 0..20 {
                let (mut stream, serve) = server.accept(&mut receive, &mut send).await.unwrap();
                let (request, mut reply) = serve.finish();
                match request {
                    Ok(Request::ResumeRuntime(resume)) => reply.answer(&resume, &Status::OK).unwrap(),
                    _ => reply.refuse(HResult::NOT_SUPPORTED).unwrap(),
                }
                drive::<Tokio>(&mut reply, &mut stream).await.unwrap();
            }
        });
        let Some(AsyncMonitorEvent::Arrived(second)) = arrivals.recv().await else {
            panic!("nothing arrived")
        };
        assert_eq!(second.process_id, 2);

        // Both runtimes get commands from several tasks.
        let mut tasks = Vec::new();
        for (cookie, number) in [(first.cookie, 10), (second.cookie, 10), (second.cookie, 10)] {
            let client = monitor.client(cookie);
            tasks.push(tokio::spawn(async move {
                for _ in 0..number {
                    client.resume().await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        server.await.unwrap();
        let Some(AsyncMonitorEvent::Left(left)) = arrivals.recv().await else { panic!("it did not leave") };
        assert_eq!(left, second);

        // A trace has one connection of the runtime, and its Stop the next.
        let client = monitor.client(first.cookie);
        let providers = [Provider {
            keywords: u64::MAX,
            level: EventLevel::VERBOSE,
            name: "Lab-Workload".into(),
            arguments: "".into(),
        }];
        let mut session = client.start_tracing(&TraceConfig::new(&providers)).await.unwrap();
        assert_eq!(client.process_info().await.unwrap().os, "Linux");
        session.stop();
        while session.read(&mut [0; 4096]).await.unwrap() > 0 {}
        assert!(session.is_complete());
        let direct = AsyncClient::new(Tokio(fake.path().to_owned()));
        assert_eq!(direct.process_info().await.unwrap().command_line, "/app/Fake --of-a runtime");
    });
}
