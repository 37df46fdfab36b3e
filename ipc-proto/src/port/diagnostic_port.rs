//! [`Port`]: one port of `DOTNET_DiagnosticPorts`, with its type and its tags.
use core::fmt;

use crate::endpoint::split_once;
use crate::sentences::sentences;

/// One diagnostic port of a runtime: an element of `DOTNET_DiagnosticPorts`.
///
/// ```text
/// list := port (";" port)*
/// port := address ("," tag)*
/// tag  := "connect" | "listen" | "suspend" | "nosuspend"
/// ```
///
/// Runtimes read the list as follows:
///
/// * Empty parts between two separators are ignored.
/// * Blanks are characters like any other.
/// * Tags are case-insensitive. Unknown tags are ignored. Of two tags that exclude each other, the first counts.
/// * A port connects and suspends by default.
///
/// Section "Diagnostic Ports" of the specification (errata: it does not mention that empty parts and unknown tags are
/// ignored; and runtimes without a default port do accept `listen`).
///
/// The `Display` of a port is the value of `DOTNET_DiagnosticPorts` for a child process that connects to a monitor.
/// [`PortList`](super::PortList) is the value for several ports.
///
/// ```
/// use ipc_proto::port::{Port, PortType, Variable};
///
/// let port = Port::connect("/run/monitor", true)?;
/// let (name, value) = (Variable::DiagnosticPorts.name(), port.to_string());
/// assert_eq!((name, &value[..]), ("DOTNET_DiagnosticPorts", "/run/monitor,suspend"));
/// assert!(Port::list(&value).eq([port]));
///
/// let ports: Vec<_> = Port::list(";;/a,NoSuspend,suspend;,/b,, listen,;,,").collect();
/// assert_eq!((ports[0].address(), ports[0].suspends()), ("/b", true));
/// assert_eq!(ports[0].port_type(), PortType::Connect); // " listen" is not a tag
/// assert_eq!((ports[1].address(), ports[1].suspends()), ("/a", false));
/// assert_eq!(ports.len(), 2);
/// # Ok::<(), ipc_proto::port::PortAddressError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Port<'a> {
    // Private, so that `new` checks each address: a list of ports must be able to contain it.
    address: &'a str,
    port_type: PortType,
    suspend: bool,
}

/// The role of a port's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortType {
    /// The owner of the port connects.
    Connect,
    /// The owner of the port listens.
    Listen,
}

/// A keyword after the address of a [`Port`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// The runtime connects. This is the default.
    Connect,
    /// The runtime listens.
    Listen,
    /// The runtime does not start until it is resumed through this port. This is the default.
    Suspend,
    /// The runtime does not wait for this port.
    NoSuspend,
}

impl Tag {
    pub(super) const ALL: [Self; 4] = [Self::Connect, Self::Listen, Self::NoSuspend, Self::Suspend];

    /// Returns the keyword.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Listen => "listen",
            Self::Suspend => "suspend",
            Self::NoSuspend => "nosuspend",
        }
    }

    pub(super) fn parse(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.name().eq_ignore_ascii_case(token))
    }
}
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl<'a> Port<'a> {
    /// Creates a port that connects to a monitor at this address: the path of a Unix socket; on Windows the name of a
    /// pipe without `\\.\pipe\`, which the runtime adds.
    ///
    /// # Errors
    /// If a list of ports cannot contain the address: it is empty, or it contains a `;`, a `,` or a NUL.
    pub fn connect(address: &'a str, suspend: bool) -> Result<Self, PortAddressError> {
        Self::new(address, PortType::Connect, suspend)
    }

    /// Creates a port at which a runtime listens. Only runtimes without a default port, for example on phones, open
    /// such a port. Its address is a host and a TCP port.
    ///
    /// ```
    /// let port = ipc_proto::port::Port::listen("127.0.0.1:9000", true)?;
    /// assert_eq!(port.to_string(), "127.0.0.1:9000,listen,suspend");
    /// # Ok::<(), ipc_proto::port::PortAddressError>(())
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn listen(address: &'a str, suspend: bool) -> Result<Self, PortAddressError> {
        Self::new(address, PortType::Listen, suspend)
    }

    fn new(address: &'a str, port_type: PortType, suspend: bool) -> Result<Self, PortAddressError> {
        if address.is_empty() || address.contains([';', ',', '\0']) {
            return Err(PortAddressError);
        }
        Ok(Self { address, port_type, suspend })
    }

    /// Parses a value of `DOTNET_DiagnosticPorts`. Ports have the runtime's order: the last in the list comes first.
    ///
    /// The list includes ports with the tag `listen`, which CoreCLR ignores, but no ports without an address.
    pub fn list(value: &'a str) -> impl Iterator<Item = Self> + use<'a> {
        Split::new(value, b';').rev().filter_map(Self::parse)
    }

    /// Parses the text between two `;`; `None` if it contains only commas.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut tokens = tokens(text);
        let mut port = Self { address: tokens.next()?, port_type: PortType::Connect, suspend: true };
        // In reverse order, so that the first of two tags that exclude each other is applied last, and counts.
        for tag in tokens.rev().filter_map(Tag::parse) {
            match tag {
                Tag::Connect => port.port_type = PortType::Connect,
                Tag::Listen => port.port_type = PortType::Listen,
                Tag::Suspend => port.suspend = true,
                Tag::NoSuspend => port.suspend = false,
            }
        }
        Some(port)
    }

    /// Returns the address at which the monitor, or with the tag `listen` the runtime, listens.
    #[must_use]
    pub const fn address(&self) -> &'a str {
        self.address
    }

    /// Returns whether the runtime connects or listens.
    #[must_use]
    pub const fn port_type(&self) -> PortType {
        self.port_type
    }

    /// Returns whether the runtime does not start until it is resumed through this port.
    #[must_use]
    pub const fn suspends(&self) -> bool {
        self.suspend
    }
}

impl fmt::Display for Port<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address)?;
        if self.port_type == PortType::Listen {
            f.write_str(",listen")?;
        }
        f.write_str(if self.suspend { ",suspend" } else { ",nosuspend" })
    }
}

/// Splits at commas as C's `strtok` does: without empty parts.
pub(super) fn tokens(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    Split::new(text, b',').filter(|token| !token.is_empty())
}

/// Like `str::split`, for ASCII separators. The compiler cannot prove that `str::split` never panics.
#[derive(Clone)]
pub(super) struct Split<'a> {
    rest: Option<&'a str>,
    separator: u8,
}

impl<'a> Split<'a> {
    pub(super) const fn new(text: &'a str, separator: u8) -> Self {
        Self { rest: Some(text), separator }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let Some((part, rest)) = split_once(rest, self.separator) else { return Some(rest) };
        self.rest = Some(rest);
        Some(part)
    }
}
impl DoubleEndedIterator for Split<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let Some(at) = rest.bytes().rposition(|byte| byte == self.separator) else { return Some(rest) };
        self.rest = rest.get(..at);
        rest.get(at.saturating_add(1)..)
    }
}

sentences! {
    /// A list of ports cannot contain this address.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct PortAddressError =
        "DOTNET_DiagnosticPorts cannot contain an empty address, nor one with ';', ',' or NUL: choose another";
}
impl core::error::Error for PortAddressError {}
