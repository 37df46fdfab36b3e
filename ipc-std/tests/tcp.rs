//! A client and a server over TCP, which every system has: polled on Unix, by a thread on Windows.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use core::time::Duration;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use ipc_proto::types::{ProcessInfo3, Status};
use ipc_proto::{Advertise, Guid, HResult, Request, Serve, plan};
use ipc_std::{Client, Error, Phase, Server, Stream, Timeouts, drive};

/// A runtime that does not know GetProcessInfo3, and never answers StopTracing.
fn serve(mut stream: Stream) {
    let (mut receive, mut send) = ([0; 4096], [0; 4096]);
    let mut serve = Serve::new(&mut receive, &mut send).unwrap();
    drive(&mut serve, &mut stream).unwrap();
    let (request, mut reply) = serve.finish();
    let info = ProcessInfo3 {
        version: 1,
        process_id: 42,
        runtime_cookie: Guid::NIL,
        command_line: "far".into(),
        os: "Linux".into(),
        arch: "x64".into(),
        managed_entrypoint_assembly_name: "far".into(),
        clr_product_version: "6.0.1".into(),
        portable_rid: "linux-x64".into(),
    };
    let request = request.unwrap();
    match (&request, plan::InfoStep::of(request.code())) {
        (Request::StopTracing(_), _) => {
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
            return;
        }
        (Request::ResumeRuntime(resume), _) => reply.answer(resume, &Status::OK).unwrap(),
        (Request::GetProcessInfo2(_), Some(step)) => reply.answer_untyped(&step.answer(&info)).unwrap(),
        _ => reply.refuse(HResult::UNKNOWN_COMMAND).unwrap(),
    }
    drive(&mut reply, &mut stream).unwrap();
}

#[test]
fn commands_and_deadlines_hold_over_tcp() {
    const HANGS: Duration = Duration::from_secs(60);
    let mut server =
        Server::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 }).unwrap();
    let (inlet, stopper) = (server.inlet(), server.stopper());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            inlet.push(Stream::tcp(tcp).unwrap().with_deadline(Instant::now() + HANGS));
        }
    });
    let runtime = thread::spawn(move || {
        while let Some(incoming) = server.accept().unwrap() {
            serve(incoming.stream);
        }
    });
    let client = Client::over("the router", move |_| Stream::tcp(TcpStream::connect(address)?));
    let info = client.process_info().unwrap();
    assert_eq!((info.command_line.to_string().as_str(), info.portable_rid.to_utf8()), ("far", None));
    client.resume().unwrap();
    let timeouts = Timeouts { stop: Duration::from_millis(300), ..Timeouts::default() };
    let error = client.with_timeouts(timeouts).stop_tracing(1).unwrap_err();
    let Error::Timeout { peer, phase, sent, .. } = &error else { panic!("{error}") };
    assert_eq!((peer.as_str(), *phase, *sent), ("the router", Phase::AwaitingAnswer, 28));
    stopper.stop();
    runtime.join().unwrap();
}
