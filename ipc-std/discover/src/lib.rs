#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
// Elsewhere, as in a browser, only the parts remain that `ipc-async` shares.
#![cfg_attr(not(any(unix, windows)), allow(dead_code, unused_imports))]

#[cfg(any(unix, windows))]
mod candidate;
mod deadline;
#[cfg(any(unix, windows))]
mod directory;
#[cfg(unix)]
mod endpoint_name;
mod error;
#[cfg(any(unix, windows))]
pub mod process;
#[cfg(unix)]
mod procfs;
#[cfg(any(unix, windows))]
mod refusal;
#[cfg(any(unix, windows))]
mod scan;
#[cfg(any(unix, windows))]
mod search;
#[cfg(any(unix, windows))]
mod socket_file;
pub mod sys;
#[cfg(any(unix, windows))]
mod system;
#[cfg(any(unix, windows))]
mod target;

#[cfg(any(unix, windows))]
pub use candidate::Candidate;
pub use deadline::Deadline;
#[cfg(any(unix, windows))]
pub use directory::directory;
pub use error::{Denied, ErrorKind, Obstacle, Reason, SearchError, Signs};
pub use ipc_proto::plan::Flavour;
#[cfg(any(unix, windows))]
pub use refusal::refusal;
#[cfg(any(unix, windows))]
pub use scan::{Scan, ScanConfig};
#[cfg(any(unix, windows))]
pub use search::{Search, SearchStep, SearchSubject};
pub use sys::Credentials;
#[cfg(unix)]
pub use system::{Stale, stale};
#[cfg(any(unix, windows))]
pub use system::{scan, search};
#[cfg(any(unix, windows))]
pub use target::Target;

/// Parsers of the files in `/proc`, for the fuzz targets of the repository. They are not part of the API.
#[cfg(unix)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::procfs::{Environ, Mounts, Status};
    pub use crate::sys::unix::stat::start_and_end;
}
