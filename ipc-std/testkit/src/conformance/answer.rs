//! Expected answers, received answers, and the reactions of real runtimes.
use core::fmt;
use std::collections::BTreeMap;

use ipc_proto::types::SessionId;
use ipc_proto::wire::{PartValue, decode_prefix};
use ipc_proto::{Code, CommandInfo, HResult, Message, Parsed, Request};
use serde_json::Value;

/// The expected answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectedAnswer {
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// An Error answer with this code, with or without a message.
    HResult(HResult),
    /// An Error answer with any code: of a server that does not have the command.
    Refusal,
    /// An OK answer to this command with these numbers. Fields that are not listed can have any value.
    Ok {
        /// The command.
        command: &'static CommandInfo,
        /// The fields of the answer.
        fields: BTreeMap<String, u64>,
    },
}

/// The reaction of a real runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Seen {
    /// The runtime answered OK.
    Ok {
        /// The length of the whole message, if it is always the same.
        len: Option<usize>,
    },
    /// The runtime refused.
    Refused(HResult),
    /// The runtime sent bytes that are not an answer.
    Garbage,
    /// The runtime closed the connection without an answer.
    Closes,
    /// The runtime did not answer.
    Waits,
    /// The process ended.
    Dies,
}

/// The received answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceivedAnswer {
    /// A whole message of any code.
    Message(Vec<u8>),
    /// Bytes that are not a message, or only a part of a message.
    Garbage(Vec<u8>),
    /// The end of the connection.
    Closed,
    /// No bytes until the deadline.
    Silence,
}

/// Returns the message, if the bytes are a whole one.
pub(crate) fn whole_message(bytes: &[u8]) -> Option<Message<'_>> {
    match Message::parse(bytes) {
        Ok(Parsed::Complete { value, .. }) => Some(value),
        _ => None,
    }
}

/// Returns the code of an Error answer, with or without a message.
fn refusal(message: &Message<'_>) -> Option<HResult> {
    // Only the code is decoded: the bytes after the code need not be a valid text.
    (message.code == Code::ERROR).then(|| message.decode().ok())?
}

/// Returns the numbers in an OK answer to a command, by the names of their fields; `None` if servers send no such answer to
/// this command.
fn numbers(command: &CommandInfo, answer: &[u8]) -> Option<BTreeMap<String, u64>> {
    // A client also accepts an OK answer without a payload. A server must send one.
    whole_message(answer).filter(|message| message.code == Code::OK && !message.payload.is_empty())?;
    let (mut numbers, mut has_rest) = (BTreeMap::new(), false);
    let inspected = Message::inspect(answer, Some(command.code), &mut |part| {
        let path = part.path.to_string();
        has_rest |= path == "rest";
        let number = match part.value {
            PartValue::Number { number, .. } => u64::try_from(number).ok(),
            PartValue::HResult(hresult) => Some(hresult.0.into()),
            _ => None,
        };
        numbers.extend(number.map(|number| (path, number)));
    });
    // A later version of an answer can append fields.
    let is_answer = inspected.is_ok() && (!has_rest || numbers.get("version") > Some(&1));
    is_answer.then_some(numbers)
}

impl ReceivedAnswer {
    /// Returns the message, if the answer is a message.
    #[must_use]
    pub fn message(&self) -> Option<Message<'_>> {
        let Self::Message(bytes) = self else { return None };
        whole_message(bytes)
    }

    /// Returns whether the command can have this answer.
    pub(super) fn is_possible_for(&self, command: Option<&CommandInfo>) -> bool {
        let Self::Message(bytes) = self else { return false };
        let is_ok = command.is_some_and(|command| numbers(command, bytes).is_some());
        is_ok || whole_message(bytes).is_some_and(|message| refusal(&message).is_some())
    }

    /// Returns the id of the session that an OK answer of 28 bytes starts, if the command
    /// [starts sessions](super::Case::starts_sessions).
    #[must_use]
    pub fn session_id(&self) -> Option<u64> {
        let Message { payload, .. } = self.message().filter(|message| message.code == Code::OK)?;
        let (SessionId { session_id }, rest) = decode_prefix(payload).ok()?;
        rest.is_empty().then_some(session_id)
    }
}

