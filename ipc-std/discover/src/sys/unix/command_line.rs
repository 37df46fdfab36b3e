//! The command line of a process.
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd"))]
use super::sysctl::sysctl;

/// The largest size of arguments and environment together that these systems allow, in bytes.
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd"))]
const LONGEST: usize = 1 << 20;

/// Returns the arguments with which a process was started, separated by spaces, if the system shows them.
///
/// ```
/// assert!(ipc_discover::sys::command_line(std::process::id()).is_some());
/// ```
pub fn command_line(process_id: u32) -> Option<String> {
    let arguments = arguments(process_id)?;
    let arguments = arguments.strip_suffix(b"\0").unwrap_or(&arguments);
    let text = String::from_utf8_lossy(arguments).replace('\0', " ");
    (!text.is_empty()).then_some(text)
}

/// Returns the arguments, each with a zero at its end.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn arguments(process_id: u32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{process_id}/cmdline")).ok()
}

#[cfg(any(target_os = "freebsd", target_os = "netbsd"))]
fn arguments(process_id: u32) -> Option<Vec<u8>> {
    let pid = i32::try_from(process_id).ok()?;
    #[cfg(target_os = "freebsd")]
    return sysctl(&[libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_ARGS, pid], LONGEST);
    #[cfg(target_os = "netbsd")]
    return sysctl(&[libc::CTL_KERN, libc::KERN_PROC_ARGS, pid, libc::KERN_PROC_ARGV], LONGEST);
}

/// `KERN_PROCARGS2` has the number of arguments, the path of the program, padding zeros, the arguments and the
/// environment.
#[cfg(target_vendor = "apple")]
fn arguments(process_id: u32) -> Option<Vec<u8>> {
    let pid = i32::try_from(process_id).ok()?;
    let bytes = sysctl(&[libc::CTL_KERN, libc::KERN_PROCARGS2, pid], LONGEST)?;
    let (count, rest) = bytes.split_first_chunk()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let mut parts = rest.split_inclusive(|byte| *byte == 0);
    parts.next()?;
    Some(parts.skip_while(|part| **part == *b"\0").take(count).flatten().copied().collect())
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd"
)))]
const fn arguments(_: u32) -> Option<Vec<u8>> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_of_this_process() {
        let arguments: Vec<_> = std::env::args().collect();
        assert_eq!(super::command_line(std::process::id()), Some(arguments.join(" ")));
        assert_eq!(super::command_line(u32::MAX), None);
    }
}
