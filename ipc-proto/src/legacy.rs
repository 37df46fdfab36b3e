//! Earlier protocols: the first public draft of today's protocol, and the protocol that the draft calls "old".
//!
//! No released runtime uses either protocol. [`recognise`] identifies their messages in an old recording.
//!
//! # The draft of 2019
//!
//! The header and StopTracing are the same as today. Command set 1 was named Miscellaneous and had no commands. These
//! parts differ from today's protocol:
//!
//! * the names of the socket and of the pipe, [`DraftSocketName`] and [`DraftPipeName`];
//! * [`DraftCollectTracing`], which has a path instead of today's format;
//! * the payload of an Error answer, [`DraftErrorCode`].
//!
//! The stream after the answer to CollectTracing was in the NetPerf format.
//!
//! # Before the draft
//!
//! ```text
//!  0              4            8
//! | message type | process id | rest …
//!   u32            u32
//! ```
//!
//! There is no magic and no size. The answer is a `u64`: the id of the session, or 0 for an error. See [`OldRequest`].
//!
//! The draft is the first version of the specification. The draft describes the earlier protocol at its end, under
//! "Current Implementation (OLD)".
//!
//! ```
//! use ipc_proto::legacy::{DraftCollectTracing, Legacy, OldMessageType, recognise};
//!
//! let old = [2, 4, 0, 0, 42, 0, 0, 0];
//! let Some(Legacy::Old(old)) = recognise(&old) else { unreachable!() };
//! assert_eq!((old.message_type, old.process_id), (OldMessageType::COLLECT_EVENT_PIPE_TRACING, 42));
//!
//! let draft = b"DOTNET_IPC_V1\0\x28\0\x02\x02\0\0\xfa\0\0\0\x02\0\0\0/\0\0\0\0\0\0\0\x64\0\0\0";
//! assert_eq!(recognise(draft), None); // no providers, but more bytes: neither protocol
//! let draft = &[&draft[..14], b"\x24\0", &draft[16..36]].concat();
//! assert!(matches!(recognise(draft), Some(Legacy::CollectTracing(start)) if start.output_path == "/"));
//! ```
use core::fmt::{self, Write};
use core::str::FromStr;

use crate::types::{EventLevel, SessionId};
use crate::wire::{
    Path, Reader, Visitor, WireError, Writer, decode, decode_prefix, to_u32, wire_enum, wire_struct,
};
use crate::{
    Array, Code, Command, Continuation, Decode, Encode, HResult, Message, ParsePipeNameError,
    ParseSocketNameError, Parsed, PipeName, SocketName, Text,
};

/// The name of a socket in the draft.
///
/// ```text
/// dotnetcore-diagnostic-{process id}-{disambiguation key}-socket
/// ```
///
/// ```
/// use ipc_proto::legacy::DraftSocketName;
///
/// let name: DraftSocketName = "dotnetcore-diagnostic-42-8311-socket".parse()?;
/// assert_eq!(name, DraftSocketName(ipc_proto::SocketName { process_id: 42, disambiguation_key: 8311 }));
/// assert_eq!(name.to_string(), "dotnetcore-diagnostic-42-8311-socket");
/// assert!("dotnet-diagnostic-42-8311-socket".parse::<DraftSocketName>().is_err());
/// # Ok::<(), ipc_proto::ParseSocketNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DraftSocketName(pub SocketName);

/// The name of a pipe in the draft, on Windows, without its prefix `\\.\pipe\`.
///
/// ```text
/// dotnetcore-diagnostic-{process id}
/// ```
///
/// ```
/// use ipc_proto::legacy::DraftPipeName;
///
/// let name: DraftPipeName = "dotnetcore-diagnostic-42".parse()?;
/// assert_eq!(name, DraftPipeName(ipc_proto::PipeName { process_id: 42 }));
/// assert_eq!(name.to_string(), "dotnetcore-diagnostic-42");
/// assert!("dotnet-diagnostic-42".parse::<DraftPipeName>().is_err());
/// # Ok::<(), ipc_proto::ParsePipeNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DraftPipeName(pub PipeName);

/// The prefixes of names in the draft and today. The rest of a name is the same.
const THEN: &str = "dotnetcore-";
const NOW: &str = "dotnet-";

macro_rules! draft_name {
    ($name:ident, $error:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{THEN}{}", self.0.to_text().as_str().strip_prefix(NOW).unwrap_or_default())
            }
        }
        impl FromStr for $name {
            type Err = $error;

            /// Parses a name as strictly as today's names are parsed.
            fn from_str(s: &str) -> Result<Self, $error> {
                now(s).map(Self).ok_or($error)
            }
        }
    };
}
draft_name!(DraftSocketName, ParseSocketNameError);
draft_name!(DraftPipeName, ParsePipeNameError);

