//! The result codes that travel.
use core::fmt;

use crate::wire::{Reader, Value, Writer};
use crate::{Decode, DecodeError, DecodeErrorKind, Encode};

/// A result code: what the `i32` of an Error answer says.
///
/// The specification lists ten under "Error" as `DS_IPC_E_…`; any other HRESULT may come too, passed on from the
/// profiler, dump or startup hook code behind the command.
///
/// ```
/// use ipc_proto::HResult;
///
/// let refused = HResult(0x8013_1385);
/// assert_eq!(refused, HResult::UNKNOWN_COMMAND);
/// assert_eq!(refused.to_string(), "0x80131385");
/// assert_eq!(refused.name(), Some("DS_IPC_E_UNKNOWN_COMMAND"));
/// assert_eq!(HResult::from_win32(126), HResult(0x8007_007e));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct HResult(pub u32);

impl HResult {
    /// Success.
    pub const OK: Self = Self(0);

    /// `HRESULT_FROM_WIN32`: how an operating system's error number travels.
    ///
    /// ```
    /// assert_eq!(ipc_proto::HResult::from_win32(203), ipc_proto::HResult::ENVVAR_NOT_FOUND);
    /// ```
    #[must_use]
    pub const fn from_win32(error: u16) -> Self {
        let [low, high] = error.to_le_bytes();
        Self(u32::from_le_bytes([low, high, 0x07, 0x80]))
    }
}

/// Declares the codes with a name: constant = value, name on the wire's paper, what a person should know.
macro_rules! hresults {
    ($($(#[$meta:meta])* $constant:ident = $value:literal, $name:literal, $hint:literal;)*) => {
        impl HResult {
            $($(#[$meta])* #[doc = concat!("`", $name, "`: ", $hint, ".")] pub const $constant: Self = Self($value);)*

            /// Every code with a name.
            pub const NAMED: &'static [Self] = &[$(Self::$constant),*];

            /// The name of the code, if it has one here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($value => Some($name),)* _ => None }
            }

            /// What the code means for whoever asked, in words, if it has a name here.
            #[must_use]
            pub const fn hint(self) -> Option<&'static str> {
                match self.0 { $($value => Some($hint),)* _ => None }
            }
        }
    };
}
hresults! {
    BAD_ENCODING = 0x8013_1384, "DS_IPC_E_BAD_ENCODING",
        "the runtime could not read the request, or does not take one of its values";
    UNKNOWN_COMMAND = 0x8013_1385, "DS_IPC_E_UNKNOWN_COMMAND",
        "the runtime does not know the command; it is older than the command";
    UNKNOWN_MAGIC = 0x8013_1386, "DS_IPC_E_UNKNOWN_MAGIC",
        "the runtime does not speak this version of the protocol";
    /// In the older texts of the specification only.
    UNKNOWN_ERROR = 0x8013_1387, "DS_IPC_E_UNKNOWN_ERROR", "the runtime failed and does not say why";
    NOT_SUPPORTED = 0x8013_1515, "DS_IPC_E_NOTSUPPORTED",
        "this kind of runtime (Mono, NativeAOT, or its platform) does not have the command";
    FAIL = 0x8000_4005, "DS_IPC_E_FAIL", "the runtime failed and does not say why";
    NOT_YET_AVAILABLE = 0x8013_135b, "DS_IPC_E_NOT_YET_AVAILABLE",
        "the runtime is still suspended at its start; resume it first";
    RUNTIME_UNINITIALIZED = 0x8013_1371, "DS_IPC_E_RUNTIME_UNINITIALIZED",
        "the runtime has not finished its start; try again";
    INVALID_ARG = 0x8007_0057, "DS_IPC_E_INVALIDARG",
        "the runtime does not take this argument, or not in its present state";
    INSUFFICIENT_BUFFER = 0x8007_007a, "DS_IPC_E_INSUFFICIENT_BUFFER", "a buffer of the runtime is too small";
    /// Erratum: the specification prints 0x800000CB; this is what .NET sends.
    ENVVAR_NOT_FOUND = 0x8007_00cb, "DS_IPC_E_ENVVAR_NOT_FOUND", "the runtime has no such environment variable";
    MOD_NOT_FOUND = 0x8007_007e, "ERROR_MOD_NOT_FOUND",
        "the runtime does not find the file, or a library that it needs; the path is the target's, not yours";
    PROFILER_ALREADY_ACTIVE = 0x8013_136a, "CORPROF_E_PROFILER_ALREADY_ACTIVE", "a profiler is already loaded";
}

/// `0x80131385`.
impl fmt::Display for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}
/// `0x80131385 DS_IPC_E_UNKNOWN_COMMAND`.
impl fmt::Debug for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        self.name().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

/// What a runtime answers to bytes that it cannot read; the only place that says so.
impl From<DecodeError> for HResult {
    fn from(e: DecodeError) -> Self {
        match e.kind {
            DecodeErrorKind::BadMagic => Self::UNKNOWN_MAGIC,
            _ => Self::BAD_ENCODING,
        }
    }
}

impl Encode for HResult {
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
}
impl<'a> Decode<'a> for HResult {
    const MIN_LEN: usize = 4;

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.read().map(Self)
    }

    fn shown(&self, _: &'a [u8]) -> Value<'a> {
        Value::HResult(*self)
    }
}
