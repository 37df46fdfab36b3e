//! The property of the input of `decode`.
use dotnet_ipc_sans_io::syntax::decode_input::{Input, log_line};
use serde_json::Value;

/// Checks the input of `decode`: any bytes are harmless, a refusal of a log states a line of it, and the messages of a
/// log are read as they were written.
pub fn wire_log(bytes: &[u8]) {
    let lines = String::from_utf8_lossy(bytes).lines().count();
    match read(bytes.to_vec()) {
        Ok(pieces) => {
            assert!(pieces.len() <= lines.max(1));
            // A byte needs two digits, unless the input is the bytes themselves.
            let read: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
            assert!(read <= bytes.len());
        }
        Err(reason) => {
            let rest = reason.strip_prefix("NAME: line ").and_then(|rest| rest.split_once(':'));
            let line = rest.and_then(|(number, _)| number.parse::<usize>().ok());
            let in_digits = reason.contains("is not hexadecimal");
            assert!(line.map_or(in_digits, |line| (1..=lines).contains(&line)), "{reason}");
        }
    }
    // An empty input is a log without digits, and so without pieces.
    if bytes.is_empty() {
        return;
    }
    let messages: Vec<&[u8]> = bytes.chunks(bytes.len().div_ceil(3).max(1)).collect();
    let direction = |number: usize| if number % 2 == 0 { "sent" } else { "received" };
    let mut log = String::new();
    for (number, message) in messages.iter().enumerate() {
        log += &log_line("2026-01-02T03:04:05.678901Z", direction(number), number as u64, message);
        log += "\n";
    }
    let pieces = read(log.into_bytes()).expect("it was written as a log");
    assert_eq!(pieces.len(), messages.len());
    for (number, (piece, message)) in pieces.iter().zip(messages).enumerate() {
        let (logged_direction, connection) = piece.logged.as_ref().expect("it is a log");
        assert_eq!(piece.bytes, message);
        assert_eq!(*logged_direction, direction(number));
        assert_eq!(*connection, number);
    }
}

/// A piece of the input, with the direction and the connection of a log.
struct Read {
    bytes: Vec<u8>,
    logged: Option<(Value, Value)>,
}

/// Reads the pieces of an input.
fn read(bytes: Vec<u8>) -> Result<Vec<Read>, String> {
    let mut pieces = Vec::new();
    let input = Input::recognise("NAME", bytes)?;
    let read = input.for_each_piece(|piece| {
        let logged = piece.logged.map(|logged| (logged.direction.clone(), logged.connection.clone()));
        pieces.push(Read { bytes: piece.bytes.to_vec(), logged });
        Ok(())
    });
    read.expect("no piece was refused")?;
    Ok(pieces)
}
