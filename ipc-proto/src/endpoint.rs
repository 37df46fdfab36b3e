//! The names of the sockets and pipes at which runtimes and `dotnet-dsrouter` listen.
use core::fmt::{self, Write};
use core::str::FromStr;

use crate::sentences::sentences;

/// The name of the Unix socket at which a runtime listens.
///
/// ```text
/// dotnet-diagnostic-{process id}-{disambiguation key}-socket
/// ```
///
/// The socket is in the runtime's `$TMPDIR`, or in `/tmp`. The key distinguishes a process from an earlier process with
/// the same id. On Linux the key is field 22 of `/proc/PID/stat`, the start time in clock ticks since boot. On macOS,
/// FreeBSD and NetBSD it is the start time in seconds; 0 if the runtime could not determine the time. Section
/// "Transport" of the specification (erratum: for FreeBSD, too, the key is in seconds).
///
/// ```
/// use ipc_proto::SocketName;
///
/// let name: SocketName = "dotnet-diagnostic-42-8311-socket".parse()?;
/// assert_eq!(name, SocketName { process_id: 42, disambiguation_key: 8311 });
/// assert_eq!(name.to_text().as_str(), "dotnet-diagnostic-42-8311-socket");
/// assert!("dotnet-diagnostic-042-1-socket".parse::<SocketName>().is_err());
/// # Ok::<(), ipc_proto::ParseSocketNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketName {
    /// The process id in its own PID namespace.
    pub process_id: u32,
    /// The start time of the process, in the unit of its operating system; 0 if unknown.
    pub disambiguation_key: u64,
}

const PREFIX: &str = "dotnet-diagnostic-";
const SUFFIX: &str = "-socket";

const ROUTER_PREFIX: &str = "dotnet-diagnostic-dsrouter-";

/// The length of the longest prefix, the two longest numbers, a dash and the suffix.
const MAX_LEN: usize = ROUTER_PREFIX.len() + 10 + 1 + 20 + SUFFIX.len();

impl SocketName {
    /// Returns the name as text, without an allocation.
    #[must_use]
    pub fn to_text(&self) -> SocketNameText {
        let Self { process_id, disambiguation_key } = self;
        NameText::of(format_args!("{PREFIX}{process_id}-{disambiguation_key}{SUFFIX}"))
    }
}
impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_text().as_str())
    }
}

/// The name of the Unix socket at which `dotnet-dsrouter` listens on behalf of a runtime on another device.
///
/// ```text
/// dotnet-diagnostic-dsrouter-{process id}-{seconds}-socket
/// ```
///
/// The id is that of the router's process. The router is a .NET program, and so also has a [`SocketName`] of its own.
/// The specification does not mention the router's name, but Microsoft's client searches for this name.
///
/// ```
/// use ipc_proto::RouterSocketName;
///
/// let name: RouterSocketName = "dotnet-diagnostic-dsrouter-42-1700000000-socket".parse()?;
/// assert_eq!(name, RouterSocketName { process_id: 42, start_seconds: 1_700_000_000 });
/// assert_eq!(name.to_string(), "dotnet-diagnostic-dsrouter-42-1700000000-socket");
/// assert!("dotnet-diagnostic-42-1700000000-socket".parse::<RouterSocketName>().is_err());
/// # Ok::<(), ipc_proto::ParseSocketNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterSocketName {
    /// The router's process id in its own PID namespace.
    pub process_id: u32,
    /// The start time of the router in seconds since 1970.
    pub start_seconds: u64,
}

impl RouterSocketName {
    /// Returns the name as text, without an allocation.
    #[must_use]
    pub fn to_text(&self) -> SocketNameText {
        let Self { process_id, start_seconds } = self;
        NameText::of(format_args!("{ROUTER_PREFIX}{process_id}-{start_seconds}{SUFFIX}"))
    }
}
impl fmt::Display for RouterSocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_text().as_str())
    }
}

/// The text of a name of at most `N` bytes, stored in the value itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameText<const N: usize>(heapless::String<N>);

/// The text of a [`SocketName`] or a [`RouterSocketName`].
pub type SocketNameText = NameText<MAX_LEN>;
/// The text of a [`PipeName`].
pub type PipeNameText = NameText<PIPE_MAX_LEN>;

