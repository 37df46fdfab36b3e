use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use ipc_proto::wire::{to_u32, to_usize};
use nettrace::{EventSelector, MetadataBuf, Str, TraceClock, TraceEvent};

use super::allocation_row::AllocationRow;
use super::clock::Clock;
use super::cpu_causes::CpuCauses;
use super::program_name::program_name;
use super::thread_roles::ThreadRoles;
use super::waiting::WaitingStacks;
use crate::event::event_fields::{is_named, number, text};
use crate::event::event_kinds::{EventKind, EventKinds};
use crate::event::known_provider::is_name;
use crate::event::text::{owned, push_text};
use crate::names::place::{at, at_mut};
use crate::names::thread_row::ThreadRow;
use crate::names::{FrameId, Names, cut, process_of};
use crate::stacks::snapshot::Snapshot;
use crate::stacks::stack_values::stack_values;
use crate::trace::durations::elapsed;
use crate::{KnownProvider, Part, RuntimeEvent, StackId, Stacks};

/// What a stack of a thread weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// The weight while the thread ran; the whole weight for clocks that do not distinguish running and waiting.
    pub running: u64,
    /// The weight while the thread waited or ran native code.
    pub waiting: u64,
    /// The number of events or intervals that were added up; 0 if it is not known.
    pub count: u64,
}

impl Weight {
    /// Returns the sum.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.running.saturating_add(self.waiting)
    }

    pub(crate) const fn new(amount: u64, is_running: bool) -> Self {
        let (running, waiting) = if is_running { (amount, 0) } else { (0, amount) };
        Self { running, waiting, count: 1 }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.running = self.running.saturating_add(other.running);
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.count = self.count.saturating_add(other.count);
    }
}

/// The waits for locks whose start or end the trace does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Waits {
    /// The waits that had not ended at the end of the recording, up to which they count.
    pub open: u64,
    /// The waits without an end, whose thread waited again later. Their time is not known.
    pub without_end: u64,
    /// The ends without a start. The time of the wait is not known.
    pub without_start: u64,
}

/// The weight that an event adds to a clock, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The thread.
    pub thread: ThreadNumber,
    /// The stack of the event.
    pub stack: StackId,
    /// The start in nanoseconds from the start of the trace; negative before that start.
    pub start: i64,
    /// The weight to add. For a clock in nanoseconds, the weight is the duration. For other clocks, the interval is a
    /// point in time.
    pub weight: Weight,
    /// Whether it is an AllocationTick, which does not count if the process also has sampled allocations.
    pub is_tick: bool,
}

/// The number of a thread: its index in [`Samples::threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadNumber(u32);

impl ThreadNumber {
    pub(crate) fn of(number: u16) -> Self {
        Self(number.into())
    }

    /// Returns the index of the thread in [`Samples::threads`].
    #[must_use]
    pub const fn number(self) -> usize {
        to_usize(self.0)
    }
}

/// A thread of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledThread {
    /// The process of the thread; 0 is the process of a trace of a runtime.
    pub process: u64,
    /// The operating system's id.
    pub id: u64,
    /// The name of the thread (V6), or its purpose in the runtime; empty if neither is known.
    pub name: String,
}

