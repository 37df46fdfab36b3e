//! Writers of files that other tools show.
//!
//! | writer | format | opened by |
//! |---|---|---|
//! | [`CallTree::write_folded`](crate::call_tree::CallTree::write_folded) | folded stacks | flamegraph.pl, inferno, speedscope |
//! | [`Profile::write_speedscope`] | speedscope's JSON, a sampled profile for each thread | <https://www.speedscope.app> |
//! | [`TimeProfile::write_speedscope`] | speedscope's JSON in the order of time: an evented profile for each thread | <https://www.speedscope.app> |
//! | [`TimeProfile::write_chromium`] | trace events of Chromium | <https://ui.perfetto.dev>, `chrome://tracing`, speedscope |
//! | `Profile::write_pprof`, with the feature `pprof` | profile.proto | `pprof`, Pyroscope, Grafana |
//! | `TimeProfile::to_firefox`, with the feature `firefox` | processed profile | <https://profiler.firefox.com> |
//!
//! Perfetto's own format is not written, because Perfetto's viewer also reads the trace events of Chromium.
mod chromium;
#[cfg(feature = "firefox")]
mod firefox;
mod json;
#[cfg(feature = "pprof")]
mod pprof;
mod small_ids;
mod speedscope;
mod stack_frames;
mod timeline;

pub use stack_frames::Profile;
pub use timeline::{TimeProfile, Timeline};
