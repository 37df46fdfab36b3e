//! Requests, and what a server of the protocol has to answer to them: a test for servers, whoever wrote them.
//!
//! The cases are data, `conformance/cases.jsonl` in the repository's `testdata/`, which describes them too. Here they
//! are typed, and [`run`] tries one on a server.
//!
//! Some cases end real runtimes: [`Case::is_deadly`]. Some have [effects](Case::effects) if all goes well. Their order
//! matters: one sets a variable that the next removes, and those that resume the runtime come last.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use ipc_std::conformance::{self, State};
//! use ipc_std::{Stream, fake::{FakeRuntime, Profile}};
//!
//! let server = FakeRuntime::start(Profile { version: 11, ..Profile::net10() })?; // in your tests: yours
//! let connect = || Stream::connect(server.path(), Instant::now() + Duration::from_secs(10));
//! for case in conformance::cases().iter().filter(|case| case.state == State::Running).take(20) {
//!     if let Err(difference) = conformance::run(case, connect) {
//!         panic!("{difference}");
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read, Write};

use ipc_proto::plan::{self, Flavour, Runtime};
use ipc_proto::types::{ProcessEnvironment, ProcessInfo, ProcessInfo2, ProcessInfo3, SessionId};
use ipc_proto::wire::decode_prefix;
use ipc_proto::{
    ApplyStartupHook, Code, Command, CommandInfo, Decode, HResult, Message, Parsed, Request, StopTracing,
    encode_to_vec,
};
use serde_json::Value;

use crate::observer::Tap;
use crate::{Observer, Stream};

/// A copy would be out of date one day: `testdata/conformance/cases.jsonl` is this file.
const CASES: &str = include_str!("conformance/cases.jsonl");

/// A request, and what is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Case {
    /// Its name: groups and what is special, with slashes between.
    pub name: String,
    /// What to send, all of it at once: .NET Core 3.1 takes a message in two pieces for a malformed one.
    pub request: Vec<u8>,
    /// Whether the sending side is shut down behind it. The server would wait for more otherwise.
    pub half_close: bool,
    /// What the server is doing.
    pub state: State,
    /// What a careful server answers that knows every command, on Linux; [`of`](Self::of) has it for others. `None` if it
    /// depends on the system: then any answer will do that the command can have.
    pub expect: Option<Expectation>,
    /// What happens if the answer is OK: `dump`, `environment`, `hook`, `perf_map`, `profiler`, `resume` or `session`.
    pub effects: Option<String>,
    /// What real runtimes were seen to answer, by their kind: all of what was seen, often one thing only.
    pub observed: BTreeMap<String, BTreeSet<Seen>>,
    /// Which kinds it ended, at once or when they were resumed, or left hanging.
    pub kills: BTreeSet<String>,
    /// Which kinds read past the end of the request: whatever lies there decides what they answer, and whether they end.
    pub over_reads: BTreeSet<String>,
}

/// What the server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It runs.
    Running,
    /// It waits at its start for ResumeRuntime.
    Suspended,
}

/// What is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expectation {
    /// These bytes.
    Bytes(Vec<u8>),
    /// An Error answer with this code; there may be words behind it.
    HResult(HResult),
    /// An OK answer to this command with these numbers in it, and whatever in the fields not listed.
    Ok {
        /// The command.
        command: &'static CommandInfo,
        /// Fields of its answer.
        fields: BTreeMap<String, u64>,
    },
}

/// What a real runtime was seen to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Seen {
    /// It answered OK. With its length, where that is always the same.
    Ok {
        /// Bytes of the whole message.
        len: Option<usize>,
    },
    /// It refused.
    Refused(HResult),
    /// It sent bytes that are no answer.
    Garbage,
    /// It closed the connection without an answer.
    Closes,
    /// It did not answer.
    Waits,
    /// It ended.
    Dies,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// A whole message, of whatever code.
    Message(Vec<u8>),
    /// Bytes that are no message, or not a whole one.
    Garbage(Vec<u8>),
    /// The end of the connection.
    Closed,
    /// Nothing until the deadline.
    Silence,
}

