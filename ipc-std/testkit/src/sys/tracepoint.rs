//! Tracepoints of `user_events`: their registration with the kernel, and writing to them.
#[cfg(any(target_os = "linux", target_os = "android"))]
use core::sync::atomic::{AtomicU32, Ordering};
use std::io::{self, IoSlice};
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;

#[cfg(any(target_os = "linux", target_os = "android"))]
use ipc_proto::types::TracepointFormat;
#[cfg(any(target_os = "linux", target_os = "android"))]
use nettrace::user_events::{UserReg, UserUnreg};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, writev};

/// A registered tracepoint. Dropping it ends the registration.
#[derive(Debug)]
pub(crate) struct Tracepoint {
    data: Arc<OwnedFd>,
    write_index: u32,
    /// The registration with the kernel; `None` for a descriptor of another file.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    registration: Option<Registration>,
}

impl Tracepoint {
    /// Registers a tracepoint through the descriptor of `user_events_data`. For any other file nothing is registered:
    /// the tracepoint has the write index `index`, and is always enabled.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn register(data: Arc<OwnedFd>, format: &TracepointFormat, index: u32) -> io::Result<Self> {
        match Registration::new(&data, format) {
            Ok((registration, write_index)) => {
                Ok(Self { data, write_index, registration: Some(registration) })
            }
            // Any other file has no ioctl of this number. Records are written to it without a registration.
            Err(Errno::NOTTY) => Ok(Self { data, write_index: index, registration: None }),
            Err(e) => Err(e.into()),
        }
    }
    /// Returns a tracepoint that writes to any file. Only Linux has `user_events`.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn register(
        data: Arc<OwnedFd>,
        _: &ipc_proto::types::TracepointFormat,
        index: u32,
    ) -> io::Result<Self> {
        Ok(Self { data, write_index: index })
    }

    /// Returns the number with which each record begins.
    pub(crate) const fn write_index(&self) -> u32 {
        self.write_index
    }

    /// Returns whether a consumer listens.
    pub(crate) fn is_enabled(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(registration) = &self.registration {
            return registration.enabled.load(Ordering::Relaxed) != 0;
        }
        true
    }

    /// Writes a record in pieces. Fails with `WouldBlock` if the file accepts no bytes now.
    pub(crate) fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.data, PollFlags::OUT)];
        if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        loop {
            match writev(&self.data, pieces) {
                Err(Errno::INTR) => {}
                result => return Ok(result.map(drop)?),
            }
        }
    }
}

/// A registration with the kernel, which sets the bit in `enabled` while a consumer listens.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug)]
struct Registration {
    data: Arc<OwnedFd>,
    argument: UserUnreg,
    enabled: Box<AtomicU32>,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Registration {
    /// Registers a tracepoint, and returns the write index.
    fn new(data: &Arc<OwnedFd>, format: &TracepointFormat) -> Result<(Self, u32), Errno> {
        let enabled = Box::new(AtomicU32::new(0));
        let address = |pointer: usize| u64::try_from(pointer).unwrap_or_default();
        let (bit, name) =
            (enabled.as_ptr().expose_provenance(), format.as_c_str().as_ptr().expose_provenance());
        let registration = UserReg::new(address(bit), address(name));
        let mut argument = registration.to_bytes();
        #[allow(unsafe_code, reason = "an ioctl")]
        // SAFETY: the number is that of DIAG_IOCSREG, and the argument is its structure. The name lives until the call
        // returns, and `enabled` until the registration ends. Files other than user_events_data have no ioctl of this
        // number.
        unsafe {
            let ioctl = rustix::ioctl::Updater::<{ UserReg::IOCTL as _ }, _>::new(&mut argument);
            rustix::ioctl::ioctl(data.as_fd(), ioctl)?;
        }
        let data = Arc::clone(data);
        Ok((Self { data, argument: registration.unreg(), enabled }, UserReg::write_index(&argument)))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Drop for Registration {
    fn drop(&mut self) {
        let mut argument = self.argument.to_bytes();
        #[allow(unsafe_code, reason = "an ioctl")]
        // SAFETY: the number is that of DIAG_IOCSUNREG, and the argument is its structure.
        let unregistered = unsafe {
            let ioctl = rustix::ioctl::Updater::<{ UserUnreg::IOCTL as _ }, _>::new(&mut argument);
            rustix::ioctl::ioctl(self.data.as_fd(), ioctl)
        };
        if unregistered.is_err() {
            // The kernel may still write to the flag, so its memory is never freed.
            core::mem::forget(core::mem::take(&mut self.enabled));
        }
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    /// `nettrace` computes the same numbers of the ioctls as the macros of this system.
    #[test]
    fn numbers_of_the_ioctls() {
        use rustix::ioctl::opcode;
        assert_eq!(UserReg::IOCTL as rustix::ioctl::Opcode, opcode::read_write::<*const u8>(b'*', 0));
        assert_eq!(UserUnreg::IOCTL as rustix::ioctl::Opcode, opcode::write::<*const u8>(b'*', 2));
    }
}
