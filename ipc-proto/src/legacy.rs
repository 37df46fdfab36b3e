//! What was spoken before this protocol: the first public draft of it, and what that draft calls "old".
//!
//! No released runtime speaks either. This is for whoever finds such bytes in an old recording and asks what they are:
//! [`recognise`] says.
//!
//! # The draft of 2019
//!
//! The header is as today, and so is StopTracing. Command set 1 was named Miscellaneous and had no commands. Different were
//!
//! * the socket's name, [`SocketName`];
//! * [`CollectTracing`], which had a path in place of today's format;
//! * what an Error answer holds, [`ErrorCode`].
//!
//! The stream behind the answer to CollectTracing was in the NetPerf format.
//!
//! # Before the draft
//!
//! ```text
//!  0              4            8
//! | message type | process id | what belongs to it …
//!   u32            u32
//! ```
//!
//! No magic, no size, and the answer is a bare `u64`: the session's id, 0 for an error. See [`OldRequest`].
//!
//! The draft's text is the first version of the specification; what came before it stands at its end, under "Current
//! Implementation (OLD)".
//!
//! ```
//! use ipc_proto::legacy::{CollectTracing, Legacy, OldMessageType, recognise};
//!
//! let old = [2, 4, 0, 0, 42, 0, 0, 0];
//! let Some(Legacy::Old(old)) = recognise(&old) else { unreachable!() };
//! assert_eq!((old.message_type, old.process_id), (OldMessageType::COLLECT_EVENT_PIPE_TRACING, 42));
//!
//! let draft = b"DOTNET_IPC_V1\0\x28\0\x02\x02\0\0\xfa\0\0\0\x02\0\0\0/\0\0\0\0\0\0\0\x64\0\0\0";
//! assert_eq!(recognise(draft), None); // no providers, but some bytes: neither this nor that
//! let draft = &[&draft[..14], b"\x24\0", &draft[16..36]].concat();
//! assert!(matches!(recognise(draft), Some(Legacy::CollectTracing(start)) if start.output_path == "/"));
//! ```
use core::fmt::{self, Write};
use core::str::FromStr;

use crate::types::{EventLevel, SessionId};
use crate::wire::{Path, Reader, See, Writer, decode_prefix, wire_enum};
use crate::{
    Array, Code, Command, Continuation, Decode, DecodeError, Encode, HResult, Message, ParseSocketNameError,
    Parsed, Text,
};

/// The name of a socket in the draft.
///
/// ```text
/// dotnetcore-diagnostic-{process id}-{disambiguation key}-socket
/// ```
///
/// On Windows it was the pipe `\\.\pipe\dotnetcore-diagnostic-{process id}`.
///
/// ```
/// use ipc_proto::legacy::SocketName;
///
/// let name: SocketName = "dotnetcore-diagnostic-42-8311-socket".parse()?;
/// assert_eq!(name, SocketName(ipc_proto::SocketName { process_id: 42, disambiguation_key: 8311 }));
/// assert_eq!(name.to_string(), "dotnetcore-diagnostic-42-8311-socket");
/// assert!("dotnet-diagnostic-42-8311-socket".parse::<SocketName>().is_err());
/// # Ok::<(), ipc_proto::ParseSocketNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketName(pub crate::SocketName);

/// How names began then, and how they begin now; the rest is the same.
const THEN: &str = "dotnetcore-";
const NOW: &str = "dotnet-";

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = self.0.to_text();
        write!(f, "{THEN}{}", now.as_str().strip_prefix(NOW).unwrap_or_default())
    }
}
impl FromStr for SocketName {
    type Err = ParseSocketNameError;

    /// Reads a name as strictly as today's are read.
    fn from_str(s: &str) -> Result<Self, ParseSocketNameError> {
        let rest = s.strip_prefix(THEN).ok_or(ParseSocketNameError)?;
        // Longer than any name; what does not fit is none.
        let mut now = heapless::String::<64>::new();
        write!(now, "{NOW}{rest}").map_err(|_| ParseSocketNameError)?;
        now.parse().map(Self)
    }
}

