//! Why a process or a socket cannot be used.
mod denied;
mod kind;
mod reason;
mod search_error;

pub use denied::Denied;
pub use kind::ErrorKind;
pub use reason::{Obstacle, Reason, Signs};
pub use search_error::SearchError;
