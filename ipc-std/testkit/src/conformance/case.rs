//! One request with the answers that a server may give.
use core::fmt;
use core::str::FromStr;
use std::collections::{BTreeMap, BTreeSet};

use ipc_proto::plan::{self, Flavour, Runtime};
use ipc_proto::{ApplyStartupHook, Code, Command, CommandInfo, EnablePerfMap, HResult, Message};
use serde_json::Value;

use super::answer::{ExpectedAnswer, ReceivedAnswer, Seen, unhex, whole_message};
use super::difference::{Against, Difference};

/// A request and its expected answer.
///
/// ```
/// use ipc_testkit::conformance::{self, Against, ReceivedAnswer};
///
/// let cases = conformance::cases();
/// let case = cases.iter().find(|case| case.name == "hdr/ok-empty-info").ok_or("it has another name")?;
/// assert_eq!(case.command().map(|command| command.name), Some("GetProcessInfo"));
/// let difference = case.judge(Against::Expected, &ReceivedAnswer::Silence).unwrap_err();
/// println!("{difference}");
/// assert!(case.judge(Against::Observed("net10"), &ReceivedAnswer::Silence).is_err());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Case {
    /// The name: the group and the special feature, with slashes between them.
    pub name: String,
    /// The bytes to send, in one write: .NET Core 3.1 rejects a message that arrives in two pieces as malformed.
    pub request: Vec<u8>,
    /// Whether the sending direction is shut down after the request. Without the shutdown, the server would wait for
    /// more bytes.
    pub half_close: bool,
    /// Whether a descriptor follows the request, with one byte, in a message of its own.
    pub descriptor: bool,
    /// The state of the server.
    pub state: State,
    /// The answer of a careful server that knows every command, on Linux. [`for_server`](Self::for_server) adapts it to
    /// other servers. `None` if the answer depends on the system; then any answer that the command can have is right.
    pub expect: Option<ExpectedAnswer>,
    /// The effect if the answer is OK: `dump`, `environment`, `hook`, `perf_map`, `profiler`, `resume` or `session`.
    pub effects: Option<String>,
    /// All answers of real runtimes, by kind.
    pub observed: BTreeMap<String, BTreeSet<Seen>>,
    /// The kinds of runtimes that the request ended, immediately or when they were resumed, or that stopped answering.
    pub kills: BTreeSet<String>,
    /// The kinds of runtimes that read past the end of the request. The bytes after the end decide what these runtimes
    /// answer, and whether they end.
    pub over_reads: BTreeSet<String>,
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// The server runs.
    Running,
    /// The server is suspended at startup until ResumeRuntime.
    Suspended,
}

