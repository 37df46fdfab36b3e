//! The names of the sockets that runtimes listen at.
use core::fmt::{self, Write};
use core::str::FromStr;

/// The name of the Unix socket that a runtime listens at.
///
/// ```text
/// dotnet-diagnostic-{process id}-{disambiguation key}-socket
/// ```
///
/// It lies in `$TMPDIR` of the runtime, or in `/tmp`. The key tells a process from an earlier one with the same id: on
/// Linux it is field 22 of `/proc/PID/stat`, the start time in clock ticks since boot; on macOS, FreeBSD and NetBSD the
/// start time in seconds; 0 where a runtime could not find out. Section "Transport" of the specification (erratum:
/// FreeBSD has seconds too).
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
    /// The process, in its own PID namespace.
    pub process_id: u32,
    /// When it started, roughly.
    pub disambiguation_key: u64,
}

const PREFIX: &str = "dotnet-diagnostic-";
const SUFFIX: &str = "-socket";

/// Two numbers at their longest, and what stands around them.
const MAX_LEN: usize = PREFIX.len() + 10 + 1 + 20 + SUFFIX.len();

impl SocketName {
    /// The name as text, without allocating.
    #[must_use]
    pub fn to_text(&self) -> SocketNameText {
        let mut text = heapless::String::new();
        // It fits: MAX_LEN is the length of the longest.
        let _ = write!(text, "{PREFIX}{}-{}{SUFFIX}", self.process_id, self.disambiguation_key);
        SocketNameText(text)
    }
}
impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_text().as_str())
    }
}

/// The text of a [`SocketName`], on the stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SocketNameText(heapless::String<MAX_LEN>);

impl SocketNameText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl AsRef<str> for SocketNameText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// A name that no runtime gives its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseSocketNameError;

impl fmt::Display for ParseSocketNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the name of a runtime's socket, dotnet-diagnostic-PID-KEY-socket")
    }
}
impl core::error::Error for ParseSocketNameError {}

impl FromStr for SocketName {
    type Err = ParseSocketNameError;

    /// Reads a name strictly: it is the one that [`Display`](fmt::Display) would write, or none.
    fn from_str(s: &str) -> Result<Self, ParseSocketNameError> {
        let numbers = s.strip_prefix(PREFIX).and_then(|s| s.strip_suffix(SUFFIX));
        let (process_id, key) = numbers.and_then(|s| split_once(s, b'-')).ok_or(ParseSocketNameError)?;
        Ok(Self { process_id: number(process_id)?, disambiguation_key: number(key)? })
    }
}

/// A decimal number as runtimes write it: no sign, no leading zero.
fn number<N: FromStr>(s: &str) -> Result<N, ParseSocketNameError> {
    let plain = s.bytes().all(|b| b.is_ascii_digit()) && (s == "0" || !s.starts_with('0'));
    s.parse().ok().filter(|_| plain).ok_or(ParseSocketNameError)
}

/// What stands before and behind the first of these bytes, which are ASCII. Not `str::split_once`, in which the compiler
/// does not see that it never panics.
pub(crate) fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == separator)?;
    Some((text.get(..at)?, text.get(at.saturating_add(1)..)?))
}
