//! What commands and their answers are made of.
use crate::wire::{Path, Reader, See, Value, Writer, wire_enum, wire_struct};
use crate::{Array, Continuation, Decode, DecodeError, DecodeErrorKind, Encode, Guid, HResult, Text};

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

wire_struct! {
    /// Which events of a provider are sent, by their ids: `event_filter` in the specification. It comes after keywords
    /// and level.
    ///
    /// | `enable` | ids | sent are |
    /// |---|---|---|
    /// | false | none | all: [`EventFilter::ALL`] |
    /// | false | some | all but those |
    /// | true | none | none |
    /// | true | some | those |
    ///
    /// Erratum: "(length = 0)" makes it look as if it could be left out; it has 5 bytes at least. An id that stands twice
    /// is refused by runtimes, or ends them.
    pub struct EventFilter<'a> {
        /// Whether the ids are those to send, or those not to.
        enable: bool,
        /// The ids.
        event_ids: Array<'a, u32>,
    }
}

impl EventFilter<'_> {
    /// No filter: all events are sent.
    pub const ALL: Self = Self { enable: false, event_ids: Array::EMPTY };
}

wire_struct! {
    /// A provider of a stream with a filter: `streaming_provider_config` in the specification.
    pub struct StreamingProvider<'a> {
        /// As in [`Provider`].
        keywords: u64,
        /// As in [`Provider`].
        level: EventLevel,
        /// As in [`Provider`].
        name: Text<'a>,
        /// As in [`Provider`].
        arguments: Text<'a>,
        /// Which of its events.
        filter: EventFilter<'a>,
    }
}

wire_struct! {
    /// A provider whose events go to `user_events`: `user_events_provider_config` in the specification.
    pub struct UserEventsProvider<'a> {
        /// As in [`Provider`].
        keywords: u64,
        /// As in [`Provider`].
        level: EventLevel,
        /// As in [`Provider`].
        name: Text<'a>,
        /// As in [`Provider`].
        arguments: Text<'a>,
        /// Which of its events.
        filter: EventFilter<'a>,
        /// Where to.
        tracepoints: TracepointConfig<'a>,
    }
}

wire_struct! {
    /// Which event goes to which tracepoint: `tracepoint_config` in the specification. One of both must be there.
    ///
    /// Erratum: both examples in the specification count "MyTracepoint" as 14 units; it has 13 with its NUL.
    pub struct TracepointConfig<'a> {
        /// For events that are in no set; null if those are not to be written.
        default_tracepoint_name: Text<'a>,
        /// The others.
        sets: Array<'a, TracepointSet<'a>>,
    }
}

wire_struct! {
    /// The events that go to one tracepoint: `tracepoint_set` in the specification.
    pub struct TracepointSet<'a> {
        /// The tracepoint; not empty.
        tracepoint_name: Text<'a>,
        /// The events, each in one set only.
        event_ids: Array<'a, u32>,
    }
}

wire_enum! {
    /// What a runtime does when a session's buffer is full. Runtimes refuse others than these.
    pub struct SessionBufferMode(u32) {
        /// It loses events.
        DROP = 0,
        /// It holds up whoever raises them.
        BLOCK = 1,
    }
}

wire_struct! {
    /// A session that streams.
    pub struct StreamingSession<'a> {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Keywords of the rundown provider; 0 for no rundown.
        rundown_keyword: u64,
        /// Whether events carry stacks.
        stackwalk: bool,
        /// What to switch on: 1 to 1,000.
        providers: Array<'a, StreamingProvider<'a>>,
    }
}

wire_struct! {
    /// A session that streams, and says what happens when its buffer is full.
    pub struct StreamingSession6<'a> {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Keywords of the rundown provider; 0 for no rundown.
        rundown_keyword: u64,
        /// Whether events carry stacks.
        stackwalk: bool,
        /// What to switch on: 1 to 1,000.
        providers: Array<'a, StreamingProvider<'a>>,
        /// What happens when the buffer is full.
        session_buffer_mode: SessionBufferMode,
    }
}

