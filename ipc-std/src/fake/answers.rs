use ipc_proto::types::{PerfMapType, ProcessInfo, ProcessInfo2, ProcessInfo3, SessionId, Status};
use ipc_proto::{CommandInfo, HResult, Request};

use super::{Flavour, Profile, Response, Shared};

/// What a trace holds: recorded from a program on .NET 8: 142 events.
const TRACE: &[u8] = include_bytes!("lab.nettrace");
const NO_DUMP: &str = "this is a fake runtime: there is no process to dump";

impl Shared {
    /// What a runtime of this profile answers, as far as a fake one can.
    pub(super) fn default_response(&self, request: &Request<'_>) -> Response {
        if !CommandInfo::find(request.code()).is_some_and(|row| self.profile.knows(row)) {
            return Response::Refuse(HResult::UNKNOWN_COMMAND);
        }
        let native = self.profile.flavour == Flavour::NativeAot;
        match request {
            Request::GenerateCoreDump(_) | Request::GenerateCoreDump2(_) => Response::Refuse(HResult::FAIL),
            Request::GenerateCoreDump3(_) => Response::RefuseWith(HResult::FAIL, NO_DUMP.to_owned()),
            Request::StopTracing(stop) => self.stop(stop.session_id),
            Request::CollectTracing(_)
            | Request::CollectTracing2(_)
            | Request::CollectTracing3(_)
            | Request::CollectTracing4(_) => Response::Trace(TRACE.to_vec()),
            Request::AttachProfiler(_)
            | Request::StartupProfiler(_)
            | Request::EnablePerfMap(_)
            | Request::DisablePerfMap(_)
            | Request::ApplyStartupHook(_)
                if native =>
            {
                Response::Refuse(HResult::NOT_SUPPORTED)
            }
            Request::AttachProfiler(_) | Request::StartupProfiler(_) => {
                Response::Refuse(HResult::MOD_NOT_FOUND)
            }
            Request::EnablePerfMap(enable) => match enable.perf_map_type {
                PerfMapType::ALL | PerfMapType::JIT_DUMP | PerfMapType::PERF_MAP => Response::ok(&Status::OK),
                _ => Response::Refuse(HResult::INVALID_ARG),
            },
            Request::DisablePerfMap(_) => Response::ok(&Status::OK),
            Request::ApplyStartupHook(hook) if hook.startup_hook_path.is_empty() => {
                Response::Refuse(HResult::INVALID_ARG)
            }
            Request::SetEnvironmentVariable(set) if set.name.is_empty() => {
                Response::Refuse(HResult::INVALID_ARG)
            }
            Request::ApplyStartupHook(_) | Request::SetEnvironmentVariable(_) => Response::ok(&Status::OK),
            Request::GetProcessInfo(_) => Response::ok(&info(&self.profile)),
            Request::GetProcessInfo2(_) => Response::ok(&info2(&self.profile)),
            Request::GetProcessInfo3(_) => Response::ok(&info3(&self.profile)),
            Request::GetProcessEnvironment(_) => Response::Environment(self.profile.environment.clone()),
            Request::ResumeRuntime(_) => {
                self.state().suspended = false;
                self.changed.notify_all();
                Response::ok(&Status::OK)
            }
            _ => Response::Refuse(HResult::UNKNOWN_COMMAND),
        }
    }

    /// Stops a session, and answers once its stream is written, as a runtime does.
    fn stop(&self, session_id: u64) -> Response {
        if let Some(stop) = self.state().sessions.get_mut(&session_id) {
            *stop = true;
        }
        self.changed.notify_all();
        self.wait_until(|state| !state.sessions.contains_key(&session_id));
        Response::ok(&SessionId { session_id })
    }
}

fn info(profile: &Profile) -> ProcessInfo<'_> {
    ProcessInfo {
        process_id: profile.process_id.into(),
        runtime_cookie: profile.runtime_cookie,
        command_line: profile.command_line.as_str().into(),
        os: profile.os.as_str().into(),
        arch: profile.arch.as_str().into(),
    }
}

fn info2(profile: &Profile) -> ProcessInfo2<'_> {
    let ProcessInfo { process_id, runtime_cookie, command_line, os, arch } = info(profile);
    ProcessInfo2 {
        process_id,
        runtime_cookie,
        command_line,
        os,
        arch,
        managed_entrypoint_assembly_name: profile.managed_entrypoint_assembly_name.as_str().into(),
        clr_product_version: profile.clr_product_version.as_str().into(),
    }
}

fn info3(profile: &Profile) -> ProcessInfo3<'_> {
    let ProcessInfo { process_id, runtime_cookie, command_line, os, arch } = info(profile);
    ProcessInfo3 {
        version: 1,
        process_id,
        runtime_cookie,
        command_line,
        os,
        arch,
        managed_entrypoint_assembly_name: profile.managed_entrypoint_assembly_name.as_str().into(),
        clr_product_version: profile.clr_product_version.as_str().into(),
        portable_rid: profile.portable_rid.as_str().into(),
    }
}
