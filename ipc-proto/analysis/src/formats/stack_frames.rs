//! The frames of all stacks that a format writes.
use alloc::vec::Vec;

use crate::StackId;
use crate::names::{FrameId, Names, at};
use crate::samples::{Clock, SampledThread, Samples, ThreadNumber, Unit, Weight};

/// The frames of all stacks, as far as they are named now.
#[derive(Debug)]
pub(super) struct StackFrames<'s> {
    pub(super) samples: &'s Samples,
    /// The innermost frame of each stack but the empty one.
    frames: Vec<FrameId>,
    no_frame: FrameId,
}

/// The most frames of a stack that are written: the innermost ones.
const MAX_DEPTH: usize = 256;

impl<'s> StackFrames<'s> {
    pub(super) fn new(samples: &'s mut Samples) -> Self {
        let (names, stacks) = samples.names_and_stacks();
        let no_frame = names.no_frame();
        let frames = stacks.iter().map(|(_, address)| names.frame(address)).collect();
        Self { samples, frames, no_frame }
    }

    /// Puts the frames of a stack into `path`, the innermost first.
    pub(super) fn path(&self, stack: StackId, path: &mut Vec<FrameId>) {
        path.clear();
        let stacks = self.samples.stacks();
        let mut stack = stack;
        while stack != StackId::EMPTY && path.len() < MAX_DEPTH {
            let frame = stack.0.checked_sub(1).and_then(|place| at(&self.frames, place));
            path.push(frame.copied().unwrap_or(FrameId::UNKNOWN));
            stack = stacks.caller(stack);
        }
        if path.is_empty() {
            path.push(self.no_frame);
        }
    }

    /// Returns the name of a process, or else that of the trace.
    pub(super) fn process_name<'n>(&'n self, process: u64, trace: &'n str) -> &'n str {
        self.samples.process_name(process).unwrap_or(trace)
    }

    /// Returns the name of the process, or else that of the trace if the threads belong to several processes.
    pub(super) fn title<'n>(&'n self, trace: &'n str) -> &'n str {
        let first = self.samples.threads().first();
        let process = first.map(|thread| thread.process).filter(|_| !self.has_several_processes());
        process.map_or(trace, |process| self.process_name(process, trace))
    }

    /// Returns whether the threads belong to several processes.
    pub(super) fn has_several_processes(&self) -> bool {
        let mut processes = self.samples.threads().iter().map(|thread| thread.process);
        let first = processes.next();
        processes.any(|process| Some(process) != first)
    }

    pub(super) const fn names(&self) -> &Names {
        self.samples.names()
    }
}

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
