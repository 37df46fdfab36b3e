//! A hostile peer for the code of others.
use std::io::{self, Read, Write};

use arbitrary::Unstructured;
use ipc_proto::types::{ProcessEnvironment, ProcessInfo, ProcessInfo2, ProcessInfo3, SessionId, Status};
use ipc_proto::wire::to_u32;
use ipc_proto::{Code, HResult, ServerError};

use crate::hostile::{hostile_bytes, push_message};

/// A stream in memory whose other end is a hostile peer: for targets of code that wraps this library, or that speaks
/// the protocol itself, as a client or as a server.
///
/// The bytes that the peer sends do not depend on the bytes that it receives. It is one to four of these parts, one
/// after the other:
///
/// * an environment: the answer that announces it, and one to four entries of up to 128 KiB each;
/// * an answer OK: of ResumeRuntime and the other commands that only succeed, of GetProcessInfo, GetProcessInfo2 or
///   GetProcessInfo3 with any values;
/// * the answer of a session, and up to 128 KiB of its stream;
/// * a refusal with a code that runtimes send, or with any code and perhaps a message;
/// * valid messages and damage: requests, answers, advertise frames and environments out of order, repeated, cut, with
///   wrong sizes and counts;
/// * the bytes of the fuzzer as they are.
///
/// A quarter of the peers close up to 64 KiB earlier. What is sent arrives in pieces of 1 to 32 bytes or of 512 bytes
/// to 64 KiB; then reads return 0. The peer takes what it is sent, or a part of it, in such pieces; then writes fail
/// with `BrokenPipe`. Code that continues to read or to write after that a thousand times panics: it is a loop without
/// end, which a fuzzer would not notice otherwise.
///
/// That your code returns is one property. What it returns is another: it must return the same result as the core for
/// the same peer. The README of this package has a target with both.
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
#[derive(Debug, Clone)]
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
        let sizes = u.arbitrary::<[u8; 4]>().unwrap_or_default().map(|byte| match byte {
            0..128 => usize::from(byte % 32) + 1,
            128.. => usize::from(byte - 127) * 512,
        });
        // Most peers receive everything.
        let takes = match u.arbitrary::<u16>() {
            Ok(n) if n % 8 == 0 => usize::from(n),
            _ => usize::MAX,
        };
        let mut sends = Vec::new();
        // The parts that were built before the bytes of the fuzzer ended are sent.
        let _ = push_parts(&mut sends, &mut u);
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

/// The codes of refusals on which clients decide.
const KNOWN: [HResult; 5] = [
    HResult::UNKNOWN_COMMAND,
    HResult::BAD_ENCODING,
    HResult::NOT_SUPPORTED,
    HResult::INVALID_ARG,
    HResult::FAIL,
];

fn push_parts(sends: &mut Vec<u8>, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    for _ in 0..u.arbitrary::<u8>()? % 4 + 1 {
        match u.arbitrary::<u8>()? % 12 {
            0 | 1 => {
                let entries = u.arbitrary::<u8>()? % 4 + 1;
                let mut environment = to_u32(usize::from(entries)).to_le_bytes().to_vec();
                for _ in 0..entries {
                    let entry = letters(u)?;
                    environment.extend(to_u32(entry.len() / 2 + 1).to_le_bytes());
                    environment.extend(entry);
                    environment.extend([0; 2]);
                }
                let announced = ProcessEnvironment { incoming_bytes: to_u32(environment.len()), future: 0 };
                push_message(sends, Code::OK, &announced);
                sends.extend(environment);
            }
            2 => push_message(sends, Code::OK, &Status::OK),
            3 => push_message(sends, Code::OK, &u.arbitrary::<ProcessInfo<'_>>()?),
            4 => push_message(sends, Code::OK, &u.arbitrary::<ProcessInfo2<'_>>()?),
            5 => push_message(sends, Code::OK, &u.arbitrary::<ProcessInfo3<'_>>()?),
            6 => {
                push_message(sends, Code::OK, &u.arbitrary::<SessionId>()?);
                sends.extend(letters(u)?);
            }
            7 => push_message(sends, Code::ERROR, u.choose(&KNOWN)?),
            8 => push_message(sends, Code::ERROR, &u.arbitrary::<ServerError<'_>>()?),
            9 => sends.extend(u.bytes(u.len())?),
            _ => sends.extend(hostile_bytes(u)?),
        }
    }
    if u.arbitrary::<u8>()? % 4 == 1 {
        sends.truncate(sends.len().saturating_sub(u.arbitrary::<u16>()?.into()));
    }
    Ok(())
}

/// Returns the letters of an entry: up to 239, or up to 65,520. No part of them is like its neighbours.
fn letters(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let len = match u.arbitrary::<u8>()? {
        few @ 0..240 => u16::from(few),
        many => u16::from(many - 239) * 4095,
    };
    Ok((0..len).flat_map(|at| if at == 1 { [b'=', 0] } else { (at % 251 + 32).to_le_bytes() }).collect())
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
