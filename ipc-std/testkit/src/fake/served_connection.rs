//! A connection on which faults take effect.
#[cfg(unix)]
use std::io::ErrorKind;
use std::io::{self, Read, Write};

use ipc_std::{DriveError, Stream, Turn};

use super::fake_core::{Descriptor, FakeCore};
use super::fault::Fault;

/// A served connection, on which the injected fault takes effect.
pub(super) struct ServedConnection<'r, S> {
    pub(super) stream: S,
    /// The same connection as a socket of this package, if it is one. It shows when the client closes the connection.
    pub(super) peer: Option<&'r Stream>,
    pub(super) port: usize,
    pub(super) turn: &'r mut Option<Turn>,
    pub(super) fault: Option<Fault>,
    /// The number of bytes that were written.
    pub(super) written: usize,
    /// The number of written bytes that belong to a trace.
    pub(super) streamed: usize,
    pub(super) core: &'r FakeCore,
}

impl<S: Write> ServedConnection<'_, S> {
    /// Writes bytes of a trace.
    pub(super) fn send_stream(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(Fault::StallStream(n)) = self.fault else { return self.write_all(bytes) };
        let left = n.saturating_sub(self.streamed);
        self.streamed = self.streamed.saturating_add(bytes.len());
        self.write_all(bytes.get(..left).unwrap_or(bytes))?;
        self.stream.flush()?;
        if self.streamed > n {
            self.core.wait_until(None, |_| false);
        }
        Ok(())
    }
}

impl<S: Read> ServedConnection<'_, S> {
    /// Waits until the client closes the connection.
    pub(super) fn wait_for_close(&mut self) -> Result<(), DriveError> {
        io::copy(&mut self.stream, &mut io::sink()).map_err(DriveError::Receive)?;
        // The client may have closed its sending side only.
        if let Some(peer) = self.peer {
            self.core.wait_until(Some(peer), |_| false);
        }
        Ok(())
    }

    /// Receives the descriptor that comes with the next byte; `None` for a connection that is not a socket of this
    /// package.
    pub(super) fn receive_descriptor(&mut self) -> Option<Descriptor> {
        #[cfg(unix)]
        if let Some(peer) = self.peer {
            let deadline = self.core.client_deadline().unwrap_or_else(|| peer.deadline());
            match peer.clone().with_deadline(deadline).receive_descriptor() {
                Err(e) if e.kind() == ErrorKind::Unsupported => {}
                received => return received.ok().flatten().map(Descriptor::new),
            }
        }
        self.read(&mut [0]).map_or(None, |_| None)
    }
}

impl<S: Read> Read for ServedConnection<'_, S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buf)
    }
}
impl<S: Write> Write for ServedConnection<'_, S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let allowed = match self.fault {
            Some(Fault::CloseAfter(n)) => n.saturating_sub(self.written),
            Some(Fault::Drip(pause)) => {
                self.core.pause(pause);
                1
            }
            _ => usize::MAX,
        };
        let n = self.stream.write(buf.get(..allowed).unwrap_or(buf))?;
        self.written = self.written.saturating_add(n);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
