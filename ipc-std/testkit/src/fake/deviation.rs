//! The answers of real runtimes that differ from those of a careful server.
use std::path::Path;

use ipc_proto::plan::{Flavour, obstacle};
use ipc_proto::types::{DumpFlags, Status};
use ipc_proto::{
    AttachProfiler, Command, DecodeError, DecodeErrorKind, GenerateCoreDump, GenerateCoreDump2,
    GenerateCoreDump3, HResult, Message, Request, Violation,
};

use super::fake_core::FakeCore;
use super::recorded_deviations::RecordedDeviations;
use super::response::Response;
use crate::conformance::{State, whole_message};

/// What a runtime does where a careful server does something else.
pub(super) enum Deviation {
    /// It sends this response.
    Responds(Response),
    /// It carries out this request, which a careful server refuses.
    CarriesOut(Vec<u8>),
}

impl FakeCore {
    /// Returns how this runtime deviates from a careful server when it receives these bytes; `None` if it does not.
    ///
    /// The rules hold for every request. The recorded answers are for behaviour without a rule: for the bytes that a
    /// runtime before .NET 11 finds after the end of a request, and for requests that take .NET 11 too long.
    pub(super) fn deviation(&self, bytes: &[u8], suspended: bool) -> Option<Deviation> {
        self.deviation_by_rule(bytes, suspended).or_else(|| {
            let recorded = self.recorded_deviations.get_or_init(|| RecordedDeviations::new(&self.profile));
            let state = if suspended { State::Suspended } else { State::Running };
            recorded.response(bytes, state).map(Deviation::Responds)
        })
    }

    fn deviation_by_rule(&self, bytes: &[u8], suspended: bool) -> Option<Deviation> {
        let wrapped = wrap_counts(bytes);
        let bytes = wrapped.as_deref().unwrap_or(bytes);
        let message = whole_message(bytes)?;
        if obstacle(message.code, &self.kind(suspended)).is_some() {
            return None;
        }
        let request = match message.request() {
            // The runtime ignores what follows the data for the profiler.
            Err(DecodeError { kind: DecodeErrorKind::TrailingBytes, .. })
                if message.code == AttachProfiler::CODE =>
            {
                return Some(Deviation::Responds(Response::Refuse(HResult::MOD_NOT_FOUND)));
            }
            request => request.ok()?,
        };
        if let Some(response) = self.real_response(&request, &message, suspended) {
            return Some(Deviation::Responds(response));
        }
        match request.check() {
            Ok(()) if wrapped.is_none() => None,
            Err(invalid) if !self.accepts(invalid.violation, &request) => {
                wrapped.as_ref().map(|_| Deviation::Responds(Response::Refuse(invalid.violation.hresult())))
            }
            Ok(()) | Err(_) => Some(Deviation::CarriesOut(bytes.to_vec())),
        }
    }

    /// Returns whether the runtime carries out a request that breaks this rule.
    fn accepts(&self, violation: Violation, request: &Request<'_>) -> bool {
        match (violation, request) {
            // A session with `user_events` waits for its descriptor before it reads these values.
            (Violation::DuplicateEventId | Violation::TracepointNameLength, _) => true,
            (Violation::VariableName, Request::SetEnvironmentVariable(set)) => {
                !self.is_coreclr() || !set.name.is_null()
            }
            (Violation::StartupHookPath, Request::ApplyStartupHook(hook)) => {
                !hook.startup_hook_path.is_null()
            }
            // The number has a sign for the runtime.
            (Violation::PerfMapType, Request::EnablePerfMap(enable)) => enable.perf_map_type.0 >= 1 << 31,
            _ => false,
        }
    }

    /// Returns the response of the runtime to a well-formed request, if it is not that of a careful server.
    fn real_response(
        &self,
        request: &Request<'_>,
        message: &Message<'_>,
        suspended: bool,
    ) -> Option<Response> {
        /// With this flag, no dump is written, and the runtime does not notice it.
        const NO_DUMP: DumpFlags = DumpFlags::CRASH_REPORT_ONLY_ENABLED;
        match request {
            Request::GetProcessInfo(_)
            | Request::GetProcessInfo2(_)
            | Request::GetProcessInfo3(_)
            | Request::GetProcessEnvironment(_)
                if !message.payload.is_empty() =>
            {
                Some(Response::Raw(message.payload.to_vec()))
            }
            Request::GenerateCoreDump(GenerateCoreDump { dump_name, .. })
            | Request::GenerateCoreDump2(GenerateCoreDump2 { dump_name, .. })
            | Request::GenerateCoreDump3(GenerateCoreDump3 { dump_name, .. })
                if self.is_coreclr() && dump_name.is_null() =>
            {
                Some(Response::CLOSES)
            }
            Request::GenerateCoreDump2(GenerateCoreDump2 { flags, .. })
            | Request::GenerateCoreDump3(GenerateCoreDump3 { flags, .. })
                if self.is_coreclr() && flags.0 & NO_DUMP.0 != 0 && request.check().is_ok() =>
            {
                Some(Response::ok(&Status::OK))
            }
            Request::SetEnvironmentVariable(set)
                if self.profile.flavour == Flavour::NativeAot
                    && set.value.is_null()
                    && !set.name.is_empty() =>
            {
                Some(Response::CLOSES)
            }
            Request::ApplyStartupHook(hook) if !suspended && !hook.startup_hook_path.is_empty() => {
                let path = hook.startup_hook_path.to_string();
                match self.profile.version {
                    _ if Path::new(&path).is_file() => None,
                    9 | 10 => Some(Response::CLOSES),
                    _ => Some(Response::Refuse(HResult::INVALID_ARG)),
                }
            }
            _ => None,
        }
    }
}

/// Returns the message as a runtime reads it that counts the bytes of a string in 32 bits: the highest bit of the
/// number of units has no effect. `None` if no string has this bit.
fn wrap_counts(bytes: &[u8]) -> Option<Vec<u8>> {
    /// Bounds the work. A runtime has no such limit.
    const MOST: usize = 16;
    let mut wrapped: Option<Vec<u8>> = None;
    for _ in 0..MOST {
        let current = wrapped.as_deref().unwrap_or(bytes);
        let Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset }) =
            whole_message(current)?.request()
        else {
            break;
        };
        // The count precedes the units, which are not there.
        let at = offset.checked_sub(4)?;
        let mut next = current.to_vec();
        match next.get_mut(at.saturating_add(3)) {
            Some(highest) if *highest & 0x80 != 0 => *highest &= 0x7f,
            _ => break,
        }
        // The four bytes were no count if the same bytes are missing.
        if matches!(whole_message(&next)?.request(), Err(e) if e.offset == offset) {
            break;
        }
        wrapped = Some(next);
    }
    wrapped
}
