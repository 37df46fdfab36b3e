//! Takes the events of a trace for the account of its time.
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_usize};
use nettrace::TraceEvent;

use super::cells::{Cells, Measure};
use super::report::{Account, LockWaits};
use crate::event::{owned, pointer_size, text};
use crate::locks::{ContentionRow, LockEvents};
use crate::names::{Names, cut};
use crate::requests::RequestEvents;
use crate::samples::{AllocationRow, Clock, Interval, Samples, ThreadNumber};
use crate::trace::RecordingSpan;
use crate::{Analysis, OwnCode, Part, RuntimeEvent};

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
    locks: LockEvents,
    requests: RequestEvents,
    /// The measures of events that count 1, by [`TraceEvent::kind`], once they were searched.
    measures: Vec<Option<Option<Measure>>>,
    labels: Vec<String>,
    label_numbers: BTreeMap<String, u32>,
    /// The label of the lock for which each thread waits.
    waits: BTreeMap<ThreadNumber, u32>,
    lock_waits: LockWaits,
}

impl Default for TimeAccount {
    fn default() -> Self {
        Self::new(Part::default(), OwnCode::default())
    }
}

impl TimeAccount {
    /// How many sums are stored at most.
    pub const CELLS: usize = Cells::LIMIT;
    /// How many labels are stored at most.
    const LABELS: usize = 1 << 12;
    /// The longest label in bytes.
    const LABEL: usize = 200;

    /// Creates an account of a part of a trace. `own` decides which methods belong to the program.
    #[must_use]
    pub fn new(part: Part, own: OwnCode) -> Self {
        let mut samples = Samples::new([Clock::Wall, Clock::Contention, Clock::Waits, Clock::Allocations])
            .of_part(part.clone());
        samples.names_mut().set_own_code(own);
        let mut account = Self {
            samples,
            cells: Cells::default(),
            span: RecordingSpan::new(part),
            locks: LockEvents::default(),
            requests: RequestEvents::default(),
            measures: Vec::new(),
            labels: Vec::new(),
            label_numbers: BTreeMap::new(),
            waits: BTreeMap::new(),
            lock_waits: LockWaits::default(),
        };
        for label in ["", Account::LARGE] {
            account.label(label.into());
        }
        account
    }

    /// Returns the names, to add those of a perf map or of native symbols.
    pub const fn names_mut(&mut self) -> &mut Names {
        self.samples.names_mut()
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
        let tables = self.samples.tables();
        match (kind.provider, kind.of_runtime) {
            (None, _) => self.requests.event(event, self.span.part(), tables),
            (_, Some(of_runtime)) => self.locks.event(event, of_runtime, self.span.is_inside(), tables),
            _ => {}
        }
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
                self.lock_waits.acquired.insert(interval.thread, event.nanoseconds());
                let label = self.waits.remove(&interval.thread).unwrap_or_default();
                (label, interval.start.saturating_add_unsigned(interval.weight.total()))
            }
            Measure::Waits => (0, interval.start.saturating_add_unsigned(interval.weight.total())),
            _ => (self.label_of(event, kind.of_runtime), interval.start),
        };
        self.cells.add(measure, label, &interval, end);
    }

    fn extend_to(&mut self, nanoseconds: i64) {
        self.span.extend_to(nanoseconds);
    }

    fn finish(self) -> Account {
        let Self { mut samples, mut cells, span, locks, requests, labels, waits, mut lock_waits, .. } = self;
        let locks = locks.finish(&span, samples.tables());
        let requests = requests.finish(&span, samples.tables());
        samples.finish_with(&mut |clock, interval| {
            let measure = Measure::of(clock);
            let mut label = 0;
            if measure == Measure::Contention {
                lock_waits.open.insert(interval.thread, interval.start);
                label = waits.get(&interval.thread).copied().unwrap_or_default();
            }
            let (_, end) = span.times();
            cells.add(measure, label, interval, end.max(interval.start));
        });
        Account::new(samples, cells, span, labels, lock_waits, locks, requests)
    }
}
