//! A runtime: every command served, the environment sent.
use ipc_proto::types::*;
use ipc_proto::*;

use crate::{drive, number, storage, tell, text};

pub fn run() {
    let serve = match number() {
        0 => Serve::new(storage(), storage()),
        _ => {
            let advertise = Advertise { runtime_cookie: Guid::NIL, process_id: number().into(), future: 0 };
            Serve::announce(&advertise, storage(), storage())
        }
    };
    let Ok(mut serve) = serve else { return };
    let _ = drive(&mut serve);
    let (request, mut reply) = serve.finish();
    let answered = match request {
        Ok(request) => answer(&request, &mut reply),
        Err(_) => Ok(()), // it refuses by itself
    };
    tell(answered.is_ok().into());
    let _ = drive(&mut reply);
}

fn answer(request: &Request<'_>, reply: &mut Reply<'_>) -> Result<(), EncodeError> {
    let (process_id, runtime_cookie) = (number().into(), Guid::NIL);
    let (command_line, os, arch) = (text().into(), text().into(), text().into());
    let managed_entrypoint_assembly_name = text().into();
    let clr_product_version = text().into();
    let id = SessionId { session_id: number().into() };
    match request {
        Request::GenerateCoreDump(command) => reply.answer(command, &Status::OK),
        Request::GenerateCoreDump2(command) => reply.answer(command, &Status::OK),
        Request::GenerateCoreDump3(dump) => {
            tell(dump.flags.0);
            reply.refuse_with(&ServerError { hresult: HResult::FAIL, message: Some(text().into()) })
        }
        Request::StopTracing(command) => reply.answer(command, &id),
        Request::CollectTracing(command) => reply.answer(command, &id),
        Request::CollectTracing2(command) => reply.answer(command, &id),
        Request::CollectTracing3(command) => reply.answer(command, &id),
        Request::CollectTracing4(start) => {
            for provider in start.providers {
                provider.name.units().for_each(|unit| tell(unit.into()));
            }
            reply.answer(start, &id)
        }
        Request::CollectTracing5(command) => reply.answer(command, &id),
        Request::CollectTracing6(start) => {
            tell((start.continuation() == Continuation::Stream).into());
            reply.answer(start, &id)
        }
        Request::AttachProfiler(command) => reply.answer(command, &Status::OK),
        Request::StartupProfiler(command) => reply.answer(command, &Status::OK),
        Request::GetProcessInfo(command) => {
            reply.answer(command, &ProcessInfo { process_id, runtime_cookie, command_line, os, arch })
        }
        Request::ResumeRuntime(command) => reply.answer(command, &Status::OK),
        Request::GetProcessEnvironment(command) => environment(command, reply),
        Request::SetEnvironmentVariable(command) => reply.answer(command, &Status::OK),
        Request::GetProcessInfo2(command) => reply.answer(
            command,
            &ProcessInfo2 {
                process_id,
                runtime_cookie,
                command_line,
                os,
                arch,
                managed_entrypoint_assembly_name,
                clr_product_version,
            },
        ),
        Request::EnablePerfMap(command) => reply.answer(command, &Status::OK),
        Request::DisablePerfMap(command) => reply.answer(command, &Status::OK),
        Request::ApplyStartupHook(command) => reply.answer(command, &Status::OK),
        Request::GetProcessInfo3(command) => reply.answer(
            command,
            &ProcessInfo3 {
                version: 1,
                process_id,
                runtime_cookie,
                command_line,
                os,
                arch,
                managed_entrypoint_assembly_name,
                clr_product_version,
                portable_rid: text().into(),
            },
        ),
        _ => reply.refuse(HResult::UNKNOWN_COMMAND),
    }
}

fn environment(command: &GetProcessEnvironment, reply: &mut Reply<'_>) -> Result<(), EncodeError> {
    let mut send = SendEnvironment::new((&*storage()).into(), storage())?;
    reply.answer(command, &send.announcement())?;
    let _ = drive(reply);
    let _ = drive(&mut send);
    Ok(())
}
