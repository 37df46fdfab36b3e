//! Samples of counters: where they come from, and how they are shown.
pub(crate) mod condition;
mod descriptions;
mod distribution;
pub(crate) mod feed;
pub(crate) mod lines;
pub(crate) mod otlp;
pub(crate) mod output;
pub(crate) mod prometheus;
pub(crate) mod table;
pub(crate) mod units;
