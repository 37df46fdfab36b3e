use alloc::vec::Vec;

use crate::names::{FrameId, Names};
use crate::place::at;
use crate::samples::{Clock, SampledThread, Samples, ThreadNumber, Unit, Weight};
use crate::{StackId, Stacks};

/// What a file shows: the stacks of each thread, with what they weigh by a clock.
///
/// Of a stack, a file has the innermost 1,024 frames. Runtimes record 100 at most. So the length of a file is proportional
/// to that of the trace, whatever it contains.
///
/// ```
/// use ipc_proto::nettrace::{EventAssembler, Limits, Progress};
/// use nettrace_analysis::formats::Profile;
/// use nettrace_analysis::samples::{Clock, Samples};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::new(Limits::default());
/// assembler.push(&bytes);
/// let mut samples = Samples::new([Clock::Wall]);
/// while let Progress::Event = assembler.advance() {
///     let Some(event) = assembler.event() else { break };
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
    samples: &'s Samples,
    pub(super) unit: Unit,
    /// The innermost frame of each stack but the empty one.
    frames: Vec<FrameId>,
    /// Sorted by thread.
    rows: Vec<(ThreadNumber, StackId, u64)>,
}

/// The number of frames of a stack that are written.
const MAX_DEPTH: usize = 1_024;

impl<'s> Profile<'s> {
    /// Creates a profile. `weigh` returns how much of a weight of a thread counts: all of it, only the part in which the
    /// thread ran, or 0 for threads that are left out.
    #[must_use]
    pub fn new(
        samples: &'s mut Samples,
        clock: &Clock,
        mut weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> Self {
        let (names, stacks) = samples.names_and_stacks();
        let frames = stacks.iter().map(|(_, address)| names.frame(address)).collect();
        let weights =
            samples.weights(clock).map(|(thread, stack, weight)| (thread, stack, weigh(thread, weight)));
        let mut rows: Vec<_> = weights.filter(|(_, _, weight)| *weight > 0).collect();
        rows.sort_unstable_by_key(|(thread, stack, _)| (*thread, *stack));
        Self { samples, unit: clock.unit(), frames, rows }
    }

    /// Returns each thread that has stacks, with its stacks and what they weigh.
    pub(super) fn threads(&self) -> impl Iterator<Item = (&SampledThread, &[(ThreadNumber, StackId, u64)])> {
        let threads = self.samples.threads();
        self.rows.chunk_by(|(a, _, _), (b, _, _)| a == b).filter_map(|rows| {
            let (thread, _, _) = rows.first()?;
            Some((threads.get(thread.number())?, rows))
        })
    }

    /// Puts the frames of a stack into `path`, the innermost first.
    pub(super) fn path(&self, stack: StackId, path: &mut Vec<FrameId>) {
        path.clear();
        let stacks: &Stacks = self.samples.stacks();
        let mut stack = stack;
        while stack != StackId::EMPTY && path.len() < MAX_DEPTH {
            let frame = stack.0.checked_sub(1).and_then(|place| at(&self.frames, place));
            path.push(frame.copied().unwrap_or(FrameId::UNKNOWN));
            stack = stacks.caller(stack);
        }
    }

    pub(super) const fn names(&self) -> &Names {
        self.samples.names()
    }
}
