use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use super::channel::Channel;
use super::child::ChildPipes;
use super::worker::{Interrupt, Worker};
use crate::sys::Socket;
use crate::timeouts::Deadline;

/// A connection to a runtime over any transport, with a deadline for every wait.
///
/// After the deadline, reading and writing fail with [`TimedOut`](io::ErrorKind::TimedOut). Without
/// [`set_deadline`](Self::set_deadline) they wait without a limit; a [`Client`](crate::Client) sets the deadline of its
/// call.
///
/// | transport | made by | waits by | a deadline or a cancel |
/// |---|---|---|---|
/// | the socket or pipe of a runtime | [`connect`](Self::connect), [`new`](Self::new) | polling | ends the wait |
/// | TCP | [`tcp`](Self::tcp) | polling; a thread on Windows | ends the wait; the socket is shut down |
/// | the two pipes of a child process: `ssh HOST …`, `kubectl exec -i …` | [`child`](Self::child) | a thread | ends the wait; the child is killed and reaped |
/// | any other `Read + Write` | [`blocking`](Self::blocking) | a thread | ends the wait; the thread ends with its operation |
/// | the same, with a way to interrupt it | [`interruptible`](Self::interruptible) | a thread | ends the wait; the operation is interrupted |
///
/// A thread does one operation at a time: it reads when bytes are wanted, and cannot write while it waits for them. The
/// protocol never needs both. The connection is closed when the `Stream` is dropped.
///
/// ```no_run
/// use std::{io::Read, path::Path, time::{Duration, Instant}};
///
/// let soon = Instant::now() + Duration::from_secs(1);
/// let mut stream = ipc_std::Stream::connect(Path::new("/tmp/dotnet-diagnostic-1-2-socket"), soon)?;
/// stream.read(&mut [0])?; // no request was sent, so this fails after one second
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    /// Shared, because a session polls it and a fake runtime closes it from another thread.
    channel: Arc<Channel>,
    deadline: Instant,
}

impl Stream {
    /// Connects to the socket or pipe at `path`. The deadline holds for connecting and for the stream.
    ///
    /// # Errors
    /// An error of the operating system; `TimedOut` if the runtime does not accept the connection in time.
    pub fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        Ok(Self::over(Socket::connect(path, deadline)?).with_deadline(deadline))
    }

    /// Takes a connected stream socket of any kind, and makes it non-blocking.
    ///
    /// # Errors
    /// If the operating system refuses that.
    #[cfg(unix)]
    pub fn new(socket: impl Into<OwnedFd>) -> io::Result<Self> {
        Ok(Self::over(Socket::new(socket.into().into())?))
    }

    /// Takes a connected pipe that was opened for overlapped operations.
    ///
    /// # Errors
    /// None at present.
    #[cfg(windows)]
    pub fn new(pipe: impl Into<OwnedHandle>) -> io::Result<Self> {
        Ok(Self::over(Socket::new(pipe.into())))
    }

    /// Takes a TCP connection. Small messages are sent immediately (`TCP_NODELAY`).
    ///
    /// # Errors
    /// If the operating system refuses to configure it.
    pub fn tcp(tcp: TcpStream) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        #[cfg(unix)]
        return Self::new(tcp);
        #[cfg(windows)]
        {
            let closer = tcp.try_clone()?;
            Self::interruptible(tcp, move || {
                let _ = closer.shutdown(std::net::Shutdown::Both);
            })
        }
    }

    /// Starts a program whose standard input and output are the connection: `ssh HOST socat - UNIX-CONNECT:PATH`,
    /// `kubectl exec -i POD -- …`. Its standard error is what the command says, by default that of this process.
    ///
    /// Dropping the stream kills the program and waits for its end. A program that ends with a failure before it has
    /// sent anything is an error that names its exit status.
    ///
    /// # Errors
    /// If the program cannot be started.
    ///
    /// ```no_run
    /// use ipc_std::{Client, Stream};
    /// use std::process::Command;
    ///
    /// let remote = "socat - UNIX-CONNECT:$(ls /tmp/dotnet-diagnostic-4242-*-socket)";
    /// let client = Client::over("host7", move |_| Stream::child(Command::new("ssh").args(["host7", remote])));
    /// println!("{}", client.process_info()?.command_line);
    /// # Ok::<(), ipc_std::Error>(())
    /// ```
    pub fn child(command: &mut Command) -> io::Result<Self> {
        let pipes = ChildPipes::spawn(command)?;
        let interrupt = pipes.interrupt();
        Self::on_thread(pipes, Some(interrupt))
    }

    /// Takes any transport that blocks. A thread waits for it.
    ///
    /// An operation that waits is not interrupted: after a deadline, a cancel or a drop, the thread lives until the
    /// operation returns. A transport whose reads have a timeout of their own declares that by failing with `WouldBlock`
    /// or `TimedOut`: the thread then checks whether it is still needed, writes what is to be written, and reads again.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn blocking(stream: impl Read + Write + Send + 'static) -> io::Result<Self> {
        Self::on_thread(stream, None)
    }

    /// Takes any transport that blocks, and a function that ends a waiting operation from another thread: it shuts down
    /// a socket, closes a channel, kills a process. The function is called once, when the stream is dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn interruptible(
        stream: impl Read + Write + Send + 'static,
        interrupt: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        Self::on_thread(stream, Some(Box::new(interrupt)))
    }

    fn on_thread(
        stream: impl Read + Write + Send + 'static,
        interrupt: Option<Interrupt>,
    ) -> io::Result<Self> {
        Ok(Self::over(Channel::Worker(Worker::start(stream, interrupt)?)))
    }

    pub(crate) fn over(channel: impl Into<Channel>) -> Self {
        Self { channel: Arc::new(channel.into()), deadline: Deadline::after(Duration::MAX).end }
    }

    /// Returns the deadline.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the stream with this deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the deadline.
    pub const fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Returns the connection, if nothing else uses it.
    pub(crate) fn into_channel(self) -> Option<Channel> {
        Arc::into_inner(self.channel)
    }

    /// Returns the connection, which does not block.
    pub(crate) const fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.channel.read_by(buf, self.deadline)
    }
}
impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.channel.write_by(buf, self.deadline)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
/// Readable when bytes have arrived. A transport with a thread shows that only after a read that found none.
#[cfg(unix)]
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}
