//! A hostile peer for the code of others.
use std::io::{self, Read, Write};

use arbitrary::Unstructured;

use crate::hostile::hostile_bytes;

/// A stream in memory whose other end is a hostile peer: for targets of code that wraps this library, or that speaks the
/// protocol itself, as a client or as a server.
///
/// What the peer sends is built of valid messages and of damage, by the bytes of the fuzzer: out of order, one after the
/// other, cut, with wrong sizes and counts. It arrives in pieces of 1 to 32 bytes; then reads return 0. The peer takes what
/// it is sent, or a part of it, in such pieces; then writes fail with `BrokenPipe`. Code that continues to read or to write
/// after that a thousand times panics: it is a loop without end, which a fuzzer would not notice otherwise.
///
/// ```
/// use std::io::{Read, Write};
///
/// use ipc_fuzz::Peer;
///
/// /// Code that speaks the protocol: it must return, and must not panic.
/// fn ask(mut stream: impl Read + Write) -> std::io::Result<Vec<u8>> {
///     stream.write_all(b"DOTNET_IPC_V1\0\x14\0\x04\x08\0\0")?;
///     let mut answer = Vec::new();
///     stream.take(0x1_0000).read_to_end(&mut answer)?;
///     Ok(answer)
/// }
///
/// let mut peer = Peer::new(b"any bytes");
/// let _ = ask(&mut peer);
/// assert!(peer.received().len() <= 20);
/// ```
#[derive(Debug)]
pub struct Peer {
    sends: Vec<u8>,
    at: usize,
    received: Vec<u8>,
    /// The number of bytes that it receives before it closes.
    takes: usize,
    /// The sizes of the pieces, which repeat, and the number of pieces so far.
    sizes: [usize; 4],
    pieces: usize,
    /// The number of reads after the end of the stream, and of writes after the peer has closed it.
    after_end: usize,
}

impl Peer {
    /// As many reads and writes after the end count as a loop without end.
    const LIMIT: usize = 1000;

    /// Creates a peer that behaves as these bytes say.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let pieces: [u8; 4] = u.arbitrary().unwrap_or_default();
        let mut sizes = [0; 4];
        sizes.iter_mut().zip(crate::wire::sizes(pieces.iter())).for_each(|(to, size)| *to = size);
        // Most peers receive everything.
        let takes = match u.arbitrary::<u16>() {
            Ok(n) if n % 8 == 0 => usize::from(n),
            _ => usize::MAX,
        };
        let sends = hostile_bytes(&mut u).unwrap_or_else(|_| bytes.to_vec());
        Self { sends, at: 0, received: Vec::new(), takes, sizes, pieces: 0, after_end: 0 }
    }

    /// Returns what the peer has received.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// Returns what the peer sends.
    #[must_use]
    pub fn sends(&self) -> &[u8] {
        &self.sends
    }

    fn piece(&mut self) -> usize {
        let size = self.sizes[self.pieces % self.sizes.len()];
        self.pieces += 1;
        size
    }

    fn after_end(&mut self) {
        self.after_end += 1;
        assert!(self.after_end < Self::LIMIT, "continues without end after the peer has closed");
    }
}

impl Read for Peer {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.piece().min(buf.len()).min(self.sends.len() - self.at);
        buf[..n].copy_from_slice(&self.sends[self.at..self.at + n]);
        self.at += n;
        if n == 0 && !buf.is_empty() {
            self.after_end();
        }
        Ok(n)
    }
}

impl Write for Peer {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.piece().min(buf.len()).min(self.takes - self.received.len());
        if n == 0 && !buf.is_empty() {
            self.after_end();
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.received.extend_from_slice(&buf[..n]);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
