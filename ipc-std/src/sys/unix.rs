use core::time::Duration;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, connect,
    sendmsg,
};

/// A socket that does not block, and that children do not inherit.
#[cfg(not(target_vendor = "apple"))]
fn unix_socket() -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}
#[cfg(target_vendor = "apple")]
fn unix_socket() -> io::Result<OwnedFd> {
    let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}

/// Connects to the socket at `path`; the stream does not block.
///
/// A full backlog is waited for, as a runtime accepts only between two commands. There is nothing to poll then, so it
/// is asked again, ever more seldom.
pub(crate) fn connect_unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let (address, _directory) = super::address::address(path)?;
    let fd = unix_socket()?;
    let mut pause = Duration::from_millis(1);
    loop {
        match connect(&fd, &address) {
            Ok(()) | Err(Errno::ISCONN) => return Ok(fd.into()),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                std::thread::sleep(pause.min(left(deadline)?));
                pause = pause.saturating_mul(2).min(Duration::from_millis(50));
            }
            Err(Errno::INPROGRESS | Errno::ALREADY) => {
                wait(&mut [PollFd::new(&fd, PollFlags::OUT)], deadline)?
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// Connects, or fails at once, be it that the backlog is full; the stream does not block.
pub(crate) fn connect_unix_at_once(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let fd = unix_socket()?;
    connect(&fd, address)?;
    Ok(fd.into())
}

/// Sends a descriptor, with the one byte that carries it.
pub(crate) fn send_descriptor(socket: &UnixStream, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [core::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    // It fits: the space is for one.
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    // One byte behind a request that was just taken whole: there is room for it.
    sendmsg(socket, &[io::IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// What is left until `deadline`; an error of kind `TimedOut` once it has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Waits until one of these is ready for what is asked of it, or gone.
pub(crate) fn wait(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    loop {
        // Without a timeout if it is longer than the type can say: hundreds of years.
        let timeout = Timespec::try_from(left(deadline)?).ok();
        match poll(fds, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Whether the peer has closed its side altogether.
pub(crate) fn has_hung_up(socket: &UnixStream) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0)
}

/// Whether a socket lies there; whether anybody listens is another matter.
pub(crate) fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Locks a directory until the descriptor is dropped; an error of kind `TimedOut` if somebody else has it for as long.
pub(crate) fn lock_directory(path: &Path, deadline: Instant) -> io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    loop {
        match rustix::fs::flock(&directory, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            // There is nothing to poll.
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(2).min(left(deadline)?)),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Whether there are hardly any descriptors left, if this is the newest.
pub(crate) fn is_among_the_last(socket: &UnixStream) -> bool {
    /// What the commands of a runtime or two take.
    const RESERVE: u64 = 16;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let number = u64::try_from(socket.as_raw_fd()).unwrap_or(0);
    limit.is_some_and(|limit| number >= limit.saturating_sub(RESERVE.min(limit / 4)))
}

/// A listening socket at `path`, which only its owner may open from its first moment on; accepting does not block.
pub(crate) fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    /// How many connections may wait to be accepted: what .NET asks for.
    const BACKLOG: i32 = 255;
    let address = SocketAddrUnix::new(path)?;
    let fd = unix_socket()?;
    // On Linux the mode of the unbound socket is what the file gets. Elsewhere the file is changed once it is there.
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    #[cfg(target_os = "linux")]
    rustix::fs::fchmod(&fd, mode)?;
    rustix::net::bind(&fd, &address)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::chmod(path, mode)?;
    rustix::net::listen(&fd, BACKLOG)?;
    Ok(fd.into())
}
