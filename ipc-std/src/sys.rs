//! Functions of the operating system that the standard library does not offer, with the same names on every system.
mod credentials;
#[cfg(unix)]
pub(crate) mod unix;
#[cfg(windows)]
mod windows;

pub use credentials::Credentials;
#[cfg(unix)]
pub use unix::is_shortage;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub use windows::is_shortage;
#[cfg(windows)]
pub(crate) use windows::*;
