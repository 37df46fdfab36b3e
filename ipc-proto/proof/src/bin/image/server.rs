//! A server: connects to a monitor, answers every command and sends the environment.
use ipc_proto::*;

use crate::connecting::{connect_port, wait_for_command};
use crate::register::{drive, number, storage, text, write_number};
use crate::values::Input;

pub fn run() {
    if number() > 0 {
        wait_for_command(&mut connect_port());
    }
    let Ok(mut serve) = Serve::new(storage(), storage()) else { return };
    let _ = drive(&mut serve);
    let (request, mut reply) = serve.finish();
    let answered = match request {
        Ok(request) => special(&request, &mut reply),
        Err(_) => Ok(()), // `reply` is already a refusal
    };
    write_number(answered.is_ok().into());
    let _ = drive(&mut reply);
}

macro_rules! answer {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        fn answer<'r>(request: &Request<'r>, reply: &mut Reply<'_>) -> Result<(), EncodeError> {
            match request {
                $(Request::$name(command) => reply.answer(command, &<$response as Input>::input()),)*
                _ => reply.refuse(HResult::UNKNOWN_COMMAND),
            }
        }
    };
}
ipc_proto::for_each_command!(answer);

/// Reads a part of some requests, and answers the requests that need a special response.
fn special(request: &Request<'_>, reply: &mut Reply<'_>) -> Result<(), EncodeError> {
    match request {
        Request::GenerateCoreDump3(dump) => {
            write_number(dump.flags.0);
            reply.refuse_with(&ServerError { hresult: HResult::FAIL, message: Some(text().into()) })
        }
        Request::GetProcessEnvironment(command) => environment(command, reply),
        Request::CollectTracing4(start) => {
            for provider in start.providers {
                provider.name.units().for_each(|unit| write_number(unit.into()));
            }
            answer(request, reply)
        }
        Request::CollectTracing6(start) => {
            write_number((start.continuation() == Continuation::Stream).into());
            answer(request, reply)
        }
        other => answer(other, reply),
    }
}

fn environment(command: &GetProcessEnvironment, reply: &mut Reply<'_>) -> Result<(), EncodeError> {
    let mut send = SendEnvironment::new((&*storage()).into(), storage())?;
    reply.answer(command, &send.announcement())?;
    let _ = drive(reply);
    let _ = drive(&mut send);
    Ok(())
}
