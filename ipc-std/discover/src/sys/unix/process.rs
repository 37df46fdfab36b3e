//! Properties of other processes, as the operating system reports them.
use std::os::unix::net::UnixStream;

#[cfg(any(target_vendor = "apple", target_os = "netbsd"))]
use libc::getsockopt;
use rustix::io::Errno;

#[cfg(any(target_os = "freebsd", target_os = "netbsd"))]
use super::sysctl::sysctl;
use crate::sys::Credentials;

/// An entry of the system's process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    /// The start time in the unit of the socket's name: clock ticks since boot on Linux, elsewhere seconds since 1970.
    pub(crate) started: u64,
    /// Whether the process has ended, and its parent has not read its exit status.
    pub(crate) has_ended: bool,
    /// The user of the process, if the table has it.
    pub(crate) user_id: Option<u32>,
}

/// Returns whether there is a process with this id, of any user.
pub fn process_exists(process_id: u32) -> bool {
    let pid = i32::try_from(process_id).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Returns whether the process has ended, even if its parent has not read its exit status.
pub fn process_has_ended(process_id: u32) -> bool {
    process_entry(process_id).is_some_and(|entry| entry.has_ended) || !process_exists(process_id)
}

/// Returns the start time of a process in the unit of the socket's name; 0 if unknown.
pub(crate) fn disambiguation_key(process_id: u32) -> u64 {
    process_entry(process_id).map_or(0, |entry| entry.started)
}

/// Returns the effective user of this process.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "other systems have a function for it")
)]
impl ProcessEntry {
    /// Parses `/proc/PID/stat`.
    pub(crate) fn from_stat(stat: &[u8]) -> Option<Self> {
        let (started, has_ended) = super::stat::start_and_end(stat)?;
        Some(Self { started, has_ended, user_id: None })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn process_entry(process_id: u32) -> Option<ProcessEntry> {
    ProcessEntry::from_stat(&std::fs::read(format!("/proc/{process_id}/stat")).ok()?)
}

/// Converts [`ProcessEntry::started`] into seconds since 1970. Adjustments of the system clock shift the result.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn seconds_of(started: u64) -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    boot.checked_add(started.checked_div(rustix::param::clock_ticks_per_second())?)
}
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const fn seconds_of(started: u64) -> Option<u64> {
    Some(started)
}

#[cfg(target_vendor = "apple")]
#[allow(unsafe_code, reason = "libproc is C")]
pub(crate) fn process_entry(process_id: u32) -> Option<ProcessEntry> {
    /// `SZOMB`: the state of a process that has ended.
    const ENDED: u32 = 5;
    let pid = i32::try_from(process_id).ok()?;
    let size = size_of::<libc::proc_bsdinfo>();
    let mut info = core::mem::MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let (place, length) = (info.as_mut_ptr().cast(), i32::try_from(size).ok()?);
    // SAFETY: the function writes at most `length` bytes, the size of `info`.
    let written = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, place, length) };
    if written != length {
        return None;
    }
    // SAFETY: all bytes of `info` were written, and every bit pattern is valid.
    let info = unsafe { info.assume_init() };
    Some(ProcessEntry {
        started: info.pbi_start_tvsec,
        has_ended: info.pbi_status == ENDED,
        user_id: Some(info.pbi_uid),
    })
}

#[cfg(target_os = "freebsd")]
pub(crate) fn process_entry(process_id: u32) -> Option<ProcessEntry> {
    /// `SZOMB`: the state of a process that has ended.
    const ENDED: core::ffi::c_char = 5;
    let pid = i32::try_from(process_id).ok()?;
    let info: libc::kinfo_proc =
        kernel_structure(&[libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid])?;
    let started = u64::try_from(info.ki_start.tv_sec).ok()?;
    Some(ProcessEntry { started, has_ended: info.ki_stat == ENDED, user_id: Some(info.ki_uid) })
}

#[cfg(target_os = "netbsd")]
pub(crate) fn process_entry(process_id: u32) -> Option<ProcessEntry> {
    /// `SZOMB`: the state of a process that has ended.
    const ENDED: i8 = 5;
    let pid = i32::try_from(process_id).ok()?;
    let size = i32::try_from(size_of::<libc::kinfo_proc2>()).ok()?;
    let info: libc::kinfo_proc2 =
        kernel_structure(&[libc::CTL_KERN, libc::KERN_PROC2, libc::KERN_PROC_PID, pid, size, 1])?;
    let started = u64::from(info.p_ustart_sec);
    Some(ProcessEntry { started, has_ended: info.p_stat == ENDED, user_id: Some(info.p_uid) })
}

/// Reads a structure of the kernel that contains only numbers; `None` if the kernel's structure has another size.
#[cfg(any(target_os = "freebsd", target_os = "netbsd"))]
#[allow(unsafe_code, reason = "sysctl is C")]
fn kernel_structure<T>(name: &[i32]) -> Option<T> {
    let bytes = sysctl(name, size_of::<T>()).filter(|bytes| bytes.len() == size_of::<T>())?;
    // SAFETY: there are as many bytes as `T` has, and every bit pattern is a valid number.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd"
)))]
pub(crate) const fn process_entry(_: u32) -> Option<ProcessEntry> {
    None
}

