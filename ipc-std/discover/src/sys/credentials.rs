//! The process at the other end of a socket.
use core::fmt;

/// The process at the other end of a socket, as the operating system reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// The process id in the PID namespace of this process; 0 if the process is not visible in it.
    pub process_id: u32,
    /// The user of the process. Windows has no such numbers.
    #[cfg(unix)]
    pub user_id: u32,
    /// The group of the process. Windows has no such numbers.
    #[cfg(unix)]
    pub group_id: u32,
}

/// Writes `process 42 of user 1000`.
impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process_id {
            0 => f.write_str("a process")?,
            process_id => write!(f, "process {process_id}")?,
        }
        #[cfg(unix)]
        write!(f, " of user {}", self.user_id)?;
        Ok(())
    }
}
