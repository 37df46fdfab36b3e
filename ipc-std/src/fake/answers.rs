use ipc_proto::plan::Flavour;
use ipc_proto::types::{ProcessInfo, ProcessInfo2, ProcessInfo3, SessionId, Status};
use ipc_proto::{Continuation, HResult, Request, SetEnvironmentVariable, Text};

use super::{Profile, Response, Shared};

/// What the program does, over and over: a second of one on .NET 10 with the events of its own sources, collections,
/// exceptions, counters, one in twenty of the samples that were taken, and the rundown of its modules.
const RECORDING: &[u8] = include_bytes!("program.nettrace");
const NO_DUMP: &str = "this is a fake runtime: there is no process to dump";

impl Shared {
    /// What a runtime of this profile answers at this port, as far as a fake one can.
    pub(super) fn default_response(&self, request: &Request<'_>, port: usize) -> Response {
        let coreclr = self.profile.flavour == Flavour::CoreClr;
        match request {
            Request::GenerateCoreDump3(_) if coreclr => {
                Response::RefuseWith(HResult::FAIL, NO_DUMP.to_owned())
            }
            Request::GenerateCoreDump(_) | Request::GenerateCoreDump2(_) | Request::GenerateCoreDump3(_) => {
                Response::Refuse(HResult::FAIL)
            }
            Request::StopTracing(stop) => self.stop(stop.session_id),
            Request::CollectTracing(_)
            | Request::CollectTracing2(_)
            | Request::CollectTracing3(_)
            | Request::CollectTracing4(_) => Response::Replay(RECORDING.to_vec()),
            Request::CollectTracing5(_) | Request::CollectTracing6(_) => match request.continuation() {
                Continuation::UserEvents if coreclr => Response::UserEvents,
                Continuation::UserEvents => Response::Refuse(HResult::FAIL),
                _ => Response::Replay(RECORDING.to_vec()),
            },
            Request::AttachProfiler(_) => Response::Refuse(HResult::MOD_NOT_FOUND),
            // One that never waited takes it all the same.
            Request::StartupProfiler(_) if self.state().resumed => Response::Refuse(HResult::INVALID_ARG),
            Request::StartupProfiler(_) | Request::EnablePerfMap(_) | Request::DisablePerfMap(_) => {
                Response::ok(&Status::OK)
            }
            Request::ApplyStartupHook(_) if coreclr => Response::ok(&Status::OK),
            Request::ApplyStartupHook(_) => Response::Refuse(HResult::NOT_SUPPORTED),
            Request::SetEnvironmentVariable(set) => self.set_environment_variable(set),
            Request::GetProcessInfo(_) => Response::ok(&info(&self.profile)),
            Request::GetProcessInfo2(_) => Response::ok(&info2(&self.profile)),
            Request::GetProcessInfo3(_) => Response::ok(&info3(&self.profile)),
            Request::GetProcessEnvironment(_) => Response::Environment(self.state().environment.clone()),
            Request::ResumeRuntime(_) => {
                let mut state = self.state();
                state.resumed |= state.suspension.resume(port) && !state.suspension.is_suspended();
                self.changed.notify_all();
                Response::ok(&Status::OK)
            }
            _ => Response::Refuse(HResult::UNKNOWN_COMMAND),
        }
    }

    /// Sets a variable, or removes it.
    fn set_environment_variable(&self, set: &SetEnvironmentVariable<'_>) -> Response {
        /// What `setenv` returns: no HRESULT, but it travels as one.
        const SETENV_FAILED: HResult = HResult(0xffff_ffff);
        // A runtime reads up to the first NUL. CoreCLR takes a name that is nothing then, and does nothing.
        let read = |text: Text<'_>| text.chars().take_while(|c| *c != '\0').collect::<String>();
        let name = read(set.name);
        if self.profile.flavour == Flavour::NativeAot && (name.is_empty() || name.contains('=')) {
            return Response::Refuse(SETENV_FAILED);
        }
        if name.is_empty() {
            return Response::ok(&Status::OK);
        }
        let prefix = format!("{name}=");
        let environment = &mut self.state().environment;
        let before = environment.len();
        environment.retain(|entry| !entry.starts_with(&prefix));
        if !set.value.is_null() {
            environment.push(prefix + &read(set.value));
        } else if environment.len() == before {
            return Response::Refuse(HResult::ENVVAR_NOT_FOUND);
        }
        Response::ok(&Status::OK)
    }

    /// Stops a session, and answers once its stream is written, as a runtime does.
    fn stop(&self, session_id: u64) -> Response {
        if let Some(session) = self.state().sessions.get_mut(&session_id) {
            session.stopped = true;
        }
        self.changed.notify_all();
        self.wait_until(None, |state| !state.sessions.contains_key(&session_id));
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
