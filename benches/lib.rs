//! What the benchmarks do, apart from how it is measured.
pub mod messages;
pub mod reverse;
pub mod traces;
