//! Serves the requests of one connection.
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::PoisonError;

use ipc_proto::plan::Runtime;
use ipc_proto::wire::Writer;
use ipc_proto::{
    Array, Code, Continuation, Encode, HResult, Message, Reply, Request, SendEnvironment, Serve, ServerError,
    Text,
};
use ipc_std::{DriveError, Incoming, Stream, Turn, drive};

use super::deviation::Deviation;
use super::fake_core::{FakeCore, FakeSession};
use super::fault::Fault;
use super::logged_request::LoggedRequest;
use super::response::Response;
use super::served_connection::ServedConnection;
use crate::conformance::whole_message;

impl FakeCore {
    /// Serves a connection, which is shut down when the runtime is dropped.
    pub(super) fn serve_incoming(&self, Incoming { stream, port, turn }: Incoming) {
        // The turn is dropped after the connection; then the port connects again.
        let mut turn = Some(turn);
        let number = {
            let mut state = self.state();
            if state.ending {
                return;
            }
            let number = state.next_connection;
            state.next_connection = number.wrapping_add(1);
            state.open.insert(number, stream.clone());
            number
        };
        let peer = stream.clone();
        let mut open = OpenConnection { core: self, number, stream };
        open.extend_deadline();
        self.serve(&mut open, Some(&peer), port, &mut turn);
    }

    /// Serves a connection of a port. `peer` is the same connection as a `Stream`, which shows when the client closes
    /// it.
    pub(super) fn serve(
        &self,
        stream: impl Read + Write,
        peer: Option<&Stream>,
        port: usize,
        turn: &mut Option<Turn>,
    ) {
        let fault = self.state().fault.clone();
        let mut connection =
            ServedConnection { stream, peer, port, turn, fault, written: 0, streamed: 0, core: self };
        // A peer that has closed the connection, or an injected fault, is not an error of the runtime.
        let _ = self.converse(&mut connection);
    }

    fn converse<S: Read + Write>(&self, connection: &mut ServedConnection<'_, S>) -> Result<(), DriveError> {
        let (mut receive, mut send) = (vec![0; Message::MAX_LEN], vec![0; Message::MAX_LEN]);
        let Ok(mut serve) = Serve::new(&mut receive, &mut send) else { return Ok(()) };
        drive(&mut serve, connection)?;
        let bytes = serve.bytes().to_vec();
        self.state().log.push(LoggedRequest { bytes: bytes.clone() });
        if !self.wait_until(connection.peer, |state| !state.sessions.values().any(|of| of.blocks_requests)) {
            return Ok(());
        }
        let is_suspended = self.state().suspension.is_suspended();
        let has_handler = serve.code().is_some_and(|code| self.state().handlers.contains_key(&code));
        let is_careful = self.profile.careful || has_handler;
        let deviation = if is_careful { None } else { self.deviation(&bytes, is_suspended) };
        let (request, mut reply) = match has_handler {
            true => serve.finish(),
            false => serve.finish_for(&self.kind(is_suspended)),
        };
        match connection.fault.clone() {
            Some(Fault::Silent) => return connection.wait_for_close(),
            Some(Fault::Garbage(bytes)) => return connection.write_all(&bytes).map_err(DriveError::Send),
            Some(Fault::Delay(delay)) => self.pause(delay),
            _ => {}
        }
        match (deviation, request) {
            (Some(Deviation::Responds(response)), _) => {
                // The request may have no valid form, and the response does not depend on it.
                let message = Message { code: Code::ERROR, payload: &bytes };
                self.respond(&Request::Unknown(message), Some(response), reply, connection)
            }
            (Some(Deviation::CarriesOut(bytes)), _) => {
                match whole_message(&bytes).and_then(|message| message.request().ok()) {
                    Some(request) => self.respond(&request, None, reply, connection),
                    None => drive(&mut reply, connection),
                }
            }
            (None, Ok(request)) => self.respond(&request, None, reply, connection),
            (None, Err(_)) => drive(&mut reply, connection),
        }
    }

