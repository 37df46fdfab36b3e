//! The types of the fields and of the responses of commands.
pub use super::environment_entry::EnvironmentEntry;
pub use super::platform::{Architecture, OperatingSystem};
pub use super::provider_arguments::{ArgumentError, ArgumentList, ArgumentText, ProviderArguments};
pub use super::responses::*;
pub use super::tracepoint_format::{TracepointFormat, TracepointFormatError};
use crate::wire::{
    PartValue, Path, Reader, Visitor, WireError, WireErrorKind, Writer, to_u32, to_usize, wire_enum,
    wire_struct,
};
use crate::{Array, Continuation, Decode, Encode, HResult, Text};

wire_struct! {
    /// A provider to enable: `provider_config` in the specification.
    ///
    /// ```text
    ///  0          8       12      12 + n
    /// | keywords | level | name  | arguments |
    ///   u64        u32     Text    Text
    /// ```
    ///
    /// [`StreamingProvider::includes`] selects the sent events; the filter of a `Provider` is [`EventFilter::ALL`].
    pub struct Provider<'a> {
        /// Groups of events, one bit each; the provider defines them.
        keywords: u64,
        /// The verbosity.
        level: EventLevel,
        /// The name of the provider; not empty.
        name: Text<'a>,
        /// Settings for the provider: `key=value` joined by `;`. A value that contains `;` or `=` is in double quotes.
        /// [`ProviderArguments`] reads and [`ArgumentList`] writes them.
        arguments: Text<'a>,
    }
}

wire_struct! {
    /// A filter of the events of a provider by their ids: `event_filter` in the specification. The filter applies after
    /// keywords and level.
    ///
    /// | `enable` | ids | sent events |
    /// |---|---|---|
    /// | false | none | all: [`EventFilter::ALL`] |
    /// | false | some | all except the events with these ids |
    /// | true | none | none |
    /// | true | some | the events with these ids |
    ///
    /// Erratum: the specification's "(length = 0)" suggests an optional filter; it has at least 5 bytes. A runtime
    /// refuses an id that occurs twice. The first .NET 10 instead ignores the provider, or ends for `user_events`.
    pub struct EventFilter<'a> {
        /// `true`: the ids select the events to send. `false`: the ids select the events not to send.
        enable: bool,
        /// The ids.
        event_ids: Array<'a, u32>,
    }
}

impl EventFilter<'_> {
    /// No filter: all events are sent.
    pub const ALL: Self = Self { enable: false, event_ids: Array::EMPTY };

    /// Returns whether the filter lets the events with this id pass.
    ///
    /// `includes` searches all ids. A runtime does so once for each kind of event, not for each event.
    #[must_use]
    pub fn includes(&self, event_id: u32) -> bool {
        self.event_ids.iter().any(|id| id == event_id) == self.enable
    }
}

/// Implements `includes`, the rule that selects the events of a provider.
macro_rules! includes {
    ($name:ident) => {
        impl $name<'_> {
            /// Returns whether the provider sends an event: by its keywords, then its level, then the filter.
            ///
            /// The event must have no keyword, or one in common with the provider. The level of the event must be at
            /// most the provider's, unless the level of the provider is [`EventLevel::LOG_ALWAYS`].
            #[must_use]
            pub fn includes(&self, keywords: u64, level: EventLevel, event_id: u32) -> bool {
                (keywords == 0 || keywords & self.keywords != 0)
                    && (self.level == EventLevel::LOG_ALWAYS || level <= self.level)
                    && self.filter.includes(event_id)
            }
        }
    };
}
includes!(StreamingProvider);
includes!(UserEventsProvider);

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
        /// The filter of its events.
        filter: EventFilter<'a>,
    }
}

impl<'a> From<Provider<'a>> for StreamingProvider<'a> {
    fn from(provider: Provider<'a>) -> Self {
        let Provider { keywords, level, name, arguments } = provider;
        Self { keywords, level, name, arguments, filter: EventFilter::ALL }
    }
}

wire_struct! {
    /// A provider whose events are written to `user_events`: `user_events_provider_config` in the specification.
    pub struct UserEventsProvider<'a> {
        /// As in [`Provider`].
        keywords: u64,
        /// As in [`Provider`].
        level: EventLevel,
        /// As in [`Provider`].
        name: Text<'a>,
        /// As in [`Provider`].
        arguments: Text<'a>,
        /// The filter of its events.
        filter: EventFilter<'a>,
        /// The tracepoints for its events.
        tracepoints: TracepointConfig<'a>,
    }
}

