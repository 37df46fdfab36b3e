//! The responses of commands, as structs.
use ipc_proto::plan::{InfoStep, PlanStep as _};
use ipc_proto::types::{ProcessInfo3, SessionId};
use ipc_proto::{Code, Message};

use crate::command::Guid;
use crate::memory;
use crate::message::complete;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// The description of a process. Fields that the answer does not have are null or 0.
#[repr(C)]
pub struct ProcessInfo<'a> {
    /// The version of the answer, from GetProcessInfo3 only. Servers send 1.
    pub version: u32,
    /// The process id, in the PID namespace of the process.
    pub process_id: u64,
    /// The identity of the runtime: a random value for each start.
    pub runtime_cookie: Guid,
    /// The command line of the process.
    pub command_line: Text<'a>,
    /// `Windows`, `Linux`, `macOS` and others.
    pub os: Text<'a>,
    /// `x86`, `x64`, `arm32`, `arm64` and others.
    pub arch: Text<'a>,
    /// The assembly of the entry point, not from GetProcessInfo. It can be empty while the runtime is suspended.
    pub managed_entrypoint_assembly_name: Text<'a>,
    /// The runtime's version, not from GetProcessInfo.
    pub clr_product_version: Text<'a>,
    /// The platform, for example `linux-x64`, from GetProcessInfo3 only.
    pub portable_rid: Text<'a>,
}

impl<'a> From<ProcessInfo3<'a>> for ProcessInfo<'a> {
    fn from(info: ProcessInfo3<'a>) -> Self {
        Self {
            version: info.version,
            process_id: info.process_id,
            runtime_cookie: Guid { bytes: info.runtime_cookie.0 },
            command_line: Text::decoded(info.command_line),
            os: Text::decoded(info.os),
            arch: Text::decoded(info.arch),
            managed_entrypoint_assembly_name: Text::decoded(info.managed_entrypoint_assembly_name),
            clr_product_version: Text::decoded(info.clr_product_version),
            portable_rid: Text::decoded(info.portable_rid),
        }
    }
}

/// Returns the OK answer at the front of the bytes.
fn ok(answer: &[u8]) -> Result<Message<'_>, Failure> {
    let (message, _) = complete(answer)?;
    if message.code != Code::OK {
        return Err(Failure { status: Status::Unexpected, detail: message.code.0.into() });
    }
    Ok(message)
}

/// Stores the description in the OK answer to a `command`, which is GetProcessInfo, GetProcessInfo2 or GetProcessInfo3. Its
/// texts point into `answer`.
///
/// Returns `DIPC_STATUS_INVALID_ARGUMENT` for another command, `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the
/// answer is malformed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_read_process_info(
    answer: *const u8,
    len: usize,
    command: u16,
    info: *mut ProcessInfo<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(answer, len) }.and_then(|answer| -> Outcome {
        let step = InfoStep::of(Code(command)).ok_or(Status::InvalidArgument)?;
        let decoded = step.response(&ok(answer)?)?.into();
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store::<ProcessInfo<'_>>(info.cast(), decoded) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Stores the id in the OK answer to StopTracing or to a command that starts a session.
///
/// Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_read_session_id(
    answer: *const u8,
    len: usize,
    session_id: *mut u64,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(answer, len) }.and_then(|answer| -> Outcome {
        let decoded: SessionId = ok(answer)?.decode()?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(session_id, decoded.session_id) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
