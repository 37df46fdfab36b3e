//! The answers of the fake runtime to each command.
use ipc_proto::plan::{Flavour, InfoStep, TraceConfig};
use ipc_proto::types::{EventLevel, ProcessInfo3, SessionBufferMode, SessionId, Status};
use ipc_proto::{
    ApplyStartupHook, AttachProfiler, Code, CollectTracing, CollectTracing2, CollectTracing3,
    CollectTracing4, CollectTracing5, CollectTracing6, Command, Continuation, DisablePerfMap, EnablePerfMap,
    GenerateCoreDump, GenerateCoreDump2, GenerateCoreDump3, GetProcessEnvironment, GetProcessInfo,
    GetProcessInfo2, GetProcessInfo3, HResult, Request, ResumeRuntime, SetEnvironmentVariable,
    StartupProfiler, StopTracing, Text,
};

use super::fake_core::FakeCore;
use super::program::RECORDING;
use super::response::Response;
use crate::heap::RUNTIME;
use crate::profile::Profile;

const NO_DUMP: &str = "this is a fake runtime: there is no process to dump";

/// A command with its default response. Every command of the table must implement it.
trait Respond {
    /// Returns the response to a request that arrived at this port.
    fn respond(&self, runtime: &FakeCore, port: usize) -> Response;
}

impl FakeCore {
    /// Returns the response of this profile's runtime at this port.
    pub(super) fn default_response(&self, request: &Request<'_>, port: usize) -> Response {
        if let Some(snapshot) = self.heap_snapshot(request) {
            return Response::Trace(snapshot);
        }
        macro_rules! respond {
            ($([$code:literal $name:ident $($rest:tt)*])*) => {
                match request {
                    $(Request::$name(command) => command.respond(self, port),)*
                    _ => Response::Refuse(HResult::UNKNOWN_COMMAND),
                }
            };
        }
        ipc_proto::for_each_command!(respond)
    }

    /// Returns the stream of a session that makes the runtime write its heap.
    fn heap_snapshot(&self, request: &Request<'_>) -> Option<Vec<u8>> {
        let heap = self.profile.heap.as_ref()?;
        let config = TraceConfig::try_from(request).ok()?;
        heap.trace(self.profile.process_id).ok().filter(|_| starts_snapshot(&config))
    }

    /// Returns whether a session makes the thread of the runtime that serves requests write the heap, and wait for the
    /// client while the event buffer is full. A suspended runtime has no heap yet.
    pub(super) fn blocks_requests(&self, request: &Request<'_>) -> bool {
        !self.state().suspension.is_suspended()
            && TraceConfig::try_from(request).is_ok_and(|config| {
                config.buffer_mode == SessionBufferMode::BLOCK && starts_snapshot(&config)
            })
    }

    pub(super) fn is_coreclr(&self) -> bool {
        self.profile.flavour == Flavour::CoreClr
    }