/// The command that starts a session, 0x0202, as the draft had it.
///
/// ```text
///  0                    4            n
/// | circular_buffer_mb | output_path | providers |
///   u32                  Text          Array
/// ```
///
/// Errata of its worked example: characters are counted as bytes, so it says 78 bytes in all where there are 110.
///
/// It can be sent, and answered, as any [`Command`]:
///
/// ```
/// use ipc_proto::{Array, Command, Text, encode, legacy::{CollectTracing, Provider}, types::EventLevel};
///
/// let providers = [Provider {
///     keywords: 100,
///     level: EventLevel::ERROR,
///     name: "MyEventSource".into(),
///     filter_data: None,
/// }];
/// let start = CollectTracing {
///     circular_buffer_mb: 250,
///     output_path: "/tmp/foo.netperf".into(),
///     providers: Array::from(&providers),
/// };
/// let mut buf = [0; 128];
/// assert_eq!(encode(CollectTracing::CODE, &start, &mut buf)?.len(), 110);
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct CollectTracing<'a> {
    /// Size of the runtime's buffer in MB.
    pub circular_buffer_mb: u32,
    /// Not used; the draft wants it null.
    pub output_path: Text<'a>,
    /// What to switch on.
    pub providers: Array<'a, Provider<'a>>,
}

impl Encode for CollectTracing<'_> {
    /// A provider without filter data gets a null one if another follows: it could not be read otherwise.
    fn encode(&self, w: &mut Writer<'_>) {
        self.circular_buffer_mb.encode(w);
        self.output_path.encode(w);
        let mut providers = self.providers.iter().peekable();
        u32::try_from(self.providers.len()).unwrap_or(u32::MAX).encode(w);
        while let Some(provider) = providers.next() {
            provider.encode(w);
            if provider.filter_data.is_none() && providers.peek().is_some() {
                Text::NULL.encode(w);
            }
        }
    }
}
impl<'a> Decode<'a> for CollectTracing<'a> {
    const MIN_LEN: usize = 12;

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { circular_buffer_mb: r.read()?, output_path: r.read()?, providers: r.read()? })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        u32::inspect(r, &Path::Field(path, "circular_buffer_mb"), see)?;
        Text::inspect(r, &Path::Field(path, "output_path"), see)?;
        Array::<Provider<'a>>::inspect(r, &Path::Field(path, "providers"), see)
    }
}
impl Command for CollectTracing<'_> {
    const CODE: Code = Code(0x0202);
    const NAME: &'static str = "CollectTracing";
    const SPECIFICATION_NAME: &'static str = "CollectTracing";
    /// Previews of this one only.
    const SINCE: u8 = 3;
    type Response<'r> = SessionId;

    fn continuation(&self) -> Continuation {
        Continuation::Stream
    }
}

/// A provider to switch on: `provider_config` in the draft.
///
/// ```text
///  0          8       12      12 + n
/// | keywords | level | name  | filter_data |
///   u64        u32     Text    Text, or nothing at the end of the payload
/// ```
///
/// Erratum: the draft calls `filter_data` optional, and its example leaves it out. That it is absent cannot be told when
/// something follows, so it reads as absent only where the payload ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Provider<'a> {
    /// Which of its events; all bits for all of them.
    pub keywords: u64,
    /// How verbose it is.
    pub level: EventLevel,
    /// Its name.
    pub name: Text<'a>,
    /// Arguments for it; `None` if the payload ends before them.
    pub filter_data: Option<Text<'a>>,
}

impl Encode for Provider<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.keywords.encode(w);
        self.level.encode(w);
        self.name.encode(w);
        if let Some(filter_data) = self.filter_data {
            filter_data.encode(w);
        }
    }
}
impl<'a> Decode<'a> for Provider<'a> {
    const MIN_LEN: usize = 16;

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (keywords, level, name) = (r.read()?, r.read()?, r.read()?);
        let filter_data = if r.rest().is_empty() { None } else { Some(r.read()?) };
        Ok(Self { keywords, level, name, filter_data })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        u64::inspect(r, &Path::Field(path, "keywords"), see)?;
        EventLevel::inspect(r, &Path::Field(path, "level"), see)?;
        Text::inspect(r, &Path::Field(path, "name"), see)?;
        if r.rest().is_empty() {
            return Ok(());
        }
        Text::inspect(r, &Path::Field(path, "filter_data"), see)
    }
}

wire_enum! {
    /// What the payload of an Error answer was in the draft, in place of an [`HResult`].
    ///
    /// Erratum: the draft's table gives such an answer 28 bytes; it has 24.
    pub struct ErrorCode(u32) {
        /// Success.
        OK = 0,
        /// The request could not be read.
        BAD_ENCODING = 1,
        /// There is no such command.
        UNKNOWN_COMMAND = 2,
        /// The request did not begin with the magic.
        UNKNOWN_MAGIC = 3,
        /// The request had a value that is not taken.
        BAD_INPUT = 4,
        /// Anything else.
        UNKNOWN_ERROR = 0xffff_ffff,
    }
}