/// What an answer is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Against<'a> {
    /// What is expected of a careful server.
    Expected,
    /// What runtimes of this kind were seen to do, or anything where it is [luck](Case::is_luck_for): `net10`, `net9`,
    /// `net8`, `net9-aot` or `net31`. Those of single-file programs count, too.
    Observed(&'a str),
}

/// An answer that should have been another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The name of the case.
    pub case: String,
    /// What should have come, in words.
    pub expected: String,
    /// What came, in words.
    pub answered: String,
}

/// In one line.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.case, self.expected, self.answered)
    }
}
impl core::error::Error for Difference {}

/// Every case, in the order in which to try them.
#[must_use]
pub fn cases() -> Vec<Case> {
    CASES.lines().filter_map(Case::parse).collect()
}

/// Tries a case on a server that should answer as [expected](Case::expect).
///
/// `connect` is called for the request, and again to stop a session that it started. Nothing takes longer than the two
/// streams' deadlines.
///
/// # Errors
/// If the answer is another, or cannot be had.
pub fn run(case: &Case, connect: impl Fn() -> io::Result<Stream>) -> Result<(), Difference> {
    match ask(case, None, connect) {
        Ok(answer) => case.judge(Against::Expected, &answer),
        Err(e) => Err(case.difference(Against::Expected, format!("no connection: {e}"))),
    }
}

/// Sends the request of a case and receives what is answered.
///
/// A session that it starts is ended: StopTracing is sent on another connection, while the first is read to its end. To
/// close it would not do: a runtime notices that only when it has something to write, and .NET Core 3.1 may end then.
///
/// # Errors
/// If `connect` fails, or the stream in another way than by ending too early or too late: that is an [`Answer`].
pub fn ask(
    case: &Case,
    observer: Option<&Observer>,
    connect: impl Fn() -> io::Result<Stream>,
) -> io::Result<Answer> {
    let mut tap = open(connect()?, observer);
    let answer = exchange(&mut tap, &case.request, case.half_close)?;
    tap.end();
    if let (Some(stop), true) = (started(&answer), case.starts_sessions()) {
        std::thread::scope(|scope| {
            // Neither can be done better if it fails: the session ends with the connection then.
            scope.spawn(|| io::copy(&mut tap, &mut io::sink()));
            let _ = connect().and_then(|stream| exchange(&mut open(stream, observer), &stop, false));
        });
    }
    Ok(answer)
}

fn open(stream: Stream, observer: Option<&Observer>) -> Tap<Stream> {
    let mut tap = Tap::new(stream);
    tap.observe(observer.cloned());
    tap.begin();
    tap
}

