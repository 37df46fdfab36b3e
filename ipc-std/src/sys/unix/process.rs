//! What the operating system tells of other processes, and of who is at the other end of a socket.
use std::os::unix::net::UnixStream;

use rustix::io::Errno;

use crate::Credentials;

/// A process as the system's table of processes has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    /// When it started, in what its socket's name says of it: clock ticks since boot on Linux, elsewhere seconds since
    /// 1970.
    pub(crate) started: u64,
    /// Whether it has ended, and nobody has asked yet how.
    pub(crate) has_ended: bool,
    /// Whose it is, where that is told with the rest.
    pub(crate) user_id: Option<u32>,
}

/// Whether there is a process with this id, ours or not.
pub(crate) fn process_exists(process_id: u32) -> bool {
    let pid = i32::try_from(process_id).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Whether the process has ended, even if nobody has asked yet how.
pub(crate) fn process_has_ended(process_id: u32) -> bool {
    process_entry(process_id).is_some_and(|entry| entry.has_ended) || !process_exists(process_id)
}

/// When a process started, in what its socket's name says of it; 0 if unknown.
pub(crate) fn disambiguation_key(process_id: u32) -> u64 {
    process_entry(process_id).map_or(0, |entry| entry.started)
}

/// Our own user, as it counts for permissions.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "other systems have a call for it")
)]
impl ProcessEntry {
    /// What `/proc/PID/stat` says.
    pub(crate) fn from_stat(stat: &[u8]) -> Option<Self> {
        /// Field 22, counted from behind the program's name, which is field 2 and may hold anything.
        const START_TIME: usize = 22 - 3;
        let behind_name = stat.iter().rposition(|byte| *byte == b')')?.checked_add(1)?;
        let mut fields = core::str::from_utf8(stat.get(behind_name..)?).ok()?.split_ascii_whitespace();
        let state = fields.clone().next()?;
        let started = fields.nth(START_TIME)?.parse().ok()?;
        Some(Self { started, has_ended: matches!(state, "Z" | "X"), user_id: None })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn process_entry(process_id: u32) -> Option<ProcessEntry> {
    ProcessEntry::from_stat(&std::fs::read(format!("/proc/{process_id}/stat")).ok()?)
}

/// The seconds since 1970 of a moment that [`ProcessEntry::started`] names, roughly.
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
    /// `SZOMB`
    const ENDED: u32 = 5;
    let pid = i32::try_from(process_id).ok()?;
    let size = size_of::<libc::proc_bsdinfo>();
    let mut info = core::mem::MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let (place, length) = (info.as_mut_ptr().cast(), i32::try_from(size).ok()?);
    // SAFETY: at most `length` bytes are written, which is how many `info` has.
    let written = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, place, length) };
    if written != length {
        return None;
    }
    // SAFETY: all of it was written, and any bits are good in it.
    let info = unsafe { info.assume_init() };
    Some(ProcessEntry {
        started: info.pbi_start_tvsec,
        has_ended: info.pbi_status == ENDED,
        user_id: Some(info.pbi_uid),
    })
}

#[cfg(target_os = "freebsd")]
pub(crate) fn process_entry(process_id: u32) -> Option<ProcessEntry> {
    /// `SZOMB`
    const ENDED: core::ffi::c_char = 5;
    let pid = i32::try_from(process_id).ok()?;
    let info: libc::kinfo_proc = sysctl(&[libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid])?;
    let started = u64::try_from(info.ki_start.tv_sec).ok()?;
    Some(ProcessEntry { started, has_ended: info.ki_stat == ENDED, user_id: Some(info.ki_uid) })
}

