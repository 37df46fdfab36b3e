//! The property of the names of sockets in a directory.
use ipc_proto::{RouterSocketName, SocketName};

/// Checks the names of files in a directory of sockets. An accepted name equals the name that is written from its
/// parts, so the file is found again.
pub fn socket_names(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    for name in [
        text.to_owned(),
        format!("dotnet-diagnostic-{text}-socket"),
        format!("dotnet-diagnostic-dsrouter-{text}-socket"),
    ] {
        if let Ok(parsed) = name.parse::<SocketName>() {
            assert_eq!(parsed.to_text().as_str(), name);
            assert!(name.parse::<RouterSocketName>().is_err(), "{name}");
        }
        if let Ok(parsed) = name.parse::<RouterSocketName>() {
            assert_eq!(parsed.to_text().as_str(), name);
        }
    }
}
