//! A tool: every command called, the environment, a session and the advertise frame of a monitor.
use ipc_proto::types::*;
use ipc_proto::*;

use crate::{drive, number, put, receive, storage, tell, text};

pub fn run() {
    match number() {
        0 => session(),
        1 => environment(),
        2 => monitor(),
        other => command(other),
    }
}

fn command(which: u32) {
    let (dump_name, dump_type, flags) = (text().into(), DumpType(number()), DumpFlags(number()));
    let (buffer_mb, format, rundown, stackwalk) = (number(), Format(number()), number() > 0, number() > 0);
    let (profiler_guid, profiler_path) = (guid(), text().into());
    match which {
        3 => call(&GenerateCoreDump { dump_name, dump_type, diagnostics: number() }, status),
        4 => call(&GenerateCoreDump2 { dump_name, dump_type, flags }, status),
        5 => call(&GenerateCoreDump3 { dump_name, dump_type, flags }, status),
        6 => call(&StopTracing { session_id: number().into() }, session_id),
        7 => call(&CollectTracing { buffer_mb, format, providers: providers() }, session_id),
        8 => call(&CollectTracing2 { buffer_mb, format, rundown, providers: providers() }, session_id),
        9 => {
            let start = CollectTracing3 { buffer_mb, format, rundown, stackwalk, providers: providers() };
            call(&start, session_id);
        }
        10 => {
            let rundown_keyword = number().into();
            let start =
                CollectTracing4 { buffer_mb, format, rundown_keyword, stackwalk, providers: providers() };
            call(&start, session_id);
        }
        11 => {
            let (rundown_keyword, providers) = (number().into(), (&*storage()).into());
            let session = StreamingSession { buffer_mb, format, rundown_keyword, stackwalk, providers };
            call(&CollectTracing5 { session: SessionConfig::Streaming(session) }, session_id);
        }
        12 => {
            let session = user_events();
            call(&CollectTracing5 { session: SessionConfig::UserEvents(session) }, session_id);
        }
        13 => {
            let (rundown_keyword, providers) = (number().into(), (&*storage()).into());
            let session_buffer_mode = SessionBufferMode(number());
            let session = StreamingSession6 {
                buffer_mb,
                format,
                rundown_keyword,
                stackwalk,
                providers,
                session_buffer_mode,
            };
            call(&CollectTracing6 { session: SessionConfig6::Streaming(session) }, session_id);
        }
        14 => {
            let session = user_events();
            call(&CollectTracing6 { session: SessionConfig6::UserEvents(session) }, session_id);
        }
        15 => {
            let client_data = ClientData(storage());
            let attach =
                AttachProfiler { attach_timeout: number(), profiler_guid, profiler_path, client_data };
            call(&attach, status);
        }
        16 => call(&StartupProfiler { profiler_guid, profiler_path }, status),
        17 => {
            call(&GetProcessInfo {}, |info: &ProcessInfo<'_>| said(&[info.command_line, info.os, info.arch]))
        }
        18 => call(&ResumeRuntime {}, status),
        19 => call(&SetEnvironmentVariable { name: text().into(), value: text().into() }, status),
        20 => call(&GetProcessInfo2 {}, |info: &ProcessInfo2<'_>| {
            said(&[info.command_line, info.os, info.arch, info.clr_product_version]);
        }),
        21 => call(&EnablePerfMap { perf_map_type: PerfMapType(number()) }, status),
        22 => call(&DisablePerfMap {}, status),
        23 => call(&ApplyStartupHook { startup_hook_path: text().into() }, status),
        _ => call(&GetProcessInfo3 {}, |info: &ProcessInfo3<'_>| {
            said(&[info.command_line, info.os, info.arch, info.clr_product_version, info.portable_rid]);
        }),
    }
}

fn call<C: Command>(command: &C, see: impl Fn(&C::Response<'static>)) {
    let Ok(mut call) = Call::new(command, storage()) else { return };
    let driven = drive(&mut call);
    if driven.is_err() {
        // Too small a buffer, most likely.
        call = call.into_buffer(storage());
    }
    match call.finish::<C::Response<'static>>() {
        Ok(Answer::Ok(answer)) => see(&answer),
        Ok(Answer::Refused(error)) => {
            tell(error.hresult.0);
            said(error.message.as_slice());
        }
        Err(_) => tell(0),
    }
}

fn status(status: &Status) {
    tell(status.0.0);
}

fn session_id(id: &SessionId) {
    tell(id.session_id as u32);
}

#[inline(never)]
fn said(texts: &[Text<'_>]) {
    texts.iter().for_each(|text| text.units().for_each(|unit| tell(unit.into())));
}

fn guid() -> Guid {
    let mut guid = Guid::NIL;
    guid.0.iter_mut().for_each(|byte| *byte = number() as u8);
    guid
}

fn providers() -> Array<'static, Provider<'static>> {
    (&*storage()).into()
}

fn user_events() -> UserEventsSession<'static> {
    UserEventsSession { rundown_keyword: number().into(), providers: (&*storage()).into() }
}

fn environment() {
    let announced = ProcessEnvironment { incoming_bytes: number(), future: 0 };
    let Ok(mut receive) = ReceiveEnvironment::new(&announced, number(), storage()) else { return };
    while drive(&mut receive).is_ok() && !receive.is_finished() {
        while let Ok(Some(entry)) = receive.next_entry() {
            said(&[entry]);
        }
        receive = receive.into_buffer(storage());
    }
}

fn monitor() {
    let mut receive = ReceiveAdvertise::new();
    let _ = drive(&mut receive);
    if let Ok(advertise) = receive.finish() {
        tell(advertise.process_id as u32);
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
                put(bytes);
                StopEvent::Sent(bytes.len())
            }
            StopStep::Receive(space) => StopEvent::Received(receive(space)),
            StopStep::Nothing => continue,
        };
        session.stop_advance(event);
    }
    tell(session.until().is_some().into());
    if let Some(Ok(Answer::Ok(id))) = session.stop_answer() {
        session_id(&id);
    }
}
