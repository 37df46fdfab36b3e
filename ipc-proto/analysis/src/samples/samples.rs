//! Weighs the events of a trace by one clock or more.
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use nettrace::TraceEvent;

use super::clock::Clock;
use super::contention::Waits;
use super::cpu_causes::CpuCauses;
use super::idle_waits::{IdleStacks, IdleWaits};
use super::interval::Interval;
use super::interval::Weight;
use super::process_names::ProcessNames;
use super::recording::{Meter, Recording};
use super::seen_event::SeenEvent;
use super::thread_roles::ThreadRoles;
use super::threads::{SampledThread, ThreadNumber, Threads, TraceTables};
use crate::event::EventKinds;
use crate::names::{FrameId, Names, at, process_of};
use crate::stacks::{WaitingStacks, stack_values};
use crate::trace::RecordingEnd;
use crate::{Analysis, KnownProvider, Part, RuntimeEvent, StackId, Stacks};

/// Weighs the events of a trace by one clock or more.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::call_tree::{CallTree, Order};
/// use nettrace_analysis::samples::{Clock, Samples};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut samples = Samples::new([Clock::ThreadTime]);
/// while let AssemblerStep::Event(event) = assembler.step() {
///     samples.event(&event);
/// }
/// let mut samples = samples.finish();
/// let tree = CallTree::new(&mut samples, &Clock::ThreadTime, |_, weight| weight.total());
/// for entry in tree.top(Order::Exclusive).iter().take(2) {
///     println!("{:.2} % {}", tree.share(entry.exclusive), samples.names().text(entry.frame));
/// }
/// # let first = tree.top(Order::Exclusive)[0];
/// # assert!((tree.share(first.exclusive) - 66.67).abs() < 0.01);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Samples {
    /// The events that are weighed. The others can name code and threads.
    part: Part,
    kinds: EventKinds,
    names: Names,
    stacks: Stacks,
    recordings: Vec<Recording>,
    threads: Threads,
    dropped: u64,
    samples: u64,
    /// The samples in managed code.
    managed: u64,
    /// Whether samples of the processor were seen, which show only threads that run.
    has_processor_samples: bool,
    /// The processes that have sampled allocations.
    sampled: BTreeSet<u64>,
    idle_waits: IdleWaits,
    process_names: ProcessNames,
    /// Whether an event has a stack.
    has_stacks: bool,
    end: RecordingEnd,
    /// The memory for a label, which is used again for each event.
    label: String,
}

impl Samples {
    /// How many threads are distinguished at most.
    pub const THREADS: usize = Threads::LIMIT;
    /// How many pairs of a thread and a stack each clock has at most.
    pub const ENTRIES: usize = Recording::ENTRIES;

    /// Creates an analysis that weighs events by these clocks.
    #[must_use]
    pub fn new(clocks: impl IntoIterator<Item = Clock>) -> Self {
        Self { recordings: clocks.into_iter().map(Recording::new).collect(), ..Self::default() }
    }

