//! A client: calls every command, receives the environment, a session and an advertise frame.
use ipc_proto::types::*;
use ipc_proto::*;

use crate::register::{drive, number, receive, storage, write_bytes, write_number};
use crate::values::{Input, Output, write_texts};

pub fn run() {
    match number() {
        0 => session(),
        1 => environment(),
        2 => monitor(),
        other => command(other),
    }
}

macro_rules! command {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        fn command(code: u32) {
            match code {
                $($code => call(&$name { $($field: Input::input()),* }),)*
                _ => {}
            }
        }
    };
}
ipc_proto::for_each_command!(command);

fn call<C: Command>(command: &C)
where
    C::Response<'static>: Output,
{
    let Some(call) = complete(C::CODE, command) else { return };
    match call.finish_as::<C::Response<'static>>() {
        Ok(Answer::Ok(response)) => response.output(),
        Ok(Answer::Refused(error)) => refused(&error),
        Err(_) => write_number(0),
    }
}

/// Drives a call to its end. All commands share this function.
#[inline(never)]
fn complete(code: Code, payload: &dyn Encode) -> Option<UntypedCall<'static>> {
    let mut call = UntypedCall::untyped(code, payload, storage()).ok()?;
    if drive(&mut call).is_err() {
        // Continues in another buffer, because the most frequent error is a buffer that is too small.
        let suspended = call.suspend();
        return suspended.resume(storage()).ok();
    }
    Some(call)
}

fn refused(error: &ServerError<'_>) {
    write_number(error.hresult.0);
    write_texts(error.message.as_slice());
}

fn environment() {
    let announced = ProcessEnvironment { incoming_bytes: number(), future: 0 };
    let Ok(mut receive) = ReceiveEnvironment::new(&announced, number(), storage()) else { return };
    while drive(&mut receive).is_ok() && !receive.is_finished() {
        while let Ok(Some(entry)) = receive.next_entry() {
            write_texts(&[entry]);
        }
        let Ok(resumed) = receive.suspend().resume(storage()) else { return };
        receive = resumed;
    }
}

fn monitor() {
    let mut receive = ReceiveAdvertise::new();
    let _ = drive(&mut receive);
    if let Ok(advertise) = receive.finish() {
        write_number(advertise.process_id as u32);
    }
}

fn session() {
    let mut session = Session::new(number().into());
    while session.end().is_none() {
        match number() {
            0 => session.stop(number().into()),
            1 => session.tick(number().into()),
            2 => session.abandon(),
            3 if session.wants_stream() => session.stream_advance(storage()),
            _ => {}
        }
        let event = match session.stop_step() {
            StopStep::Connect if number() == 0 => StopEvent::Failed,
            StopStep::Connect => StopEvent::Connected,
            StopStep::Send(bytes) => {
                write_bytes(bytes);
                StopEvent::Sent(bytes.len())
            }
            StopStep::Receive(space) => StopEvent::Received(receive(space)),
            StopStep::Nothing => continue,
        };
        session.stop_advance(event);
    }
    write_number(session.until().is_some().into());
    if let Some(Ok(Answer::Ok(id))) = session.stop_answer() {
        id.output();
    }
}
