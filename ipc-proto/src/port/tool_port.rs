use core::fmt;

use super::config::Split;
use super::{PortType, Tag};
use crate::endpoint::split_once;

/// The port of a tool, as its user writes it behind `--diagnostic-port`.
///
/// ```text
/// tool port := [scheme ":"] address ["," ("connect" | "listen")]
/// ```
///
/// This is what Microsoft's tools take, and not what a runtime takes (see [`Port`](super::Port)): it has two parts at
/// most, each of which counts even if it is empty; it says what the tool does, which is to listen by default; and the
/// address may be a URI. `uds:` is a Unix socket, `namedpipe:` a named pipe, `file:` whatever the system has. The words
/// are in any case.
///
/// ```
/// use ipc_proto::port::{PortType, ToolPort, ToolPortError, Transport};
///
/// let port = ToolPort::parse("uds:///run/monitor,connect", Transport::UnixSocket)?;
/// assert_eq!((port.address, port.port_type), ("/run/monitor", PortType::Connect));
/// let port = ToolPort::parse(r"\\.\pipe\monitor", Transport::NamedPipe)?;
/// assert_eq!((port.address, port.port_type), ("monitor", PortType::Listen));
/// let suspended = ToolPort::parse("/run/monitor,suspend", Transport::UnixSocket);
/// assert_eq!(suspended, Err(ToolPortError::Suspend));
/// # Ok::<(), ToolPortError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolPort<'a> {
    /// The path of the socket, or the bare name of the pipe, without `\\.\pipe\`. Never empty.
    pub address: &'a str,
    /// What is there.
    pub transport: Transport,
    /// What the tool does.
    pub port_type: PortType,
}

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A Unix domain socket.
    UnixSocket,
    /// A named pipe of Windows.
    NamedPipe,
}

/// Why a text is no [`ToolPort`]. Its `Display` is the sentence for whoever wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolPortError {
    /// There is no address.
    NoAddress,
    /// There are more than two parts.
    TooManyParts,
    /// The second part is neither `connect` nor `listen`.
    Keyword,
    /// There is a tag that only runtimes take.
    Suspend,
    /// The scheme is none that is known.
    Scheme,
}

impl fmt::Display for ToolPortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAddress => "a diagnostic port needs an address: write ADDRESS, ADDRESS,connect or ADDRESS,listen",
            Self::TooManyParts => {
                "a tool's diagnostic port has at most two parts, and an address cannot have a comma: write ADDRESS, \
                 ADDRESS,connect or ADDRESS,listen"
            }
            Self::Keyword => "behind the address of a diagnostic port stands connect, listen, or nothing and no comma",
            Self::Suspend => {
                "suspend and nosuspend are not for a tool: leave them out here, and write them into the runtime's \
                 DOTNET_DiagnosticPorts"
            }
            Self::Scheme => {
                "of schemes, a diagnostic port may have uds:, namedpipe: or file:, or none: write the path of the socket \
                 or the name of the pipe"
            }
        })
    }
}
impl core::error::Error for ToolPortError {}

impl<'a> ToolPort<'a> {
    /// Reads what a user wrote. An address without a scheme, and one with `file:`, is one of `native`.
    ///
    /// What is escaped with `%` in a URI stays as it is, and its host is ignored.
    ///
    /// # Errors
    /// See [`ToolPortError`].
    pub fn parse(text: &'a str, native: Transport) -> Result<Self, ToolPortError> {
        let mut parts = Split::new(text, b',');
        let address = parts.next().unwrap_or_default();
        let suspends = |part: &str| matches!(Tag::parse(part.trim()), Some(Tag::Suspend | Tag::NoSuspend));
        if parts.clone().any(suspends) {
            return Err(ToolPortError::Suspend);
        }
        let port_type = match (parts.next(), parts.next()) {
            (None, _) => PortType::Listen,
            (Some(_), Some(_)) => return Err(ToolPortError::TooManyParts),
            (Some(keyword), None) => match Tag::parse(keyword) {
                Some(Tag::Connect) => PortType::Connect,
                Some(Tag::Listen) => PortType::Listen,
                _ => return Err(ToolPortError::Keyword),
            },
        };
        let (transport, address) = match split_scheme(address) {
            None => (native, address),
            Some((scheme, path)) => (transport_of(scheme, native).ok_or(ToolPortError::Scheme)?, path),
        };
        let address = match transport {
            Transport::UnixSocket => address,
            Transport::NamedPipe => pipe_name(address),
        };
        if address.is_empty() {
            return Err(ToolPortError::NoAddress);
        }
        Ok(Self { address, transport, port_type })
    }
}

fn transport_of(scheme: &str, native: Transport) -> Option<Transport> {
    let transports = [("uds", Transport::UnixSocket), ("namedpipe", Transport::NamedPipe), ("file", native)];
    transports
        .into_iter()
        .find_map(|(name, transport)| name.eq_ignore_ascii_case(scheme).then_some(transport))
}

/// The scheme of a URI and its path, without the host. A single letter is a drive.
fn split_scheme(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = split_once(address, b':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(host) => {
            host.bytes().position(|byte| byte == b'/').and_then(|end| host.get(end..)).unwrap_or_default()
        }
    };
    is_scheme.then_some((scheme, path))
}

/// The bare name of a pipe, which has several ways to be written.
fn pipe_name(address: &str) -> &str {
    [r"\\.\pipe\", "/pipe/", "/"]
        .into_iter()
        .find_map(|prefix| strip_prefix_in_any_case(address, prefix))
        .unwrap_or(address)
}

fn strip_prefix_in_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (front, rest) = text.split_at_checked(prefix.len())?;
    front.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// What a runtime would take for the address, if this one is written as only tools take it.
pub(super) fn without_scheme(address: &str) -> Option<&str> {
    match split_scheme(address) {
        Some((scheme, path)) => {
            transport_of(scheme, Transport::UnixSocket).map(|transport| match transport {
                Transport::UnixSocket => path,
                Transport::NamedPipe => pipe_name(path),
            })
        }
        None => strip_prefix_in_any_case(address, r"\\.\pipe\"),
    }
    .filter(|rest| !rest.is_empty())
}