    /// Weighs only a part of the trace. Takes all events of the trace nevertheless: any of them can name code.
    #[must_use]
    pub fn of_part(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// Returns the part of the trace that is weighed.
    #[must_use]
    pub const fn part(&self) -> &Part {
        &self.part
    }

    /// Returns the end of the recording.
    #[must_use]
    pub const fn end(&self) -> &RecordingEnd {
        &self.end
    }

    /// Takes events of another assembler from now on, which has other numbers of kinds and of stacks.
    pub fn begin_trace(&mut self) {
        self.kinds = EventKinds::default();
        self.stacks.begin_trace();
        self.end = RecordingEnd::default();
    }

    /// Takes the next event of the trace as [`event`](Analysis::event) does, and calls `each` with the interval that
    /// the event adds to each clock.
    ///
    /// For one clock, the intervals of a thread come in the order of their ends. If the events are in the order of
    /// time, the intervals do not overlap. Intervals without a duration are included.
    /// [`formats::Timeline`](crate::formats::Timeline) collects the intervals.
    pub fn event_with(&mut self, event: &TraceEvent<'_>, each: &mut dyn FnMut(&Clock, &Interval)) {
        let Some(kind) = self.kinds.of(event) else { return };
        self.process_names.header(event);
        self.end.event(event.clock(), event.timestamp(), kind.is_rundown());
        self.has_stacks = self.has_stacks || event.stack().len() > 0;
        let is_inside = self.part.includes(event);
        if let Some(provider) = kind.provider {
            self.names.known_event(event, provider, kind.of_runtime);
            match kind.of_runtime {
                Some(RuntimeEvent::ThreadCreated | RuntimeEvent::ThreadDC) => self.threads.row(event),
                Some(RuntimeEvent::GCFinalizersBegin) => self.threads.finalizer(event),
                Some(RuntimeEvent::AllocationSampled) => _ = self.sampled.insert(process_of(event)),
                None if provider == KnownProvider::UniversalSystem => self.process_names.row(event),
                _ => {}
            }
        } else if kind.is_info {
            self.process_names.info(event);
        }
        if !is_inside && !self.part.has_thread_of(event) {
            return;
        }
        let Self { part, names, stacks, threads, label, dropped, .. } = self;
        let mut event =
            SeenEvent { event, kind, is_inside, part, names, stacks, threads, label, dropped, place: None };
        self.has_processor_samples |= event.switch().is_some();
        if let Some(sample) = event.sample().filter(|_| is_inside) {
            self.samples = self.samples.saturating_add(1);
            self.managed = self.managed.saturating_add(u64::from(sample.running > 0));
            self.has_processor_samples |= kind.provider == Some(KnownProvider::UniversalEvents);
        }
        for recording in &mut self.recordings {
            recording.event(&mut event, each);
        }
    }

    /// Returns an event that counts 1, with its thread and its stack, which are stored. `None` outside of the part, or if
    /// there is no room.
    pub(crate) fn point(&mut self, event: &TraceEvent<'_>) -> Option<Interval> {
        let Self { part, names, stacks, threads, dropped, .. } = self;
        if !part.includes(event) {
            return None;
        }
        let Some(thread) = threads.of(event) else {
            *dropped = dropped.saturating_add(1);
            return None;
        };
        let stack = stacks.of(event, names);
        Some(Interval::at(thread, stack, event.nanoseconds(), Weight::new(1, true)))
    }

    /// Ends the trace as [`finish`](Analysis::finish) does: adds the waits that have not ended, up to the end of the
    /// recording, and calls `each` with their intervals. Takes the samples of threads that wait in managed code for
    /// samples of waiting: see the [module](super).
    pub fn finish_with(&mut self, each: &mut dyn FnMut(&Clock, &Interval)) {
        let has_samples = self.recordings.iter().any(|of| matches!(of.clock, Clock::Cpu | Clock::Wall));
        if has_samples && self.shows_waiting() {
            let mut waiting = WaitingStacks::new(&mut self.names, &self.stacks);
            self.recordings.iter_mut().for_each(|recording| recording.separate_waits(&mut waiting));
        }
        let end = self.end.nanoseconds();
        for recording in &mut self.recordings {
            recording.finish(end, &self.part, &mut self.dropped, each);
        }
        if let Some(recording) = self.recordings.iter_mut().find(|of| of.clock == Clock::Waits) {
            let idle = IdleStacks::new(&mut self.names, &self.stacks);
            recording.separate_idle_waits(&idle, &mut self.idle_waits);
        }
    }

    /// Returns whether the samples show threads that wait: samples of the processor do not.
    pub(crate) const fn shows_waiting(&self) -> bool {
        !self.has_processor_samples
    }

    /// Returns which stacks wait; `None` if samples of the processor show only threads that run.
    pub(crate) fn waiting(&mut self) -> Option<WaitingStacks<'_>> {
        self.shows_waiting().then(|| WaitingStacks::new(&mut self.names, &self.stacks))
    }

    /// Removes all weights, stacks, threads and addresses, whose ids are invalid from now on. The names of code remain,
    /// so that a live analysis can begin its next period of time. Also removes the state of threads: the next event of
    /// a thread counts as its first one.
    ///
    /// A small number of stacks and addresses stays stored for the next period instead, which saves time.
    pub fn clear(&mut self) {
        const FEW: usize = 1 << 16;
        self.recordings.iter_mut().for_each(Recording::clear);
        self.threads = Threads::default();
        (self.samples, self.managed, self.dropped) = (0, 0, 0);
        self.idle_waits = IdleWaits::default();
        if self.stacks.len() > FEW || self.names.addresses() > FEW {
            self.stacks = Stacks::default();
            self.names.forget_addresses();
        }
    }