    /// Returns the facts that decide which commands the runtime knows.
    pub(super) fn kind(&self, suspended: bool) -> Runtime {
        Runtime {
            version: Some(self.profile.version),
            flavour: Some(self.profile.flavour),
            linux: Some(self.profile.os == "Linux"),
            suspended: Some(suspended),
        }
    }

    /// Sends a response, if none is given that of the handler, or the default one.
    fn respond<S: Read + Write>(
        &self,
        request: &Request<'_>,
        response: Option<Response>,
        mut reply: Reply<'_>,
        connection: &mut ServedConnection<'_, S>,
    ) -> Result<(), DriveError> {
        // A runtime receives the descriptor before it decides about the request.
        let wants_descriptor = request.continuation() == Continuation::UserEvents;
        let descriptor = if wants_descriptor { connection.receive_descriptor() } else { None };
        let answered = match response.unwrap_or_else(|| self.response(request, connection.port)) {
            Response::Ok(payload) => reply.answer_untyped(&Bytes(&payload)),
            Response::Refuse(hresult) => reply.refuse(hresult),
            Response::RefuseWith(hresult, message) => {
                reply.refuse_with(&ServerError { hresult, message: Some(message.as_str().into()) })
            }
            Response::Raw(bytes) => return connection.write_all(&bytes).map_err(DriveError::Send),
            Response::Silence => return connection.wait_for_close(),
            Response::Environment(entries) => return send_environment(&entries, reply, connection),
            Response::Trace(bytes) => {
                let blocks_requests = self.blocks_requests(request);
                let session = FakeSession { blocks_requests, ..FakeSession::default() };
                return self.send_session(session, reply, connection, |connection, id| {
                    self.send_trace(&bytes, connection, id)
                });
            }
            Response::Replay(bytes) => {
                let session = FakeSession::default();
                return self.send_session(session, reply, connection, |connection, id| {
                    self.replay(&bytes, request, connection, id)
                });
            }
            Response::UserEvents(recording) => match descriptor {
                None => reply.refuse(HResult::BAD_ENCODING),
                Some(data) => return self.send_user_events(request, data, &recording, reply, connection),
            },
        };
        // If the answer does not fit, the reply is a refusal, as in a real runtime.
        let _ = answered;
        drive(&mut reply, connection)
    }

    /// Returns the response of the handler for the request, or the default one.
    fn response(&self, request: &Request<'_>, port: usize) -> Response {
        let handler = self.state().handlers.get(&request.code()).cloned();
        match handler {
            Some(handler) => (handler.lock().unwrap_or_else(PoisonError::into_inner))(request),
            None => self.default_response(request, port),
        }
    }
}

/// Sends the size of the environment and the environment.
fn send_environment(
    entries: &[String],
    mut reply: Reply<'_>,
    stream: &mut (impl Read + Write),
) -> Result<(), DriveError> {
    let entries: Vec<Text<'_>> = entries.iter().map(|entry| entry.as_str().into()).collect();
    let mut buf = vec![0; Message::MAX_LEN];
    let Ok(mut send) = SendEnvironment::new(Array::from(entries.as_slice()), &mut buf) else {
        return drive(&mut reply, stream);
    };
    let _ = reply.answer_untyped(&send.announcement());
    drive(&mut reply, stream)?;
    drive(&mut send, stream)
}

/// An encoded payload.
struct Bytes<'a>(&'a [u8]);

impl Encode for Bytes<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.0);
    }
}

/// An open connection with the deadlines of the profile. It is shut down at the end, also if a handler panics.
struct OpenConnection<'r> {
    core: &'r FakeCore,
    number: u64,
    stream: Stream,
}

impl OpenConnection<'_> {
    fn extend_deadline(&mut self) {
        if let Some(deadline) = self.core.client_deadline() {
            self.stream.set_deadline(deadline);
        }
    }
}

impl Read for OpenConnection<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buf)
    }
}
impl Write for OpenConnection<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.extend_deadline();
        self.stream.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        // `shutdown` fails if the client has closed the connection, which is the intended state.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.core.state().open.remove(&self.number);
    }
}
