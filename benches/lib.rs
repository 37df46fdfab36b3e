//! The operations that the benchmarks measure. The files of the benchmarks have only the measurements.
pub mod messages;
pub mod reverse;
pub mod traces;
