//! HRESULTs: their values, names and meanings.
use ipc_proto::HResult;

use crate::text::Text;

/// Declares the values, which are those of `ipc_proto`.
macro_rules! hresults {
    ($($(#[$meta:meta])* $constant:ident = $value:literal $name:ident,)*) => {
        $($(#[$meta])* pub const $constant: u32 = $value;)*
        const _: () = assert!($(HResult::$name.0 == $constant)&&*);
        /// A code of `ipc_proto` that is missing above does not compile.
        const _: () = assert!(HResult::NAMED.len() == [$($constant),*].len());
    };
}
hresults! {
    /// The runtime could not read the request, or does not accept one of its values.
    DIPC_HRESULT_BAD_ENCODING = 0x8013_1384 BAD_ENCODING,
    /// The runtime does not know the command.
    DIPC_HRESULT_UNKNOWN_COMMAND = 0x8013_1385 UNKNOWN_COMMAND,
    /// The runtime does not support this version of the protocol.
    DIPC_HRESULT_UNKNOWN_MAGIC = 0x8013_1386 UNKNOWN_MAGIC,
    /// The runtime failed and gives no reason. Only older texts of the specification contain this code.
    DIPC_HRESULT_UNKNOWN_ERROR = 0x8013_1387 UNKNOWN_ERROR,
    /// This kind of runtime, or its platform, does not have the command.
    DIPC_HRESULT_NOT_SUPPORTED = 0x8013_1515 NOT_SUPPORTED,
    /// The runtime failed and gives no reason.
    DIPC_HRESULT_FAIL = 0x8000_4005 FAIL,
    /// The runtime is suspended at startup.
    DIPC_HRESULT_NOT_YET_AVAILABLE = 0x8013_135b NOT_YET_AVAILABLE,
    /// The runtime has not finished its startup.
    DIPC_HRESULT_RUNTIME_UNINITIALIZED = 0x8013_1371 RUNTIME_UNINITIALIZED,
    /// The runtime does not accept this argument, or not in its current state.
    DIPC_HRESULT_INVALID_ARG = 0x8007_0057 INVALID_ARG,
    /// A buffer of the runtime is too small.
    DIPC_HRESULT_INSUFFICIENT_BUFFER = 0x8007_007a INSUFFICIENT_BUFFER,
    /// The runtime has no such environment variable.
    DIPC_HRESULT_ENVVAR_NOT_FOUND = 0x8007_00cb ENVVAR_NOT_FOUND,
    /// As the code before; the specification lists this one, but runtimes send the other.
    DIPC_HRESULT_SPECIFIED_ENVVAR_NOT_FOUND = 0x8000_00cb SPECIFIED_ENVVAR_NOT_FOUND,
    /// The runtime does not find the file, or a library that it needs.
    DIPC_HRESULT_MOD_NOT_FOUND = 0x8007_007e MOD_NOT_FOUND,
    /// A profiler is already loaded.
    DIPC_HRESULT_PROFILER_ALREADY_ACTIVE = 0x8013_136a PROFILER_ALREADY_ACTIVE,
}

/// Returns the name of an HRESULT as in the specification, for example `DS_IPC_E_UNKNOWN_COMMAND`; null for one without a
/// name.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_hresult_name(hresult: u32) -> Text<'static> {
    Text::optional(HResult(hresult).name())
}

/// Returns the meaning of an HRESULT for a user, in English; null for one without a name.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_hresult_hint(hresult: u32) -> Text<'static> {
    Text::optional(HResult(hresult).hint())
}
