//! Paths of sockets on the command line.
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use ipc_proto::port::{NetworkAddress, PortType, ToolPort, Transport};

/// Returns a parser that refuses network addresses, which are also valid file names.
pub(crate) fn parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text: OsString| match text.to_str().filter(|text| is_network(text)) {
        Some(address) => Err(refusal(address)),
        None => Ok(PathBuf::from(text)),
    })
}

/// Returns a parser of the port that a monitor listens on, in the form of Microsoft's tools. Network addresses are
/// refused.
pub(crate) fn listen_parser() -> impl TypedValueParser<Value = PathBuf> {
    parser().try_map(|path: PathBuf| match path.to_str() {
        Some(text) => listen_path(text),
        None => Ok(path),
    })
}

/// The transport of the diagnostic ports of this system.
const TRANSPORT: Transport = if cfg!(windows) { Transport::NamedPipe } else { Transport::UnixSocket };

fn listen_path(text: &str) -> Result<PathBuf, String> {
    match ToolPort::parse(text, TRANSPORT) {
        Ok(ToolPort { address, .. }) if is_network(address) => Err(refusal(address)),
        Ok(ToolPort { port_type: PortType::Connect, .. }) => {
            Err("a monitor listens: remove ,connect, or use --socket of another command to connect"
                .to_owned())
        }
        Ok(ToolPort { transport, .. }) if transport != TRANSPORT => {
            Err("this system has no diagnostic ports with the transport of that scheme".to_owned())
        }
        Ok(ToolPort { address, .. }) => Ok(address.into()),
        Err(e) => Err(e.to_string()),
    }
}

/// Returns why a network address is not a path of a socket.
pub(crate) fn refusal(address: &str) -> String {
    format!(
        "{address} is a network address, but runtimes use a socket in the file system: give its path, such as \
         /tmp/port (./{address} for a file of that name)"
    )
}

/// Whether the text is `HOST:PORT`, such as `127.0.0.1:9000`, `localhost:9000`, `[::1]:9000` or `tcp://host:9000`.
pub(crate) fn is_network(text: &str) -> bool {
    text.starts_with("tcp://") || NetworkAddress::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn ports_of_a_monitor() {
        for text in
            ["/tmp/port", "/tmp/port,listen", "uds:/tmp/port", "uds:///tmp/port,LISTEN", "file:/tmp/port"]
        {
            assert_eq!(listen_path(text), Ok("/tmp/port".into()), "{text}");
        }
        assert_eq!(listen_path("./a:b"), Ok("./a:b".into()));
        for (text, part) in [
            ("/tmp/port,connect", "remove ,connect"),
            ("/tmp/port,suspend", "DOTNET_DiagnosticPorts"),
            ("/tmp/port,", "remove the comma"),
            ("namedpipe:port", "this system has no diagnostic ports"),
            ("", "needs an address"),
            ("127.0.0.1:9000,listen", "is a network address"),
            ("127.0.0.1:9000,connect", "is a network address"),
            ("*:9000,LISTEN", "is a network address"),
        ] {
            let error = listen_path(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_and_paths() {
        for address in ["127.0.0.1:9000", "localhost:9000", "[::1]:9000", ":9000", "*:0", "tcp://host:9000"] {
            assert!(is_network(address), "{address}");
        }
        for path in ["/tmp/port", "./127.0.0.1:9000", "port", "a:b", "a:", "\\\\.\\pipe\\a:9", "/tmp/a:9"] {
            assert!(!is_network(path), "{path}");
        }
    }
}