impl Case {
    /// Returns the command, if the request has a code that is known.
    #[must_use]
    pub fn command(&self) -> Option<&'static CommandInfo> {
        CommandInfo::find(self.code()?)
    }

    fn code(&self) -> Option<Code> {
        let code = self.request.get(16..18)?.try_into().ok()?;
        Some(Code(u16::from_be_bytes(code)))
    }

    /// Adapts the expected answer to a server of this version and kind: such a server refuses a command that it does
    /// not know, or does not support, before it decodes the payload.
    #[must_use]
    pub fn for_server(self, version: u8, flavour: Flavour) -> Self {
        let Some(Message { code, .. }) = whole_message(&self.request) else { return self };
        let linux = Some(true);
        let runtime = Runtime { version: Some(version), flavour: Some(flavour), linux, suspended: None };
        let hresult = plan::refusal(code, &runtime);
        let hresult = hresult.or_else(|| {
            // Other runtimes than CoreCLR decode the payload of these commands before they refuse the command.
            let read = self.expect != Some(ExpectedAnswer::HResult(HResult::BAD_ENCODING));
            match code {
                ApplyStartupHook::CODE | EnablePerfMap::CODE if read && flavour != Flavour::CoreClr => {
                    Some(HResult::NOT_SUPPORTED)
                }
                _ => None,
            }
        });
        match hresult {
            Some(hresult) => Self { expect: Some(ExpectedAnswer::HResult(hresult)), effects: None, ..self },
            None => self,
        }
    }

    /// Adapts the expected answer to a server that has only these commands: it refuses every other one that is known,
    /// with any code. What is not a whole message, or has an unknown code, is refused as by other servers.
    ///
    /// ```
    /// use ipc_testkit::ipc_proto::{Command, GetProcessInfo2, ResumeRuntime};
    /// use ipc_testkit::conformance::{self, ExpectedAnswer};
    ///
    /// let has = [GetProcessInfo2::CODE, ResumeRuntime::CODE];
    /// let cases = conformance::cases().into_iter().map(|case| case.for_commands(&has));
    /// let refused = cases.filter(|case| case.expect == Some(ExpectedAnswer::Refusal)).count();
    /// assert!(refused > 200);
    /// ```
    #[must_use]
    pub fn for_commands(self, commands: &[Code]) -> Self {
        match whole_message(&self.request) {
            Some(message)
                if CommandInfo::find(message.code).is_some() && !commands.contains(&message.code) =>
            {
                Self { expect: Some(ExpectedAnswer::Refusal), effects: None, ..self }
            }
            _ => self,
        }
    }

    /// Returns what runtimes of this kind did, including those of single-file programs. Empty if no such runtime was
    /// tested.
    #[must_use]
    pub fn seen(&self, kind: &str) -> BTreeSet<Seen> {
        let observed = self.observed.iter().filter(|(name, _)| is_kind(name, kind));
        observed.flat_map(|(_, seen)| seen.iter().copied()).collect()
    }

    /// Returns what runtimes of this kind did, if they never gave the expected answer; `None` if they did, if no such
    /// runtime was tested, or if no answer is expected.
    #[cfg(feature = "io")]
    pub(crate) fn deviation(&self, kind: &str) -> Option<Seen> {
        let expected = self.expect.as_ref()?;
        let seen = self.seen(kind);
        if seen.iter().any(|seen| expected.is_seen(seen)) { None } else { seen.first().copied() }
    }

    /// Returns whether the request ended a runtime of this kind, or can end one because that kind reads past the end of
    /// the request.
    #[must_use]
    pub fn is_deadly_for(&self, kind: &str) -> bool {
        self.kills.iter().any(|name| is_kind(name, kind)) || self.is_unpredictable_for(kind)
    }

    /// Returns whether the answer of a runtime of this kind depends on bytes after the request.
    #[must_use]
    pub fn is_unpredictable_for(&self, kind: &str) -> bool {
        self.over_reads.iter().any(|name| is_kind(name, kind))
    }

    /// Returns whether the request can end a real runtime of any kind.
    #[must_use]
    pub fn is_deadly(&self) -> bool {
        !self.kills.is_empty() || !self.over_reads.is_empty()
    }

    /// Returns whether the request can end a runtime of this version of .NET, as far as is known: it ended a runtime of
    /// this version or of a newer one, of any kind. What ended only older runtimes was corrected.
    ///
    /// ```
    /// let cases = ipc_testkit::conformance::cases();
    /// let case = cases.iter().find(|case| case.name == "count/CollectTracing/provider/ffffffff").unwrap();
    /// assert!(case.is_deadly_since(9) && !case.is_deadly_since(10));
    /// ```
    #[must_use]
    pub fn is_deadly_since(&self, version: u8) -> bool {
        let mut harmed = self.kills.iter().chain(&self.over_reads);
        harmed.any(|kind| version_of(kind).is_none_or(|harmed| harmed >= version))
    }

    /// Returns whether an OK answer starts a session, which the sender of the request should stop.
    #[must_use]
    pub fn starts_sessions(&self) -> bool {
        macro_rules! starts_sessions {
            (@then Nothing) => { false };
            (@then Counted) => { false };
            // Any other continuation is a session: a stream follows the answer, or the request chooses a stream or
            // `user_events`.
            (@then $then:ident) => { true };
            ($([
                $code:literal $name:ident / $specification_name:ident since $since:literal:
                $request:ty { $($field:ident: $ty:ty,)* }
                -> $response_name:ident: $response:ty, then $then:ident
            ])*) => {
                match self.code() {
                    $(Some(Code($code)) => starts_sessions!(@then $then),)*
                    _ => false,
                }
            };
        }
        ipc_proto::for_each_command!(starts_sessions)
    }

    /// Compares a received answer with the right answer of the case.
    ///
    /// # Errors
    /// If the two answers differ.
    pub fn judge(&self, against: Against<'_>, answer: &ReceivedAnswer) -> Result<(), Difference> {
        let right = match against {
            Against::Expected => match &self.expect {
                Some(expected) => expected.matches(answer),
                None => answer.is_possible_for(self.command()),
            },
            Against::Observed(kind) => {
                self.is_unpredictable_for(kind) || self.seen(kind).iter().any(|seen| seen.matches(answer))
            }
        };
        if right { Ok(()) } else { Err(self.difference(against, answer.to_string())) }
    }

    pub(super) fn difference(&self, against: Against<'_>, answered: String) -> Difference {
        let expected = match (against, &self.expect) {
            (Against::Expected, Some(ExpectedAnswer::HResult(refusal))) => match self.fault(*refusal) {
                Some(fault) => format!("{refusal:?} ({fault})"),
                None => format!("{refusal:?}"),
            },
            (Against::Expected, Some(expected)) => expected.to_string(),
            (Against::Expected, None) => "any answer that the command can have".to_owned(),
            (Against::Observed(kind), _) => {
                let seen: Vec<_> = self.seen(kind).iter().map(Seen::to_string).collect();
                if seen.is_empty() {
                    "an answer that no test has recorded yet".to_owned()
                } else {
                    seen.join(" or ")
                }
            }
        };
        Difference { case: self.name.clone(), expected, answered }
    }

    /// Returns the fault of the request and its field; `None` if the fault is not the reason for this refusal.
    fn fault(&self, refusal: HResult) -> Option<String> {
        if let Err(error) = Message::inspect(&self.request, None, &mut |_| {}) {
            let field = Message::field_at(&self.request, None, error.offset)?;
            return (HResult::from(error) == refusal).then(|| format!("{field}: {error}"));
        }
        let invalid = whole_message(&self.request)?.request().ok()?.check().err()?;
        (invalid.violation.hresult() == refusal).then(|| invalid.to_string())
    }
}

