//! `Stream`: a connection over any transport, with a deadline for every wait.
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use ipc_discover::Deadline;

use super::channel::Channel;
use super::child::ChildPipes;
use super::worker::{Interrupt, Worker};
use crate::sys::Socket;

/// A connection to a runtime over any transport, with a deadline for every wait.
///
/// After the deadline, reading and writing fail with [`TimedOut`](io::ErrorKind::TimedOut). Without
/// [`set_deadline`](Self::set_deadline) they wait without a limit; a [`Client`](crate::Client) sets the deadline of its
/// call.
///
/// | transport | made by | waits by | a deadline or a cancel |
/// |---|---|---|---|
/// | the socket or pipe of a runtime | [`connect`](Self::connect), [`new`](Self::new) | polling | ends the wait |
/// | TCP | [`tcp`](Self::tcp) | polling; two threads on Windows | ends the wait; the socket is shut down |
/// | the two pipes of a child process: `ssh HOST …`, `kubectl exec -i …` | [`child`](Self::child) | two threads | ends the wait and the input of the child, which is killed and reaped |
/// | any other `Read` with a `Write` | [`halves`](Self::halves) | two threads | ends the wait; the operations are interrupted |
/// | any other `Read + Write` whose reads soon end by themselves | [`timed`](Self::timed) | a thread | ends the wait; the thread ends with its operation |
/// | any other `Read + Write` | [`blocking`](Self::blocking) | a thread | ends the wait; the thread ends with its operation |
/// | any other `Read + Write` that can be interrupted | [`interruptible`](Self::interruptible) | a thread | ends the wait; the operation is interrupted |
///
/// One thread does one operation at a time: it reads when bytes are wanted, and cannot write while it waits for them. A
/// client and a server need no more. A [`Monitor`](crate::Monitor) does: it reads from a runtime that waits for a
/// command, to notice its end. An object that can only block, and is not in two halves, cannot be read while a write
/// may follow. Over such a stream, the monitor notices the end only when a command fails.
///
/// A clone is the same connection with a deadline of its own. The connection is closed when the last clone is dropped, or
/// earlier by [`shutdown`](Self::shutdown).
///
/// ```no_run
/// use std::{io::Read, path::Path, time::{Duration, Instant}};
///
/// let soon = Instant::now() + Duration::from_secs(1);
/// let mut stream = ipc_std::Stream::connect(Path::new("/tmp/dotnet-diagnostic-1-2-socket"), soon)?;
/// stream.read(&mut [0])?; // no request was sent, so this fails after one second
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    /// The connection, which the clones share.
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
    /// If the operating system refuses to make it non-blocking.
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
    /// If the operating system refuses to configure the connection.
    pub fn tcp(tcp: TcpStream) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        #[cfg(unix)]
        return Self::new(tcp);
        #[cfg(windows)]
        {
            let (reader, closer) = (tcp.try_clone()?, tcp.try_clone()?);
            Self::halves(reader, tcp, move || {
                let _ = closer.shutdown(Shutdown::Both);
            })
        }
    }

    /// Starts a program whose standard input and output are the connection: `ssh HOST socat - UNIX-CONNECT:PATH`,
    /// `kubectl exec -i POD -- …`. `command` sets the standard error of the program; by default it is that of this
    /// process.
    ///
    /// Dropping the stream ends the input of the program, kills the program and waits for its end. No thread, descriptor
    /// or child of this process stays. A shell can leave a program of its own running, as `sh -c "relay; true"` does:
    /// that program sees the end of its input, as a relay does that then ends. What it does after that is its own.
    ///
    /// The end of a program that fails is an error that names its exit status, also within a trace. To find the status,
    /// the end of the output waits for the end of the program, for at most one second.
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
        let (pipes, input, interrupt) = ChildPipes::spawn(command)?;
        Self::halves(pipes, input, interrupt)
    }

    /// Takes any transport that blocks. A thread waits for it. A panic of the transport is an error of the stream, and so
    /// is a number of bytes that is larger than the buffer.
    ///
    /// An operation that waits is not interrupted: after a deadline, a cancel or a drop, the thread lives until the
    /// operation returns. A read can have a timeout of its own, at which it fails with `WouldBlock` or `TimedOut`. The
    /// thread then checks whether it is still needed, writes the bytes that wait, and reads again.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn blocking(stream: impl Read + Write + Send + 'static) -> io::Result<Self> {
        Self::on_thread(stream, None, false)
    }

    /// Takes any transport whose reads end by themselves after a short time, with `WouldBlock` or `TimedOut`: a socket with
    /// a read timeout, for example. A thread reads it again and again, and writes between two reads. So a
    /// [`Monitor`](crate::Monitor) notices the end of a runtime that waits for a command.
    ///
    /// # Errors
    /// If the thread cannot be started.
    ///
    /// ```
    /// use core::time::Duration;
    /// use ipc_std::Stream;
    /// use std::net::{TcpListener, TcpStream};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let tcp = TcpStream::connect(listener.local_addr()?)?;
    /// tcp.set_read_timeout(Some(Duration::from_millis(20)))?;
    /// let stream = Stream::timed(tcp)?;
    /// # drop(stream);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn timed(stream: impl Read + Write + Send + 'static) -> io::Result<Self> {
        Self::on_thread(stream, None, true)
    }

    /// Takes any transport that blocks, and a function that ends a waiting operation from another thread: for example,
    /// it shuts down a socket, closes a channel or kills a process. The function is called once, when the stream is
    /// shut down or dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn interruptible(
        stream: impl Read + Write + Send + 'static,
        interrupt: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        Self::on_thread(stream, Some(Box::new(interrupt)), false)
    }

    /// Takes a transport that blocks and that can be read and written to at the same time: its two halves, and a function
    /// that ends their waiting operations, as for [`interruptible`](Self::interruptible). One thread reads, and another one
    /// writes.
    ///
    /// # Errors
    /// If a thread cannot be started.
    ///
    /// ```
    /// use ipc_std::Stream;
    /// use std::{io::Write, net::{Shutdown, TcpListener, TcpStream}};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let tcp = TcpStream::connect(listener.local_addr()?)?;
    /// let (reader, closer) = (tcp.try_clone()?, tcp.try_clone()?);
    /// let mut stream = Stream::halves(reader, tcp, move || drop(closer.shutdown(Shutdown::Both)))?;
    /// stream.write_all(b"a command")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn halves(
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        interrupt: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        Ok(Self::over(Worker::start_halves(reader, writer, Box::new(interrupt))?))
    }

    fn on_thread(
        stream: impl Read + Write + Send + 'static,
        interrupt: Option<Interrupt>,
        reads_idle: bool,
    ) -> io::Result<Self> {
        Ok(Self::over(Worker::start(stream, interrupt, reads_idle)?))
    }

    pub(crate) fn over(channel: impl Into<Channel>) -> Self {
        Self::sharing(Arc::new(channel.into()))
    }

    pub(crate) fn sharing(channel: Arc<Channel>) -> Self {
        Self { channel, deadline: Deadline::after(Duration::MAX).end }
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

    /// Returns whether the peer has closed the connection, as far as that can be known without reading: on Windows only
    /// after its last bytes are read, and for a transport with a thread after a read.
    ///
    /// In this way a server notices the end of its client while it has nothing to write.
    #[must_use]
    pub fn has_hung_up(&self) -> bool {
        self.channel.has_hung_up()
    }

    /// Closes one direction of the connection or both, for all clones. A thread that reads or writes then returns
    /// immediately, and the peer sees the end.
    ///
    /// The pipes of Windows close both directions for this process only. The peer sees the end when the last clone is
    /// dropped.
    ///
    /// # Errors
    /// `Unsupported` for one direction of a pipe or of a transport with a thread; an error of the operating system, for
    /// example if the peer has closed the connection.
    ///
    /// ```
    /// use std::{io::Read, net::Shutdown};
    /// # #[cfg(unix)] {
    /// let (ours, _theirs) = std::os::unix::net::UnixStream::pair()?;
    /// let mut stream = ipc_std::Stream::new(ours)?;
    /// let closer = stream.clone();
    /// let reader = std::thread::spawn(move || stream.read(&mut [0])); // no bytes arrive
    /// closer.shutdown(Shutdown::Both)?;
    /// assert_eq!(reader.join().expect("it does not panic")?, 0);
    /// # }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.channel.shutdown(how)
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
/// Readable when bytes have arrived. A transport with a thread is readable only after a read that found no bytes,
/// because this read makes the thread wait for bytes.
#[cfg(unix)]
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}