impl<const N: usize> NameText<N> {
    fn of(name: fmt::Arguments<'_>) -> Self {
        let mut text = heapless::String::new();
        // The name fits: N is the length of the longest name.
        let _ = text.write_fmt(name);
        Self(text)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl<const N: usize> AsRef<str> for NameText<N> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

sentences! {
    /// The text is not the name of a socket of a runtime or of a router.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ParseSocketNameError =
        "not the name of a runtime's socket, dotnet-diagnostic-PID-KEY-socket, or of dsrouter's";
}
impl core::error::Error for ParseSocketNameError {}

impl FromStr for SocketName {
    type Err = ParseSocketNameError;

    /// Parses a name strictly: only the text that [`Display`](fmt::Display) writes is valid.
    fn from_str(s: &str) -> Result<Self, ParseSocketNameError> {
        let (process_id, disambiguation_key) = numbers(s, PREFIX)?;
        Ok(Self { process_id, disambiguation_key })
    }
}

/// The name of the pipe at which a runtime listens on Windows, without its prefix `\\.\pipe\`.
///
/// ```text
/// dotnet-diagnostic-{process id}
/// ```
///
/// Section "Transport" of the specification.
///
/// ```
/// use ipc_proto::PipeName;
///
/// let name: PipeName = "dotnet-diagnostic-42".parse()?;
/// assert_eq!(name, PipeName { process_id: 42 });
/// assert_eq!(name.to_text().as_str(), "dotnet-diagnostic-42");
/// assert!("dotnet-diagnostic-dsrouter-42".parse::<PipeName>().is_err());
/// # Ok::<(), ipc_proto::ParsePipeNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipeName {
    /// The process id.
    pub process_id: u32,
}

/// The length of the prefix and the longest number.
const PIPE_MAX_LEN: usize = PREFIX.len() + 10;

impl PipeName {
    /// Returns the name as text, without an allocation.
    #[must_use]
    pub fn to_text(&self) -> PipeNameText {
        NameText::of(format_args!("{PREFIX}{}", self.process_id))
    }
}
impl fmt::Display for PipeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_text().as_str())
    }
}

sentences! {
    /// The text is not the name of a runtime's pipe.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ParsePipeNameError = "not the name of a runtime's pipe, dotnet-diagnostic-PID";
}
impl core::error::Error for ParsePipeNameError {}

impl FromStr for PipeName {
    type Err = ParsePipeNameError;

    /// Parses a name strictly: only the text that [`Display`](fmt::Display) writes is valid.
    fn from_str(s: &str) -> Result<Self, ParsePipeNameError> {
        let process_id = s.strip_prefix(PREFIX).and_then(number).ok_or(ParsePipeNameError)?;
        Ok(Self { process_id })
    }
}

impl FromStr for RouterSocketName {
    type Err = ParseSocketNameError;

    /// Parses a name as strictly as a [`SocketName`].
    fn from_str(s: &str) -> Result<Self, ParseSocketNameError> {
        let (process_id, start_seconds) = numbers(s, ROUTER_PREFIX)?;
        Ok(Self { process_id, start_seconds })
    }
}

/// Parses the two numbers between a prefix and the suffix.
fn numbers(s: &str, prefix: &str) -> Result<(u32, u64), ParseSocketNameError> {
    let numbers = s.strip_prefix(prefix).and_then(|s| s.strip_suffix(SUFFIX));
    let (process_id, second) = numbers.and_then(|s| split_once(s, b'-')).ok_or(ParseSocketNameError)?;
    number(process_id).zip(number(second)).ok_or(ParseSocketNameError)
}

/// Parses a decimal number as runtimes write it: without a sign and leading zeros.
fn number<N: FromStr>(s: &str) -> Option<N> {
    let plain = s.bytes().all(|b| b.is_ascii_digit()) && (s == "0" || !s.starts_with('0'));
    s.parse().ok().filter(|_| plain)
}

/// Splits a text at the first separator, an ASCII byte. The compiler cannot prove that `str::split_once` never panics.
pub(crate) fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == separator)?;
    Some((text.get(..at)?, text.get(at.saturating_add(1)..)?))
}