/// Writes `OK, 28 bytes`, `0x80131384 DS_IPC_E_BAD_ENCODING`, …
impl fmt::Display for ReceivedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.message()) {
            (Self::Message(bytes), Some(message)) => match (refusal(&message), message.code) {
                (Some(hresult), _) => write!(f, "{hresult:?}"),
                (None, Code::OK) => write!(f, "OK, {} bytes", bytes.len()),
                (None, Code::ERROR) => write!(f, "an Error without a code, {} bytes", bytes.len()),
                (None, code) => write!(f, "a message of code {code}, {} bytes", bytes.len()),
            },
            (Self::Closed, _) => f.write_str("the end of the connection"),
            (Self::Silence, _) => f.write_str("no answer in time"),
            (Self::Message(bytes) | Self::Garbage(bytes), _) => {
                write!(f, "{} bytes that are not a message:", bytes.len())?;
                bytes.iter().take(24).try_for_each(|byte| write!(f, " {byte:02x}"))?;
                f.write_str(if bytes.len() > 24 { " …" } else { "" })
            }
        }
    }
}

impl fmt::Display for ExpectedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "exactly {}", ReceivedAnswer::Message(bytes.clone())),
            Self::HResult(hresult) => write!(f, "{hresult:?}"),
            Self::Refusal => f.write_str("a refusal"),
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
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "OK" => Self::Ok { len: None },
            "garbage" => Self::Garbage,
            "closes" => Self::Closes,
            "waits" => Self::Waits,
            "dies" => Self::Dies,
            _ => match text.strip_prefix("OK ") {
                // A sign is refused here, because `parse` would accept it.
                Some(len) if len.starts_with('+') => return None,
                Some(len) => Self::Ok { len: Some(len.parse().ok()?) },
                None => Self::Refused(parse_hresult(text)?),
            },
        })
    }

    pub(super) fn matches(&self, answer: &ReceivedAnswer) -> bool {
        let message = answer.message();
        match (*self, answer) {
            (Self::Ok { len }, ReceivedAnswer::Message(bytes)) => {
                message.is_some_and(|message| message.code == Code::OK)
                    && len.is_none_or(|len| len == bytes.len())
            }
            (Self::Refused(hresult), _) => message.is_some_and(|message| refusal(&message) == Some(hresult)),
            (Self::Garbage, ReceivedAnswer::Garbage(_))
            | (Self::Closes | Self::Dies, ReceivedAnswer::Closed)
            | (Self::Waits, ReceivedAnswer::Silence) => true,
            _ => false,
        }
    }
}

/// Writes the answer as in the data, with the names of codes.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok { len: Some(len) } => write!(f, "OK, {len} bytes"),
            Self::Ok { len: None } => f.write_str("OK"),
            Self::Refused(hresult) => write!(f, "{hresult:?}"),
            Self::Garbage => f.write_str("bytes that are not a message"),
            Self::Closes => f.write_str("the end of the connection"),
            Self::Waits => f.write_str("no answer"),
            Self::Dies => f.write_str("the end of the process"),
        }
    }
}

impl ExpectedAnswer {
    /// Returns whether this is what the runtime did, as far as the data shows it: of an OK answer it has only the
    /// length.
    #[cfg(feature = "io")]
    pub(super) fn is_seen(&self, seen: &Seen) -> bool {
        match (self, seen) {
            (Self::Ok { .. }, Seen::Ok { .. }) => true,
            (Self::HResult(expected), Seen::Refused(hresult)) => expected == hresult,
            (Self::Refusal, Seen::Refused(_)) => true,
            (Self::Bytes(bytes), _) => seen.matches(&ReceivedAnswer::Message(bytes.clone())),
            _ => false,
        }
    }

    pub(super) fn parse(json: &Value) -> Option<Self> {
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

    pub(super) fn matches(&self, answer: &ReceivedAnswer) -> bool {
        let ReceivedAnswer::Message(received) = answer else { return false };
        let refused = || refusal(&whole_message(received)?);
        match self {
            Self::Bytes(bytes) => received == bytes,
            Self::HResult(hresult) => refused() == Some(*hresult),
            Self::Refusal => refused().is_some(),
            Self::Ok { command, fields } => numbers(command, received)
                .is_some_and(|numbers| fields.iter().all(|(name, value)| numbers.get(name) == Some(value))),
        }
    }
}

fn parse_hresult(text: &str) -> Option<HResult> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() <= 8 && is_hex(digits))?;
    u32::from_str_radix(digits, 16).ok().map(HResult)
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let text = Some(text).filter(|text| text.len() % 2 == 0 && is_hex(text))?;
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Returns whether a text has only digits. This check is needed because `from_str_radix` also accepts a sign.
fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
