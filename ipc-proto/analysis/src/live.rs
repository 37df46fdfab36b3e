//! The activity of a program now: which functions and threads run, and how much is collected, allocated and thrown, in
//! one period of a running session after the other.
//!
//! [`Live`] takes the events of a session in the order of time. [`Live::next_period`] ends a period, of a second for
//! example, and returns its [`Activity`]; [`Live::total`] returns the activity of all periods together.
//!
//! | number | events of the session | level |
//! |---|---|---|
//! | functions and threads | `Microsoft-DotNETCore-SampleProfiler` | informational |
//! | names of functions and threads | `Microsoft-Windows-DotNETRuntime`, keywords Loader (0x8), Jit (0x10) and NGen (0x20) | verbose |
//! | collections and pauses | `Microsoft-Windows-DotNETRuntime`, keyword GC (0x1) | informational |
//! | allocated bytes | `Microsoft-Windows-DotNETRuntime`, keyword GC (0x1) | verbose |
//! | exceptions | `Microsoft-Windows-DotNETRuntime`, keyword Exception (0x8000) | error |
//!
//! A session sends only the names of code that is compiled or loaded while the session runs. So after the start of the
//! session, start a second one with a rundown of the keywords Loader, Jit, NGen and ForceEndRundown (0x138), and stop
//! the second one immediately. Pass its events to [`Live::names_mut`] before you pass events of the first session to
//! [`Live::event`](crate::Analysis::event).
//!
//! # Memory
//!
//! [`Samples`] and [`Names`] have their limits, and each period begins
//! with empty samples. The sums of all periods have [`Live::FUNCTIONS`] functions and [`Live::THREADS`] threads;
//! further functions and threads are not added, and [`Activity::omitted`] counts them once a period. The names of
//! [`Live::THREADS`] threads are stored.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use nettrace::TraceEvent;

use crate::call_tree::{CallTree, Order, Origins};
use crate::gc::Collections;
use crate::names::{FrameId, Names};
use crate::samples::{AllocationRow, Clock, CpuCauses, Samples, ThreadNumber, ThreadRoles, Weight};
use crate::trace::elapsed;
use crate::{Analysis, RuntimeEvent};

/// The activity of a program in a period of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Activity {
    /// The nanoseconds from the last event before the period to the last event of the period.
    pub span: u64,
    /// How often the runtime sampled its threads: the number of samples of the thread that has the most.
    pub rounds: u64,
    /// The samples of all threads. A thread counts as running if it is in managed code and does not wait there: see
    /// [`samples`](crate::samples).
    pub samples: Weight,
    /// The causes of the samples of running threads.
    pub causes: CpuCauses,
    /// Whether the samples do not tell which threads run: see [`Samples::tells_running`].
    pub hides_running: bool,
    /// The functions that were sampled, in no particular order.
    pub functions: Vec<FunctionActivity>,
    /// The threads that were sampled, in the order of their ids.
    pub threads: Vec<ThreadActivity>,
    /// The garbage collections that ended.
    pub collections: u64,
    /// The nanoseconds for which these collections paused the program.
    pub paused: u64,
    /// The allocated bytes. The runtime sends an event every 100 KB or so.
    pub allocated: u64,
    /// The thrown exceptions.
    pub exceptions: u64,
    /// The functions and threads for which there was no room.
    pub omitted: u64,
}

/// The samples of a function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FunctionActivity {
    /// The full name of the function.
    pub name: Arc<str>,
    /// The samples in which the function is the innermost one.
    pub exclusive: Weight,
    /// The samples that contain the function.
    pub inclusive: Weight,
    /// Whether it is code of the program, by the rule of [`Names::set_own_code`].
    pub is_own: bool,
}

/// The samples of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ThreadActivity {
    /// The operating system's id.
    pub id: u64,
    /// The purpose of the thread in the runtime; empty if it is unknown.
    pub name: String,
    /// The purposes that its stacks show.
    pub roles: ThreadRoles,
    /// The samples of the thread.
    pub samples: Weight,
    /// The innermost function of most samples in managed code. If the thread has no such samples: of most of its
    /// samples. In the sums of all periods: the function of the last period with the thread.
    pub function: Arc<str>,
    /// Whether the function is code of the program.
    pub is_own: bool,
}

impl Activity {
    /// Returns how many threads ran on average: the processors that they would use.
    #[must_use]
    pub fn running_threads(&self) -> f64 {
        if self.rounds == 0 { 0.0 } else { self.samples.running as f64 / self.rounds as f64 }
    }

    /// Returns the share of time in which collections paused the program, between 0 and 1. A pause counts in the period
    /// in which its collection ends.
    #[must_use]
    pub fn paused_share(&self) -> f64 {
        if self.span == 0 { 0.0 } else { (self.paused as f64 / self.span as f64).min(1.0) }
    }

    /// Returns a count of the period as a number per second.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        if self.span == 0 { 0.0 } else { count as f64 * 1e9 / self.span as f64 }
    }
}