#[cfg(target_os = "netbsd")]
pub(crate) fn process_entry(process_id: u32) -> Option<ProcessEntry> {
    /// `SZOMB`
    const ENDED: i8 = 5;
    let pid = i32::try_from(process_id).ok()?;
    let size = i32::try_from(size_of::<libc::kinfo_proc2>()).ok()?;
    let info: libc::kinfo_proc2 =
        sysctl(&[libc::CTL_KERN, libc::KERN_PROC2, libc::KERN_PROC_PID, pid, size, 1])?;
    let started = u64::from(info.p_ustart_sec);
    Some(ProcessEntry { started, has_ended: info.p_stat == ENDED, user_id: Some(info.p_uid) })
}

/// Reads one structure of the kernel's, which has nothing but numbers in it; `None` if there is none of this size.
#[cfg(any(target_os = "freebsd", target_os = "netbsd"))]
#[allow(unsafe_code, reason = "sysctl is C")]
fn sysctl<T>(name: &[i32]) -> Option<T> {
    let mut info = core::mem::MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>();
    let names = name.len().try_into().ok()?;
    // SAFETY: at most `length` bytes are written, which is how many `info` has; nothing is set.
    let failed = unsafe {
        libc::sysctl(
            name.as_ptr(),
            names,
            info.as_mut_ptr().cast(),
            &raw mut length,
            core::ptr::null_mut(),
            0,
        )
    };
    // SAFETY: the kernel has written all of a structure of this size, and any bits are good in its numbers.
    (failed == 0 && length == size_of::<T>()).then(|| unsafe { info.assume_init() })
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

/// Who is at the other end of a socket, if the system tells: of one that we connected, who listened.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn credentials(socket: &UnixStream) -> Option<Credentials> {
    // The system's own answer for a process that is not seen from here is 0, which is no process id.
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    let process_id = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0);
    Some(Credentials { process_id, user_id: peer.uid.as_raw(), group_id: peer.gid.as_raw() })
}
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd"))]
#[allow(unsafe_code, reason = "getpeereid is C")]
pub(super) fn credentials(socket: &UnixStream) -> Option<Credentials> {
    use std::os::fd::AsRawFd;
    let (mut user_id, mut group_id) = (0, 0);
    // SAFETY: the two are there for it to write to, and the descriptor is open.
    let failed = unsafe { libc::getpeereid(socket.as_raw_fd(), &raw mut user_id, &raw mut group_id) };
    (failed == 0).then(|| Credentials { process_id: peer_process(socket).unwrap_or(0), user_id, group_id })
}
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd"
)))]
pub(super) const fn credentials(_: &UnixStream) -> Option<Credentials> {
    None
}

#[cfg(target_vendor = "apple")]
fn peer_process(socket: &UnixStream) -> Option<u32> {
    let pid: libc::pid_t = local_option(socket, libc::LOCAL_PEERPID)?;
    u32::try_from(pid).ok()
}
#[cfg(target_os = "netbsd")]
fn peer_process(socket: &UnixStream) -> Option<u32> {
    let peer: libc::unpcbid = local_option(socket, libc::LOCAL_PEEREID)?;
    u32::try_from(peer.unp_pid).ok()
}
/// FreeBSD tells it since version 13 only, in a place that had no meaning before.
#[cfg(target_os = "freebsd")]
const fn peer_process(_: &UnixStream) -> Option<u32> {
    None
}

/// An option of a Unix socket, which has nothing but numbers in it.
#[cfg(any(target_vendor = "apple", target_os = "netbsd"))]
#[allow(unsafe_code, reason = "getsockopt is C")]
fn local_option<T>(socket: &UnixStream, option: i32) -> Option<T> {
    use std::os::fd::AsRawFd;
    /// The level of options of Unix sockets, on both systems.
    const SOL_LOCAL: i32 = 0;
    let mut value = core::mem::MaybeUninit::<T>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<T>()).ok()?;
    let (fd, place) = (socket.as_raw_fd(), value.as_mut_ptr().cast());
    // SAFETY: at most `length` bytes are written, which is how many `value` has.
    let failed = unsafe { libc::getsockopt(fd, SOL_LOCAL, option, place, &raw mut length) };
    // SAFETY: it is zero or what the kernel has written, and any bits are good in its numbers.
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
}
