#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod candidate;
mod deadline;
mod directory;
#[cfg(unix)]
mod endpoint_name;
mod error;
pub mod process;
#[cfg(unix)]
mod procfs;
mod refusal;
mod scan;
mod search;
mod socket_file;
pub mod sys;
mod system;
mod target;

pub use candidate::Candidate;
pub use deadline::Deadline;
pub use directory::directory;
pub use error::{Denied, ErrorKind, Reason, SearchError, Signs};
pub use ipc_proto::plan::Flavour;
pub use refusal::refusal;
pub use scan::{Scan, ScanConfig};
pub use search::{Search, SearchStep, SearchSubject};
pub use sys::Credentials;
#[cfg(unix)]
pub use system::{Stale, stale};
pub use system::{scan, search};
pub use target::Target;

/// Parsers of the files in `/proc`, for the fuzz targets of the repository. They are no part of the API.
#[cfg(unix)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::procfs::{Environ, Mounts, Status};
    pub use crate::sys::unix::stat::start_and_end;
}
