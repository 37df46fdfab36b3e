//! The server's role: one request, and the reply to it.
use ipc_proto::plan::InfoStep;
use ipc_proto::{
    Code, Continuation, HResult, ProtocolError, Reply, Request as ProtoRequest, RequestError, Serve,
    ServerError, SuspendedReply, SuspendedServe,
};

use crate::command::{Argument, Array, Payload};
use crate::exchange::{Exchange, Kind, Placed};
use crate::facts::Facts;
use crate::memory;
use crate::response::ProcessInfo;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// Nothing follows the reply.
pub const DIPC_THEN_NOTHING: u32 = 0;
/// The environment follows, as many bytes as the reply announces: see `dipc_write_environment`.
pub const DIPC_THEN_COUNTED: u32 = 1;
/// A NetTrace stream follows, up to the end of the connection.
pub const DIPC_THEN_STREAM: u32 = 2;
/// No bytes follow, but the connection stays open during the session, and the client passes a descriptor of
/// `user_events_data` before the reply.
pub const DIPC_THEN_USER_EVENTS: u32 = 3;

/// A request that was received, in the buffer of the exchange. The functions `dipc_request_*` read its values.
#[repr(C)]
pub struct Request {
    /// The code of the command, also if its payload is malformed; 0 if the header is malformed, or the message cut off or
    /// longer than the buffer.
    pub code: u16,
    /// What follows an OK reply: one of `DIPC_THEN_*`.
    pub then: u32,
    /// The bytes of the message.
    pub bytes: *const u8,
    /// The number of bytes; 0 if the connection ended before the first one. A port at which the server listens replies to
    /// that, too, as runtimes do; one that connects to a monitor does not: see `dipc_connect_port`.
    pub len: usize,
}

/// The most sessions that a runtime has at a time. It refuses the next one with `DIPC_HRESULT_FAIL`.
pub const DIPC_SESSIONS_MAX: usize = 64;

const _: () = assert!(DIPC_SESSIONS_MAX == ipc_proto::plan::SESSION_LIMIT);

/// The state of a `Serve`, and its second buffer.
#[derive(Clone, Copy)]
struct Serving {
    serve: SuspendedServe,
    send: *mut u8,
    send_size: usize,
}

impl Kind for Serving {
    const NUMBER: u8 = 3;
    type Running<'b> = Serve<'b>;

    fn resume(self, buf: &mut [u8]) -> Result<Serve<'_>, ProtocolError> {
        // SAFETY: `dipc_serve_init` has checked the buffer, which the caller lends as long as the exchange uses it.
        let send = unsafe { memory::slice_mut(self.send, self.send_size) }.unwrap_or_default();
        let needed = self.serve.resume(buf, send);
        needed.map_err(|_| ProtocolError::BufferTooSmall { needed: usize::MAX })
    }
    fn suspend(self, running: Serve<'_>) -> Self {
        Self { serve: running.suspend(), ..self }
    }
}

/// The state of a `Reply`, and the command that it answers.
#[derive(Clone, Copy)]
struct Replying {
    reply: SuspendedReply,
    code: Code,
}

impl Kind for Replying {
    const NUMBER: u8 = 4;
    type Running<'b> = Reply<'b>;

    fn resume(self, buf: &mut [u8]) -> Result<Reply<'_>, ProtocolError> {
        self.reply.resume(buf).map_err(|_| ProtocolError::BufferTooSmall { needed: usize::MAX })
    }
    fn suspend(self, running: Reply<'_>) -> Self {
        Self { reply: running.suspend(), ..self }
    }
}

