//! The responses of commands, as structs.
use ipc_proto::types::{ProcessInfo as ProcessInfo1, ProcessInfo2, ProcessInfo3, SessionId};
use ipc_proto::{Code, Command as _, Decode, GetProcessInfo, GetProcessInfo2, GetProcessInfo3};

use crate::command::Guid;
use crate::memory;
use crate::message::complete;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// The description of a process. Fields that the answer does not have are null or 0.
#[repr(C)]
pub struct ProcessInfo<'a> {
    /// The version of the answer, from GetProcessInfo3 only.
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

impl<'a> From<ProcessInfo1<'a>> for ProcessInfo<'a> {
    fn from(info: ProcessInfo1<'a>) -> Self {
        let ProcessInfo1 { process_id, runtime_cookie, command_line, os, arch } = info;
        Self {
            version: 0,
            process_id,
            runtime_cookie: Guid { bytes: runtime_cookie.0 },
            command_line: Text::decoded(command_line),
            os: Text::decoded(os),
            arch: Text::decoded(arch),
            managed_entrypoint_assembly_name: Text::NULL,
            clr_product_version: Text::NULL,
            portable_rid: Text::NULL,
        }
    }
}
impl<'a> From<ProcessInfo2<'a>> for ProcessInfo<'a> {
    fn from(info: ProcessInfo2<'a>) -> Self {
        let ProcessInfo2 { process_id, runtime_cookie, command_line, os, arch, .. } = info;
        Self {
            managed_entrypoint_assembly_name: Text::decoded(info.managed_entrypoint_assembly_name),
            clr_product_version: Text::decoded(info.clr_product_version),
            ..ProcessInfo1 { process_id, runtime_cookie, command_line, os, arch }.into()
        }
    }
}
impl<'a> From<ProcessInfo3<'a>> for ProcessInfo<'a> {
    fn from(info: ProcessInfo3<'a>) -> Self {
        let ProcessInfo3 { process_id, runtime_cookie, command_line, os, arch, .. } = info;
        Self {
            version: info.version,
            managed_entrypoint_assembly_name: Text::decoded(info.managed_entrypoint_assembly_name),
            clr_product_version: Text::decoded(info.clr_product_version),
            portable_rid: Text::decoded(info.portable_rid),
            ..ProcessInfo1 { process_id, runtime_cookie, command_line, os, arch }.into()
        }
    }
}

/// Decodes the payload of the OK answer at the front of the bytes.
fn response<'a, T: Decode<'a>>(answer: &'a [u8]) -> Result<T, Failure> {
    let (message, _) = complete(answer)?;
    if message.code != Code::OK {
        return Err(Failure { status: Status::Unexpected, detail: message.code.0.into() });
    }
    Ok(message.decode()?)
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
        let decoded = match Code(command) {
            GetProcessInfo::CODE => response::<ProcessInfo1<'_>>(answer)?.into(),
            GetProcessInfo2::CODE => response::<ProcessInfo2<'_>>(answer)?.into(),
            GetProcessInfo3::CODE => response::<ProcessInfo3<'_>>(answer)?.into(),
            _ => return Err(Status::InvalidArgument.into()),
        };
        // SAFETY: as above.
        unsafe { memory::store::<ProcessInfo<'_>>(info.cast(), decoded) }.map(|()| 0)
    });
    // SAFETY: as above.
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
        let decoded: SessionId = response(answer)?;
        // SAFETY: as above.
        unsafe { memory::store(session_id, decoded.session_id) }.map(|()| 0)
    });
    // SAFETY: as above.
    unsafe { report(outcome, detail) }
}
