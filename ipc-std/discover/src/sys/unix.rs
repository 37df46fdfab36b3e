//! The Unix part of `sys`.
mod address;
mod command_line;
mod connect;
mod liveness;
mod path;
mod process;
pub(crate) mod stat;
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd"))]
mod sysctl;
mod wait;

pub(crate) use address::open_directory;
pub use address::{LONGEST_PATH, Pinned, is_too_long};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use address::{Links, is_local, open_directory_in, open_place};
pub use command_line::command_line;
pub use connect::{connect, unix_socket};
pub use liveness::{HANG_UP_TIMEOUT, is_dead, is_refused, is_socket};
pub use path::{absolute, endpoint, owner, port_address};
pub(crate) use process::{ProcessEntry, process_entry, seconds_of};
pub use process::{credentials, own_user, process_exists, process_has_ended};
pub use wait::{remaining, wait};
