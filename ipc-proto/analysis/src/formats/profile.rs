//! The stacks of each thread with their weights, which all formats without time write.
use alloc::vec::Vec;

use super::stack_frames::StackFrames;
use crate::StackId;
use crate::samples::{Clock, SampledThread, Samples, ThreadNumber, Unit, Weight};

/// The content of a file: the stacks of each thread, with their weights by a clock.
///
/// Of a stack, a file has the innermost 256 frames. Runtimes record 100 at most. So the length of a file is
/// proportional to the length of the trace, whatever the trace contains.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::formats::Profile;
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::samples::{Clock, Samples};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Stream, ReadOptions::default());
/// let mut samples = Samples::new([Clock::Wall]);
/// while let AssemblerStep::Event(event) = assembler.step() {
///     samples.event(&event);
/// }
/// let profile = Profile::new(&mut samples, &Clock::Wall, |_, weight| weight.total());
/// let mut file = String::new();
/// profile.write_speedscope("app.nettrace", &mut file)?;
/// assert!(file.contains(r#""type":"sampled","name":"Thread ("#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Profile<'s> {
    pub(super) stacks: StackFrames<'s>,
    pub(super) unit: Unit,
    /// Sorted by thread.
    rows: Vec<(ThreadNumber, StackId, u64)>,
}

impl<'s> Profile<'s> {
    /// Creates a profile. `weigh` returns how much of a weight of a thread counts: all of it, only the part in which
    /// the thread ran, or 0 for threads that are left out.
    #[must_use]
    pub fn new(
        samples: &'s mut Samples,
        clock: &Clock,
        mut weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> Self {
        let stacks = StackFrames::new(samples);
        let weigh = |(thread, stack, weight)| (thread, stack, weigh(thread, weight));
        let rows = stacks.samples.weights(clock).map(weigh);
        let mut rows: Vec<_> = rows.filter(|(_, _, weight)| *weight > 0).collect();
        rows.sort_unstable_by_key(|(thread, stack, _)| (*thread, *stack));
        Self { stacks, unit: clock.unit(), rows }
    }

    /// Returns each thread that has stacks, with its stacks and what they weigh.
    pub(super) fn threads(&self) -> impl Iterator<Item = (&SampledThread, &[(ThreadNumber, StackId, u64)])> {
        let threads = self.stacks.samples.threads();
        self.rows.chunk_by(|(a, _, _), (b, _, _)| a == b).filter_map(|rows| {
            let (thread, _, _) = rows.first()?;
            Some((threads.get(thread.number())?, rows))
        })
    }
}
