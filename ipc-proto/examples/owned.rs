//! Connections that own their buffers, many of them on one thread.
//!
//! `cargo run -p ipc-proto --example owned`
//!
//! An exchange borrows its buffers, so a struct cannot own the buffers and the exchange. Here, a connection owns the
//! buffers and the suspended exchange. It resumes the exchange whenever the connection is ready, as in an event loop.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "an example must be easy to read"
)]
use core::error::Error;
use std::collections::VecDeque;
use std::io::Read;

use ipc_proto::types::ProcessInfo;
use ipc_proto::{
    Answer, Call, EncodeError, Exchange, GetProcessInfo, Guid, HResult, ProtocolError, Request, Serve, Step,
    SuspendedCall, SuspendedReply, SuspendedServe,
};

/// A connection in memory: the bytes that one end has sent and the other end has not received yet.
#[derive(Default)]
struct Pipe {
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
}

/// Drives an exchange until it would block; returns whether it is over. The pipe moves at most 7 bytes at a time.
fn drive(
    exchange: &mut impl Exchange,
    from: &mut VecDeque<u8>,
    to: &mut VecDeque<u8>,
) -> Result<bool, ProtocolError> {
    loop {
        let n = match exchange.step() {
            Step::Send(bytes) => {
                let n = bytes.len().min(7);
                to.extend(&bytes[..n]);
                n
            }
            Step::Receive(_) if from.is_empty() => return Ok(false),
            Step::Receive(space) => {
                let n = space.len().min(7);
                from.read(&mut space[..n]).unwrap_or_default()
            }
            Step::Done => return Ok(true),
        };
        exchange.advance(n)?;
    }
}

/// The client's end of a connection.
struct Client {
    buf: Vec<u8>,
    call: SuspendedCall<GetProcessInfo>,
}

impl Client {
    fn new() -> Result<Self, EncodeError> {
        let mut buf = vec![0; 32]; // smaller than the answer
        let call = Call::new(&GetProcessInfo {}, &mut buf)?.suspend();
        Ok(Self { buf, call })
    }

    /// Continues the call; returns the process id if the answer has arrived.
    fn ready(&mut self, pipe: &mut Pipe) -> Result<Option<u64>, Box<dyn Error>> {
        let mut call = self.call.resume(&mut self.buf)?;
        match drive(&mut call, &mut pipe.to_client, &mut pipe.to_server) {
            Ok(true) => match call.finish()? {
                Answer::Ok(info) => Ok(Some(info.process_id)),
                Answer::Refused(error) => Err(format!("refused: {}", error.hresult).into()),
            },
            Ok(false) => {
                self.call = call.suspend();
                Ok(None)
            }
            Err(ProtocolError::BufferTooSmall { needed }) => {
                self.call = call.suspend();
                self.buf.resize(needed, 0); // `resize` keeps the bytes that have arrived
                self.ready(pipe)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The server's end of a connection.
struct Server {
    receive: Vec<u8>,
    send: Vec<u8>,
    state: ServerState,
}

enum ServerState {
    Serving(SuspendedServe),
    Replying(SuspendedReply),
}

impl Server {
    fn new() -> Result<Self, EncodeError> {
        let (mut receive, mut send) = (vec![0; 256], vec![0; 256]);
        let state = ServerState::Serving(Serve::new(&mut receive, &mut send)?.suspend());
        Ok(Self { receive, send, state })
    }

    /// Continues with the request or the reply; returns whether the reply has been sent.
    fn ready(&mut self, process_id: u64, pipe: &mut Pipe) -> Result<bool, Box<dyn Error>> {
        if let ServerState::Serving(serve) = self.state {
            let mut serve = serve.resume(&mut self.receive, &mut self.send)?;
            if !drive(&mut serve, &mut pipe.to_server, &mut pipe.to_client)? {
                self.state = ServerState::Serving(serve.suspend());
                return Ok(false);
            }
            let (request, mut reply) = serve.finish();
            match request {
                Ok(Request::GetProcessInfo(get)) => reply.answer(&get, &info(process_id))?,
                Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
                Err(_) => {} // the reply is a refusal already
            }
            self.state = ServerState::Replying(reply.suspend());
        }
        let ServerState::Replying(reply) = self.state else { return Ok(false) };
        let mut reply = reply.resume(&mut self.send)?;
        let sent = drive(&mut reply, &mut pipe.to_server, &mut pipe.to_client)?;
        self.state = ServerState::Replying(reply.suspend());
        Ok(sent)
    }
}

fn info(process_id: u64) -> ProcessInfo<'static> {
    ProcessInfo {
        process_id,
        runtime_cookie: Guid::NIL,
        command_line: "app --fast".into(),
        os: "Linux".into(),
        arch: "x64".into(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut connections = Vec::new();
    for process_id in 1..=100 {
        connections.push((process_id, Pipe::default(), Client::new()?, Server::new()?));
    }
    let mut answers = Vec::new();
    while answers.len() < connections.len() {
        for (process_id, pipe, client, server) in &mut connections {
            if answers.contains(process_id) {
                continue;
            }
            answers.extend(client.ready(pipe)?);
            server.ready(*process_id, pipe)?;
        }
    }
    assert!(answers.into_iter().eq(1..=100));
    println!("100 connections, each with buffers of its own");
    Ok(())
}