    /// Sets or removes a variable.
    fn set_environment_variable(&self, set: &SetEnvironmentVariable<'_>) -> Response {
        /// The return value of `setenv`, sent in place of an HRESULT.
        const SETENV_FAILED: HResult = HResult(0xffff_ffff);
        /// ERROR_NOT_ENOUGH_MEMORY, the answer of CoreCLR to a name that begins with an equals sign.
        const NOT_ENOUGH_MEMORY: HResult = HResult::from_win32(8);
        // A runtime reads up to the first NUL. CoreCLR accepts a name that is empty then, and does nothing.
        let read = |text: Text<'_>| text.chars().take_while(|c| *c != '\0').collect::<String>();
        let name = read(set.name);
        if self.profile.flavour == Flavour::NativeAot && (name.is_empty() || name.contains('=')) {
            return Response::Refuse(SETENV_FAILED);
        }
        if name.is_empty() {
            return Response::ok(&Status::OK);
        }
        if name.starts_with('=') && !set.value.is_null() {
            return Response::Refuse(NOT_ENOUGH_MEMORY);
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

    /// Answers OK also in a runtime that was never suspended.
    fn resume(&self, port: usize) -> Response {
        let mut state = self.state();
        state.resumed |= state.suspension.resume(port) && !state.suspension.is_suspended();
        self.notify();
        Response::ok(&Status::OK)
    }

    /// Stops a session, and answers after its stream is written, as a runtime does.
    fn stop(&self, session_id: u64) -> Response {
        if let Some(session) = self.state().sessions.get_mut(&session_id) {
            session.stopped = true;
        }
        self.notify();
        self.wait_until(None, |state| !state.sessions.contains_key(&session_id));
        Response::ok(&SessionId { session_id })
    }
}

/// Returns whether a session makes the runtime write its heap.
fn starts_snapshot(config: &TraceConfig<'_>) -> bool {
    const COLLECT: u64 = 0x80_0000;
    const BULK_NODE: u32 = 18;
    config.includes(RUNTIME, COLLECT, EventLevel::INFORMATIONAL, BULK_NODE)
}

/// Starts a session that streams, or one that writes to `user_events`.
fn start_session(continuation: Continuation) -> Response {
    match continuation {
        Continuation::UserEvents => Response::UserEvents(RECORDING.to_vec()),
        _ => Response::Replay(RECORDING.to_vec()),
    }
}

/// Implements [`Respond`] for commands: each line has commands, and their response.
macro_rules! responses {
    ($command:ident, $runtime:ident, $port:ident: $($($name:ty)|+ => $response:expr;)*) => {$($(
        impl Respond for $name {
            #[allow(unused_variables, reason = "not every response depends on all")]
            fn respond(&self, $runtime: &FakeCore, $port: usize) -> Response {
                let $command = self;
                $response
            }
        }
    )+)*};
}
responses! { command, runtime, port:
    GenerateCoreDump<'_> | GenerateCoreDump2<'_> => Response::Refuse(HResult::FAIL);
    GenerateCoreDump3<'_> => {
        // NativeAOT gives no reason, in an empty text.
        let message = if runtime.is_coreclr() { NO_DUMP } else { "" };
        Response::RefuseWith(HResult::FAIL, message.to_owned())
    };
    StopTracing => runtime.stop(command.session_id);
    CollectTracing<'_> | CollectTracing2<'_> | CollectTracing3<'_> | CollectTracing4<'_> | CollectTracing5<'_>
        | CollectTracing6<'_> => start_session(command.continuation());
    AttachProfiler<'_> => Response::Refuse(HResult::MOD_NOT_FOUND);
    StartupProfiler<'_> => {
        let is_late = runtime.state().resumed;
        if is_late { Response::Refuse(HResult::INVALID_ARG) } else { Response::ok(&Status::OK) }
    };
    ResumeRuntime => runtime.resume(port);
    GetProcessEnvironment => Response::Environment(runtime.state().environment.clone());
    SetEnvironmentVariable<'_> => runtime.set_environment_variable(command);
    EnablePerfMap | DisablePerfMap | ApplyStartupHook<'_> => Response::ok(&Status::OK);
    GetProcessInfo | GetProcessInfo2 | GetProcessInfo3 => info(Self::CODE, &runtime.profile);
}

/// Returns the answer to a command that describes the process.
fn info(command: Code, profile: &Profile) -> Response {
    let info = ProcessInfo3 {
        version: 1,
        process_id: profile.process_id.into(),
        runtime_cookie: profile.runtime_cookie,
        command_line: profile.command_line.as_str().into(),
        os: profile.os.as_str().into(),
        arch: profile.arch.as_str().into(),
        managed_entrypoint_assembly_name: profile.managed_entrypoint_assembly_name.as_str().into(),
        clr_product_version: profile.clr_product_version.as_str().into(),
        portable_rid: profile.portable_rid.as_str().into(),
    };
    match InfoStep::of(command) {
        Some(step) => Response::ok(&step.answer(&info)),
        None => Response::Refuse(HResult::UNKNOWN_COMMAND),
    }
}
