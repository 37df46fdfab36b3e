//! The responses of commands, as structs.
use ipc_proto::plan::{InfoStep, PlanStep as _};
use ipc_proto::types::ProcessInfo3;
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
            runtime_cookie: info.runtime_cookie.into(),
            command_line: info.command_line.into(),
            os: info.os.into(),
            arch: info.arch.into(),
            managed_entrypoint_assembly_name: info.managed_entrypoint_assembly_name.into(),
            clr_product_version: info.clr_product_version.into(),
            portable_rid: info.portable_rid.into(),
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

/// The readers of responses with fields.
pub mod read {
    use super::{Outcome, Status, memory, ok, report};
    use crate::command::Guid;
    use crate::text::Text;

    macro_rules! readers {
        ($([$name:ident: $response:ty { $($field:ident: $ty:ty,)* }])*) => {$(
            #[doc = concat!(
                " Stores the fields of the response `", stringify!($name), "` in an OK answer. Texts point into `answer`.\n\n \
                 Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed."
            )]
            #[allow(non_snake_case, reason = "the table has names of types only")]
            #[allow(clippy::useless_conversion, reason = "not every field is a number")]
            #[allow(clippy::extra_unused_lifetimes, reason = "not every response has a text")]
            #[unsafe(export_name = concat!("dipc_read_", stringify!($name)))]
            pub unsafe extern "C" fn $name<'r>(
                answer: *const u8,
                len: usize,
                $($field: *mut $ty,)*
                detail: *mut usize,
            ) -> Status {
                // SAFETY: the caller vouches for the pointers.
                let outcome = unsafe { memory::slice::<'r>(answer, len) }.and_then(|answer| -> Outcome {
                    let decoded: $response = ok(answer)?.decode()?;
                    $(
                        // SAFETY: the caller vouches for the pointers.
                        unsafe { memory::store($field, decoded.$field.into()) }?;
                    )*
                    Ok(0)
                });
                // SAFETY: the caller vouches for the pointers.
                unsafe { report(outcome, detail) }
            }
        )*};
    }
    ipc_proto::for_each_response!(readers);
}