/// Sends a request and receives the answer.
fn exchange(tap: &mut Tap<Stream>, request: &[u8], half_close: bool) -> io::Result<Answer> {
    match tap.write_all(request) {
        Ok(()) if half_close => {
            match tap.stream.socket().finish() {
                Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
                // Whoever is gone already has read all that it wants.
                Ok(()) | Err(_) => {}
            }
        }
        // It may have answered before all of it was sent.
        Err(e) if e.kind() != ErrorKind::TimedOut && !is_end(&e) => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let mut received = Vec::new();
    loop {
        let needed = match Message::parse(&received) {
            Ok(Parsed::Complete { .. }) => return Ok(Answer::Message(received)),
            Ok(Parsed::Partial { needed }) => needed,
            Err(_) => return Ok(Answer::Garbage(received)),
        };
        let mut more = vec![0; needed.saturating_sub(received.len())];
        match tap.read(&mut more) {
            Ok(n) if n > 0 => received.extend_from_slice(more.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() != ErrorKind::TimedOut && !is_end(&e) => return Err(e),
            _ if !received.is_empty() => return Ok(Answer::Garbage(received)),
            Err(e) if e.kind() == ErrorKind::TimedOut => return Ok(Answer::Silence),
            Ok(_) | Err(_) => return Ok(Answer::Closed),
        }
    }
}

fn is_end(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}

/// What stops the session that the answer announces.
fn started(answer: &Answer) -> Option<Vec<u8>> {
    let Message { payload, .. } = answer.message().filter(|message| message.code == Code::OK)?;
    let SessionId { session_id } = exactly(payload)?;
    encode_to_vec(StopTracing::CODE, &StopTracing { session_id }).ok()
}

/// The value, if nothing else is there.
fn exactly<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Option<T> {
    decode_prefix(bytes).ok().and_then(|(value, rest)| rest.is_empty().then_some(value))
}

/// The code of an Error answer, words behind it or not.
fn refused(message: &Message<'_>) -> Option<HResult> {
    // Of what stands behind it nothing is known, not even that it is words.
    (message.code == Code::ERROR).then(|| message.decode().ok())?
}

/// The numbers in an OK answer to a command; `None` if it is no such answer, as servers send it.
fn numbers(command: &CommandInfo, message: &Message<'_>) -> Option<Vec<(&'static str, u64)>> {
    let Message { code: Code::OK, payload } = *message else { return None };
    Some(match command.response {
        // A reader takes an answer without a payload too, but a server sends one.
        "Status" => vec![("status", exactly::<HResult>(payload)?.0.into())],
        "SessionId" => vec![("session_id", exactly::<SessionId>(payload)?.session_id)],
        "ProcessInfo" => vec![("process_id", exactly::<ProcessInfo<'_>>(payload)?.process_id)],
        "ProcessInfo2" => vec![("process_id", exactly::<ProcessInfo2<'_>>(payload)?.process_id)],
        "ProcessInfo3" => {
            let (info, rest) = decode_prefix::<ProcessInfo3<'_>>(payload).ok()?;
            // What a later version appends is nobody's concern.
            if info.version <= 1 && !rest.is_empty() {
                return None;
            }
            vec![("version", info.version.into()), ("process_id", info.process_id)]
        }
        "ProcessEnvironment" => {
            let announced: ProcessEnvironment = exactly(payload)?;
            vec![("incoming_bytes", announced.incoming_bytes.into()), ("future", announced.future.into())]
        }
        _ => return None,
    })
}

impl Answer {
    /// The message, if it is one.
    #[must_use]
    pub fn message(&self) -> Option<Message<'_>> {
        let Self::Message(bytes) = self else { return None };
        match Message::parse(bytes) {
            Ok(Parsed::Complete { value, .. }) => Some(value),
            _ => None,
        }
    }
}

/// `OK, 28 bytes`, `0x80131384 DS_IPC_E_BAD_ENCODING`, …
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.message()) {
            (Self::Message(bytes), Some(message)) => match (refused(&message), message.code) {
                (Some(hresult), _) => write!(f, "{hresult:?}"),
                (None, Code::OK) => write!(f, "OK, {} bytes", bytes.len()),
                (None, Code::ERROR) => write!(f, "an Error without a code, {} bytes", bytes.len()),
                (None, code) => write!(f, "a message of code {code}, {} bytes", bytes.len()),
            },
            (Self::Closed, _) => f.write_str("the end of the connection"),
            (Self::Silence, _) => f.write_str("no answer in time"),
            (Self::Message(bytes) | Self::Garbage(bytes), _) => {
                write!(f, "{} bytes that are no message:", bytes.len())?;
                bytes.iter().take(24).try_for_each(|byte| write!(f, " {byte:02x}"))?;
                f.write_str(if bytes.len() > 24 { " …" } else { "" })
            }
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "exactly {}", Answer::Message(bytes.clone())),
            Self::HResult(hresult) => write!(f, "{hresult:?}"),
            Self::Ok { command, fields } => {
                write!(f, "OK to {}", command.name)?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{} {name} {value:#x}", if i == 0 { " with" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl Seen {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "OK" => Self::Ok { len: None },
            "garbage" => Self::Garbage,
            "closes" => Self::Closes,
            "waits" => Self::Waits,
            "dies" => Self::Dies,
            _ => match text.strip_prefix("OK ") {
                Some(len) => Self::Ok { len: Some(len.parse().ok()?) },
                None => Self::Refused(parse_hresult(text)?),
            },
        })
    }

    fn is(&self, answer: &Answer) -> bool {
        let message = answer.message();
        match (*self, answer) {
            (Self::Ok { len }, Answer::Message(bytes)) => {
                message.is_some_and(|message| message.code == Code::OK)
                    && len.is_none_or(|len| len == bytes.len())
            }
            (Self::Refused(hresult), _) => message.is_some_and(|message| refused(&message) == Some(hresult)),
            (Self::Garbage, Answer::Garbage(_))
            | (Self::Closes | Self::Dies, Answer::Closed)
            | (Self::Waits, Answer::Silence) => true,
            _ => false,
        }
    }
}

/// As the data has it, but for codes with a name, which they have too.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok { len: Some(len) } => write!(f, "OK, {len} bytes"),
            Self::Ok { len: None } => f.write_str("OK"),
            Self::Refused(hresult) => write!(f, "{hresult:?}"),
            Self::Garbage => f.write_str("bytes that are no message"),
            Self::Closes => f.write_str("the end of the connection"),
            Self::Waits => f.write_str("no answer"),
            Self::Dies => f.write_str("the end of the process"),
        }
    }
}