/// Weighs the events of a trace by one clock or more.
///
/// ```
/// use nettrace::{EventAssembler, Limits, AssemblerStep};
/// use nettrace_analysis::call_tree::{CallTree, Order};
/// use nettrace_analysis::samples::{Clock, Samples};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::new(Limits::default()).in_order(EventAssembler::ORDER_LIMIT);
/// assembler.push(&bytes);
/// let mut samples = Samples::new([Clock::ThreadTime]);
/// while let AssemblerStep::Event = assembler.step() {
///     let Some(event) = assembler.event() else { break };
///     samples.event(&event);
/// }
/// let tree = CallTree::new(&mut samples, &Clock::ThreadTime, |_, weight| weight.total());
/// for entry in tree.top(Order::Exclusive).iter().take(2) {
///     println!("{:.2} % {}", tree.share(entry.exclusive), samples.names().text(entry.frame));
/// }
/// # let first = tree.top(Order::Exclusive)[0];
/// # assert!((tree.share(first.exclusive) - 66.67).abs() < 0.01);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Samples {
    /// The events that are weighed. The others can name code and threads.
    part: Part,
    kinds: EventKinds,
    names: Names,
    stacks: Stacks,
    recordings: Vec<Recording>,
    threads: Vec<SampledThread>,
    /// The state of each of `threads`.
    states: Vec<ThreadState>,
    thread_numbers: BTreeMap<(u64, u64), u32>,
    dropped: u64,
    samples: u64,
    /// The samples in managed code.
    managed: u64,
    /// Whether samples of the processor were seen, which show only threads that run.
    has_processor_samples: bool,
    /// The processes that have sampled allocations.
    sampled: BTreeSet<u64>,
    process_names: BTreeMap<u64, String>,
    /// The process of the trace, once the first event was taken.
    trace_process: Option<Option<u64>>,
    waits: Waits,
    /// Whether an event has a stack.
    has_stacks: bool,
    /// The clock of the trace, once a thread waits.
    trace_clock: Option<TraceClock>,
    /// The end of the recording in ticks: the time of the last event, or of the first event of a rundown after it.
    last_ticks: u64,
    /// Whether the last event belongs to a rundown, which a runtime sends after the recording.
    is_rundown: bool,
    /// The memory for the name of an event, which is used again for each event.
    label: String,
}

#[derive(Debug)]
struct Recording {
    clock: Clock,
    weights: BTreeMap<(u32, StackId), Weight>,
    /// The weights by AllocationTicks, which count for processes without sampled allocations.
    ticks: BTreeMap<(u32, StackId), Weight>,
    count: u64,
    /// The fraction of a byte that allocations weigh beside whole bytes.
    fraction: f64,
    /// The number of events that do not state what they weigh.
    unknown: u64,
}

impl Recording {
    /// Adds a weight, and returns whether there was room for it.
    fn add(&mut self, thread: u32, stack: StackId, weight: Weight, is_tick: bool) -> bool {
        let is_full = self.weights.len().saturating_add(self.ticks.len()) >= Samples::ENTRIES;
        let weights = if is_tick { &mut self.ticks } else { &mut self.weights };
        if is_full && !weights.contains_key(&(thread, stack)) {
            return false;
        }
        weights.entry((thread, stack)).or_default().add(weight);
        true
    }
}

/// The last events of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadState {
    /// The state by all events of [`Clock::ThreadTime`].
    thread_time: TimeState,
    /// The state by the events of [`Clock::SampledTime`].
    sampled_time: TimeState,
    /// The start of waiting for a lock.
    contention: Option<(i64, StackId)>,
}

/// The last events of a thread, for one of the clocks of its time.
#[derive(Debug, Clone, Copy, Default)]
struct TimeState {
    /// The last event that shows that the thread ran.
    running: Option<(i64, StackId)>,
    /// The last event, if it shows that the thread does not run.
    waiting: Option<(i64, StackId)>,
    /// Whether the last event shows that the thread runs.
    is_running: bool,
}

impl TimeState {
    /// Takes an event of the thread. Returns the stack in which the thread was up to this event, the start, and the
    /// time in the stack.
    fn advance(&mut self, time: i64, stack: StackId, runs: bool) -> Option<(i64, StackId, Weight)> {
        let since = if self.is_running { self.running } else { self.waiting };
        let was_running = core::mem::replace(&mut self.is_running, runs);
        if runs {
            self.running = Some((time, stack));
            self.waiting = None;
        } else {
            self.waiting = Some((time, stack));
        }
        let (start, stack) = since?;
        Some((start, stack, Weight::new(elapsed(start, time), was_running)))
    }
}

impl Samples {
    /// How many threads are distinguished at most.
    pub const THREADS: usize = 1 << 16;
    /// How many pairs of a thread and a stack each clock has at most.
    pub const ENTRIES: usize = 1 << 20;

