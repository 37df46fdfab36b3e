//! Conformance vectors, recorded traces and fuzzing inputs of the .NET Diagnostic IPC protocol and of NetTrace, as slices.
//!
//! They are for tests of a client, a server, a reader or a wrapper of one. [README.md] describes the files and the origin
//! of their bytes. In the repository the folder also has recordings for single tests, which are not part of the package.
//! The whole package has at most 8 MB.
//!
//! ```
//! use ipc_testdata::{MALFORMED, MESSAGES};
//!
//! let request = MESSAGES.iter().find(|vector| vector.name() == "StopTracing.request.hex").unwrap();
//! assert!(request.bytes.starts_with(b"DOTNET_IPC_V1\0"));
//! assert!(request.text.contains("# session id: 0x"));
//! // What a careful server answers to malformed bytes.
//! assert!(MALFORMED.iter().all(|vector| vector.server().is_some()));
//! ```
//!
//! [README.md]: https://docs.rs/crate/ipc-testdata/latest/source/README.md
#![no_std]

mod files {
    include!(concat!(env!("OUT_DIR"), "/files.rs"));
}

/// A message, a part of one, or bytes that only resemble one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vector {
    /// The path of its file below `testdata/`: `messages/StopTracing.request.hex`.
    pub path: &'static str,
    /// The text of the file: the bytes in hex, with a comment on every field.
    pub text: &'static str,
    /// The bytes.
    pub bytes: &'static [u8],
}

impl Vector {
    /// Returns the name of the file: `COMMAND[.CASE].KIND.hex`, with a KIND that is `request`, `response`, `refusal`,
    /// `continuation` or `frame`; of other than valid messages `COMMAND.FAULT.hex`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns what a careful server answers to a request of [`MALFORMED`], [`REFUSED`] or [`TOLERATED`]: `OK`, or the
    /// HRESULT of an Error answer, as `0x80131384`.
    #[must_use]
    pub fn server(&self) -> Option<&'static str> {
        self.text.lines().find_map(|line| line.strip_prefix("# server: "))
    }
}

/// Valid messages: requests, answers, and the bytes that follow an answer outside of a message.
pub static MESSAGES: &[Vector] = files::MESSAGES;
/// Requests that are not valid messages: a broken header, an unknown command, a payload that does not fit its layout.
pub static MALFORMED: &[Vector] = files::MALFORMED;
/// Requests with a valid layout and a value that a server refuses.
pub static REFUSED: &[Vector] = files::REFUSED;
/// Requests with an oddity that a server ignores.
pub static TOLERATED: &[Vector] = files::TOLERATED;
/// Parts of messages, as in the examples of the specification.
pub static FRAGMENTS: &[Vector] = files::FRAGMENTS;
/// Messages of protocols before the first release.
pub static LEGACY: &[Vector] = files::LEGACY;

/// The conformance kit for servers in any language, one case in each line, as JSON: see the README.
pub static CASES: &str = include_str!("../conformance/cases.jsonl");

/// A recorded or constructed trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTrace {
    /// The name of the file.
    pub name: &'static str,
    /// The stream, as it follows the answer to CollectTracing.
    pub bytes: &'static [u8],
    /// The counts that an independent reader found in it, as JSON.
    pub expected: &'static str,
}

/// Traces of every version of the format, in the order of their names.
pub static TRACES: &[RecordedTrace] = files::TRACES;

/// The inputs that fuzzing has kept for a target: a minimal subset that reaches all code that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corpus {
    /// The name of the target. For `message`, `split` and `nettrace` the inputs are messages and traces. The other targets
    /// build their input of them, completely or in part.
    pub target: &'static str,
    /// The inputs, the shortest first.
    pub inputs: &'static [&'static [u8]],
}

/// The inputs of all targets of `ipc-fuzz`, and of the targets of this repository that are not published.
pub static CORPUS: &[Corpus] = files::CORPUS;

/// Returns the inputs that fuzzing has kept for a target of this name; none for an unknown one.
#[must_use]
pub fn corpus(target: &str) -> &'static [&'static [u8]] {
    CORPUS.iter().find(|corpus| corpus.target == target).map_or(&[], |corpus| corpus.inputs)
}

/// Returns the inputs for which a target has failed.
#[must_use]
pub fn regressions(target: &str) -> &'static [Vector] {
    files::REGRESSIONS.iter().find(|(name, _)| *name == target).map_or(&[], |(_, vectors)| vectors)
}