fn parse_hresult(text: &str) -> Option<HResult> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(HResult)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

impl Case {
    /// The command that is asked for, if the request is long enough to say.
    #[must_use]
    pub fn command(&self) -> Option<&'static CommandInfo> {
        CommandInfo::find(self.code()?)
    }

    fn code(&self) -> Option<Code> {
        let code = self.request.get(16..18)?.try_into().ok()?;
        Some(Code(u16::from_be_bytes(code)))
    }

    /// Whether it can be sent from here: on Windows, where a connection is a pipe, there is no [half of
    /// one](Self::half_close) to be closed.
    #[must_use]
    pub const fn can_be_sent(&self) -> bool {
        cfg!(unix) || !self.half_close
    }

    /// What an older server, or one of another kind, should answer in the same careful way: it refuses a command that it
    /// does not know, or does not have, before it looks at the payload.
    #[must_use]
    pub fn of(self, version: u8, flavour: Flavour) -> Self {
        let whole = matches!(Message::parse(&self.request), Ok(Parsed::Complete { .. }));
        let Some(code) = self.code().filter(|_| whole) else { return self };
        let linux = Some(true);
        let runtime = Runtime { version: Some(version), flavour: Some(flavour), linux, suspended: None };
        let hresult = plan::refusal(code, &runtime);
        let hresult = hresult.or_else(|| {
            // These are read first.
            let read = self.expect != Some(Expectation::HResult(HResult::BAD_ENCODING));
            match code {
                ApplyStartupHook::CODE if read && flavour != Flavour::CoreClr => Some(HResult::NOT_SUPPORTED),
                _ => None,
            }
        });
        match hresult {
            Some(hresult) => Self { expect: Some(Expectation::HResult(hresult)), effects: None, ..self },
            None => self,
        }
    }

    /// What runtimes of this kind were seen to do, those of single-file programs too; nothing if none was asked.
    #[must_use]
    pub fn seen(&self, kind: &str) -> BTreeSet<Seen> {
        let observed = self.observed.iter().filter(|(name, _)| is_kind(name, kind));
        observed.flat_map(|(_, seen)| seen.iter().copied()).collect()
    }

    /// Whether it is known to end a runtime of this kind, or may: as it reads past the end of the request.
    #[must_use]
    pub fn is_deadly_for(&self, kind: &str) -> bool {
        self.kills.iter().any(|name| is_kind(name, kind)) || self.is_luck_for(kind)
    }

    /// Whether what a runtime of this kind answers is luck.
    #[must_use]
    pub fn is_luck_for(&self, kind: &str) -> bool {
        self.over_reads.iter().any(|name| is_kind(name, kind))
    }

    /// Whether it may end some real runtime.
    #[must_use]
    pub fn is_deadly(&self) -> bool {
        !self.kills.is_empty() || !self.over_reads.is_empty()
    }

    fn starts_sessions(&self) -> bool {
        // StopTracing has the same answer.
        let starts =
            |command: &CommandInfo| command.response == "SessionId" && command.code != StopTracing::CODE;
        self.command().is_some_and(starts)
    }

    /// Compares an answer to the case with what it should be.
    ///
    /// # Errors
    /// If it is another.
    pub fn judge(&self, against: Against<'_>, answer: &Answer) -> Result<(), Difference> {
        let right = match against {
            Against::Expected => match &self.expect {
                Some(expectation) => expectation.is(answer),
                None => self.is_possible(answer),
            },
            Against::Observed(kind) => {
                self.is_luck_for(kind) || self.seen(kind).iter().any(|seen| seen.is(answer))
            }
        };
        if right { Ok(()) } else { Err(self.difference(against, answer.to_string())) }
    }

    /// Whether the answer is one that the command can have.
    fn is_possible(&self, answer: &Answer) -> bool {
        answer.message().is_some_and(|message| {
            let ok = self.command().and_then(|command| numbers(command, &message));
            ok.is_some() || refused(&message).is_some()
        })
    }

    fn difference(&self, against: Against<'_>, answered: String) -> Difference {
        let expected = match (against, &self.expect) {
            (Against::Expected, Some(expectation)) => expectation.to_string(),
            (Against::Expected, None) => "any answer that the command can have".to_owned(),
            (Against::Observed(kind), _) => {
                let seen: Vec<_> = self.seen(kind).iter().map(Seen::to_string).collect();
                if seen.is_empty() { "what nobody has seen yet".to_owned() } else { seen.join(" or ") }
            }
        };
        Difference { case: self.name.clone(), expected, answered }
    }

    /// Reads a line of the data.
    fn parse(line: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(line).ok()?;
        let strings = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let observed = json.get("observed")?.as_object()?.iter();
        let observed = observed
            .map(|(kind, seen)| {
                let seen = strings(seen)?.iter().map(|seen| Seen::parse(seen)).collect::<Option<_>>()?;
                Some((kind.clone(), seen))
            })
            .collect::<Option<_>>()?;
        Some(Self {
            name: json.get("name")?.as_str()?.to_owned(),
            request: unhex(json.get("request")?.as_str()?)?,
            half_close: json.get("half_close")?.as_bool()?,
            state: match json.get("state")?.as_str()? {
                "running" => State::Running,
                "suspended" => State::Suspended,
                _ => return None,
            },
            expect: match json.get("expect")? {
                Value::Null => None,
                expect => Some(Expectation::parse(expect)?),
            },
            effects: match json.get("effects") {
                None => None,
                Some(effects) => Some(effects.as_str()?.to_owned()),
            },
            observed,
            kills: strings(json.get("kills")?)?.into_iter().collect(),
            over_reads: strings(json.get("over_reads")?)?.into_iter().collect(),
        })
    }
}

