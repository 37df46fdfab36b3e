//! The input of `decode`: messages as bytes or as digits, and wire logs.
use std::io;

use serde_json::{Value as Json, json};

use super::hex;

/// The first bytes of an advertise frame.
pub const ADVERTISE: &[u8] = b"ADVR";

/// Bytes that were sent in one direction of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    pub bytes: &'a [u8],
    pub logged: Option<&'a Logged>,
}

/// What to decode.
#[derive(Debug)]
pub enum Input {
    Messages(Vec<u8>),
    /// The name and the lines of a wire log.
    WireLog(String, String),
}

/// The direction and the connection of bytes from a wire log.
#[derive(Debug)]
pub struct Logged {
    pub connection: Json,
    pub direction: Json,
}

impl Input {
    /// Recognises messages, a wire log, or digits.
    pub fn recognise(name: &str, bytes: Vec<u8>) -> Result<Self, String> {
        // Every complete message contains a NUL, and no text does.
        if bytes.contains(&0) || bytes.starts_with(b"DOTNET_IPC") || bytes.starts_with(ADVERTISE) {
            return Ok(Self::Messages(bytes));
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(e) => return Ok(Self::Messages(e.into_bytes())),
        };
        if text.trim_start().starts_with('{') {
            return Ok(Self::WireLog(name.to_owned(), text));
        }
        hex::parse(&text).map(Self::Messages)
    }

    /// Calls `decode` with each piece. Returns why a line is none of a wire log, after the pieces before it.
    pub fn for_each_piece(
        &self,
        mut decode: impl FnMut(Piece<'_>) -> io::Result<()>,
    ) -> io::Result<Result<(), String>> {
        let (name, lines) = match self {
            Self::Messages(bytes) => return decode(Piece { bytes, logged: None }).map(Ok),
            Self::WireLog(name, text) => (name, text.lines().enumerate()),
        };
        for (i, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            match logged(line) {
                Ok((bytes, logged)) => decode(Piece { bytes: &bytes, logged: Some(&logged) })?,
                Err(e) => return Ok(Err(format!("{name}: line {}: {e}", i.saturating_add(1)))),
            }
        }
        Ok(Ok(()))
    }
}

/// Parses a line of a wire log.
fn logged(line: &str) -> Result<(Vec<u8>, Logged), String> {
    let entry: Json = serde_json::from_str(line).map_err(|e| format!("no JSON: {e}"))?;
    let hex = entry.get("hex").and_then(Json::as_str);
    let hex = hex.ok_or("no line of a wire log: it has no \"hex\"")?;
    let get = |key| entry.get(key).cloned().unwrap_or_default();
    Ok((hex::parse(hex)?, Logged { connection: get("connection"), direction: get("direction") }))
}

/// Returns a line of a wire log, without its end.
pub fn log_line(time: &str, direction: &str, connection: u64, bytes: &[u8]) -> String {
    let hex = hex::hex(bytes);
    json!({ "time": time, "direction": direction, "connection": connection, "hex": hex }).to_string()
}
