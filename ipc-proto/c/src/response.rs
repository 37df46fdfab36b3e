//! The responses of commands, as structs.
use ipc_proto::types::{ProcessInfo as ProtoProcessInfo, SessionId};
use ipc_proto::wire::Reader;
use ipc_proto::{Code, Command as _, GetProcessInfo, GetProcessInfo2, GetProcessInfo3, Message};

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

impl<'a> ProcessInfo<'a> {
    /// Decodes the payload of an answer. Each version has the fields of the one before, and more around them: they are
    /// read here once, because three copies of the code would be a tenth of a small client.
    fn read(command: Code, r: &mut Reader<'a>) -> Result<Self, Failure> {
        if ![GetProcessInfo::CODE, GetProcessInfo2::CODE, GetProcessInfo3::CODE].contains(&command) {
            return Err(Status::InvalidArgument.into());
        }
        let version = if command == GetProcessInfo3::CODE { r.read()? } else { 0 };
        let common: ProtoProcessInfo<'_> = r.read()?;
        let mut more = |has: bool| match has {
            true => r.read().map(Text::decoded),
            false => Ok(Text::NULL),
        };
        Ok(Self {
            version,
            process_id: common.process_id,
            runtime_cookie: Guid { bytes: common.runtime_cookie.0 },
            command_line: Text::decoded(common.command_line),
            os: Text::decoded(common.os),
            arch: Text::decoded(common.arch),
            managed_entrypoint_assembly_name: more(command != GetProcessInfo::CODE)?,
            clr_product_version: more(command != GetProcessInfo::CODE)?,
            portable_rid: more(command == GetProcessInfo3::CODE)?,
        })
    }
}

/// Returns a reader of the payload of the OK answer at the front of the bytes.
fn payload(answer: &[u8]) -> Result<Reader<'_>, Failure> {
    let (message, _) = complete(answer)?;
    if message.code != Code::OK {
        return Err(Failure { status: Status::Unexpected, detail: message.code.0.into() });
    }
    Ok(Reader::at(message.payload, Message::HEADER_LEN))
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
        let decoded = ProcessInfo::read(Code(command), &mut payload(answer)?)?;
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
        let decoded: SessionId = payload(answer)?.read()?;
        // SAFETY: as above.
        unsafe { memory::store(session_id, decoded.session_id) }.map(|()| 0)
    });
    // SAFETY: as above.
    unsafe { report(outcome, detail) }
}
