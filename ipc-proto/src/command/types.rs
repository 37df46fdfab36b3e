//! What commands and their answers are made of.
use crate::wire::{Reader, Writer, wire_enum, wire_struct};
use crate::{Array, Decode, DecodeError, DecodeErrorKind, Encode, Guid, HResult, Text};

wire_struct! {
    /// A provider to switch on: `provider_config` in the specification.
    ///
    /// ```text
    ///  0          8       12      12 + n
    /// | keywords | level | name  | arguments |
    ///   u64        u32     Text    Text
    /// ```
    ///
    /// An event is sent if its keywords are 0 or have a bit in common with `keywords`, and its level is
    /// `LOG_ALWAYS` or not above `level`, or `level` is `LOG_ALWAYS`.
    pub struct Provider<'a> {
        /// Which groups of events: a bit each, the provider's own.
        keywords: u64,
        /// How verbose.
        level: EventLevel,
        /// Its name; not empty.
        name: Text<'a>,
        /// Settings for it: `key=value` joined by `;`, a value that contains `;` or `=` in double quotes.
        arguments: Text<'a>,
    }
}

wire_enum! {
    /// How verbose a provider is: `logLevel` in the specification. Runtimes refuse others than these.
    pub struct EventLevel(u32) {
        /// Everything, whatever its level.
        LOG_ALWAYS = 0,
        /// Critical errors.
        CRITICAL = 1,
        /// Errors.
        ERROR = 2,
        /// Warnings.
        WARNING = 3,
        /// Information; what tools ask for by default.
        INFORMATIONAL = 4,
        /// Everything, details included.
        VERBOSE = 5,
    }
}

wire_enum! {
    /// Format of a session's stream. Runtimes refuse others than these.
    pub struct Format(u32) {
        /// The old one, version 3, which begins with `!FastSerialization.1`.
        NET_PERF = 0,
        /// NetTrace, which begins with `Nettrace`.
        NET_TRACE = 1,
    }
}

wire_enum! {
    /// How much of the process a dump holds.
    pub struct DumpType(u32) {
        /// Threads and modules.
        NORMAL = 1,
        /// With the managed heap.
        WITH_HEAP = 2,
        /// As `NORMAL`, without personal data.
        TRIAGE = 3,
        /// All memory.
        FULL = 4,
    }
}

wire_enum! {
    /// How to go about a dump: a bit each.
    pub struct DumpFlags(u32) {
        /// In silence.
        NONE = 0,
        /// The dump writer logs to the target's console.
        LOGGING_ENABLED = 1,
        /// It logs more.
        VERBOSE_LOGGING_ENABLED = 2,
        /// It writes a crash report too.
        CRASH_REPORT_ENABLED = 4,
        /// It writes a crash report only.
        CRASH_REPORT_ONLY_ENABLED = 8,
    }
}

wire_enum! {
    /// Which files to write for `perf`.
    pub struct PerfMapType(u32) {
        /// None; runtimes refuse it.
        DISABLED = 0,
        /// Both.
        ALL = 1,
        /// `jit-PID.dump`.
        JIT_DUMP = 2,
        /// `perf-PID.map`.
        PERF_MAP = 3,
    }
}

/// Bytes for a profiler: a `u32` length and as many bytes, which end the payload.
///
/// The specification lists a length and an array with a length of its own; there is one length only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct ClientData<'a>(pub &'a [u8]);

impl Encode for ClientData<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX).encode(w);
        w.bytes(self.0);
    }
}
impl<'a> Decode<'a> for ClientData<'a> {
    const MIN_LEN: usize = 4;

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let len: u32 = r.read()?;
        let bytes = r.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
        if r.rest().is_empty() { Ok(Self(bytes)) } else { Err(r.error(DecodeErrorKind::TrailingBytes)) }
    }
}

/// Success, for commands that have nothing else to say.
///
/// Runtimes send an `i32` 0. The specification also allows an OK without payload, so that reads as success too
/// (erratum: its tables give such answers 28 bytes in all; they have 24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Status(pub HResult);

impl Status {
    /// What runtimes send.
    pub const OK: Self = Self(HResult::OK);
}
impl Encode for Status {
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
}
impl<'a> Decode<'a> for Status {
    const MIN_LEN: usize = 0;

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if r.rest().is_empty() { Ok(Self::OK) } else { r.read().map(Self) }
    }
}

wire_struct! {
    /// The id of a session, 8 bytes, for [`StopTracing`](crate::StopTracing).
    ///
    /// It means nothing else, and may come again once the session is over.
    pub struct SessionId {
        /// The id; not 0.
        session_id: u64,
    }
}

wire_struct! {
    /// Announces the environment, which follows as a [counted continuation](crate::ReceiveEnvironment).
    pub struct ProcessEnvironment {
        /// Bytes that follow the message: the environment's `u32` count and its strings. May exceed 65,535.
        incoming_bytes: u32,
        /// Not used yet; 0.
        future: u16,
    }
}

/// The continuation of [`ProcessEnvironment`]: every variable as `NAME=value`.
pub type Environment<'a> = Array<'a, Text<'a>>;

wire_struct! {
    /// A process.
    ///
    /// Erratum: the specification's struct puts the cookie last; its list, and the wire, have it second.
    pub struct ProcessInfo<'a> {
        /// Its id, in its own PID namespace.
        process_id: u64,
        /// The runtime's identity: random, new at every start.
        runtime_cookie: Guid,
        /// How it was started.
        command_line: Text<'a>,
        /// `Windows`, `Linux`, `macOS`, `iOS`, `tvOS`, `WatchOS`, `Android` or `Unknown`.
        os: Text<'a>,
        /// `x86`, `x64`, `arm32`, `arm64`, `s390x`, `loongarch64`, `ppc64le`, `riscv64` or `Unknown`.
        arch: Text<'a>,
    }
}

wire_struct! {
    /// A process, with its entry point and version.
    pub struct ProcessInfo2<'a> {
        /// Its id, in its own PID namespace.
        process_id: u64,
        /// The runtime's identity: random, new at every start.
        runtime_cookie: Guid,
        /// How it was started.
        command_line: Text<'a>,
        /// As in [`ProcessInfo`].
        os: Text<'a>,
        /// As in [`ProcessInfo`].
        arch: Text<'a>,
        /// The assembly of the entry point; it may be empty while the runtime is suspended at its start.
        managed_entrypoint_assembly_name: Text<'a>,
        /// The runtime's version, as SemVer 2.
        clr_product_version: Text<'a>,
    }
}

wire_struct! {
    /// A process, with its entry point, version and platform.
    ///
    /// A later version of this answer may append fields, and changes none: bytes behind the known ones are for those
    /// who know more, see [`decode_prefix`](crate::wire::decode_prefix).
    pub struct ProcessInfo3<'a> {
        /// The version of this answer, 1 or later.
        version: u32,
        /// Its id, in its own PID namespace.
        process_id: u64,
        /// The runtime's identity: random, new at every start.
        runtime_cookie: Guid,
        /// How it was started.
        command_line: Text<'a>,
        /// As in [`ProcessInfo`].
        os: Text<'a>,
        /// As in [`ProcessInfo`].
        arch: Text<'a>,
        /// The assembly of the entry point; it may be empty while the runtime is suspended at its start.
        managed_entrypoint_assembly_name: Text<'a>,
        /// The runtime's version, as SemVer 2.
        clr_product_version: Text<'a>,
        /// The platform: `linux-x64`, `linux-musl-arm64`, `win-x64`, … (erratum: the specification's examples are
        /// spelled otherwise).
        portable_rid: Text<'a>,
    }
}