/// Adds up what a program does. The [module](super) has the events that it needs.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::live::Live;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut live = Live::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     live.event(&event);
/// }
/// let period = live.next_period();
/// println!("{:.1} threads in managed code", period.running_threads());
/// for function in &period.functions {
///     println!("{} of {} samples: {}", function.exclusive.running, period.samples.running, function.name);
/// }
/// # assert!(!period.functions.is_empty() && !period.threads.is_empty());
/// assert_eq!(live.next_period().samples.total(), 0);
/// assert_eq!(live.total().samples, period.samples);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Live {
    samples: Samples,
    collections: Collections,
    /// The counts of the period, without the counts of `samples`.
    counts: Activity,
    /// The time of the last event.
    now: Option<i64>,
    /// The time of the last event before the period.
    start: Option<i64>,
    /// Whether the period has an event.
    has_events: bool,
    /// The names of threads by their ids. The runtime states the name of a thread once, and `samples` has only the
    /// names that the current period states.
    thread_names: BTreeMap<u64, String>,
    total: Total,
    /// Whether the functions have all frames of stacks.
    is_raw: bool,
}

/// The sums of all periods.
#[derive(Debug, Default)]
struct Total {
    /// The sums, without functions and threads.
    numbers: Activity,
    functions: BTreeMap<Arc<str>, FunctionActivity>,
    threads: BTreeMap<u64, ThreadActivity>,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            samples: Samples::new([Clock::Wall]),
            collections: Collections::default(),
            counts: Activity::default(),
            now: None,
            start: None,
            has_events: false,
            thread_names: BTreeMap::new(),
            total: Total::default(),
            is_raw: false,
        }
    }
}

impl Live {
    /// How many functions the sums of all periods have at most.
    pub const FUNCTIONS: usize = 1 << 14;
    /// How many threads the sums of all periods have at most.
    pub const THREADS: usize = 1 << 14;

    /// Makes the functions have all frames of stacks from this period on, not only those of [`CallTree::of_origins`].
    pub const fn keep_all_frames(&mut self) {
        self.is_raw = true;
    }

    /// Returns the names, to add the names of a rundown or a perf map.
    pub const fn names_mut(&mut self) -> &mut Names {
        self.samples.names_mut()
    }

    /// Returns whether an event has arrived since the start of the period.
    #[must_use]
    pub const fn has_events(&self) -> bool {
        self.has_events
    }

    /// Ends the period, and returns what the program did in it.
    pub fn next_period(&mut self) -> Activity {
        self.samples.finish_with(&mut |_, _| {});
        self.add_thread_names();
        let mut period = self.sampled();
        if let (Some(start), Some(now)) = (self.start, self.now) {
            period.span = elapsed(start, now);
        }
        self.start = self.now;
        self.has_events = false;
        period.omitted = self.samples.dropped();
        self.samples.clear();
        self.total.add(&period);
        period
    }

    /// Returns what the program did in all periods together.
    #[must_use]
    pub fn total(&self) -> Activity {
        Activity {
            functions: self.total.functions.values().cloned().collect(),
            threads: self.total.threads.values().cloned().collect(),
            ..self.total.numbers.clone()
        }
    }

    /// Stores the names that the period states.
    fn add_thread_names(&mut self) {
        let names = &mut self.thread_names;
        for thread in self.samples.threads().iter().filter(|thread| !thread.name.is_empty()) {
            if names.len() < Self::THREADS || names.contains_key(&thread.id) {
                names.insert(thread.id, thread.name.clone());
            }
        }
    }

    /// Ends the counts of the period, and adds its functions and threads.
    fn sampled(&mut self) -> Activity {
        let mut functions: BTreeMap<FrameId, (Weight, Weight)> = BTreeMap::new();
        for is_running in [true, false] {
            let part = |weight: Weight| if is_running { weight.running } else { weight.waiting };
            // A tree does not have the number of events.
            let of_tree = |amount| Weight { count: 0, ..Weight::new(amount, is_running) };
            let tree = if self.is_raw { CallTree::new } else { CallTree::of_origins };
            let tree = tree(&mut self.samples, &Clock::Wall, |_, weight| part(weight));
            for entry in tree.top(Order::Exclusive) {
                let (exclusive, inclusive) = functions.entry(entry.frame).or_default();
                exclusive.add(of_tree(entry.exclusive));
                inclusive.add(of_tree(entry.inclusive));
            }
        }
        let (causes, hides_running) = (self.samples.cpu_causes(), !self.samples.tells_running());
        let threads = self.threads();
        let mut activity = Activity { threads, causes, hides_running, ..core::mem::take(&mut self.counts) };
        for thread in &activity.threads {
            activity.samples.add(thread.samples);
            activity.rounds = activity.rounds.max(thread.samples.total());
        }
        let names = self.samples.names();
        let function = |(frame, (exclusive, inclusive))| {
            let (name, is_own) = (names.shared_text(frame), names.is_own(frame));
            FunctionActivity { name, exclusive, inclusive, is_own }
        };
        activity.functions = functions.into_iter().map(function).collect();
        activity
    }

