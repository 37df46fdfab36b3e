//! The Unix part of `sys`: sockets, polling and properties of processes.
mod address;
mod command_line;
mod descriptor;
mod flag;
mod hub;
mod listener;
mod liveness;
mod path;
mod poller;
mod process;
mod shortage;
mod socket;
mod sources;
pub(crate) mod stat;
mod wait;

pub(crate) use address::{LONGEST_PATH, Pinned, is_too_long, open_directory};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use address::{Links, is_local, open_directory_in, open_place};
pub(crate) use command_line::command_line;
pub(crate) use descriptor::{receive_descriptor, send_descriptor};
pub(crate) use flag::Flag;
pub(crate) use hub::Hub;
pub(crate) use listener::Listener;
pub(crate) use liveness::{HANG_UP_TIMEOUT, is_dead, is_refused};
pub(crate) use path::{absolute, endpoint, owner, port_address};
pub(crate) use poller::Poller;
pub(crate) use process::{
    ProcessEntry, own_user, process_entry, process_exists, process_has_ended, seconds_of,
};
pub use shortage::is_shortage;
pub(crate) use socket::{Address, Socket};
pub(crate) use sources::{Alarm, Sources};