/// Whether a name in the data belongs to this kind of runtime.
fn is_kind(name: &str, kind: &str) -> bool {
    name.strip_suffix("-single-file").unwrap_or(name) == kind || name == kind
}

impl Expectation {
    fn parse(json: &Value) -> Option<Self> {
        if let Some(bytes) = json.get("bytes") {
            return unhex(bytes.as_str()?).map(Self::Bytes);
        }
        if let Some(hresult) = json.get("hresult") {
            return parse_hresult(hresult.as_str()?).map(Self::HResult);
        }
        let name = json.get("ok")?.as_str()?;
        let command = Request::ALL.iter().find(|row| row.name == name)?;
        let fields = json.get("fields")?.as_object()?.iter();
        let fields = fields.map(|(name, value)| Some((name.clone(), value.as_u64()?)));
        Some(Self::Ok { command, fields: fields.collect::<Option<_>>()? })
    }

    fn is(&self, answer: &Answer) -> bool {
        let Some(message) = answer.message() else { return false };
        match self {
            Self::Bytes(bytes) => *answer == Answer::Message(bytes.clone()),
            Self::HResult(hresult) => refused(&message) == Some(*hresult),
            Self::Ok { command, fields } => numbers(command, &message).is_some_and(|numbers| {
                fields.iter().all(|(name, value)| numbers.contains(&(name.as_str(), *value)))
            }),
        }
    }
}