    /// Returns the threads of the period in the order of their ids.
    fn threads(&mut self) -> Vec<ThreadActivity> {
        let roles = self.samples.thread_roles();
        let origins = Origins::new(&mut self.samples, &Clock::Wall);
        let weights: Vec<_> = self.samples.weights(&Clock::Wall).collect();
        let (names, stacks) = self.samples.names_and_stacks();
        let mut innermost = BTreeMap::new();
        let mut sums: BTreeMap<_, Weight> = BTreeMap::new();
        for (thread, stack, weight) in weights {
            sums.entry(thread).or_default().add(weight);
            let address = stacks.addresses(origins.of(stack)).next();
            let frame = address.map_or(FrameId::UNKNOWN, |address| names.frame(address));
            let sum: &mut Weight = innermost.entry((thread, frame)).or_default();
            sum.add(weight);
        }
        let mut heaviest = BTreeMap::new();
        for ((thread, frame), weight) in innermost {
            let (most, heaviest) = heaviest.entry(thread).or_insert(((0, 0), frame));
            if (weight.running, weight.waiting) > *most {
                (*most, *heaviest) = ((weight.running, weight.waiting), frame);
            }
        }
        let names = self.samples.names();
        let activity = |(thread, samples): (ThreadNumber, Weight)| {
            let sampled = self.samples.threads().get(thread.number())?;
            let frame = heaviest.get(&thread).map_or(FrameId::UNKNOWN, |(_, frame)| *frame);
            let (function, is_own) = (names.shared_text(frame), names.is_own(frame));
            let name = self.thread_names.get(&sampled.id).unwrap_or(&sampled.name).clone();
            let roles = roles.get(thread.number()).copied().unwrap_or_default();
            Some(ThreadActivity { id: sampled.id, name, roles, samples, function, is_own })
        };
        let mut threads: Vec<_> = sums.into_iter().filter_map(activity).collect();
        threads.sort_by_key(|thread| thread.id);
        threads
    }
}

/// The report is what the program did in all periods together.
impl Analysis for Live {
    type Report = Activity;

    fn event(&mut self, event: &TraceEvent<'_>) {
        let time = event.nanoseconds();
        let latest = self.now.map_or(time, |now| now.max(time));
        self.now = Some(latest);
        self.start.get_or_insert(time);
        self.has_events = true;
        self.samples.event(event);
        match RuntimeEvent::of(event) {
            None => {}
            Some(RuntimeEvent::GCAllocationTick) => {
                let amount = AllocationRow::of_tick(event).amount;
                self.counts.allocated = self.counts.allocated.saturating_add(amount.unwrap_or_default());
            }
            Some(RuntimeEvent::ExceptionThrown) => {
                self.counts.exceptions = self.counts.exceptions.saturating_add(1);
            }
            Some(of_runtime) => {
                self.collections.runtime_event(event, of_runtime);
                while let Some(collection) = self.collections.pop() {
                    self.counts.collections = self.counts.collections.saturating_add(1);
                    self.counts.paused =
                        self.counts.paused.saturating_add(collection.pause.unwrap_or_default());
                }
            }
        }
    }

    fn finish(mut self) -> Activity {
        self.next_period();
        self.total()
    }
}

impl Total {
    fn add(&mut self, period: &Activity) {
        let Self { numbers, functions, threads } = self;
        let add = |sum: &mut u64, number: u64| *sum = sum.saturating_add(number);
        add(&mut numbers.span, period.span);
        add(&mut numbers.rounds, period.rounds);
        numbers.samples.add(period.samples);
        numbers.hides_running |= period.hides_running;
        numbers.hides_running &= numbers.samples.running == 0;
        numbers.causes.add(period.causes);
        add(&mut numbers.collections, period.collections);
        add(&mut numbers.paused, period.paused);
        add(&mut numbers.allocated, period.allocated);
        add(&mut numbers.exceptions, period.exceptions);
        add(&mut numbers.omitted, period.omitted);
        for function in &period.functions {
            if functions.len() >= Live::FUNCTIONS && !functions.contains_key(&function.name) {
                add(&mut numbers.omitted, 1);
                continue;
            }
            let [exclusive, inclusive] = [Weight::default(); 2];
            let empty = || FunctionActivity { exclusive, inclusive, ..function.clone() };
            let sum = functions.entry(function.name.clone()).or_insert_with(empty);
            sum.exclusive.add(function.exclusive);
            sum.inclusive.add(function.inclusive);
        }
        for thread in &period.threads {
            if threads.len() >= Live::THREADS && !threads.contains_key(&thread.id) {
                add(&mut numbers.omitted, 1);
                continue;
            }
            let empty = ThreadActivity { samples: Weight::default(), ..thread.clone() };
            let sum = threads.entry(thread.id).or_insert(empty);
            sum.samples.add(thread.samples);
            sum.function.clone_from(&thread.function);
            sum.roles.merge(thread.roles);
            sum.is_own = thread.is_own;
            if !thread.name.is_empty() {
                sum.name.clone_from(&thread.name);
            }
        }
    }
}
