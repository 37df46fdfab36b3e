//! [`HResult`], the result code of an Error answer, and the names and meanings of the known codes.
use core::fmt;

/// A result code: the `i32` of an Error answer.
///
/// The specification lists ten codes under "Error" as `DS_IPC_E_…`. Runtimes also send other HRESULTs, which their code
/// for profilers, dumps and startup hooks returns.
///
/// ```
/// use ipc_proto::HResult;
///
/// let refused = HResult(0x8013_1385);
/// assert_eq!(refused, HResult::UNKNOWN_COMMAND);
/// assert_eq!(refused.to_string(), "0x80131385");
/// assert_eq!(refused.name(), Some("DS_IPC_E_UNKNOWN_COMMAND"));
/// assert_eq!(HResult::from_win32(126), HResult::MOD_NOT_FOUND);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct HResult(pub u32);

impl HResult {
    /// Success.
    pub const OK: Self = Self(0);

    /// Returns the result code of an error number of the operating system: `HRESULT_FROM_WIN32`.
    #[must_use]
    pub const fn from_win32(error: u16) -> Self {
        Self(0x8007_0000 | error as u32)
    }

    /// Returns the name of the code in texts from before the names `DS_IPC_E_…`: `CORDIAGIPC_E_…`, which four codes had.
    ///
    /// ```
    /// use ipc_proto::HResult;
    ///
    /// assert_eq!(HResult::UNKNOWN_MAGIC.old_name(), Some("CORDIAGIPC_E_UNKNOWN_MAGIC"));
    /// assert_eq!(HResult::FAIL.old_name(), None);
    /// ```
    #[must_use]
    pub const fn old_name(self) -> Option<&'static str> {
        match self {
            Self::BAD_ENCODING => Some("CORDIAGIPC_E_BAD_ENCODING"),
            Self::UNKNOWN_COMMAND => Some("CORDIAGIPC_E_UNKNOWN_COMMAND"),
            Self::UNKNOWN_MAGIC => Some("CORDIAGIPC_E_UNKNOWN_MAGIC"),
            Self::UNKNOWN_ERROR => Some("CORDIAGIPC_E_UNKNOWN_ERROR"),
            _ => None,
        }
    }
}

/// Declares the named codes: constant = value, name in the specification, hint for the user.
macro_rules! hresults {
    ($($(#[$meta:meta])* $constant:ident = $value:literal, $name:literal, $hint:literal;)*) => {
        impl HResult {
            $($(#[$meta])* #[doc = concat!("`", $name, "`: ", $hint, ".")] pub const $constant: Self = Self($value);)*

            /// Every code with a name.
            pub const NAMED: &'static [Self] = &[$(Self::$constant),*];

            /// Returns the name of the code, if the code is in [`NAMED`](Self::NAMED).
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($value => Some($name),)* _ => None }
            }

            /// Returns the meaning of the code for the user, if the code is in [`NAMED`](Self::NAMED).
            #[must_use]
            pub const fn hint(self) -> Option<&'static str> {
                match self.0 { $($value => Some($hint),)* _ => None }
            }
        }
    };
}
hresults! {
    BAD_ENCODING = 0x8013_1384, "DS_IPC_E_BAD_ENCODING",
        "the runtime could not read the request, or does not accept one of its values";
    UNKNOWN_COMMAND = 0x8013_1385, "DS_IPC_E_UNKNOWN_COMMAND",
        "the runtime does not know the command; it is older than the command";
    UNKNOWN_MAGIC = 0x8013_1386, "DS_IPC_E_UNKNOWN_MAGIC",
        "the runtime does not support this version of the protocol";
    /// Only older texts of the specification contain this code.
    UNKNOWN_ERROR = 0x8013_1387, "DS_IPC_E_UNKNOWN_ERROR", "the runtime failed and gives no reason";
    NOT_SUPPORTED = 0x8013_1515, "DS_IPC_E_NOTSUPPORTED",
        "this kind of runtime (Mono, NativeAOT, or its platform) does not have the command";
    FAIL = 0x8000_4005, "DS_IPC_E_FAIL", "the runtime failed and gives no reason";
    NOT_YET_AVAILABLE = 0x8013_135b, "DS_IPC_E_NOT_YET_AVAILABLE",
        "the runtime is suspended at startup; resume it first";
    RUNTIME_UNINITIALIZED = 0x8013_1371, "DS_IPC_E_RUNTIME_UNINITIALIZED",
        "the runtime has not finished its startup; try again";
    INVALID_ARG = 0x8007_0057, "DS_IPC_E_INVALIDARG",
        "the runtime does not accept this argument, or not in its current state";
    INSUFFICIENT_BUFFER = 0x8007_007a, "DS_IPC_E_INSUFFICIENT_BUFFER", "a buffer of the runtime is too small";
    /// .NET sends this code: error 203 of the operating system as an HRESULT.
    ENVVAR_NOT_FOUND = 0x8007_00cb, "ERROR_ENVVAR_NOT_FOUND", "the runtime has no such environment variable";
    /// Erratum: the specification and the runtime's own header list this code, but no known runtime sends it. Runtimes
    /// send [`ENVVAR_NOT_FOUND`](Self::ENVVAR_NOT_FOUND).
    SPECIFIED_ENVVAR_NOT_FOUND = 0x8000_00cb, "DS_IPC_E_ENVVAR_NOT_FOUND",
        "the runtime has no such environment variable";
    MOD_NOT_FOUND = 0x8007_007e, "ERROR_MOD_NOT_FOUND",
        "the runtime does not find the file or a library that it needs; the path is resolved by the target process";
    PROFILER_ALREADY_ACTIVE = 0x8013_136a, "CORPROF_E_PROFILER_ALREADY_ACTIVE", "a profiler is already loaded";
}

/// Writes the code in the form `0x80131385`.
impl fmt::Display for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}
/// Writes the code and its name in the form `0x80131385 DS_IPC_E_UNKNOWN_COMMAND`.
impl fmt::Debug for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        self.name().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}
