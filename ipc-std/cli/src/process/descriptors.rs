//! The limit of open files: each process that a command follows needs some.
#[cfg(unix)]
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit. Processes that start later inherit it, so a command that
/// starts another one calls this function after that.
pub(crate) fn raise_limit() {
    #[cfg(unix)]
    {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // A failure leaves the old limit.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Returns the soft limit of open files.
#[cfg(unix)]
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns how many sessions can be open at once. A session needs one descriptor, and one more while it is stopped. The
/// reserve is for those, and for the files of the tool.
pub(crate) fn max_sessions() -> u64 {
    #[cfg(unix)]
    {
        const RESERVE: u64 = 48;
        let limit = limit();
        limit.saturating_sub(RESERVE.min(limit / 2))
    }
    #[cfg(windows)]
    u64::MAX
}
