//! A byte stream over a WebSocket, as .NET in a browser uses it.
//!
//! The bytes are those of any other transport. Each write is one binary message, and a reader joins the messages: their
//! boundaries mean nothing. A close is the end of the stream. Text messages and subprotocols do not exist.
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Instant;

use tungstenite::error::ProtocolError;
use tungstenite::handshake::HandshakeRole;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::{HeaderValue, StatusCode, Uri};
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

/// The path in the URL of a monitor; `dotnet-dsrouter` expects the same path.
pub(crate) const PATH: &str = "/diagnostics";

/// A WebSocket with a deadline.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: WebSocket<Tcp>,
    /// The rest of the last message.
    received: Bytes,
    closed: bool,
}

impl Socket {
    /// Connects, as a runtime does.
    pub(crate) fn connect(url: &str, limit: Duration) -> io::Result<Self> {
        let uri: Uri = url.parse().map_err(invalid)?;
        let (Some("ws"), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err(invalid("this example supports only ws://HOST:PORT/PATH"));
        };
        let mut addresses = (host, uri.port_u16().unwrap_or(80)).to_socket_addrs()?;
        let address = addresses.next().ok_or(ErrorKind::NotFound)?;
        let tcp = Tcp::new(TcpStream::connect_timeout(&address, limit)?, limit)?;
        let (socket, _) = tungstenite::client(uri, tcp).map_err(handshake_error)?;
        Ok(Self::new(socket))
    }

    /// Accepts a connection, as a monitor does.
    ///
    /// Any page that a browser of this machine shows can connect, so a peer is a .NET runtime only if it behaves as one.
    pub(crate) fn accept(tcp: TcpStream, limit: Duration) -> io::Result<Self> {
        #[allow(clippy::result_large_err, reason = "tungstenite has defined the type")]
        let answer = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
            if request.uri().path() != PATH {
                let mut refusal = ErrorResponse::new(None);
                *refusal.status_mut() = StatusCode::NOT_FOUND;
                return Err(refusal);
            }
            // A page usually comes from another server than this one, so every origin is allowed.
            response.headers_mut().insert("Access-Control-Allow-Origin", HeaderValue::from_static("*"));
            Ok(response)
        };
        let socket = tungstenite::accept_hdr(Tcp::new(tcp, limit)?, answer).map_err(handshake_error)?;
        Ok(Self::new(socket))
    }

    const fn new(socket: WebSocket<Tcp>) -> Self {
        Self { socket, received: Bytes::new(), closed: false }
    }

    /// Sets the time that all following operations may wait together; `None` removes the limit.
    pub(crate) fn set_limit(&mut self, limit: Option<Duration>) {
        self.socket.get_mut().until = limit.map(|limit| Instant::now() + limit);
    }

    /// Waits for the next bytes, or until the peer has closed.
    fn wait(&mut self) -> io::Result<()> {
        while self.received.is_empty() && !self.closed {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => self.received = bytes,
                Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
                    self.closed = true
                }
                Ok(Message::Text(_)) => return Err(invalid("a text message")),
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {} // tungstenite answers a ping
                Err(e) => return Err(io_error(e)),
            }
        }
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        let n = (&*self.received).read(space)?;
        let _ = self.received.split_to(n);
        Ok(n)
    }
}

impl Write for Socket {
    /// Sends one message. A client in a page expects an answer in one message, and an exchange of `ipc-proto` writes it
    /// in one piece.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send(Message::binary(bytes.to_vec())).map_err(io_error)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().map_err(io_error)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = self.socket.close(None); // without a close, the peer could take the end for a failure
    }
}

/// A TCP connection, whose operations wait until a deadline.
#[derive(Debug)]
struct Tcp {
    socket: TcpStream,
    until: Option<Instant>,
}

impl Tcp {
    fn new(socket: TcpStream, limit: Duration) -> io::Result<Self> {
        socket.set_nodelay(true)?; // a small message is sent immediately
        Ok(Self { socket, until: Some(Instant::now() + limit) })
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => Err(ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl Read for Tcp {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(space).map_err(timed_out)
    }
}

impl Write for Tcp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Unix reports a timeout as `WouldBlock`, at which tungstenite would expect a later attempt.
fn timed_out(e: io::Error) -> io::Error {
    if e.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { e }
}

fn invalid(e: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, e)
}

fn io_error(e: Error) -> io::Error {
    match e {
        Error::Io(e) => e,
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(ProtocolError::SendAfterClosing) => {
            ErrorKind::BrokenPipe.into()
        }
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => ErrorKind::ConnectionReset.into(),
        e => invalid(e),
    }
}

fn handshake_error<R: HandshakeRole>(e: HandshakeError<R>) -> io::Error {
    match e {
        HandshakeError::Failure(e) => io_error(e),
        HandshakeError::Interrupted(_) => ErrorKind::TimedOut.into(),
    }
}
