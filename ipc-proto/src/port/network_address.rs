//! [`NetworkAddress`]: the TCP address of a port.
use crate::wire::number;

/// The address of a port on the network: `HOST:PORT`, with or without `tcp://` before it.
///
/// Runtimes on phones and emulators have no sockets in the file system. Their ports are TCP ports, to which
/// `dotnet-dsrouter` connects them: `127.0.0.1:9000,connect`. Everywhere else, a runtime takes such an address for the
/// name of a file or of a pipe, so that tools should refuse it.
///
/// ```
/// use ipc_proto::port::{NetworkAddress, Port};
///
/// let port = Port::list("127.0.0.1:9000,connect").next().unwrap();
/// let address = NetworkAddress::parse(port.address()).unwrap();
/// assert_eq!((address.host, address.port), ("127.0.0.1", 9000));
/// assert_eq!(NetworkAddress::parse("/tmp/a:9000"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetworkAddress<'a> {
    /// The name or the address of the host; an IPv6 address is in brackets. Empty or `*` for each address of the
    /// machine.
    pub host: &'a str,
    /// The TCP port; 0 for any free one.
    pub port: u16,
}

impl<'a> NetworkAddress<'a> {
    /// Parses an address; `None` if the text is not a network address, but for example a path.
    #[must_use]
    pub fn parse(address: &'a str) -> Option<Self> {
        let text = address.strip_prefix("tcp://").unwrap_or(address);
        let colon = text.bytes().rposition(|byte| byte == b':')?;
        let (host, digits) = (text.get(..colon)?, text.get(colon.saturating_add(1)..)?);
        let is_path = host.bytes().any(|byte| matches!(byte, b'/' | b'\\'));
        let port = u16::try_from(number(digits.as_bytes(), 10)?).ok()?;
        (!is_path).then_some(Self { host, port })
    }
}
