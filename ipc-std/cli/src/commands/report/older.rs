//! The older trace that a trace is compared with.
use std::path::Path;

use nettrace_analysis::samples::{Clock, Samples};

use crate::input::trace_file;
use crate::process::trace_target::TraceTarget;
use crate::recording::sample_gaps;
use crate::run::{Failure, Globals};

/// Reads the samples of an older trace, before a process is recorded. Fails if they show nothing by the clock.
pub(super) fn read(
    file: &Path,
    samples: Samples,
    clock: &Clock,
    globals: &Globals,
) -> Result<Samples, Failure> {
    let mut samples = trace_file::analyse(file, samples, globals)?;
    let clock = samples.shown_clock(clock.clone());
    if samples.weights(&clock).any(|(_, _, weight)| weight.total() > 0) {
        return Ok(samples);
    }
    Err(sample_gaps::nothing(&mut samples, &clock, TraceTarget::File(file)))
}
