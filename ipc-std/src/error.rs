//! The error of every call of this package.
mod context;
mod error;
mod phase;

pub use context::CallContext;
pub use error::Error;
pub use phase::Phase;
