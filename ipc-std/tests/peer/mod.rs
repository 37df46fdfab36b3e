//! Places to listen at, and who listens and connects there by hand: sockets on Unix, pipes on Windows.
#![allow(dead_code, reason = "not every test needs all of it")]
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_std::{Monitor, Stream};
use tempfile::TempDir;

/// Nothing here takes as long, unless it hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

/// Names that nobody else has, until it is dropped.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Where runtimes can listen: for [`ipc_std::Server::listen`] and `FakeRuntime::start_in`.
    pub(crate) fn directory(&self) -> PathBuf {
        #[cfg(unix)]
        return self.0.path().to_owned();
        #[cfg(windows)]
        return self.pipe("");
    }

    /// Where a monitor can listen.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        #[cfg(unix)]
        return self.0.path().join(name);
        #[cfg(windows)]
        return self.pipe(&format!("{name}-{SUFFIX}"));
    }

    /// Where a file can be.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[cfg(windows)]
    fn pipe(&self, name: &str) -> PathBuf {
        let unique = self.0.path().file_name().unwrap().to_str().unwrap();
        ipc_std::discover::directory().join(format!("{unique}-{name}"))
    }
}

/// Connects to whoever listens at `path`.
#[track_caller]
pub(crate) fn connect(path: &Path) -> Stream {
    Stream::connect(path, Instant::now() + HANGS).unwrap()
}

/// Whether the monitor's descriptor, or event, says that there is something to do, by then.
#[cfg(unix)]
pub(crate) fn is_ready(monitor: &Monitor, timeout: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::os::fd::AsFd;
    let mut fds = [PollFd::from_borrowed_fd(monitor.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::try_from(timeout).unwrap())).unwrap() > 0
}
#[cfg(windows)]
#[allow(unsafe_code, reason = "it is what other people's loops do")]
pub(crate) fn is_ready(monitor: &Monitor, timeout: Duration) -> bool {
    use std::os::windows::io::{AsHandle, AsRawHandle};
    use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
    use windows_sys::Win32::System::Threading::WaitForSingleObject;
    let milliseconds = u32::try_from(timeout.as_millis()).unwrap();
    // SAFETY: the handle is an event's, and open.
    unsafe { WaitForSingleObject(monitor.as_handle().as_raw_handle(), milliseconds) == WAIT_OBJECT_0 }
}

/// Two ends of one connection.
pub(crate) fn pair() -> (Stream, Stream) {
    #[cfg(unix)]
    {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let stream = |end| Stream::new(end, Instant::now() + HANGS).unwrap();
        (stream(ours), stream(theirs))
    }
    #[cfg(windows)]
    {
        let place = Place::new();
        let listener = Listener::bind(&place.path("pair"));
        (connect(&listener.path), listener.accept())
    }
}

/// Listens at a path.
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

    /// The next connection.
    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn accept(&self) -> Stream {
        let (stream, _) = self.listener.accept().unwrap();
        Stream::new(stream, Instant::now() + HANGS).unwrap()
    }

    /// Whether somebody connects within a moment: whoever does so at all does it at once.
    #[cfg(unix)]
    pub(crate) fn is_called(&self) -> bool {
        let moment = rustix::event::Timespec { tv_sec: 0, tv_nsec: 30_000_000 };
        let mut fds = [rustix::event::PollFd::new(&self.listener, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&moment)).unwrap() > 0
    }

    #[cfg(windows)]
    pub(crate) fn bind(path: &Path) -> Self {
        let accepting = accepting::Accepting::at(path);
        Self { path: path.to_owned(), accepting }
    }

    /// The next connection.
    #[cfg(windows)]
    #[track_caller]
    pub(crate) fn accept(&self) -> Stream {
        self.accepting.next(HANGS).expect("somebody calls")
    }

    /// Whether somebody connects within a moment: whoever does so at all does it at once.
    #[cfg(windows)]
    pub(crate) fn is_called(&self) -> bool {
        self.accepting.is_called(Duration::from_millis(30))
    }
}

/// What a server, which listens under this name, can have before it.
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

    /// Accepts whoever comes, as the backlog of a socket does.
    pub(super) struct Accepting {
        stopper: ServerStopper,
        thread: Option<JoinHandle<()>>,
        accepted: Mutex<(Receiver<Stream>, VecDeque<Stream>)>,
    }

    impl Accepting {
        pub(super) fn at(path: &Path) -> Self {
            let directory = path.to_str().unwrap().strip_suffix(SUFFIX).expect("a path of a place's");
            let advertise = Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 };
            let mut server = Server::new(&advertise).unwrap();
            server.listen(directory.as_ref()).unwrap();
            let stopper = server.stopper();
            let (tell, told) = mpsc::channel();
            let accept = move || {
                while let Some(incoming) = server.accept().unwrap() {
                    // It ends soon if nobody receives.
                    let _ = tell.send(incoming.stream);
                }
            };
            let thread = Some(thread::spawn(accept));
            Self { stopper, thread, accepted: Mutex::new((told, VecDeque::new())) }
        }

        pub(super) fn next(&self, timeout: Duration) -> Option<Stream> {
            let mut accepted = self.accepted.lock().unwrap();
            let (told, waiting) = &mut *accepted;
            let mut stream = waiting.pop_front().or_else(|| told.recv_timeout(timeout).ok())?;
            stream.set_deadline(Instant::now() + HANGS);
            Some(stream)
        }

        pub(super) fn is_called(&self, timeout: Duration) -> bool {
            let mut accepted = self.accepted.lock().unwrap();
            let (told, waiting) = &mut *accepted;
            waiting.extend(told.recv_timeout(timeout));
            !waiting.is_empty()
        }
    }

    impl Drop for Accepting {
        fn drop(&mut self) {
            self.stopper.stop();
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}
