//! `Timeline` collects what the threads of a trace do in the order of time. `TimeProfile` is a timeline with the names
//! of its frames, which the formats with time write.
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;

use super::stack_frames::StackFrames;
use crate::StackId;
use crate::names::{FrameId, at_mut};
use crate::samples::{Clock, Interval, SampledThread, Samples, ThreadNumber, Unit};

/// The stacks of the threads of a trace, in the order of time.
///
/// For a clock in nanoseconds, a thread is in a stack for an interval of time. Intervals of one stack that follow each
/// other directly become one. For other clocks, each event is a point in time. If the events of a thread are not in the
/// order of time, the part of an interval that an earlier interval covers is left out, and a point is moved to the time
/// of the point before it.
///
/// # Memory
/// At most [`Timeline::LIMIT`] intervals of 24 bytes. Further ones are left out, and [`dropped`](Self::dropped) counts
/// them: the file then has only the beginning of the trace.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::formats::{TimeProfile, Timeline};
/// use nettrace_analysis::samples::{Clock, Samples};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut samples = Samples::new([Clock::SampledTime]);
/// let mut timeline = Timeline::new(Clock::SampledTime);
/// while let AssemblerStep::Event(event) = assembler.step() {
///     samples.event_with(&event, &mut |clock, interval| timeline.add(clock, interval));
/// }
/// let mut file = String::new();
/// TimeProfile::new(&mut samples, timeline).write_speedscope("app.nettrace", &mut file)?;
/// assert!(file.contains(r#""type":"evented","name":"Thread ("#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Timeline {
    clock: Clock,
    /// The entries in the order in which they were added. The entries of one thread are in the order of time.
    entries: Vec<TimelineEntry>,
    /// The place of the last entry of each thread.
    last: Vec<Option<u32>>,
    dropped: u64,
}

// An entry stores the number of its thread in 16 bits.
const _: () = assert!(Samples::THREADS <= 1 << 16);

#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineEntry {
    /// The start in nanoseconds from the start of the trace.
    pub(super) start: u64,
    /// The duration of an interval in nanoseconds, or the weight of a point.
    pub(super) amount: u64,
    pub(super) stack: StackId,
    thread: u16,
    pub(super) runs: bool,
    /// Whether it is an AllocationTick.
    is_tick: bool,
}

impl TimelineEntry {
    /// Returns the end of an interval.
    pub(super) const fn end(&self) -> u64 {
        self.start.saturating_add(self.amount)
    }
}

impl Timeline {
    /// The number of intervals that are stored at most. Viewers do not open files with more intervals.
    pub const LIMIT: usize = 1 << 20;

    /// Creates a timeline of a clock.
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self { clock, entries: Vec::new(), last: Vec::new(), dropped: 0 }
    }

    /// Adds an interval that [`Samples::event_with`] passes. An interval of another clock is ignored.
    pub fn add(&mut self, clock: &Clock, interval: &Interval) {
        let Ok(thread) = u16::try_from(interval.thread.number()) else { return };
        if *clock != self.clock {
            return;
        }
        let runs = interval.weight.running > 0;
        let (start, amount) = (u64::try_from(interval.start).unwrap_or_default(), interval.weight.total());
        let Interval { stack, is_tick, .. } = *interval;
        let mut entry = TimelineEntry { start, amount, stack, thread, runs, is_tick };
        let (place, is_time) = (usize::from(thread), self.is_time());
        let last = self.last.get(place).copied().flatten();
        if let Some(last) = last.and_then(|last| at_mut(&mut self.entries, last)) {
            let earliest = if is_time { last.end() } else { last.start };
            entry.start = entry.start.max(earliest);
            if is_time {
                entry.amount = start.saturating_add(amount).saturating_sub(entry.start);
                let is_same = (last.stack, last.runs, last.end()) == (entry.stack, entry.runs, entry.start);
                if is_same {
                    last.amount = last.amount.saturating_add(entry.amount);
                    return;
                }
            }
        }
        if entry.amount == 0 {
            return;
        }
        if self.entries.len() >= Self::LIMIT {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        if self.last.len() <= place {
            self.last.resize(place.saturating_add(1), None);
        }
        if let Some(last) = self.last.get_mut(place) {
            *last = Some(to_u32(self.entries.len()));
        }
        self.entries.push(entry);
    }

    /// Returns how many intervals were left out because there was no room.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    const fn is_time(&self) -> bool {
        matches!(self.clock.unit(), Unit::Nanoseconds)
    }
}