/// What is said today; [`HResult::FAIL`] for a code without a name.
impl From<ErrorCode> for HResult {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::OK => Self::OK,
            ErrorCode::BAD_ENCODING => Self::BAD_ENCODING,
            ErrorCode::UNKNOWN_COMMAND => Self::UNKNOWN_COMMAND,
            ErrorCode::UNKNOWN_MAGIC => Self::UNKNOWN_MAGIC,
            ErrorCode::BAD_INPUT => Self::INVALID_ARG,
            ErrorCode::UNKNOWN_ERROR => Self::UNKNOWN_ERROR,
            _ => Self::FAIL,
        }
    }
}

wire_enum! {
    /// What was asked before the draft.
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
/// What belongs to each type nobody wrote down, so it is kept as it came.
///
/// ```
/// use ipc_proto::legacy::{OldMessageType, OldRequest};
///
/// let bytes = [1, 4, 0, 0, 42, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
/// let stop: OldRequest<'_> = ipc_proto::wire::decode(&bytes)?;
/// assert_eq!(stop.message_type, OldMessageType::STOP_EVENT_PIPE_TRACING);
/// assert_eq!((stop.process_id, stop.rest.len()), (42, 8));
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct OldRequest<'a> {
    /// What is asked.
    pub message_type: OldMessageType,
    /// Of which process.
    pub process_id: u32,
    /// What belongs to it.
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

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { message_type: r.read()?, process_id: r.read()?, rest: r.bytes(r.rest().len())? })
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        OldMessageType::inspect(r, &Path::Field(path, "message_type"), see)?;
        u32::inspect(r, &Path::Field(path, "process_id"), see)?;
        r.show_rest(Path::Field(path, "rest"), see)
    }
}

/// What bytes turn out to be that are not of today's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Legacy<'a> {
    /// The draft's CollectTracing.
    CollectTracing(CollectTracing<'a>),
    /// The draft's Error answer.
    Error(ErrorCode),
    /// A request from before the draft.
    Old(OldRequest<'a>),
}

/// Says what `bytes` are, if they are of the draft or from before it and mean nothing today.
///
/// Where the draft and today's protocol have the same bytes it is `None`: StopTracing, every OK answer, a CollectTracing
/// without a path whose providers all have filter data, even one that every runtime refuses. So it is for an Error of `0xffffffff`, which NativeAOT sends
/// today.
///
/// ```
/// use ipc_proto::legacy::{ErrorCode, Legacy, recognise};
///
/// let error = b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x02\0\0\0";
/// assert_eq!(recognise(error), Some(Legacy::Error(ErrorCode::UNKNOWN_COMMAND)));
/// assert_eq!(recognise(b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80"), None);
/// ```
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<Legacy<'_>> {
    let Ok(parsed) = Message::parse(bytes) else { return old(bytes) };
    match parsed {
        Parsed::Complete { value, used } if used == bytes.len() => match value.code {
            CollectTracing::CODE => collect_tracing(&value),
            Code::ERROR => error(&value),
            _ => None,
        },
        Parsed::Complete { .. } | Parsed::Partial { .. } => None,
    }
}

fn collect_tracing<'a>(message: &Message<'a>) -> Option<Legacy<'a>> {
    // What today's rules refuse is of today all the same.
    if all_of::<crate::CollectTracing<'_>>(message).is_some() {
        return None;
    }
    all_of(message).map(Legacy::CollectTracing)
}

/// The payload as a `T`, if nothing is left of it.
fn all_of<'a, T: Decode<'a>>(message: &Message<'a>) -> Option<T> {
    let (value, rest) = decode_prefix(message.payload).ok()?;
    rest.is_empty().then_some(value)
}

fn error<'a>(message: &Message<'a>) -> Option<Legacy<'a>> {
    let small = ErrorCode::BAD_ENCODING..=ErrorCode::BAD_INPUT;
    all_of(message).filter(|code| small.contains(code)).map(Legacy::Error)
}

fn old(bytes: &[u8]) -> Option<Legacy<'_>> {
    let request: OldRequest<'_> = Reader::new(bytes).read().ok()?;
    let known = request.message_type.name().is_some() && request.process_id > 0;
    known.then_some(Legacy::Old(request))
}