/// Returns the process at the other end of a socket, if the system reports it: for a client, the process that listens.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn credentials(socket: &UnixStream) -> Option<Credentials> {
    /// The options' numbers differ between architectures.
    const SOL_SOCKET: i32 = if cfg!(any(
        target_arch = "mips",
        target_arch = "mips32r6",
        target_arch = "mips64",
        target_arch = "mips64r6",
        target_arch = "sparc",
        target_arch = "sparc64"
    )) {
        0xffff
    } else {
        1
    };
    const SO_PEERCRED: i32 = if cfg!(any(target_arch = "powerpc", target_arch = "powerpc64")) {
        21
    } else if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) {
        0x40
    } else if SOL_SOCKET == 0xffff {
        18
    } else {
        17
    };
    // The system reports 0 for a process that is not visible in this PID namespace. The function of rustix cannot
    // return 0, so the option is read here.
    let [process_id, user_id, group_id]: [u32; 3] = option(socket, SOL_SOCKET, SO_PEERCRED)?;
    Some(Credentials { process_id, user_id, group_id })
}
// A function of the C library, which the standard library links. So no dependency is needed.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code, reason = "getsockopt is C")]
unsafe extern "C" {
    fn getsockopt(
        socket: i32,
        level: i32,
        option: i32,
        value: *mut core::ffi::c_void,
        length: *mut u32,
    ) -> i32;
}
/// Returns the process at the other end of a socket, if the system reports it: for a client, the process that listens.
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd"))]
#[allow(unsafe_code, reason = "getpeereid is C")]
pub fn credentials(socket: &UnixStream) -> Option<Credentials> {
    use std::os::fd::AsRawFd;
    let (mut user_id, mut group_id) = (0, 0);
    // SAFETY: both pointers are valid, and the descriptor is open.
    let failed = unsafe { libc::getpeereid(socket.as_raw_fd(), &raw mut user_id, &raw mut group_id) };
    (failed == 0).then(|| Credentials { process_id: peer_process(socket).unwrap_or(0), user_id, group_id })
}
/// Returns the process at the other end of a socket, if the system reports it: for a client, the process that listens.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd"
)))]
pub const fn credentials(_: &UnixStream) -> Option<Credentials> {
    None
}

#[cfg(target_vendor = "apple")]
fn peer_process(socket: &UnixStream) -> Option<u32> {
    let pid: libc::pid_t = option(socket, SOL_LOCAL, libc::LOCAL_PEERPID)?;
    u32::try_from(pid).ok()
}
#[cfg(target_os = "netbsd")]
fn peer_process(socket: &UnixStream) -> Option<u32> {
    let peer: libc::unpcbid = option(socket, SOL_LOCAL, libc::LOCAL_PEEREID)?;
    u32::try_from(peer.unp_pid).ok()
}
/// FreeBSD reports the process id since version 13 only. In older versions the field is padding without a defined
/// value.
#[cfg(target_os = "freebsd")]
const fn peer_process(_: &UnixStream) -> Option<u32> {
    None
}

/// The level of the options of Unix sockets.
#[cfg(any(target_vendor = "apple", target_os = "netbsd"))]
const SOL_LOCAL: i32 = 0;

/// Reads an option of a socket that contains only numbers.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", target_os = "netbsd"))]
#[allow(unsafe_code, reason = "getsockopt is C")]
fn option<T>(socket: &UnixStream, level: i32, option: i32) -> Option<T> {
    use std::os::fd::AsRawFd;
    let mut value = core::mem::MaybeUninit::<T>::zeroed();
    let mut length = u32::try_from(size_of::<T>()).ok()?;
    let (fd, place) = (socket.as_raw_fd(), value.as_mut_ptr().cast());
    // SAFETY: the function writes at most `length` bytes, the size of `value`.
    let failed = unsafe { getsockopt(fd, level, option, place, &raw mut length) };
    // SAFETY: `value` is zero or was written by the kernel, and every bit pattern is a valid number.
    (failed == 0).then(|| unsafe { value.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_any_name() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 8311 20";
        for name in ["sh", "a b", ") Z 1 (", "\u{fffd}"] {
            let stat = format!("42 ({name}) {fields}\n");
            let entry = ProcessEntry { started: 8311, has_ended: false, user_id: None };
            assert_eq!(ProcessEntry::from_stat(stat.as_bytes()), Some(entry), "{stat}");
        }
        let ended = format!("42 (sh) {}", fields.replace('S', "Z"));
        assert!(ProcessEntry::from_stat(ended.as_bytes()).unwrap().has_ended);
        for bad in ["", "42 (sh)", "42 (sh) S 1 2", "42 sh S 1 2 3"] {
            assert_eq!(ProcessEntry::from_stat(bad.as_bytes()), None, "{bad}");
        }
    }

    /// Linux reports process id 0 for the peer of a socket that was never connected, as for an invisible process.
    /// Unlike an invisible process, this peer has no user.
    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn an_invisible_peer_has_process_id_0() {
        use rustix::net::{AddressFamily, SocketType, socket};
        let unconnected = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let invisible = Credentials { process_id: 0, user_id: u32::MAX, group_id: u32::MAX };
        assert_eq!(credentials(&unconnected.into()), Some(invisible));
        let (socket, _peer) = UnixStream::pair().unwrap();
        let own = credentials(&socket).unwrap();
        assert_eq!((own.process_id, own.user_id), (std::process::id(), own_user()));
    }
}
