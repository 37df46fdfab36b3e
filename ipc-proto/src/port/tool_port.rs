//! [`ToolPort`], the value of `--diagnostic-port` of Microsoft's tools.
use super::diagnostic_port::Split;
use super::{PortType, Tag};
use crate::endpoint::split_once;
use crate::sentences::sentences;

/// The diagnostic port of a tool: the argument of `--diagnostic-port`.
///
/// ```text
/// tool port := [scheme ":"] address ["," ("connect" | "listen")]
/// ```
///
/// Microsoft's tools accept this form. It differs from the form of a runtime's [`Port`](super::Port):
///
/// * A tool port has at most two parts. An empty part is not ignored.
/// * The keyword states the role of the tool, which listens by default.
/// * The address can be a URI: `uds:` is a Unix socket, `namedpipe:` a named pipe, `file:` the system's own transport.
///
/// Keywords and schemes are case-insensitive.
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
    /// The transport at the address.
    pub transport: Transport,
    /// The role of the tool.
    pub port_type: PortType,
}

/// A transport for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A Unix domain socket.
    UnixSocket,
    /// A Windows named pipe.
    NamedPipe,
}

sentences! {
    /// The reason why a text is not a [`ToolPort`]. Its `Display` is a sentence for the user.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ToolPortError {
        /// There is no address.
        NoAddress = "a diagnostic port needs an address: write ADDRESS, ADDRESS,connect or ADDRESS,listen",
        /// There are more than two parts.
        TooManyParts = "a tool's diagnostic port has at most two parts, and an address cannot contain a comma: write \
            ADDRESS, ADDRESS,connect or ADDRESS,listen",
        /// The second part is neither `connect` nor `listen`.
        Keyword = "only connect or listen can follow the address of a diagnostic port: write one of them, or remove \
            the comma",
        /// There is a tag that only runtimes accept.
        Suspend = "suspend and nosuspend are tags for runtimes: remove them here, and add them to the runtime's \
            DOTNET_DiagnosticPorts",
        /// The scheme is unknown.
        Scheme = "the scheme of a diagnostic port must be uds:, namedpipe: or file:, or absent: write the path of the \
            socket or the name of the pipe",
    }
}

impl core::error::Error for ToolPortError {}

impl<'a> ToolPort<'a> {
    /// Parses a user's argument. An address without a scheme, or with `file:`, has the transport `native`.
    ///
    /// `%` escapes in a URI are not decoded. The host of a URI is ignored.
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

/// Splits a URI into its scheme and its path, without the host. A single letter is not a scheme but a drive.
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

/// Returns the bare name of a pipe from any of its forms.
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

/// Returns the address in the form that a runtime reads, if `address` has a form that only tools accept.
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
