//! Listeners and connections for tests, at temporary addresses: sockets on Unix, pipes on Windows.
#![allow(dead_code, reason = "each test file uses a part of this module")]
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_std::Stream;
use tempfile::TempDir;

/// The time after which an operation counts as hanging.
pub(crate) const HANGS: Duration = Duration::from_secs(300);

/// A source of unique addresses. Drop removes its files.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns a directory for [`ipc_std::Server::listen`] and `FakeRuntime::start_in`.
    pub(crate) fn directory(&self) -> PathBuf {
        #[cfg(unix)]
        return self.0.path().to_owned();
        #[cfg(windows)]
        return self.pipe("");
    }

    /// Returns an address for a monitor.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        #[cfg(unix)]
        return self.0.path().join(name);
        #[cfg(windows)]
        return self.pipe(&format!("{name}-{SUFFIX}"));
    }

    /// Returns the path of a file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[cfg(windows)]
    fn pipe(&self, name: &str) -> PathBuf {
        let unique = self.0.path().file_name().unwrap().to_str().unwrap();
        ipc_std::discover::directory().join(format!("{unique}-{name}"))
    }
}

/// Connects to the listener at `path`.
#[track_caller]
pub(crate) fn connect(path: &Path) -> Stream {
    Stream::connect(path, Instant::now() + HANGS).unwrap()
}

/// Returns whether the descriptor or event becomes ready before the timeout.
#[cfg(unix)]
pub(crate) fn is_ready(source: &impl std::os::fd::AsFd, timeout: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(source, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::try_from(timeout).unwrap())).unwrap() > 0
}
#[cfg(windows)]
#[allow(unsafe_code, reason = "an event loop of an application waits like this")]
pub(crate) fn is_ready(source: &impl std::os::windows::io::AsHandle, timeout: Duration) -> bool {
    use std::os::windows::io::AsRawHandle;
    use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
    use windows_sys::Win32::System::Threading::WaitForSingleObject;
    let milliseconds = u32::try_from(timeout.as_millis()).unwrap();
    // SAFETY: the handle belongs to an open event.
    unsafe { WaitForSingleObject(source.as_handle().as_raw_handle(), milliseconds) == WAIT_OBJECT_0 }
}

/// Returns the two ends of a connection.
pub(crate) fn pair() -> (Stream, Stream) {
    #[cfg(unix)]
    {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let stream = |end| Stream::new(end).unwrap().with_deadline(Instant::now() + HANGS);
        (stream(ours), stream(theirs))
    }
    #[cfg(windows)]
    {
        let place = Place::new();
        let listener = Listener::bind(&place.path("pair"));
        (connect(&listener.path), listener.accept())
    }
}

/// A listener at a path.
pub(crate) struct Listener {
    pub(crate) path: PathBuf,
    #[cfg(unix)]
    pub(crate) listener: std::os::unix::net::UnixListener,
    #[cfg(windows)]
    accepting: accepting::Accepting,
}

impl Listener {
    #[cfg(unix)]
    pub(crate) fn bind(path: &Path) -> Self {
        use rustix::net::sockopt::{Timeout, set_socket_timeout};
        let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        set_socket_timeout(&listener, Timeout::Recv, Some(HANGS)).unwrap();
        Self { path: path.to_owned(), listener }
    }

    /// Accepts the next connection.
    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn accept(&self) -> Stream {
        let (stream, _) = self.listener.accept().unwrap();
        Stream::new(stream).unwrap().with_deadline(Instant::now() + HANGS)
    }

    /// Returns whether a connection arrives within 30 ms. Peers connect immediately or not at all.
    #[cfg(unix)]
    pub(crate) fn is_called(&self) -> bool {
        let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: 30_000_000 };
        let mut fds = [rustix::event::PollFd::new(&self.listener, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&timeout)).unwrap() > 0
    }

    #[cfg(windows)]
    pub(crate) fn bind(path: &Path) -> Self {
        let accepting = accepting::Accepting::at(path);
        Self { path: path.to_owned(), accepting }
    }

    /// Accepts the next connection.
    #[cfg(windows)]
    #[track_caller]
    pub(crate) fn accept(&self) -> Stream {
        self.accepting.next(HANGS).unwrap()
    }

    /// Returns whether a connection arrives within 30 ms. Peers connect immediately or not at all.
    #[cfg(windows)]
    pub(crate) fn is_called(&self) -> bool {
        self.accepting.is_called(Duration::from_millis(30))
    }
}

/// The end of the pipe name. A server can have any text before it.
#[cfg(windows)]
const SUFFIX: &str = "dotnet-diagnostic-42";

#[cfg(windows)]
mod accepting {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::sync::mpsc::{self, Receiver};
    use std::thread::{self, JoinHandle};

    use ipc_proto::{Advertise, Guid};
    use ipc_std::{Server, ServerStopper};

    /// Accepts every connection and queues it, like the backlog of a socket.
    pub(super) struct Accepting {
        stopper: ServerStopper,
        thread: Option<JoinHandle<()>>,
        accepted: Mutex<(Receiver<Stream>, VecDeque<Stream>)>,
    }

    impl Accepting {
        pub(super) fn at(path: &Path) -> Self {
            let directory = path.to_str().unwrap().strip_suffix(SUFFIX).unwrap();
            let advertise = Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 };
            let mut server = Server::new(&advertise).unwrap();
            server.listen(directory.as_ref()).unwrap();
            let stopper = server.stopper();
            let (sender, receiver) = mpsc::channel();
            let accept = move || {
                while let Some(incoming) = server.accept().unwrap() {
                    // Sending fails after the receiver was dropped; the server stops soon after that.
                    let _ = sender.send(incoming.stream);
                }
            };
            let thread = Some(thread::spawn(accept));
            Self { stopper, thread, accepted: Mutex::new((receiver, VecDeque::new())) }
        }

        pub(super) fn next(&self, timeout: Duration) -> Option<Stream> {
            let mut accepted = self.accepted.lock().unwrap();
            let (receiver, queued) = &mut *accepted;
            let mut stream = queued.pop_front().or_else(|| receiver.recv_timeout(timeout).ok())?;
            stream.set_deadline(Instant::now() + HANGS);
            Some(stream)
        }

        pub(super) fn is_called(&self, timeout: Duration) -> bool {
            let mut accepted = self.accepted.lock().unwrap();
            let (receiver, queued) = &mut *accepted;
            queued.extend(receiver.recv_timeout(timeout));
            !queued.is_empty()
        }
    }

    impl Drop for Accepting {
        fn drop(&mut self) {
            self.stopper.stop();
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}
