//! Takes the events of a trace for the account of its time.
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_usize};
use nettrace::TraceEvent;

use super::report::Account;
use super::windows::Windows;
use crate::event::{owned, pointer_size, text};
use crate::locks::ContentionRow;
use crate::names::cut;
use crate::samples::{AllocationRow, Clock, Interval, Samples, ThreadNumber};
use crate::trace::RecordingSpan;
use crate::{Analysis, OwnCode, Part, RuntimeEvent, StackId};

/// What an account adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Measure {
    /// Samples of threads.
    Samples,
    /// Nanoseconds of waiting for locks, with the number of the lock as the label.
    Contention,
    /// Allocated bytes; those of large objects have the label [`Account::LARGE`].
    Allocations,
    /// Exceptions, with the type as the label.
    Exceptions,
    /// Triggered collections.
    Triggers,
    /// Started threads.
    ThreadStarts,
    /// Methods that are compiled.
    Compilations,
    /// Requests that the program sends.
    Sent,
}

impl Measure {
    /// Returns the measure of an event that counts 1.
    fn of_event(event: &TraceEvent<'_>, of_runtime: Option<RuntimeEvent>) -> Option<Self> {
        match of_runtime {
            Some(RuntimeEvent::ExceptionThrown) => Some(Self::Exceptions),
            Some(RuntimeEvent::GCTriggered) => Some(Self::Triggers),
            Some(RuntimeEvent::ThreadCreating) => Some(Self::ThreadStarts),
            Some(RuntimeEvent::MethodJittingStarted) => Some(Self::Compilations),
            Some(_) => None,
            None => {
                let description = event.description()?;
                let is_sent = description.event_id() == 1 && description.provider() == "System.Net.Http";
                is_sent.then_some(Self::Sent)
            }
        }
    }

    fn of(clock: &Clock) -> Self {
        match clock {
            Clock::Contention => Self::Contention,
            Clock::Allocations => Self::Allocations,
            _ => Self::Samples,
        }
    }
}

/// The place of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellKey {
    pub(super) measure: Measure,
    pub(super) thread: ThreadNumber,
    pub(super) window: u16,
    pub(super) label: u32,
    pub(super) stack: StackId,
}

/// A sum over a window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) running: u64,
    pub(super) waiting: u64,
    pub(super) count: u64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// Whether the sum is one of AllocationTicks, which count for processes without sampled allocations.
    pub(super) is_tick: bool,
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.running = self.running.saturating_add(other.running);
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// The sums of an account.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) windows: Windows,
    pub(super) sums: BTreeMap<CellKey, Cell>,
    pub(super) dropped: u64,
}

impl Cells {
    /// Adds what a clock counts from `start` to `end`, a part to each window.
    fn add(&mut self, measure: Measure, label: u32, interval: &Interval, end: i64) {
        let Interval { thread, stack, start, weight, is_tick } = *interval;
        self.window(start);
        let last = self.window(end);
        let first = self.windows.of(start).unwrap_or(last);
        for window in first..=last {
            let key = CellKey { measure, thread, window, label, stack };
            let from = start.max(if window == first { start } else { self.windows.start(window) });
            let to = if window == last { end } else { self.windows.start(window.saturating_add(1)) };
            let inside = u64::try_from(to.saturating_sub(from)).unwrap_or_default();
            let [running, waiting] = match first == last {
                true => [weight.running, weight.waiting],
                false => [0, inside],
            };
            let count = u64::from(window == first);
            self.add_cell(key, &Cell { running, waiting, count, first: from, last: to, is_tick });
        }
    }

    /// Returns the window of a time, after it has made room for it.
    fn window(&mut self, time: i64) -> u16 {
        loop {
            match self.windows.of(time) {
                Some(window) => return window,
                None => self.double(),
            }
        }
    }

    fn add_cell(&mut self, mut key: CellKey, cell: &Cell) {
        if let Some(sum) = self.sums.get_mut(&key) {
            return sum.add(cell);
        }
        // Longer windows have fewer sums.
        if self.sums.len() >= TimeAccount::CELLS && key.window > 0 && self.windows.length() < u64::MAX / 4 {
            self.double();
            key.window /= 2;
        }
        if self.sums.len() >= TimeAccount::CELLS {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.sums.entry(key).and_modify(|sum| sum.add(cell)).or_insert(*cell);
    }

    fn double(&mut self) {
        self.windows.double();
        for (key, cell) in core::mem::take(&mut self.sums) {
            let key = CellKey { window: key.window / 2, ..key };
            self.sums.entry(key).and_modify(|sum| sum.add(&cell)).or_insert(cell);
        }
    }
}

/// Adds up the time of the threads of a trace, and what else its events weigh. The events must come in the order of
/// time: see [`EventOrder::Time`](nettrace::EventOrder::Time). The [module](super) has the rules.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::account::{Measure, TimeAccount};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut account = TimeAccount::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     account.event(&event);
/// }
/// let account = account.finish();
/// for process in account.processes() {
///     let rows: Vec<_> = account.rows(process, Measure::Samples).collect();
///     println!("{process}: {:?}", account.blame(rows.iter().map(|row| (row.stack, row.running))).method);
/// }
/// # assert_eq!(account.processes().len(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TimeAccount {
    samples: Samples,
    cells: Cells,
    span: RecordingSpan,
    /// The measures of events that count 1, by [`TraceEvent::kind`], once they were searched.
    measures: Vec<Option<Option<Measure>>>,
    labels: Vec<String>,
    label_numbers: BTreeMap<String, u32>,
    /// The label of the lock for which each thread waits.
    waits: BTreeMap<ThreadNumber, u32>,
    /// The time at which each thread last got a lock for which it had waited.
    acquired: BTreeMap<ThreadNumber, i64>,
}