/// The reason why a line is not a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidCase {
    /// The field that is missing or malformed; empty if the line is not JSON.
    pub field: &'static str,
}

impl fmt::Display for InvalidCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            "" => f.write_str("the case is not JSON"),
            field => write!(f, "the case has no valid {field:?}"),
        }
    }
}
impl core::error::Error for InvalidCase {}

impl FromStr for Case {
    type Err = InvalidCase;

    /// Parses a line of the data.
    ///
    /// ```
    /// use ipc_testkit::conformance::Case;
    ///
    /// for request in ["44f", "+4", "0x44"] {
    ///     let line = format!("{{\"name\": \"mine\", \"request\": \"{request}\"}}");
    ///     assert_eq!(line.parse::<Case>().unwrap_err().field, "request");
    /// }
    /// ```
    fn from_str(line: &str) -> Result<Self, InvalidCase> {
        let json: Value = serde_json::from_str(line).map_err(|_| InvalidCase { field: "" })?;
        let text = |field| json.get(field)?.as_str();
        let strings = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let set = |field| Some(strings(json.get(field)?)?.into_iter().collect());
        let observed = || {
            let observed = json.get("observed")?.as_object()?.iter();
            let observed = observed.map(|(kind, seen)| {
                let seen = strings(seen)?.iter().map(|seen| Seen::parse(seen)).collect::<Option<_>>()?;
                Some((kind.clone(), seen))
            });
            observed.collect::<Option<_>>()
        };
        let state = || match text("state")? {
            "running" => Some(State::Running),
            "suspended" => Some(State::Suspended),
            _ => None,
        };
        let expect = || match json.get("expect")? {
            Value::Null => Some(None),
            expect => ExpectedAnswer::parse(expect).map(Some),
        };
        let effects = || match json.get("effects") {
            None => Some(None),
            Some(effects) => Some(Some(effects.as_str()?.to_owned())),
        };
        let half_close = || json.get("half_close")?.as_bool();
        let descriptor = || json.get("descriptor").map_or(Some(false), Value::as_bool);
        let invalid = |field| move || InvalidCase { field };
        Ok(Self {
            name: text("name").ok_or_else(invalid("name"))?.to_owned(),
            request: text("request").and_then(unhex).ok_or_else(invalid("request"))?,
            half_close: half_close().ok_or_else(invalid("half_close"))?,
            descriptor: descriptor().ok_or_else(invalid("descriptor"))?,
            state: state().ok_or_else(invalid("state"))?,
            expect: expect().ok_or_else(invalid("expect"))?,
            effects: effects().ok_or_else(invalid("effects"))?,
            observed: observed().ok_or_else(invalid("observed"))?,
            kills: set("kills").ok_or_else(invalid("kills"))?,
            over_reads: set("over_reads").ok_or_else(invalid("over_reads"))?,
        })
    }
}

/// Returns the version of a kind: 10 for `net10-single-file`, 3 for `net31`, which is .NET Core 3.1.
pub(super) fn version_of(kind: &str) -> Option<u8> {
    let digits = kind.strip_prefix("net")?.split('-').next()?;
    if digits == "31" { Some(3) } else { digits.parse().ok() }
}

/// Returns whether a name in the data is of this kind of runtime.
fn is_kind(name: &str, kind: &str) -> bool {
    name.strip_suffix("-single-file").unwrap_or(name) == kind || name == kind
}
