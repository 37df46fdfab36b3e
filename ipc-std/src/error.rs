//! The error of every call of this package.
mod check;
mod context;
mod denied;
mod error;
mod kind;
mod phase;
mod reason;
mod search_error;

pub(crate) use check::check;
pub(crate) use context::Context;
pub use denied::Denied;
pub use error::Error;
pub use kind::ErrorKind;
pub use phase::Phase;
pub use reason::{Reason, Signs};
pub use search_error::SearchError;
