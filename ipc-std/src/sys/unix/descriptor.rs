//! Sends and receives descriptors through a socket.
use core::mem::MaybeUninit;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use ipc_discover::sys::wait;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The space of one descriptor in the control data.
const SPACE: usize = rustix::cmsg_space!(ScmRights(1));

/// Flags of a call that neither blocks nor raises a signal if the peer has closed the connection. Apple's systems have
/// no flag against the signal.
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;

/// Flags of a call that does not block. On Linux, child processes do not inherit the received descriptor; other systems
/// have no flag for this, so `receive_descriptor` sets it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const RECEIVE: RecvFlags = RecvFlags::DONTWAIT.union(RecvFlags::CMSG_CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const RECEIVE: RecvFlags = RecvFlags::DONTWAIT;

/// Sends a descriptor with one byte.
pub(crate) fn send_descriptor(
    socket: BorrowedFd<'_>,
    descriptor: BorrowedFd<'_>,
    deadline: Instant,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    // The space is large enough for one message, so `push` cannot fail.
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    loop {
        match sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SEND) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                wait(&mut [PollFd::from_borrowed_fd(socket, PollFlags::OUT)], deadline)?;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// Receives one byte and the descriptor with it, if there is one. Further descriptors are closed.
pub(crate) fn receive_descriptor(socket: BorrowedFd<'_>, deadline: Instant) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    loop {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = match recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut control, RECEIVE) {
            Ok(received) => received,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => {
                wait(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], deadline)?;
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        if received.bytes == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let descriptors = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        // Dropping the buffer closes the other descriptors.
        let first = descriptors.flatten().next();
        if first.is_none() && received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::Error::other("a descriptor was sent, but this process has no free one"));
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        if let Some(descriptor) = &first {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
        }
        return Ok(first);
    }
}
