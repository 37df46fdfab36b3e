//! Files that other tools show.
//!
//! | writer | format | opened by |
//! |---|---|---|
//! | [`CallTree::write_folded`](crate::call_tree::CallTree::write_folded) | folded stacks | flamegraph.pl, inferno, speedscope |
//! | [`Profile::write_speedscope`] | speedscope's JSON, a profile for each thread | <https://www.speedscope.app> |
//! | `Profile::write_pprof`, with the feature `pprof` | profile.proto | `pprof`, Pyroscope, Grafana |
#[cfg(feature = "pprof")]
mod pprof;
mod profile;
mod speedscope;

pub use profile::Profile;
