use std::io::{self, ErrorKind, Read, Write};

use ipc_proto::{Exchange, ProtocolError, Step};

/// The reason why [`drive`] did not finish an exchange.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Writing to the stream failed.
    #[error("sending failed: {0}")]
    Send(#[source] io::Error),
    /// Reading from the stream failed.
    #[error("receiving failed: {0}")]
    Receive(#[source] io::Error),
    /// The peer violated the protocol or closed the connection.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// Runs `exchange` over `stream` until it is done.
///
/// A reset stream counts as closed: bytes that the peer sent before are read, and the exchange decides whether they
/// suffice.
///
/// # Errors
/// If the stream or the peer fails. After [`ProtocolError::BufferTooSmall`] the caller can suspend the exchange, resume
/// it with a larger buffer, and drive it again.
///
/// ```
/// use ipc_proto::{Answer, Call, ResumeRuntime, types::Status};
/// use std::io::{self, Cursor, Read, Write};
///
/// struct Scripted(Cursor<Vec<u8>>);
/// # impl Read for Scripted { fn read(&mut self, b: &mut [u8]) -> io::Result<usize> { self.0.read(b) } }
/// # impl Write for Scripted {
/// #     fn write(&mut self, b: &[u8]) -> io::Result<usize> { Ok(b.len()) }
/// #     fn flush(&mut self) -> io::Result<()> { Ok(()) }
/// # }
/// let mut stream = Scripted(Cursor::new(b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0".to_vec()));
/// let mut buf = [0; 64];
/// let mut call = Call::new(&ResumeRuntime {}, &mut buf)?;
/// ipc_std::drive(&mut call, &mut stream)?;
/// assert_eq!(call.finish()?, Answer::Ok(Status::OK));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn drive(exchange: &mut impl Exchange, stream: &mut (impl Read + Write)) -> Result<(), DriveError> {
    loop {
        let (result, failed): (_, fn(io::Error) -> DriveError) = match exchange.step() {
            Step::Send(bytes) => (stream.write(bytes), DriveError::Send),
            Step::Receive(space) => (stream.read(space), DriveError::Receive),
            Step::Done => return stream.flush().map_err(DriveError::Send),
        };
        let n = match result {
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if is_closed(&e) => 0,
            Err(e) => return Err(failed(e)),
        };
        exchange.advance(n)?;
    }
}

/// Returns whether the error means that the peer has closed the connection.
pub(crate) fn is_closed(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}