wire_struct! {
    /// A session that writes to `user_events`, on Linux. It has no buffer, no format and no stacks.
    pub struct UserEventsSession<'a> {
        /// Keywords of the rundown provider; 0 for no rundown.
        rundown_keyword: u64,
        /// What to switch on: 1 to 1,000.
        providers: Array<'a, UserEventsProvider<'a>>,
    }
}

/// Declares the union of the two kinds of session.
macro_rules! session_config {
    ($(#[$meta:meta])* $name:ident, $streaming:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name<'a> {
            /// Type 0.
            Streaming($streaming<'a>),
            /// Type 1.
            UserEvents(UserEventsSession<'a>),
            /// A type that is neither, and what follows it.
            Unknown {
                /// The type.
                session_type: u32,
                /// The rest of the payload.
                rest: &'a [u8],
            },
        }
        impl $name<'_> {
            pub(super) const fn continuation(&self) -> Continuation {
                match self {
                    Self::Streaming(_) => Continuation::Stream,
                    Self::UserEvents(_) => Continuation::UserEvents,
                    Self::Unknown { .. } => Continuation::Nothing,
                }
            }
        }
        impl Encode for $name<'_> {
            fn encode(&self, w: &mut Writer<'_>) {
                match self {
                    Self::Streaming(session) => {
                        0u32.encode(w);
                        session.encode(w);
                    }
                    Self::UserEvents(session) => {
                        1u32.encode(w);
                        session.encode(w);
                    }
                    Self::Unknown { session_type, rest } => {
                        session_type.encode(w);
                        w.bytes(rest);
                    }
                }
            }
        }
        /// Of the three kinds; an unknown type is none of the known ones.
        #[cfg(feature = "arbitrary")]
        impl<'a> arbitrary::Arbitrary<'a> for $name<'a> {
            fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
                Ok(match u.int_in_range(0..=2)? {
                    0 => Self::Streaming(u.arbitrary()?),
                    1 => Self::UserEvents(u.arbitrary()?),
                    _ => Self::Unknown { session_type: u.int_in_range(2..=u32::MAX)?, rest: u.arbitrary()? },
                })
            }
        }
        impl<'a> Decode<'a> for $name<'a> {
            const MIN_LEN: usize = 4;

            fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok(match r.read()? {
                    0 => Self::Streaming(r.read()?),
                    1 => Self::UserEvents(r.read()?),
                    session_type => Self::Unknown { session_type, rest: r.bytes(r.rest().len())? },
                })
            }

            fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
                // The specification has no word for the whole.
                let path = path.parent();
                match r.show(Path::Field(path, "session_type"), see, u32::decode, u32::shown)? {
                    0 => $streaming::inspect(r, path, see),
                    1 => UserEventsSession::inspect(r, path, see),
                    _ => r.show_rest(Path::Field(path, "rest"), see),
                }
            }
        }
    };
}
session_config! {
    /// What kind of session, by a `u32` that comes first: `session_type` in the specification.
    SessionConfig, StreamingSession
}
session_config! {
    /// As [`SessionConfig`], but a stream says what happens when its buffer is full.
    SessionConfig6, StreamingSession6
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

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        let len = usize::try_from(r.show_count(path, see)?).unwrap_or(usize::MAX);
        r.show(*path, see, |r| r.bytes(len), |_, bytes| Value::Bytes(bytes))?;
        if r.rest().is_empty() { Ok(()) } else { Err(r.error(DecodeErrorKind::TrailingBytes)) }
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

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        if r.rest().is_empty() { Ok(()) } else { HResult::inspect(r, &Path::Field(path, "status"), see) }
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
    /// who know more: [`decode_prefix`](crate::wire::decode_prefix) hands them back, [`Message::inspect`](crate::Message::inspect)
    /// shows them, and [`Call::finish`](crate::Call::finish) leaves them out.
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
