//! An in-memory pipe, and a clock that is a number: how to test timeouts, and everything else, without waiting.
//!
//! `cargo run -p ipc-proto --example pipe`
//!
//! No code in `ipc-proto` reads a clock. The caller limits the time of an exchange. Where time is part of the protocol,
//! a machine returns how long to wait, or receives the time from its caller. So a test sets the time, and every run is
//! the same.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an example is to be read")]
use core::error::Error;
use std::collections::VecDeque;
use std::io::Read;

use ipc_proto::port::{ConnectEvent, ConnectPort, ConnectStep};
use ipc_proto::types::ProcessInfo;
use ipc_proto::{
    Advertise, Answer, Call, Exchange, GetProcessInfo, Guid, HResult, ProtocolError, ReceiveAdvertise,
    Request, Serve, Session, SessionEnd, SessionPhase, SessionTimeout, Step, StopEvent, StopStep, Text,
};

const INFO: ProcessInfo<'static> = ProcessInfo {
    process_id: 42,
    runtime_cookie: Guid(*b"a runtime's name"),
    command_line: Text::new("app --fast"),
    os: Text::new("Linux"),
    arch: Text::new("x64"),
};

/// The bytes in transit between a client and a runtime.
#[derive(Default)]
struct Pipe {
    to_runtime: VecDeque<u8>,
    to_tool: VecDeque<u8>,
}

/// Drives an exchange until it would block, in pieces of at most `piece` bytes.
fn drive(
    exchange: &mut impl Exchange,
    from: &mut VecDeque<u8>,
    to: &mut VecDeque<u8>,
    piece: usize,
) -> Result<(), Box<dyn Error>> {
    loop {
        let n = match exchange.step() {
            Step::Send(bytes) => {
                let n = bytes.len().min(piece);
                to.extend(&bytes[..n]);
                n
            }
            Step::Receive(_) if from.is_empty() => return Ok(()), // not 0: the peer has not closed
            Step::Receive(space) => {
                let n = space.len().min(piece);
                from.read(&mut space[..n])?
            }
            Step::Done => return Ok(()),
        };
        exchange.advance(n)?;
    }
}

/// A client calls a runtime over a pipe. The answer does not depend on the length of the pieces.
fn a_command(piece: usize) -> Result<(), Box<dyn Error>> {
    let Pipe { to_runtime, to_tool } = &mut Pipe::default();
    let (mut buf, mut receive, mut send) = ([0; 256], [0; 256], [0; 256]);

    let mut call = Call::new(&GetProcessInfo {}, &mut buf)?;
    drive(&mut call, to_tool, to_runtime, piece)?;

    let mut serve = Serve::new(&mut receive, &mut send)?;
    drive(&mut serve, to_runtime, to_tool, piece)?;
    let (request, mut reply) = serve.finish();
    match request {
        Ok(Request::GetProcessInfo(get)) => reply.answer(&get, &INFO)?,
        Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
        Err(_) => {} // the reply is a refusal already
    }
    drive(&mut reply, to_runtime, to_tool, piece)?;

    drive(&mut call, to_tool, to_runtime, piece)?;
    assert_eq!(call.finish()?, Answer::Ok(INFO));
    Ok(())
}

/// A runtime sends a byte of its answer each second: a client that waits for five seconds has received four bytes.
fn a_slow_runtime() -> Result<(), Box<dyn Error>> {
    let Pipe { to_runtime, to_tool } = &mut Pipe::default();
    let (mut now, deadline) = (0, 5_000);
    let mut buf = [0; 256];
    let mut call = Call::new(&GetProcessInfo {}, &mut buf)?;
    while now < deadline {
        drive(&mut call, to_tool, to_runtime, 256)?;
        now += 1_000;
        to_tool.extend(b"DOTNET_IPC_V1\0".get(now / 1_000 - 1));
    }
    assert_eq!(call.received(), 4);
    assert_eq!(call.finish(), Err(ProtocolError::Closed { received: 4 }));
    Ok(())
}

/// A monitor starts one second after the runtime. The runtime finds the monitor at its next attempt.
fn a_late_monitor() -> Result<(), Box<dyn Error>> {
    let (mut now, started, mut tries) = (0, 1_000, Vec::new());
    let advertise = Advertise { runtime_cookie: INFO.runtime_cookie, process_id: 42, future: 0 };
    let mut port = ConnectPort::new(&advertise);
    let mut to_monitor = VecDeque::new();
    loop {
        let event = match port.step() {
            ConnectStep::Connect => {
                tries.push(now);
                if now < started { ConnectEvent::Failed } else { ConnectEvent::Connected }
            }
            ConnectStep::Wait { milliseconds } => {
                now += milliseconds;
                ConnectEvent::Waited
            }
            ConnectStep::Send(frame) => {
                to_monitor.extend(frame);
                ConnectEvent::Sent(frame.len())
            }
            ConnectStep::Serve => break,
        };
        port.advance(event);
    }
    assert_eq!(tries, [0, 10, 22, 37, 55, 77, 104, 137, 178, 229, 292, 370, 467, 588, 739, 927, 1162]);

    let mut receive = ReceiveAdvertise::new();
    drive(&mut receive, &mut to_monitor, &mut VecDeque::new(), 5)?;
    assert_eq!(receive.finish()?, advertise);
    Ok(())
}

/// A session is stopped after ten seconds, with a limit of another minute. The runtime writes a byte each second, and
/// ends the trace after `length` bytes, unless the limit ends the session first.
fn a_session(length: u64) -> Result<SessionEnd, Box<dyn Error>> {
    let Pipe { to_runtime, to_tool } = &mut Pipe::default(); // the Stop connection
    let mut session = Session::new(7);
    let mut now = 0;
    loop {
        if now == 10 {
            session.stop(70);
        }
        session.tick(now);
        if let Some(end) = session.end() {
            assert!(now <= 70);
            return Ok(end);
        }
        if now < length {
            session.stream_advance(b".");
        } else if now == length {
            session.stream_advance(b"\x06\x01");
            session.stream_advance(b"");
            to_tool.extend(b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x07\0\0\0\0\0\0\0");
        }
        loop {
            let event = match session.stop_step() {
                StopStep::Connect => StopEvent::Connected,
                StopStep::Send(bytes) => {
                    to_runtime.extend(bytes);
                    StopEvent::Sent(bytes.len())
                }
                StopStep::Receive(space) if !to_tool.is_empty() => StopEvent::Received(to_tool.read(space)?),
                StopStep::Receive(_) | StopStep::Nothing => break,
            };
            session.stop_advance(event);
        }
        now += 1;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for piece in [1, 7, 256] {
        a_command(piece)?;
    }
    a_slow_runtime()?;
    a_late_monitor()?;
    assert_eq!(a_session(20)?, SessionEnd::Complete);
    let timeout = SessionTimeout { phase: SessionPhase::EndOfStream, sent: 28, received: 0, drained: 60 };
    assert_eq!(a_session(u64::MAX)?, SessionEnd::TimedOut(timeout));
    println!("two minutes and more have passed");
    Ok(())
}
