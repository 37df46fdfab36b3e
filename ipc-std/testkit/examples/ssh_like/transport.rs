//! A transport that the library does not know: frames over TCP, each a big-endian `u16` length and as many bytes.
use ipc_std::Stream;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

struct Framed {
    tcp: TcpStream,
    /// The remaining bytes of the frame that is being read.
    remaining: u16,
}

/// Opens a connection for one command. The closure shuts it down from another thread, which ends a read that waits.
pub(crate) fn connect(address: &str) -> io::Result<Stream> {
    let tcp = TcpStream::connect(address)?;
    let closer = tcp.try_clone()?;
    Stream::interruptible(Framed { tcp, remaining: 0 }, move || drop(closer.shutdown(Shutdown::Both)))
}

impl Read for Framed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.remaining == 0 {
            let mut len = [0; 2];
            self.tcp.read_exact(&mut len)?;
            self.remaining = u16::from_be_bytes(len);
        }
        let n = (&self.tcp).take(self.remaining.into()).read(buf)?;
        self.remaining -= u16::try_from(n).unwrap_or(self.remaining);
        Ok(n)
    }
}
impl Write for Framed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let len = u16::try_from(buf.len()).unwrap_or(u16::MAX);
        self.tcp.write_all(&[&len.to_be_bytes(), &buf[..len.into()]].concat())?;
        Ok(len.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}