    /// Returns the names of the addresses that were seen.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the names, to add the names of a perf map.
    pub const fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    /// Returns the stacks that were seen.
    #[must_use]
    pub const fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Returns the frames of a stack, the innermost first, as they are named now.
    pub fn frames(&mut self, stack: StackId) -> Vec<FrameId> {
        let Self { names, stacks, .. } = self;
        stacks.addresses(stack).map(|address| names.frame(address)).collect()
    }

    /// Returns the tables for an analysis of the same events.
    pub(crate) const fn tables(&mut self) -> TraceTables<'_> {
        let Self { names, stacks, threads, .. } = self;
        TraceTables { names, stacks, threads }
    }

    pub(crate) const fn names_and_stacks(&mut self) -> (&mut Names, &Stacks) {
        (&mut self.names, &self.stacks)
    }

    /// Returns the threads that were seen.
    #[must_use]
    pub fn threads(&self) -> &[SampledThread] {
        &self.threads.list
    }

    /// Returns the number of the thread of an event, if the thread has been seen.
    pub(crate) fn thread_of(&self, event: &TraceEvent<'_>) -> Option<ThreadNumber> {
        self.threads.known(event)
    }

    /// Returns the name of a process, if the trace states it: of the program that it runs.
    #[must_use]
    pub fn process_name(&self, process: u64) -> Option<&str> {
        self.process_names.of(process)
    }

    /// Returns what each stack of each thread weighs by a clock.
    pub fn weights(&self, clock: &Clock) -> impl Iterator<Item = (ThreadNumber, StackId, Weight)> + '_ {
        let recording = self.recording(clock).into_iter();
        let counts = |((thread, _), _): &(&(ThreadNumber, StackId), &Weight)| self.counts_ticks(*thread);
        let rows = recording.flat_map(move |of| of.weights.iter().chain(of.ticks.iter().filter(counts)));
        rows.map(|((thread, stack), weight)| (*thread, *stack, *weight))
    }

    /// Returns how many events a clock has counted.
    #[must_use]
    pub fn count(&self, clock: &Clock) -> u64 {
        match clock {
            Clock::Allocations | Clock::AllocatedTypes => {
                self.weights(clock).fold(0, |sum, (_, _, weight)| sum.saturating_add(weight.count))
            }
            _ => self.recording(clock).map_or(0, |recording| recording.count),
        }
    }

    /// Returns how many events of a clock do not state what they weigh: allocations whose description and bytes do not
    /// match. They are not counted.
    #[must_use]
    pub fn unknown(&self, clock: &Clock) -> u64 {
        match self.recording(clock).map(|recording| &recording.meter) {
            Some(Meter::Allocations(allocations)) => allocations.unknown,
            _ => 0,
        }
    }

    /// Returns the waits of a clock, [`Contention`](Clock::Contention) or [`Waits`](Clock::Waits), whose start or end
    /// the trace does not have.
    #[must_use]
    pub fn waits(&self, clock: &Clock) -> Waits {
        match self.recording(clock).map(|recording| &recording.meter) {
            Some(Meter::Contention(contention)) => contention.waits,
            _ => Waits::default(),
        }
    }

    /// Returns the waits of threads of the runtime that have nothing to do, which [`Clock::Waits`] does not count. Call it
    /// after [`finish`](Analysis::finish).
    #[must_use]
    pub const fn idle_waits(&self) -> IdleWaits {
        self.idle_waits
    }

    /// Returns whether an event of the trace, of any kind, has a stack.
    #[must_use]
    pub const fn has_stacks(&self) -> bool {
        self.has_stacks
    }

    /// Returns whether a process has sampled allocations.
    #[must_use]
    pub fn has_sampled_allocations(&self) -> bool {
        !self.sampled.is_empty()
    }

    /// Returns whether the AllocationTicks of a thread count, because its process has no sampled allocations.
    pub(crate) fn counts_ticks(&self, thread: ThreadNumber) -> bool {
        let thread = self.threads.list.get(thread.number());
        thread.is_none_or(|thread| !self.sampled.contains(&thread.process))
    }

    fn recording(&self, clock: &Clock) -> Option<&Recording> {
        /// Apart from the loop, where the compiler would read fields of a clock that has none: valgrind reports that.
        #[inline(never)]
        fn is_equal(one: &Clock, other: &Clock) -> bool {
            one == other
        }
        self.recordings.iter().find(|recording| is_equal(&recording.clock, clock))
    }

    /// Returns how many samples of threads the trace has, in managed code or not.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns whether the samples are those of the processor, in code of any kind, and not of the runtime.
    #[must_use]
    pub const fn has_processor_samples(&self) -> bool {
        self.has_processor_samples
    }

    /// Returns how often the runtime sampled its threads: the number of samples of the thread that has the most. It is
    /// 0 without [`Clock::Wall`], and for samples of the processor.
    ///
    /// The samples of `Clock::Cpu` divided by this number are the processors that the threads would use on average.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        if self.has_processor_samples {
            return 0;
        }
        self.thread_weights(&Clock::Wall).into_iter().map(Weight::total).max().unwrap_or_default()
    }

    /// Returns what each of the [`threads`](Self::threads) weighs by a clock.
    #[must_use]
    pub fn thread_weights(&self, clock: &Clock) -> Vec<Weight> {
        let mut sums = alloc::vec![Weight::default(); self.threads.list.len()];
        for (thread, _, weight) in self.weights(clock) {
            if let Some(sum) = sums.get_mut(thread.number()) {
                sum.add(weight);
            }
        }
        sums
    }

    /// Returns how many threads were never seen in managed code, and the number of their samples. It is 0 without
    /// [`Clock::Wall`].
    #[must_use]
    pub fn idle_threads(&self) -> (usize, u64) {
        let mut idle = self.thread_weights(&Clock::Wall);
        idle.retain(|weight| weight.running == 0 && weight.waiting > 0);
        (idle.len(), idle.iter().fold(0, |sum, weight| sum.saturating_add(weight.waiting)))
    }

    /// Returns whether samples tell threads that run from those that wait. A program that was compiled ahead of time
    /// has only samples outside managed code, and no names of methods.
    #[must_use]
    pub fn tells_running(&mut self) -> bool {
        if self.samples == 0 || self.managed > 0 {
            return true;
        }
        let (names, stacks) = self.names_and_stacks();
        stacks.iter().any(|(_, address)| {
            let frame = names.frame(address);
            names.ip(address).is_some() && names.is_named(frame)
        })
    }

    /// Returns the clock to show: all samples in place of CPU time, if samples do not tell which threads run.
    #[must_use]
    pub fn shown_clock(&mut self, chosen: Clock) -> Clock {
        if chosen == Clock::Cpu && !self.tells_running() { Clock::Wall } else { chosen }
    }

    /// Returns what causes the samples of threads that run, by [`Clock::Cpu`] or else by [`Clock::Wall`]. Call it after
    /// [`finish`](Analysis::finish).
    #[must_use]
    pub fn cpu_causes(&mut self) -> CpuCauses {
        let clock = if self.recording(&Clock::Cpu).is_some() { Clock::Cpu } else { Clock::Wall };
        let running: Vec<_> =
            self.weights(&clock).map(|(_, stack, weight)| (stack, weight.running)).collect();
        CpuCauses::new(&mut self.names, &self.stacks, running.into_iter())
    }

    /// Returns the purposes of each of the [`threads`](Self::threads) that its stacks show.
    #[must_use]
    pub fn thread_roles(&mut self) -> Vec<ThreadRoles> {
        let of_method = |method: &str| {
            let mut roles = ThreadRoles::default();
            roles.add(method);
            roles
        };
        let of_stacks =
            stack_values(&mut self.names, &self.stacks, of_method, |mut roles: ThreadRoles, of_frame| {
                roles.merge(of_frame);
                roles
            });
        let mut of_threads = alloc::vec![ThreadRoles::default(); self.threads.list.len()];
        for (thread, stack) in self.recordings.iter().flat_map(|recording| recording.weights.keys()) {
            let of_stack = at(&of_stacks, stack.0).copied().unwrap_or_default();
            if let Some(roles) = of_threads.get_mut(thread.number()) {
                roles.merge(of_stack);
            }
        }
        of_threads
    }

    /// Returns how many events were not weighed because there was no room.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// The report is the samples of the whole trace.
impl Analysis for Samples {
    type Report = Self;

    fn event(&mut self, event: &TraceEvent<'_>) {
        self.event_with(event, &mut |_, _| {});
    }

    fn extend_to(&mut self, nanoseconds: i64) {
        self.end.extend_to(nanoseconds);
    }

    fn finish(mut self) -> Self {
        self.finish_with(&mut |_, _| {});
        self
    }
}