wire_struct! {
    /// The tracepoints for the events of a provider: `tracepoint_config` in the specification. A runtime refuses a
    /// config with neither a default tracepoint nor a set.
    ///
    /// Erratum: both examples in the specification count "MyTracepoint" as 14 units; it has 13 with its NUL.
    pub struct TracepointConfig<'a> {
        /// The tracepoint for events that are in no set; if the name is null or empty, such events are not written.
        default_tracepoint_name: Text<'a>,
        /// The tracepoints for sets of events.
        sets: Array<'a, TracepointSet<'a>>,
    }
}

impl<'a> TracepointConfig<'a> {
    /// Returns the names of the tracepoints in the order in which a runtime registers them: the default tracepoint, if
    /// its name is not empty, then the tracepoints of the sets.
    ///
    /// ```
    /// use ipc_proto::Array;
    /// use ipc_proto::types::{TracepointConfig, TracepointSet};
    ///
    /// let sets = [TracepointSet { tracepoint_name: "my_app_gc".into(), event_ids: Array::from(&[1, 2]) }];
    /// let config = TracepointConfig { default_tracepoint_name: "my_app".into(), sets: Array::from(&sets) };
    /// assert!(config.tracepoint_names().eq(["my_app", "my_app_gc"]));
    /// assert_eq!(config.tracepoint_name(2).unwrap(), "my_app_gc");
    /// ```
    pub fn tracepoint_names(&self) -> impl Iterator<Item = Text<'a>> + Clone + use<'a> {
        let default = Some(self.default_tracepoint_name).filter(|name| !name.is_empty());
        default.into_iter().chain(self.sets.iter().map(|set| set.tracepoint_name))
    }

    /// Returns the tracepoint of an event: of the set with its id, else the default. `None`: the event is not written.
    ///
    /// `tracepoint_name` searches all sets. A runtime does so once for each kind of event, not for each event.
    #[must_use]
    pub fn tracepoint_name(&self, event_id: u32) -> Option<Text<'a>> {
        let set = self.sets.iter().find(|set| set.event_ids.iter().any(|id| id == event_id));
        let name = set.map_or(self.default_tracepoint_name, |set| set.tracepoint_name);
        Some(name).filter(|name| !name.is_empty())
    }
}

wire_struct! {
    /// The events for one tracepoint: `tracepoint_set` in the specification.
    pub struct TracepointSet<'a> {
        /// The name of the tracepoint; not empty.
        tracepoint_name: Text<'a>,
        /// The ids of the events. An event can be in one set only.
        event_ids: Array<'a, u32>,
    }
}

wire_enum! {
    /// The runtime's behaviour when the buffer of a session is full. Runtimes refuse other values.
    pub struct SessionBufferMode(u32) {
        /// The runtime drops events.
        DROP = 0,
        /// The runtime blocks the threads that raise events.
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
        /// The providers to enable: 1 to 1,000.
        providers: Array<'a, StreamingProvider<'a>>,
    }
}

wire_struct! {
    /// A session that streams, with a behaviour for a full buffer.
    pub struct StreamingSession6<'a> {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Keywords of the rundown provider; 0 for no rundown.
        rundown_keyword: u64,
        /// Whether events carry stacks.
        stackwalk: bool,
        /// The providers to enable: 1 to 1,000.
        providers: Array<'a, StreamingProvider<'a>>,
        /// The behaviour when the buffer is full.
        session_buffer_mode: SessionBufferMode,
    }
}

wire_struct! {
    /// A session that writes to `user_events`, on Linux. It has no buffer, no format and no stacks.
    pub struct UserEventsSession<'a> {
        /// Keywords of the rundown provider. Runtimes ignore them: no session of `user_events` has a rundown.
        rundown_keyword: u64,
        /// The providers to enable: 1 to 1,000.
        providers: Array<'a, UserEventsProvider<'a>>,
    }
}

