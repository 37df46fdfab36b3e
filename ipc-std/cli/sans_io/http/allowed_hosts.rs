//! Names of an HTTP server: the address at which it listens, and the names that its clients can use.
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The names that a client can use for a server, besides IP addresses and `localhost`.
///
/// A page in a browser can make its own name resolve to any address (DNS rebinding), and then reads what a server at
/// this address answers. The browser still sends the name of the page, and no such name is allowed here.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts {
    /// In lower case, without a dot at the end.
    names: Vec<String>,
}

impl AllowedHosts {
    /// Returns the allowed hosts with these names, as [`parse_name`] returns them.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect() }
    }

    /// Returns whether a client can use the authority `HOST` or `HOST:PORT`, with any port. Returns `None` if the text
    /// is not an authority.
    pub fn allow(&self, authority: &str) -> Option<bool> {
        if let Some(rest) = authority.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            // The zone of a link-local address.
            let address = address.split('%').next().unwrap_or_default();
            let is_valid = address.parse::<Ipv6Addr>().is_ok();
            return (is_valid && (port.is_empty() || is_port(port.strip_prefix(':')?))).then_some(true);
        }
        let host = match authority.split_once(':') {
            Some((host, port)) if is_port(port) => host,
            Some(_) => return None,
            None => authority,
        };
        let Ok(name) = parse_name(host) else {
            // A client without a name for the server, which is not a browser, can send an empty field.
            return host.is_empty().then_some(false);
        };
        let is_address = name.parse::<Ipv4Addr>().is_ok();
        Some(is_address || name == "localhost" || self.names.contains(&name))
    }
}

/// The address at which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// 0 for any port.
    pub port: u16,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Parses `HOST:PORT`, where an IPv6 address is in brackets.
pub fn parse_address(text: &str) -> Result<ServerAddress, String> {
    let address = text.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse().ok().filter(|_| is_port(port))?;
        let host = match text.parse::<SocketAddr>() {
            // With its zone.
            Ok(_) => host.trim_matches(['[', ']']).to_owned(),
            Err(_) => parse_name(host).ok()?,
        };
        Some(ServerAddress { host, port })
    });
    address.ok_or_else(|| "an address is HOST:PORT, as 127.0.0.1:9184 or [::1]:9184".to_owned())
}

/// Returns a name of a host in the form in which names are compared: in lower case, without a dot at the end.
pub fn parse_name(text: &str) -> Result<String, String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if name.is_empty() || !name.chars().all(is_valid) {
        return Err("a name has ASCII letters, digits, dots and hyphens, and no port".to_owned());
    }
    Ok(name.to_ascii_lowercase())
}

fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_names() {
        let hosts =
            AllowedHosts::new(["Metrics.Example.".to_owned()].iter().map(|name| parse_name(name).unwrap()));
        for allowed in [
            "127.0.0.1",
            "127.0.0.1:9184",
            "10.1.2.3:",
            "0.0.0.0",
            "[::1]",
            "[::1]:9184",
            "[fe80::1%25eth0]:80",
            "[::ffff:1.2.3.4]",
            "localhost",
            "LOCALHOST.:80",
            "metrics.example",
            "METRICS.EXAMPLE.:1",
        ] {
            assert_eq!(hosts.allow(allowed), Some(true), "{allowed}");
        }
        for other in [
            "",
            ":80",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "1.2.3",
            "metrics.example..",
        ] {
            assert_eq!(hosts.allow(other), Some(false), "{other}");
        }
        for malformed in [
            "a b", "a@b", "a/b", "::1", "[::1", "[::1]80", "[x]", "[]", "a:b", "a:123456", "a:1:2", ".", "é",
            "a,b",
        ] {
            assert_eq!(hosts.allow(malformed), None, "{malformed}");
        }
        assert!(parse_name("a:80").is_err() && parse_name("").is_err() && parse_name("*").is_err());
    }

    #[test]
    fn addresses_of_servers() {
        for text in ["127.0.0.1:9184", "[::1]:0", "[fe80::1%2]:1", "localhost:80", "metrics.example:65535"] {
            assert_eq!(parse_address(text).unwrap().to_string(), text);
        }
        assert_eq!(parse_address("LocalHost.:1").unwrap().to_string(), "localhost:1");
        for text in
            ["", "127.0.0.1", "9184", ":9184", "::1:9184", "localhost:+1", "a:65536", "a b:1", "http://a:1"]
        {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }
}
