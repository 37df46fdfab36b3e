//! The error of every call of this package.
mod check;
mod context;
mod error;
mod phase;

pub(crate) use check::check;
pub(crate) use context::Context;
pub use error::Error;
pub use phase::Phase;
