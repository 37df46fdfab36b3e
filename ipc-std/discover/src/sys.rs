//! What the search and `ipc-std` need of the operating system and the standard library does not offer: processes, names
//! of sockets, and whether a process listens. The functions have the same names on every system.
mod credentials;
#[cfg(unix)]
pub(crate) mod unix;
#[cfg(windows)]
mod windows;

pub use credentials::Credentials;
/// An argument of [`wait`].
#[cfg(unix)]
pub use rustix::event::PollFd;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(unix)]
pub use unix::{
    HANG_UP_TIMEOUT, LONGEST_PATH, Pinned, absolute, command_line, connect, credentials, endpoint, is_dead,
    is_refused, is_socket, is_too_long, own_user, owner, port_address, process_exists, process_has_ended,
    remaining, unix_socket, wait,
};
#[cfg(windows)]
pub use windows::{
    Address, LONGEST_PATH, PREFIX, Pinned, absolute, command_line, credentials, endpoint, is_refused,
    is_socket, is_too_long, port_address, process_exists, process_has_ended,
};