    /// Creates an analysis that weighs events by these clocks.
    #[must_use]
    pub fn new(clocks: impl IntoIterator<Item = Clock>) -> Self {
        let recording = |clock| Recording {
            clock,
            weights: BTreeMap::new(),
            ticks: BTreeMap::new(),
            count: 0,
            // So that the sum is rounded, not cut off.
            fraction: 0.5,
            unknown: 0,
        };
        Self {
            part: Part::default(),
            kinds: EventKinds::default(),
            names: Names::default(),
            stacks: Stacks::default(),
            recordings: clocks.into_iter().map(recording).collect(),
            threads: Vec::new(),
            states: Vec::new(),
            thread_numbers: BTreeMap::new(),
            dropped: 0,
            samples: 0,
            managed: 0,
            has_processor_samples: false,
            sampled: BTreeSet::new(),
            process_names: BTreeMap::new(),
            trace_process: None,
            waits: Waits::default(),
            has_stacks: false,
            trace_clock: None,
            last_ticks: 0,
            is_rundown: false,
            label: String::new(),
        }
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

    /// Takes events of another assembler from now on, which has other numbers of kinds and of stacks.
    pub fn begin_trace(&mut self) {
        self.kinds = EventKinds::default();
        self.stacks.begin_trace();
    }

    /// Takes the next event of the trace. All events must come from one assembler, unless
    /// [`begin_trace`](Self::begin_trace) was called.
    pub fn event(&mut self, event: &TraceEvent<'_>) {
        self.event_with(event, &mut |_, _| {});
    }

    /// Takes the next event of the trace, and calls `each` with the interval that the event adds to each clock.
    ///
    /// For one clock, the intervals of a thread come in the order of their ends. If the events are in the order of
    /// time, the intervals do not overlap. Intervals without a duration are included.
    /// [`formats::Timeline`](crate::formats::Timeline) collects the intervals.
    pub fn event_with(&mut self, event: &TraceEvent<'_>, each: &mut dyn FnMut(&Clock, &Interval)) {
        let Some(kind) = self.kinds.of(event) else { return };
        if self.trace_process.is_none() {
            self.header(event);
        }
        let is_rundown = kind.is_rundown();
        if !(is_rundown && self.is_rundown) {
            self.last_ticks = event.timestamp();
        }
        self.is_rundown = is_rundown;
        self.has_stacks = self.has_stacks || event.stack().len() > 0;
        let is_inside = self.part.includes(event);
        let event = Seen { event, kind, is_inside };
        if let Some(provider) = kind.provider {
            self.names.known_event(event.event, provider, kind.of_runtime);
            match kind.of_runtime {
                Some(RuntimeEvent::ThreadCreated | RuntimeEvent::ThreadDC) => self.thread_row(event.event),
                Some(RuntimeEvent::GCFinalizersBegin) => {
                    self.name_thread((process_of(event.event), event.event.thread_id()), FINALIZER);
                }
                Some(RuntimeEvent::AllocationSampled) => {
                    self.sampled.insert(process_of(event.event));
                }
                None if provider == KnownProvider::UniversalSystem => self.process_row(event.event),
                _ => {}
            }
            if let Some(sample) = event.sample().filter(|_| is_inside) {
                self.samples = self.samples.saturating_add(1);
                self.managed = self.managed.saturating_add(u64::from(sample.running > 0));
                self.has_processor_samples |= provider == KnownProvider::UniversalEvents;
            }
        } else if kind.is_info {
            let command_line = text(event.event, "CommandLine").map(owned);
            let name = command_line.as_deref().and_then(program_name);
            self.name_process(process_of(event.event), name);
        }
        if !is_inside && !self.part.has_thread(event.event.thread_id()) {
            return;
        }
        // The thread and the stack are stored once for all clocks, and only if a clock needs them.
        let mut place = None;
        for recording in 0..self.recordings.len() {
            self.record(recording, &event, &mut place, each);
        }
    }

    fn record(
        &mut self,
        recording: usize,
        event: &Seen<'_>,
        place: &mut Option<(u32, StackId)>,
        each: &mut dyn FnMut(&Clock, &Interval),
    ) {
        let Some(Recording { clock, .. }) = self.recordings.get(recording) else { return };
        let Some(effect) = event.effect(clock) else { return };
        if !event.is_inside && !effect.has_duration() {
            return;
        }
        let (is_sampled, has_type) = (*clock == Clock::SampledTime, *clock == Clock::AllocatedTypes);
        let (thread, stack) = match *place {
            Some(place) => place,
            None => {
                let Some(thread) = self.thread(event.event) else {
                    self.dropped = self.dropped.saturating_add(1);
                    return;
                };
                *place.insert((thread, self.stacks.of(event.event, &mut self.names)))
            }
        };
        let time = event.event.nanoseconds();
        let (mut count, mut is_tick) = (u64::from(event.is_inside), false);
        let added = match effect {
            Effect::Weigh { weight, needs_stack } => {
                if needs_stack && stack == StackId::EMPTY {
                    return;
                }
                Some((time, stack, weight))
            }
            Effect::Allocate { row, is_sampled } => {
                let Some(recording) = self.recordings.get_mut(recording) else { return };
                let Some(mut amount) = row.amount else {
                    recording.unknown = recording.unknown.saturating_add(1);
                    return;
                };
                recording.fraction += row.fraction;
                if recording.fraction >= 1.0 {
                    recording.fraction -= 1.0;
                    amount = amount.saturating_add(1);
                }
                (count, is_tick) = (0, !is_sampled);
                let stack = if has_type { self.typed(stack, row.type_name) } else { stack };
                Some((time, stack, Weight::new(amount, true)))
            }
            Effect::Show { runs, has_label } => {
                let stack = if has_label { self.labelled(stack, event.event) } else { stack };
                let Some(state) = at_mut(&mut self.states, thread) else { return };
                let state = if is_sampled { &mut state.sampled_time } else { &mut state.thread_time };
                let added = state.advance(time, stack, runs);
                added.and_then(|added| self.inside(added))
            }
            Effect::StartWaiting => {
                let state = at_mut(&mut self.states, thread);
                let earlier = state.and_then(|state| state.contention.replace((time, stack)));
                let is_lost = event.is_inside && earlier.is_some();
                self.waits.without_end = self.waits.without_end.saturating_add(is_lost.into());
                self.trace_clock.get_or_insert_with(|| *event.event.clock());
                None
            }
            Effect::StopWaiting => {
                let state = at_mut(&mut self.states, thread);
                let start = state.and_then(|state| state.contention.take());
                let is_lost = event.is_inside && start.is_none();
                self.waits.without_start = self.waits.without_start.saturating_add(is_lost.into());
                let wait =
                    start.map(|(start, stack)| (start, stack, Weight::new(elapsed(start, time), false)));
                let inside = wait.and_then(|wait| self.inside(wait));
                // A wait that began before the part is counted here, any other one with its start.
                count = u64::from(inside.is_some_and(|(start, ..)| wait.is_some_and(|wait| wait.0 < start)));
                inside
            }
        };
        let Some(recording) = self.recordings.get_mut(recording) else { return };
        recording.count = recording.count.saturating_add(count);
        if let Some((start, stack, weight)) = added {
            let interval = Interval { thread: ThreadNumber(thread), stack, start, weight, is_tick };
            each(&recording.clock, &interval);
            if !recording.add(thread, stack, weight, is_tick) {
                self.dropped = self.dropped.saturating_add(1);
            }
        }
    }

    /// Ends the trace: adds the waits that have not ended, up to the end of the recording, and calls `each` with their
    /// intervals. Takes the samples of threads that wait in managed code for samples of waiting: see the
    /// [module](self).
    pub fn finish(&mut self, each: &mut dyn FnMut(&Clock, &Interval)) {
        self.separate_waits();
        let Some(clock) = self.trace_clock else { return };
        let end = clock.nanoseconds(self.last_ticks);
        let Self { part, recordings, states, waits, dropped, .. } = self;
        let Some(recording) = recordings.iter_mut().find(|of| of.clock == Clock::Contention) else { return };
        for (thread, state) in (0..).zip(states) {
            let Some((start, stack)) = state.contention.take() else { continue };
            let Some((inside, end)) = part.overlap(start, end) else { continue };
            let weight = Weight::new(elapsed(inside, end), false);
            recording.count = recording.count.saturating_add(u64::from(start < inside));
            let start = inside;
            waits.open = waits.open.saturating_add(1);
            let interval = Interval { thread: ThreadNumber(thread), stack, start, weight, is_tick: false };
            each(&recording.clock, &interval);
            if !recording.add(thread, stack, weight, false) {
                *dropped = dropped.saturating_add(1);
            }
        }
    }

    /// Returns the part of an interval that is in the part of the trace.
    fn inside(&self, (start, stack, weight): (i64, StackId, Weight)) -> Option<(i64, StackId, Weight)> {
        let end = start.saturating_add_unsigned(weight.total());
        let (start, end) = self.part.overlap(start, end)?;
        Some((start, stack, Weight::new(elapsed(start, end), weight.running > 0)))
    }

    /// Takes samples whose innermost method waits for samples of waiting threads.
    fn separate_waits(&mut self) {
        let is_sampled = |recording: &Recording| matches!(recording.clock, Clock::Cpu | Clock::Wall);
        if !self.recordings.iter().any(is_sampled) {
            return;
        }
        let Some(waiting) = self.waiting() else { return };
        for Recording { clock, weights, count, .. } in &mut self.recordings {
            match clock {
                Clock::Cpu => weights.retain(|(_, stack), weight| {
                    let waits = waiting.has(*stack);
                    *count = count.saturating_sub(if waits { weight.count } else { 0 });
                    !waits
                }),
                Clock::Wall => {
                    for ((_, stack), weight) in weights.iter_mut().filter(|(_, weight)| weight.running > 0) {
                        if waiting.has(*stack) {
                            weight.waiting = weight.waiting.saturating_add(weight.running);
                            weight.running = 0;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns which stacks wait; `None` if samples of the processor show only threads that run.
    pub(crate) fn waiting(&mut self) -> Option<WaitingStacks> {
        (!self.has_processor_samples).then(|| WaitingStacks::new(&mut self.names, &self.stacks))
    }

    /// Adds the name of an event to a stack.
    fn labelled(&mut self, stack: StackId, event: &TraceEvent<'_>) -> StackId {
        let mut label = core::mem::take(&mut self.label);
        label.push_str("EventName: ");
        let (provider, name) = event.description().map(|it| (it.provider(), it.name())).unwrap_or_default();
        push_text(&mut label, provider);
        label.push('/');
        push_event_name(&mut label, name);
        let address = self.names.label(&label);
        label.clear();
        self.label = label;
        self.stacks.call(stack, address)
    }

    /// Adds the type of an allocated object to a stack.
    fn typed(&mut self, stack: StackId, type_name: Str<'_>) -> StackId {
        let mut label = core::mem::take(&mut self.label);
        push_text(&mut label, type_name);
        // NativeAOT has no names of types, and sends "NULL".
        let is_unknown = label.is_empty() || label == "NULL";
        let address = self.names.label(if is_unknown { UNKNOWN_TYPE } else { &label });
        label.clear();
        self.label = label;
        self.stacks.call(stack, address)
    }

    /// Takes the first block of the trace, which can name the process of the trace (V6).
    fn header(&mut self, event: &TraceEvent<'_>) {
        let trace = event.trace();
        self.trace_process = Some(trace.and_then(|trace| trace.process_id).map(u64::from));
        for (key, value) in trace.into_iter().flat_map(|trace| trace.pairs) {
            let value = owned(value);
            if key == "ProcessName" {
                self.name_process(0, Some(&value));
            } else if key == "CommandLine" {
                self.name_process(0, program_name(&value));
            }
        }
    }

    /// Takes a row about a process of an operating system.
    fn process_row(&mut self, event: &TraceEvent<'_>) {
        if ["ProcessCreate", "ExistingProcess"].iter().any(|name| is_named(event, name)) {
            let name = text(event, "Name").map(owned);
            self.name_process(process_of(event), name.as_deref());
        }
    }

    fn name_process(&mut self, process: u64, name: Option<&str>) {
        const MAX_NAME: usize = 255;
        let has_room = self.process_names.len() < Self::THREADS;
        if let Some(name) = name.filter(|name| has_room && !name.is_empty()) {
            self.process_names.insert(process, cut(name, MAX_NAME).to_owned());
        }
    }

    fn thread(&mut self, event: &TraceEvent<'_>) -> Option<u32> {
        let key = (process_of(event), event.thread_id());
        if let Some(thread) = self.thread_numbers.get(&key) {
            return Some(*thread);
        }
        let number = self.add_thread(key)?;
        let name = event.thread().map(|thread| thread.name());
        if let (Some(name), Some(thread)) = (name, at_mut(&mut self.threads, number)) {
            push_text(&mut thread.name, name);
        }
        Some(number)
    }

    fn add_thread(&mut self, key: (u64, u64)) -> Option<u32> {
        if self.threads.len() >= Self::THREADS {
            return None;
        }
        let number = to_u32(self.threads.len());
        self.threads.push(SampledThread { process: key.0, id: key.1, name: String::new() });
        self.states.push(ThreadState::default());
        self.thread_numbers.insert(key, number);
        Some(number)
    }

    /// Names a thread by its purpose in the runtime.
    fn thread_row(&mut self, event: &TraceEvent<'_>) {
        let Ok(ThreadRow { flags, id, .. }) = ThreadRow::decode(event.payload()) else { return };
        let name = match flags {
            _ if flags & 2 != 0 => FINALIZER,
            _ if flags & 4 != 0 => ".NET ThreadPool",
            _ => return,
        };
        self.name_thread((process_of(event), id.into()), name);
    }

    /// Names a thread that has no name.
    fn name_thread(&mut self, key: (u64, u64), name: &str) {
        let number = self.thread_numbers.get(&key).copied().or_else(|| self.add_thread(key));
        if let Some(thread) = number.and_then(|number| at_mut(&mut self.threads, number)) {
            if thread.name.is_empty() {
                thread.name.push_str(name);
            }
        }
    }

    /// Removes all weights, stacks, threads and addresses, whose ids are invalid from now on. The names of code remain,
    /// so that a live analysis can begin its next period of time. Also removes the state of threads: the next event of
    /// a thread counts as its first one.
    ///
    /// A small number of stacks and addresses stays stored for the next period instead, which saves time.
    pub fn clear(&mut self) {
        const FEW: usize = 1 << 16;
        for recording in &mut self.recordings {
            recording.weights.clear();
            recording.ticks.clear();
            (recording.count, recording.unknown) = (0, 0);
        }
        self.threads.clear();
        self.states.clear();
        self.thread_numbers.clear();
        (self.samples, self.managed, self.dropped, self.waits) = (0, 0, 0, Waits::default());
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

    pub(crate) const fn names_and_stacks(&mut self) -> (&mut Names, &Stacks) {
        (&mut self.names, &self.stacks)
    }

    /// Returns the threads that were seen.
    #[must_use]
    pub fn threads(&self) -> &[SampledThread] {
        &self.threads
    }

    /// Returns the name of a process, if the trace states it: of the program that it runs.
    #[must_use]
    pub fn process_name(&self, process: u64) -> Option<&str> {
        // The process of the trace is 0 for threads that state no process.
        let of_trace = self.trace_process.flatten();
        let other = match process {
            0 => of_trace,
            _ => (of_trace == Some(process)).then_some(0),
        };
        let name = |process| self.process_names.get(&process).map(String::as_str);
        name(process).or_else(|| name(other?))
    }

    /// Returns what each stack of each thread weighs by a clock.
    pub fn weights(&self, clock: &Clock) -> impl Iterator<Item = (ThreadNumber, StackId, Weight)> + '_ {
        let recording = self.recording(clock).into_iter();
        let counts = |((thread, _), _): &(&(u32, StackId), &Weight)| self.counts_ticks(ThreadNumber(*thread));
        let rows = recording.flat_map(move |of| of.weights.iter().chain(of.ticks.iter().filter(counts)));
        rows.map(|(key, weight)| (ThreadNumber(key.0), key.1, *weight))
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
        self.recording(clock).map_or(0, |recording| recording.unknown)
    }

    /// Returns the waits whose start or end the trace does not have.
    #[must_use]
    pub const fn waits(&self) -> Waits {
        self.waits
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
        let thread = self.threads.get(thread.number());
        thread.is_none_or(|thread| !self.sampled.contains(&thread.process))
    }

    fn recording(&self, clock: &Clock) -> Option<&Recording> {
        self.recordings.iter().find(|recording| recording.clock == *clock)
    }

    /// Returns how many samples of threads the trace has, in managed code or not.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
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
        let mut sums = alloc::vec![0_u64; self.threads.len()];
        for (thread, _, weight) in self.weights(&Clock::Wall) {
            if let Some(sum) = sums.get_mut(thread.number()) {
                *sum = sum.saturating_add(weight.total());
            }
        }
        sums.into_iter().max().unwrap_or_default()
    }

    /// Returns whether samples tell threads that run from those that wait. A program that was compiled ahead of time
    /// has only samples outside managed code, and no names of methods.
    #[must_use]
    pub fn tells_running(&mut self) -> bool {
        if self.samples == 0 || self.managed > 0 {
            return true;
        }
        let (names, stacks) = self.names_and_stacks();
        let mut frames = Snapshot::new(names);
        stacks.iter().any(|(_, address)| {
            let frame = frames.of(address);
            frames.names().ip(address).is_some() && frames.names().is_named(frame)
        })
    }

    /// Returns what causes the samples of threads that run, by [`Clock::Cpu`] or else by [`Clock::Wall`]. Call it after
    /// [`finish`](Self::finish).
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
        let mut of_threads = alloc::vec![ThreadRoles::default(); self.threads.len()];
        for (thread, stack) in self.recordings.iter().flat_map(|recording| recording.weights.keys()) {
            let of_stack = at(&of_stacks, stack.0).copied().unwrap_or_default();
            if let Some(roles) = at_mut(&mut of_threads, *thread) {
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

/// An event with its description.
struct Seen<'a> {
    event: &'a TraceEvent<'a>,
    kind: EventKind,
    /// Whether the event is in the part of the trace that is weighed.
    is_inside: bool,
}

/// The effect of an event on a clock.
enum Effect<'a> {
    /// The stack of the event gets this weight.
    Weigh { weight: Weight, needs_stack: bool },
    /// The stack of the event gets the bytes of an allocation.
    Allocate { row: AllocationRow<'a>, is_sampled: bool },
    /// The thread of the event is in the stack of the event from now on.
    Show { runs: bool, has_label: bool },
    /// The thread of the event waits for a lock.
    StartWaiting,
    /// The thread of the event has the lock, so its wait ends.
    StopWaiting,
}

impl Effect<'_> {
    /// Returns whether the event begins or ends a time, which can overlap the part of the trace that is weighed.
    const fn has_duration(&self) -> bool {
        matches!(self, Self::Show { .. } | Self::StartWaiting | Self::StopWaiting)
    }
}

impl<'a> Seen<'a> {
    fn effect(&self, clock: &Clock) -> Option<Effect<'a>> {
        let one = Weight::new(1, true);
        let weight = match clock {
            Clock::Cpu => self.sample().filter(|weight| weight.running > 0)?,
            Clock::Wall => self.sample()?,
            Clock::ThreadTime => return self.thread_time(),
            Clock::SampledTime => {
                return self
                    .thread_time()
                    .filter(|effect| !matches!(effect, Effect::Show { has_label: true, .. }));
            }
            Clock::Allocations | Clock::AllocatedTypes => return self.allocation(),
            Clock::Exceptions if self.is(RuntimeEvent::ExceptionThrown) => one,
            Clock::Contention if self.is(RuntimeEvent::ContentionStart) => return Some(Effect::StartWaiting),
            Clock::Contention if self.is(RuntimeEvent::ContentionStop) => return Some(Effect::StopWaiting),
            Clock::Events { provider, event_id } => {
                let selector = EventSelector { provider, event_id: *event_id, event_name: None };
                selector.keeps(&self.event.metadata()?).then_some(one)?
            }
            Clock::AllEvents => return Some(Effect::Weigh { weight: one, needs_stack: true }),
            _ => return None,
        };
        Some(Effect::Weigh { weight, needs_stack: false })
    }

    fn allocation(&self) -> Option<Effect<'a>> {
        let (row, is_sampled) = match self.kind.of_runtime? {
            RuntimeEvent::GCAllocationTick => (AllocationRow::of_tick(self.event), false),
            RuntimeEvent::AllocationSampled => (AllocationRow::of_sampled(self.event), true),
            _ => return None,
        };
        Some(Effect::Allocate { row, is_sampled })
    }

    fn is(&self, event: RuntimeEvent) -> bool {
        self.kind.of_runtime == Some(event)
    }

    /// Returns what a sample of a thread weighs; `None` for other events.
    fn sample(&self) -> Option<Weight> {
        match self.kind.provider? {
            KnownProvider::SampleProfiler if self.is(RuntimeEvent::ThreadSample) => {
                let kind = self.event.payload().first_chunk().map(|kind| u32::from_le_bytes(*kind));
                Some(Weight::new(1, kind == Some(MANAGED)))
            }
            KnownProvider::UniversalEvents if is_named(self.event, "cpu") => {
                Some(Weight::new(number(self.event, "Value").unwrap_or(1), true))
            }
            _ => None,
        }
    }

    fn thread_time(&self) -> Option<Effect<'a>> {
        let runs = match self.kind.provider {
            Some(KnownProvider::SampleProfiler) => self.sample()?.running > 0,
            // AllocationTick, and the two kinds of sampled allocations: each shows that the thread runs.
            Some(KnownProvider::Runtime) => {
                return self.is_allocation().then_some(Effect::Show { runs: true, has_label: false });
            }
            Some(_) => return None,
            None => {
                return is_event_source(self.event, self.kind.event_id)
                    .then_some(Effect::Show { runs: false, has_label: true });
            }
        };
        Some(Effect::Show { runs, has_label: false })
    }

    fn is_allocation(&self) -> bool {
        matches!(
            self.kind.of_runtime,
            Some(
                RuntimeEvent::GCAllocationTick
                    | RuntimeEvent::GCSampledObjectAllocationHigh
                    | RuntimeEvent::GCSampledObjectAllocationLow
            )
        )
    }
}

/// The frame of an allocated object whose type the trace does not name.
pub const UNKNOWN_TYPE: &str = "?";

const FINALIZER: &str = ".NET Finalizer";

/// The kind of a sample in managed code.
const MANAGED: u32 = 2;

/// Returns whether an event comes from an event source whose events show what a thread does.
fn is_event_source(event: &TraceEvent<'_>, event_id: u32) -> bool {
    const OTHERS: [&str; 3] = [
        "Microsoft-Windows-DotNETRuntimePrivate",
        "Microsoft-Windows-DotNETRuntimeStress",
        "System.Threading.Tasks.TplEventSource",
    ];
    // A manifest describes other events, so it shows nothing about the thread.
    let is_manifest = event_id == 0xfffe;
    let provider = event.description().map_or(Str::EMPTY, MetadataBuf::provider);
    if is_name(provider, "System.Diagnostics.Eventing.FrameworkEventSource") {
        return matches!(event_id, 140..=143);
    }
    !is_manifest && !OTHERS.iter().any(|other| is_name(provider, other))
}

/// Writes the name of an event with its opcode apart, as `Work/Start` for `WorkStart`.
fn push_event_name(to: &mut String, name: Str<'_>) {
    let start = to.len();
    push_text(to, name);
    for opcode in ["Start", "Stop"] {
        let len = to.len().saturating_sub(opcode.len());
        let is_suffix = to.get(len..).is_some_and(|end| end.eq_ignore_ascii_case(opcode));
        if is_suffix && len > start {
            to.truncate(len);
            // Writing to a string cannot fail.
            let _ = write!(to, "/{opcode}");
            return;
        }
    }
}