/// The content of a file in the order of time: the stacks of each thread one after another. An example is at
/// [`Timeline`].
///
/// Of a stack, a file has the innermost 256 frames, as the file of a [`Profile`](super::Profile) does.
///
/// With [`Clock::SampledTime`], the times are those of a file of `dotnet-trace convert`. As in such a file, the
/// innermost frame states what the thread did, for that clock and for [`Clock::ThreadTime`]: `CPU_TIME` if it ran,
/// `UNMANAGED_CODE_TIME` if it waited or ran native code.
#[derive(Debug)]
pub struct TimeProfile<'s> {
    pub(super) stacks: StackFrames<'s>,
    pub(super) clock: Clock,
    /// Sorted by thread.
    entries: Vec<TimelineEntry>,
    /// The innermost frame while a thread does not run, and the innermost frame while it runs.
    states: Option<[FrameId; 2]>,
}

/// A change of the calls of a thread at one time.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallChange {
    /// A frame is called.
    Open(FrameId),
    /// The innermost frame returns.
    Close(FrameId),
}

impl<'s> TimeProfile<'s> {
    /// Creates a profile of a timeline, whose intervals come from `samples`.
    #[must_use]
    pub fn new(samples: &'s mut Samples, timeline: Timeline) -> Self {
        let Timeline { clock, mut entries, .. } = timeline;
        entries.retain(|entry| !entry.is_tick || samples.counts_ticks(ThreadNumber::of(entry.thread)));
        if let (Clock::Cpu, Some(mut waiting)) = (&clock, samples.waiting()) {
            entries.retain(|entry| !waiting.has(entry.stack));
        }
        entries.sort_by_key(|entry| entry.thread);
        let states = matches!(clock, Clock::ThreadTime | Clock::SampledTime).then(|| {
            let names = samples.names_and_stacks().0;
            ["UNMANAGED_CODE_TIME", "CPU_TIME"].map(|text| {
                let label = names.label(text);
                names.frame(label)
            })
        });
        Self { stacks: StackFrames::new(samples), clock, entries, states }
    }

    /// Returns each thread with its intervals or points, in the order of time.
    pub(super) fn threads(&self) -> impl Iterator<Item = (&SampledThread, &[TimelineEntry])> {
        let threads = self.stacks.samples.threads();
        self.entries.chunk_by(|a, b| a.thread == b.thread).filter_map(|entries| {
            let thread = entries.first()?.thread;
            Some((threads.get(usize::from(thread))?, entries))
        })
    }

    /// Returns each thread with its intervals, in the order of time; none if the clock has points.
    pub(super) fn intervals(&self) -> impl Iterator<Item = (&SampledThread, &[TimelineEntry])> {
        self.threads().filter(|_| self.clock.unit() == Unit::Nanoseconds)
    }

    /// Puts the frames of an interval into `path`, the outermost first.
    pub(super) fn path(&self, entry: &TimelineEntry, path: &mut Vec<FrameId>) {
        self.stacks.path(entry.stack, path);
        path.reverse();
        path.extend(self.states.map(|[waits, runs]| if entry.runs { runs } else { waits }));
    }

    /// Calls `each` with the time in nanoseconds at which a frame of a thread is called or returns. Times do not
    /// decrease, and calls are nested.
    pub(super) fn changes<E>(
        &self,
        entries: &[TimelineEntry],
        mut each: impl FnMut(u64, CallChange) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut open, mut path) = (Vec::new(), Vec::new());
        let mut end = 0;
        for entry in entries {
            self.path(entry, &mut path);
            let continues = entry.start == end;
            let common = open.iter().zip(&path).take_while(|(open, next)| continues && open == next).count();
            while open.len() > common {
                open.pop().map_or(Ok(()), |frame| each(end, CallChange::Close(frame)))?;
            }
            for frame in path.iter().skip(common) {
                open.push(*frame);
                each(entry.start, CallChange::Open(*frame))?;
            }
            end = entry.end();
        }
        while let Some(frame) = open.pop() {
            each(end, CallChange::Close(frame))?;
        }
        Ok(())
    }
}
