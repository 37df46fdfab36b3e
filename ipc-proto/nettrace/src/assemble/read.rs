//! Reading from a `Read`.
use std::io::{self, ErrorKind, Read};

/// Reads once, and again after each [`Interrupted`](ErrorKind::Interrupted).
pub(crate) fn read_uninterrupted(reader: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(space) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