/// Parses a name of the draft as the name of today with the same parts.
fn now<N: FromStr>(s: &str) -> Option<N> {
    let rest = s.strip_prefix(THEN)?;
    // 64 bytes are more than the longest name, so text that does not fit is not a name.
    let mut name = heapless::String::<64>::new();
    write!(name, "{NOW}{rest}").ok()?;
    name.parse().ok()
}

/// The command of the draft that starts a session, 0x0202.
///
/// ```text
///  0                    4            n
/// | circular_buffer_mb | output_path | providers |
///   u32                  Text          Array
/// ```
///
/// Erratum: the draft's example counts characters as bytes and gives the message 78 bytes; the message has 110.
///
/// The command can be sent and answered like any [`Command`]:
///
/// ```
/// use ipc_proto::{Array, Command, Text, encode, legacy::{DraftCollectTracing, DraftProvider}, types::EventLevel};
///
/// let providers = [DraftProvider {
///     keywords: 100,
///     level: EventLevel::ERROR,
///     name: "MyEventSource".into(),
///     filter_data: None,
/// }];
/// let start = DraftCollectTracing {
///     circular_buffer_mb: 250,
///     output_path: "/tmp/foo.netperf".into(),
///     providers: Array::from(&providers),
/// };
/// let mut buf = [0; 128];
/// assert_eq!(encode(DraftCollectTracing::CODE, &start, &mut buf)?.len(), 110);
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct DraftCollectTracing<'a> {
    /// Size of the runtime's buffer in MB.
    pub circular_buffer_mb: u32,
    /// Runtimes do not use the path; the draft requires null.
    pub output_path: Text<'a>,
    /// The providers to enable.
    pub providers: Array<'a, DraftProvider<'a>>,
}

impl Encode for DraftCollectTracing<'_> {
    /// Encodes missing filter data as null before another provider, whose bytes would decode as the filter data.
    fn encode(&self, w: &mut Writer<'_>) {
        self.circular_buffer_mb.encode(w);
        self.output_path.encode(w);
        let mut providers = self.providers.iter().peekable();
        to_u32(self.providers.len()).encode(w);
        while let Some(provider) = providers.next() {
            provider.encode(w);
            if provider.filter_data.is_none() && providers.peek().is_some() {
                Text::NULL.encode(w);
            }
        }
    }
}
wire_struct!(@decode ['a] DraftCollectTracing {
    circular_buffer_mb: u32,
    output_path: Text<'a>,
    providers: Array<'a, DraftProvider<'a>>,
});
impl Command for DraftCollectTracing<'_> {
    const CODE: Code = Code(0x0202);
    const NAME: &'static str = "CollectTracing";
    const SPECIFICATION_NAME: &'static str = "CollectTracing";
    /// Only previews of .NET Core 3 have the command.
    const SINCE: u8 = 3;
    type Response<'r> = SessionId;

    fn continuation(&self) -> Continuation {
        Continuation::Stream
    }
}

/// A provider to enable: `provider_config` in the draft.
///
/// ```text
///  0          8       12      12 + n
/// | keywords | level | name  | filter_data |
///   u64        u32     Text    Text, or nothing at the end of the payload
/// ```
///
/// Erratum: the draft calls `filter_data` optional, and omits it in an example. If bytes follow, the absence cannot be
/// detected. So `filter_data` decodes as absent only at the end of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct DraftProvider<'a> {
    /// Groups of events, one bit each.
    pub keywords: u64,
    /// The verbosity.
    pub level: EventLevel,
    /// The name of the provider.
    pub name: Text<'a>,
    /// Arguments for the provider; `None` if the payload ends before them.
    pub filter_data: Option<Text<'a>>,
}

impl Encode for DraftProvider<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.keywords.encode(w);
        self.level.encode(w);
        self.name.encode(w);
        if let Some(filter_data) = self.filter_data {
            filter_data.encode(w);
        }
    }
}
impl<'a> Decode<'a> for DraftProvider<'a> {
    const MIN_LEN: usize = 16;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let (keywords, level, name) = (r.read()?, r.read()?, r.read()?);
        let filter_data = if r.rest().is_empty() { None } else { Some(r.read()?) };
        Ok(Self { keywords, level, name, filter_data })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        u64::inspect(r, &Path::Field(path, "keywords"), visitor)?;
        EventLevel::inspect(r, &Path::Field(path, "level"), visitor)?;
        Text::inspect(r, &Path::Field(path, "name"), visitor)?;
        if r.rest().is_empty() {
            return Ok(());
        }
        Text::inspect(r, &Path::Field(path, "filter_data"), visitor)
    }
}