/// Initialises `exchange` as the receiver of a request. The request is received into `receive`, and the reply is built in
/// `send`; both are lent until the reply was sent. A request that is longer than `receive` is refused: 64 KiB are enough
/// for all.
///
/// No later function fails because of what the peer sends: `dipc_serve_finish` makes a refusal of malformed bytes, as
/// runtimes do.
///
/// Returns `DIPC_STATUS_BUFFER_TOO_SMALL` if `receive` has no room for a header, or `send` for a refusal, and
/// `DIPC_STATUS_INVALID_ARGUMENT` if the buffers overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_serve_init(
    exchange: *mut Exchange,
    receive: *mut u8,
    receive_size: usize,
    send: *mut u8,
    send_size: usize,
    detail: *mut usize,
) -> Status {
    let (first, second) = (receive.addr(), send.addr());
    let apart = first.saturating_add(receive_size) <= second || second.saturating_add(send_size) <= first;
    let checked = if apart { Ok(()) } else { Err(Status::InvalidArgument.into()) };
    // SAFETY: the caller vouches for the pointers.
    let bytes = checked.and_then(|()| unsafe { memory::slice_mut(receive, receive_size) });
    let outcome = bytes.and_then(|bytes| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let space = unsafe { memory::slice_mut(send, send_size) }?;
        let serving = Serving { serve: Serve::new(bytes, space)?.suspend(), send, send_size };
        // SAFETY: the caller vouches for the pointers.
        unsafe { Placed::place(exchange, serving, receive, receive_size) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Stores the request that was received in `request`, and initialises `reply` as the exchange that sends the reply to it;
/// `reply` can be `serve`. Until a `dipc_reply_*` function sets another one, the reply is a refusal: for a valid request
/// `DIPC_HRESULT_FAIL` or an unknown command, otherwise the one that runtimes send.
///
/// `server` states which commands the server has: those of its version and its kind, on its system. A command that such a
/// runtime does not have is refused as it refuses it: `DIPC_STATUS_REFUSED`, with the HRESULT in `detail`. So clients send
/// an older command instead of one that is newer than the server. A server that is suspended refuses AttachProfiler. With
/// null, no command is refused for these reasons.
///
/// Returns an error for a request that runtimes refuse, as `dipc_check` does, except that a message which is cut off is
/// `DIPC_STATUS_UNEXPECTED_END`. Drive `reply` in any case but these: misuse, such as facts that do not exist, stores
/// nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_serve_finish(
    serve: *mut Exchange,
    server: *const Facts,
    request: *mut Request,
    reply: *mut Exchange,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let finished = unsafe { Placed::<Serving>::of(serve) }.and_then(|placed| {
        memory::check(request, 1)?;
        memory::check(reply, 1)?;
        // SAFETY: the caller vouches for the pointers.
        let server = unsafe { Facts::runtime(server) }?;
        let Serving { send, send_size, .. } = placed.state();
        let running = placed.finish()?;
        let len = running.bytes().len();
        let code = running.code().unwrap_or(Code(0));
        let (received, replying) = match server {
            Some(server) => running.finish_for(&server),
            None => running.finish(),
        };
        let (then, outcome) = match received {
            Ok(request) => (then(&request), Ok(0)),
            Err(RequestError::Violation { violation, .. }) => (DIPC_THEN_NOTHING, Err(violation.into())),
            Err(RequestError::Decode(error)) => (DIPC_THEN_NOTHING, Err(error.into())),
            Err(RequestError::Refused(hresult)) => (DIPC_THEN_NOTHING, Err(hresult.into())),
            Err(_) => (DIPC_THEN_NOTHING, Err(Status::MalformedBytes.into())),
        };
        let reply_state = Replying { reply: replying.suspend(), code };
        let finished = Request { code: code.0, then, bytes: placed.bytes()?.as_ptr(), len };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(request, finished) }?;
        Ok((reply_state, send, send_size, outcome))
    });
    // `reply` can be `serve`, whose reference has ended with the function above.
    let outcome = finished.and_then(|(reply_state, send, send_size, outcome)| {
        // SAFETY: the caller vouches for the pointers; `dipc_serve_init` has checked the buffer.
        unsafe { Placed::place(reply, reply_state, send, send_size) }?;
        outcome
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

fn then(request: &ProtoRequest<'_>) -> u32 {
    match request.continuation() {
        Continuation::Nothing => DIPC_THEN_NOTHING,
        Continuation::Counted => DIPC_THEN_COUNTED,
        Continuation::Stream => DIPC_THEN_STREAM,
        Continuation::UserEvents => DIPC_THEN_USER_EVENTS,
    }
}

/// Returns the name of the response to a command.
const fn response(code: Code) -> Option<&'static str> {
    macro_rules! responses {
        ($([
            $code:literal $name:ident / $specification_name:ident since $since:literal:
            $request:ty { $($field:ident: $ty:ty,)* }
            -> $response_name:ident: $response:ty, then $then:ident
        ])*) => {
            match code.0 {
                $($code => Some(stringify!($response_name)),)*
                _ => None,
            }
        };
    }
    ipc_proto::for_each_command!(responses)
}

/// Sets the payload of an OK reply, if the command has the response of this name.
///
/// # Safety
/// `exchange` points to an exchange that nothing else uses, and the pointers in the fields point to what their
/// documentation says.
unsafe fn answer(
    exchange: *mut Exchange,
    name: &str,
    fields: &[&dyn Argument],
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { Placed::<Replying>::of(exchange) }.and_then(|placed| -> Outcome {
        if response(placed.state().code) != Some(name) {
            return Err(Status::InvalidArgument.into());
        }
        // SAFETY: the caller vouches for the fields.
        let payload = unsafe { Payload::new(fields) }?;
        placed.run(|reply| reply.answer_untyped(&payload))??;
        Ok(0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Sets the OK reply to a command that returns no data.
///
/// A reply to StopTracing has the id of the request, also if there is no such session. A reply to a command that starts a
/// session has an id other than 0; a StopTracing can arrive as soon as it is sent. The bytes of `dipc_write_environment`,
/// whose number is `incoming_bytes`, follow the reply to GetProcessEnvironment.
///
/// This and the other `dipc_reply_*` functions return `DIPC_STATUS_INVALID_ARGUMENT` if the command has another response,
/// `DIPC_STATUS_ALREADY_SENDING` if a part of the reply was sent, and `DIPC_STATUS_BUFFER_TOO_SMALL` if the reply does not
/// fit; the reply is then a refusal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_reply_ok(exchange: *mut Exchange, detail: *mut usize) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { answer(exchange, "Status", &[&0_u32], detail) }
}

/// The replies with fields.
pub mod reply {
    use super::{Exchange, Status, Text, answer};
    use crate::command::Guid;

    macro_rules! replies {
        ($([$name:ident: $response:ty { $($field:ident: $ty:ty,)* }])*) => {$(
            #[doc = concat!(
                " Sets the OK reply to a command with the response `", stringify!($name), "`, as `dipc_reply_ok` does."
            )]
            #[allow(non_snake_case, reason = "the table has names of types only")]
            #[allow(clippy::extra_unused_lifetimes, reason = "not every response has a text")]
            #[unsafe(export_name = concat!("dipc_reply_", stringify!($name)))]
            pub unsafe extern "C" fn $name<'r>(exchange: *mut Exchange, $($field: $ty,)* detail: *mut usize) -> Status {
                // SAFETY: the caller vouches for the pointers.
                unsafe { answer(exchange, stringify!($name), &[$(&$field,)*], detail) }
            }
        )*};
    }
    ipc_proto::for_each_response!(replies);
}

/// Sets the OK reply to GetProcessInfo, GetProcessInfo2 or GetProcessInfo3, with the fields of `info` that it has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_reply_process_info(
    exchange: *mut Exchange,
    info: *const ProcessInfo<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let prepared = unsafe { Placed::<Replying>::of(exchange) }.and_then(|placed| {
        // SAFETY: the caller vouches for the pointers.
        Ok((placed.state().code, unsafe { memory::reference(info) }?))
    });
    let (code, info) = match prepared {
        Ok(prepared) => prepared,
        // SAFETY: the caller vouches for the pointers.
        Err(failure) => return unsafe { report(Err(failure), detail) },
    };
    let fields: [&dyn Argument; 9] = [
        &info.version,
        &info.process_id,
        &info.runtime_cookie,
        &info.command_line,
        &info.os,
        &info.arch,
        &info.managed_entrypoint_assembly_name,
        &info.clr_product_version,
        &info.portable_rid,
    ];
    let (name, fields) = match InfoStep::of(code) {
        Some(step) if step.has_platform() => ("ProcessInfo3", fields.get(..)),
        Some(step) if step.has_version() => ("ProcessInfo2", fields.get(1..8)),
        Some(_) => ("ProcessInfo", fields.get(1..6)),
        // No command has a response without a name.
        None => ("", None),
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { answer(exchange, name, fields.unwrap_or_default(), detail) }
}

/// Sets a refusal as the reply. `message` is null, or for GenerateCoreDump3 a text. With a text for another command the
/// function returns `DIPC_STATUS_INVALID_ARGUMENT`, and the reply stays what it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_reply_refuse(
    exchange: *mut Exchange,
    hresult: u32,
    message: Text<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { Placed::<Replying>::of(exchange) }.and_then(|placed| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let text = unsafe { message.proto() }?;
        if text.is_null() {
            placed.run(|reply| reply.refuse(HResult(hresult)))??;
        } else if ServerError::has_message(placed.state().code) {
            let error = ServerError { hresult: HResult(hresult), message: Some(text) };
            placed.run(|reply| reply.refuse_with(&error))??;
        } else {
            return Err(Status::InvalidArgument.into());
        }
        Ok(0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Writes the environment, which the caller sends after the reply to GetProcessEnvironment: `count` entries, usually
/// `NAME=value`. An entry that can be invalid UTF-8 has the form `DIPC_TEXT_TRACE_UTF8`; an invalid one of the form
/// `DIPC_TEXT_UTF8` is `DIPC_STATUS_INVALID_ARGUMENT`.
///
/// `len` receives the number of bytes, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_write_environment(
    entries: *const Text<'_>,
    count: usize,
    buf: *mut u8,
    size: usize,
    len: *mut usize,
) -> Status {
    let entries = Array::new(entries, count);
    let fields: [&dyn Argument; 1] = [&entries];
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { Payload::new(&fields) }.and_then(|payload| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let mut w = ipc_proto::wire::Writer::new(unsafe { memory::slice_mut(buf, size) }?);
        ipc_proto::Encode::encode(&payload, &mut w);
        Ok(w.finish().map_err(Failure::from)?.len())
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, len) }
}