/// Declares the union of the two kinds of session.
macro_rules! session_config {
    ($(#[$meta:meta])* $name:ident, $streaming:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name<'a> {
            /// Type 0: a session that streams.
            Streaming($streaming<'a>),
            /// Type 1: a session that writes to `user_events`.
            UserEvents(UserEventsSession<'a>),
            /// An unknown type.
            Unknown {
                /// The number of the unknown type.
                session_type: u32,
                /// The rest of the payload, undecoded.
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
        /// One of the three variants. The type of `Unknown` is never 0 or 1, the types of the other variants.
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

            fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
                Ok(match r.read()? {
                    0 => Self::Streaming(r.read()?),
                    1 => Self::UserEvents(r.read()?),
                    session_type => Self::Unknown { session_type, rest: r.bytes(r.rest().len())? },
                })
            }

            fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
                // The specification has no name for the union, so its fields are fields of the parent.
                let path = path.parent();
                match r.show(Path::Field(path, "session_type"), visitor, u32::decode, u32::shown)? {
                    0 => $streaming::inspect(r, path, visitor),
                    1 => UserEventsSession::inspect(r, path, visitor),
                    _ => r.show_rest(Path::Field(path, "rest"), visitor),
                }
            }
        }
    };
}
session_config! {
    /// The kind of session. A `u32` before the fields selects the variant: `session_type` in the specification.
    SessionConfig, StreamingSession
}
session_config! {
    /// The kind of session, as [`SessionConfig`], but a session that streams has a [`SessionBufferMode`].
    SessionConfig6, StreamingSession6
}

wire_enum! {
    /// The verbosity of a provider: `logLevel` in the specification. Runtimes refuse other values.
    pub struct EventLevel(u32) {
        /// All events, regardless of their level.
        LOG_ALWAYS = 0,
        /// Critical errors.
        CRITICAL = 1,
        /// Errors.
        ERROR = 2,
        /// Warnings.
        WARNING = 3,
        /// Information; the default of most tools.
        INFORMATIONAL = 4,
        /// All events, including details.
        VERBOSE = 5,
    }
}

wire_enum! {
    /// The format of a session's stream. Runtimes refuse other values.
    pub struct Format(u32) {
        /// NetPerf, the old format, version 3. It begins with `!FastSerialization.1`.
        NET_PERF = 0,
        /// NetTrace. It begins with `Nettrace`.
        NET_TRACE = 1,
    }
}

wire_enum! {
    /// The content of a dump.
    pub struct DumpType(u32) {
        /// Threads and modules.
        NORMAL = 1,
        /// Threads, modules and the managed heap.
        WITH_HEAP = 2,
        /// As `NORMAL`, without personal data.
        TRIAGE = 3,
        /// All memory.
        FULL = 4,
    }
}

wire_enum! {
    /// Options of the dump writer, one bit each.
    pub struct DumpFlags(u32) {
        /// No option.
        NONE = 0,
        /// The dump writer logs to the target's console.
        LOGGING_ENABLED = 1,
        /// The dump writer logs more than with `LOGGING_ENABLED`.
        VERBOSE_LOGGING_ENABLED = 2,
        /// The dump writer also writes a crash report.
        CRASH_REPORT_ENABLED = 4,
        /// The dump writer writes only a crash report.
        CRASH_REPORT_ONLY_ENABLED = 8,
    }
}

wire_enum! {
    /// The files to write for `perf`.
    pub struct PerfMapType(u32) {
        /// No files; runtimes refuse this value.
        DISABLED = 0,
        /// Both `jit-PID.dump` and `perf-PID.map`.
        ALL = 1,
        /// `jit-PID.dump`.
        JIT_DUMP = 2,
        /// `perf-PID.map`.
        PERF_MAP = 3,
    }
}

/// Bytes for a profiler: a `u32` length and as many bytes, which end the payload.
///
/// Erratum: the specification lists a length and an array with another length; there is one length only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct ClientData<'a>(pub &'a [u8]);

impl Encode for ClientData<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        to_u32(self.0.len()).encode(w);
        w.bytes(self.0);
    }
}
impl<'a> Decode<'a> for ClientData<'a> {
    const MIN_LEN: usize = 4;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let len = r.read()?;
        let bytes = r.bytes(to_usize(len))?;
        if r.rest().is_empty() { Ok(Self(bytes)) } else { Err(r.error(WireErrorKind::TrailingBytes)) }
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        let len = to_usize(r.show_count(path, visitor)?);
        r.show(*path, visitor, |r| r.bytes(len), |_, bytes| PartValue::Bytes(bytes))?;
        if r.rest().is_empty() {
            return Ok(());
        }
        let error = r.error(WireErrorKind::TrailingBytes);
        visitor.failed(path, error);
        Err(error)
    }
}

/// The response of commands that return no data.
///
/// Runtimes send an `i32` 0. The specification also allows an OK answer without payload, which decodes as success.
/// Erratum: the specification's tables give such answers 28 bytes; they have 24.
///
/// ```
/// use ipc_proto::{Code, Message, types::Status};
///
/// let without_payload = Message { code: Code::OK, payload: &[] };
/// assert_eq!(without_payload.decode(), Ok(Status::OK));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Status(pub HResult);

impl Status {
    /// The value that runtimes send.
    pub const OK: Self = Self(HResult::OK);
}
impl Encode for Status {
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
}
impl<'a> Decode<'a> for Status {
    const MIN_LEN: usize = 0;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        if r.rest().is_empty() { Ok(Self::OK) } else { r.read().map(Self) }
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        if r.rest().is_empty() { Ok(()) } else { HResult::inspect(r, &Path::Field(path, "status"), visitor) }
    }
}

/// The continuation of [`ProcessEnvironment`]: every variable as `NAME=value`, an [`EnvironmentEntry`].
pub type EnvironmentEntries<'a> = Array<'a, Text<'a>>;