impl Default for TimeAccount {
    fn default() -> Self {
        Self::new(Part::default(), OwnCode::default())
    }
}

impl TimeAccount {
    /// How many sums are stored at most.
    pub const CELLS: usize = 1 << 20;
    /// How many labels are stored at most.
    const LABELS: usize = 1 << 12;
    /// The longest label in bytes.
    const LABEL: usize = 200;

    /// Creates an account of a part of a trace. `own` decides which methods belong to the program.
    #[must_use]
    pub fn new(part: Part, own: OwnCode) -> Self {
        let mut samples =
            Samples::new([Clock::Wall, Clock::Contention, Clock::Allocations]).of_part(part.clone());
        samples.names_mut().set_own_code(own);
        let mut account = Self {
            samples,
            cells: Cells::default(),
            span: RecordingSpan::new(part),
            measures: Vec::new(),
            labels: Vec::new(),
            label_numbers: BTreeMap::new(),
            waits: BTreeMap::new(),
            acquired: BTreeMap::new(),
        };
        for label in ["", Account::LARGE] {
            account.label(label.into());
        }
        account
    }

    /// Takes the time of the last sequence point, up to which the recording lasts at least.
    pub fn extend_to(&mut self, nanoseconds: i64) {
        self.span.extend_to(nanoseconds);
    }

    /// Returns the number of a label; that of the empty one if there is no room.
    fn label(&mut self, label: String) -> u32 {
        if let Some(known) = self.label_numbers.get(&label) {
            return *known;
        }
        if self.labels.len() >= Self::LABELS {
            return 0;
        }
        let number = to_u32(self.labels.len());
        self.labels.push(label.clone());
        self.label_numbers.insert(label, number);
        number
    }

    #[cold]
    fn find_measure(&mut self, event: &TraceEvent<'_>, of_runtime: Option<RuntimeEvent>) -> Option<Measure> {
        let measure = Measure::of_event(event, of_runtime);
        let place = to_usize(event.kind());
        if place >= self.measures.len() {
            self.measures.resize(place.saturating_add(1), None);
        }
        if let Some(known) = self.measures.get_mut(place) {
            *known = Some(measure);
        }
        measure
    }

    /// Stores the lock for which a thread begins to wait.
    fn begin_wait(&mut self, event: &TraceEvent<'_>) {
        let Some(thread) = self.samples.thread_of(event) else { return };
        let lock = ContentionRow::decode(event.payload(), pointer_size(event)).lock;
        let label = lock.map_or(0, |lock| self.label(lock.to_string()));
        self.waits.insert(thread, label);
    }

    /// Returns the label of an event that is not a wait for a lock.
    fn label_of(&mut self, event: &TraceEvent<'_>, of_runtime: Option<RuntimeEvent>) -> u32 {
        match of_runtime {
            Some(RuntimeEvent::ExceptionThrown) => {
                let name = text(event, "ExceptionType").map(owned).unwrap_or_default();
                self.label(cut(&name, Self::LABEL).into())
            }
            Some(RuntimeEvent::GCAllocationTick) => AllocationRow::of_tick(event).is_large.into(),
            Some(RuntimeEvent::AllocationSampled) => AllocationRow::of_sampled(event).is_large.into(),
            _ => 0,
        }
    }
}

impl Analysis for TimeAccount {
    type Report = Account;

    fn event(&mut self, event: &TraceEvent<'_>) {
        let Some(kind) = self.span.event(event) else { return };
        let mut taken: Option<(Measure, Interval)> = None;
        self.samples.event_with(event, &mut |clock, interval| taken = Some((Measure::of(clock), *interval)));
        if kind.of_runtime == Some(RuntimeEvent::ContentionStart) {
            self.begin_wait(event);
        }
        if kind.of_runtime == Some(RuntimeEvent::ThreadSample) && taken.is_none() {
            return;
        }
        if taken.is_none() {
            let measure = match self.measures.get(to_usize(event.kind())) {
                Some(Some(measure)) => *measure,
                _ => self.find_measure(event, kind.of_runtime),
            };
            taken = measure.and_then(|measure| Some((measure, self.samples.point(event)?)));
        }
        let Some((measure, interval)) = taken else { return };
        let (label, end) = match measure {
            Measure::Contention => {
                self.acquired.insert(interval.thread, event.nanoseconds());
                let label = self.waits.remove(&interval.thread).unwrap_or_default();
                (label, interval.start.saturating_add_unsigned(interval.weight.total()))
            }
            _ => (self.label_of(event, kind.of_runtime), interval.start),
        };
        self.cells.add(measure, label, &interval, end);
    }

    fn finish(self) -> Account {
        let Self { mut samples, mut cells, span, labels, waits, acquired, .. } = self;
        let mut open = BTreeMap::new();
        samples.finish_with(&mut |clock, interval| {
            open.insert(interval.thread, interval.start);
            let (_, end) = span.times();
            let label = waits.get(&interval.thread).copied().unwrap_or_default();
            cells.add(Measure::of(clock), label, interval, end.max(interval.start));
        });
        Account::new(samples, cells, span, labels, acquired, open)
    }
}