wire_enum! {
    /// The payload of an Error answer in the draft, instead of an [`HResult`].
    ///
    /// Erratum: the draft's table gives an Error answer 28 bytes; it has 24.
    pub struct DraftErrorCode(u32) {
        /// Success.
        OK = 0,
        /// The request could not be read.
        BAD_ENCODING = 1,
        /// The command does not exist.
        UNKNOWN_COMMAND = 2,
        /// The request did not begin with the magic.
        UNKNOWN_MAGIC = 3,
        /// The request has a value that is not accepted.
        BAD_INPUT = 4,
        /// Any other error.
        UNKNOWN_ERROR = 0xffff_ffff,
    }
}

/// Returns today's code; [`HResult::FAIL`] for a code without a name.
impl From<DraftErrorCode> for HResult {
    fn from(code: DraftErrorCode) -> Self {
        match code {
            DraftErrorCode::OK => Self::OK,
            DraftErrorCode::BAD_ENCODING => Self::BAD_ENCODING,
            DraftErrorCode::UNKNOWN_COMMAND => Self::UNKNOWN_COMMAND,
            DraftErrorCode::UNKNOWN_MAGIC => Self::UNKNOWN_MAGIC,
            DraftErrorCode::BAD_INPUT => Self::INVALID_ARG,
            DraftErrorCode::UNKNOWN_ERROR => Self::UNKNOWN_ERROR,
            _ => Self::FAIL,
        }
    }
}

wire_enum! {
    /// The type of a request from before the draft.
    pub struct OldMessageType(u32) {
        /// Start a session that writes a file.
        START_EVENT_PIPE_TRACING = 1024,
        /// Stop a session.
        STOP_EVENT_PIPE_TRACING = 1025,
        /// Start a session that streams.
        COLLECT_EVENT_PIPE_TRACING = 1026,
    }
}

/// A request from before the draft.
///
/// ```text
///  0              4            8
/// | message_type | process_id | rest … |
///   u32            u32
/// ```
///
/// The layout of the rest is not documented, so it is preserved as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct OldRequest<'a> {
    /// The type of the request.
    pub message_type: OldMessageType,
    /// The id of the target process.
    pub process_id: u32,
    /// The rest of the request.
    pub rest: &'a [u8],
}

impl Encode for OldRequest<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.message_type.encode(w);
        self.process_id.encode(w);
        w.bytes(self.rest);
    }
}
impl<'a> Decode<'a> for OldRequest<'a> {
    const MIN_LEN: usize = 8;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Self { message_type: r.read()?, process_id: r.read()?, rest: r.bytes(r.rest().len())? })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        OldMessageType::inspect(r, &Path::Field(path, "message_type"), visitor)?;
        u32::inspect(r, &Path::Field(path, "process_id"), visitor)?;
        r.show_rest(Path::Field(path, "rest"), visitor)
    }
}

/// A message of an earlier protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Legacy<'a> {
    /// The draft's CollectTracing.
    CollectTracing(DraftCollectTracing<'a>),
    /// The draft's Error answer.
    Error(DraftErrorCode),
    /// A request from before the draft.
    Old(OldRequest<'a>),
}

/// Identifies a message of the draft or from before it that is not a message of today's protocol.
///
/// It returns `None` for messages that have the same bytes in the draft and today: StopTracing, every OK answer, and a
/// CollectTracing without a path whose providers all have filter data, even if its values are invalid. It also returns
/// `None` for an Error of `0xffffffff`, which NativeAOT sends today.
///
/// ```
/// use ipc_proto::legacy::{DraftErrorCode, Legacy, recognise};
///
/// let error = b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x02\0\0\0";
/// assert_eq!(recognise(error), Some(Legacy::Error(DraftErrorCode::UNKNOWN_COMMAND)));
/// assert_eq!(recognise(b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80"), None);
/// ```
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<Legacy<'_>> {
    let Ok(parsed) = Message::parse(bytes) else {
        let known = |old: &OldRequest<'_>| old.message_type.name().is_some() && old.process_id > 0;
        return decode(bytes).ok().filter(known).map(Legacy::Old);
    };
    let Parsed::Complete { value: message, used } = parsed else { return None };
    match message.code {
        _ if used < bytes.len() => None,
        // Only the layout counts: a request with values that today's runtimes refuse still has today's layout.
        DraftCollectTracing::CODE if all_of::<crate::CollectTracing<'_>>(&message).is_some() => None,
        DraftCollectTracing::CODE => all_of(&message).map(Legacy::CollectTracing),
        Code::ERROR => {
            let small = DraftErrorCode::BAD_ENCODING..=DraftErrorCode::BAD_INPUT;
            all_of(&message).filter(|code| small.contains(code)).map(Legacy::Error)
        }
        _ => None,
    }
}

/// Decodes the whole payload as a `T`; `None` if bytes remain.
fn all_of<'a, T: Decode<'a>>(message: &Message<'a>) -> Option<T> {
    let (value, rest) = decode_prefix(message.payload).ok()?;
    rest.is_empty().then_some(value)
}
