//! Finds the compilations in events.
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use ipc_proto::DecodeError;
use ipc_proto::wire::{Reader, to_u64};
use nettrace::TraceEvent;

use super::{Compilation, JitStatistics, Tier};
use crate::names::{MethodNames, MethodRow, method_name};
use crate::trace::elapsed;
use crate::{Analysis, Part, RuntimeEvent};

/// Finds the compilations of each process in the events of a trace, which must come in the order of time: see
/// [`EventOrder::Time`](nettrace::EventOrder::Time).
///
/// Take compilations with [`pop`](Self::pop) after each event. Compilations that began after one that has not ended
/// wait, in up to 4 MiB. If they need more memory, the first ones are returned without an end. The work for each event
/// is logarithmic in the number of threads and of methods that are compiled. A load ends the compilation of its own
/// method on its thread of its process: one without a start, and a start without a load, stay alone.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::jit::Compilations;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net10-compilations.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut compilations = Compilations::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     compilations.event(&event);
///     while let Some(compilation) = compilations.pop() {
///         println!("{:?} ns for {}", compilation.duration, compilation.method);
///     }
/// }
/// let report = compilations.finish();
/// assert!(report.statistics.all.durations.longest() > 1_000_000);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Compilations {
    part: Part,
    /// Compilations that were not returned yet, in the order of their start.
    waiting: VecDeque<WaitingCompilation>,
    /// The memory of the compilations in `waiting`, in bytes.
    waiting_bytes: usize,
    /// The number of compilations that were returned.
    returned: u64,
    /// The open compilations of each process, thread and method, by their indexes among all compilations, in the order
    /// of their start.
    open: BTreeMap<Key, VecDeque<u64>>,
    is_finished: bool,
    statistics: JitStatistics,
    has_start: bool,
}

/// The report on the compilations of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JitReport {
    /// The compilations that [`Compilations::pop`] has not returned, complete or not.
    pub compilations: Vec<Compilation>,
    /// The statistics of all compilations whose load was in the events.
    pub statistics: JitStatistics,
    /// Whether the trace has the start of a runtime.
    pub has_start: bool,
}

/// A process, a thread and a method.
type Key = (Option<u64>, u64, u64);

#[derive(Debug, Clone)]
struct WaitingCompilation {
    compilation: Compilation,
    method_id: u64,
    has_start: bool,
    is_open: bool,
}

impl WaitingCompilation {
    fn key(&self) -> Key {
        (self.compilation.process_id, self.compilation.thread_index, self.method_id)
    }

    /// Returns the memory of the compilation in bytes, with its list of open ones.
    fn bytes(&self) -> usize {
        self.compilation.method.capacity().saturating_add(FIXED_BYTES)
    }
}

/// The memory of a compilation without its name, in bytes.
const FIXED_BYTES: usize = size_of::<WaitingCompilation>() + 160;

/// The most bytes of memory for compilations that wait.
const MAX_WAITING_BYTES: usize = 4 << 20;

impl Compilations {
    /// Returns only the compilations of a part of the trace: those that begin in it, on its threads. Takes all events
    /// of the trace nevertheless.
    #[must_use]
    pub fn of_part(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// Returns the next compilation that no later event can change, in the order of their start.
    pub fn pop(&mut self) -> Option<Compilation> {
        loop {
            let front = self.waiting.front()?;
            if front.is_open && !self.is_finished && self.waiting_bytes <= MAX_WAITING_BYTES {
                return None;
            }
            self.waiting_bytes = self.waiting_bytes.saturating_sub(front.bytes());
            self.returned = self.returned.saturating_add(1);
            let waiting = self.waiting.pop_front()?;
            if waiting.is_open {
                // The oldest compilation that waits is also the oldest open one of its method on its thread.
                self.close(waiting.key(), VecDeque::pop_front);
            }
            if includes(&self.part, &waiting.compilation) {
                return Some(waiting.compilation);
            }
        }
    }

    fn jitting_started(&mut self, event: &TraceEvent<'_>) {
        let started = Compilation {
            process_id: event.process_id(),
            start: event.nanoseconds(),
            thread: event.thread_id(),
            thread_index: event.thread_index(),
            ..Compilation::default()
        };
        match JittingRow::decode(event.payload()) {
            Ok(row) => {
                let method = method_name(&row.names);
                let il_size = Some(row.il_size.into());
                let started = Compilation { method, module_id: row.module, il_size, ..started };
                self.start(started, Some(row.method), true);
            }
            Err(_) => self.start(started, None, true),
        }
    }

    /// Adds a compilation. Without its method, it has no partner.
    fn start(&mut self, compilation: Compilation, method_id: Option<u64>, has_start: bool) {
        let place = self.returned.saturating_add(to_u64(self.waiting.len()));
        let is_open = method_id.is_some();
        let method_id = method_id.unwrap_or_default();
        let started = WaitingCompilation { compilation, method_id, has_start, is_open };
        if is_open {
            self.open.entry(started.key()).or_default().push_back(place);
        }
        self.waiting_bytes = self.waiting_bytes.saturating_add(started.bytes());
        self.waiting.push_back(started);
    }

    fn load(&mut self, event: &TraceEvent<'_>, row: Option<MethodRow<'_>>) {
        const JITTED: u32 = 8;
        let Some(row) = row.filter(|row| row.code.flags & JITTED != 0) else { return };
        // A load belongs to the start of the same method. Without one, the start was lost or was before the trace.
        let key = (event.process_id(), event.thread_index(), row.code.method);
        if !self.open.contains_key(&key) {
            let loaded = Compilation {
                process_id: key.0,
                method: method_name(&row.names),
                module_id: row.code.module,
                start: event.nanoseconds(),
                thread: event.thread_id(),
                thread_index: key.1,
                ..Compilation::default()
            };
            self.start(loaded, Some(row.code.method), false);
        }
        let place = self.open.get(&key).and_then(|places| places.back()).copied();
        let place = place.and_then(|place| usize::try_from(place.checked_sub(self.returned)?).ok());
        let Some(started) = place.and_then(|place| self.waiting.get_mut(place)) else { return };
        let WaitingCompilation { compilation, has_start, is_open, .. } = started;
        let elapsed = elapsed(compilation.start, event.nanoseconds());
        compilation.native_size = Some(row.code.size.into());
        compilation.duration = has_start.then_some(elapsed);
        compilation.tier = Some(Tier::from_flags(row.code.flags));
        compilation.version = row.version.unwrap_or_default();
        if includes(&self.part, compilation) {
            self.statistics.add(compilation);
        }
        // TraceEvent recognizes the end of a compilation by its size and time. A method with neither stays open.
        if row.code.size > 0 || elapsed > 0 {
            *is_open = false;
            self.close(key, VecDeque::pop_back);
        }
    }

    /// Removes the first or the last open compilation of a method on a thread.
    fn close(&mut self, key: Key, remove: fn(&mut VecDeque<u64>) -> Option<u64>) {
        if let Some(places) = self.open.get_mut(&key) {
            remove(places);
            if places.is_empty() {
                self.open.remove(&key);
            }
        }
    }
}

impl Analysis for Compilations {
    type Report = JitReport;

    fn event(&mut self, event: &TraceEvent<'_>) {
        self.part.includes(event);
        match RuntimeEvent::of(event) {
            Some(RuntimeEvent::MethodJittingStarted) => self.jitting_started(event),
            Some(RuntimeEvent::MethodLoad) => {
                self.load(event, MethodRow::decode_without_names(event.payload()).ok())
            }
            Some(RuntimeEvent::MethodLoadVerbose) => {
                self.load(event, MethodRow::decode(event.payload()).ok())
            }
            Some(RuntimeEvent::RuntimeInformationStart) => self.has_start = true,
            _ => {}
        }
    }

    fn finish(mut self) -> JitReport {
        self.is_finished = true;
        let compilations = core::iter::from_fn(|| self.pop()).collect();
        JitReport { compilations, statistics: self.statistics, has_start: self.has_start }
    }
}

/// Returns whether a compilation is in a part of the trace.
fn includes(part: &Part, compilation: &Compilation) -> bool {
    part.has_time(compilation.start) && part.has_thread(compilation.thread, compilation.thread_index)
}

/// The start of a compilation: MethodJittingStarted.
///
/// ```text
/// u64 method, u64 module, u32 token, u32 size of the IL, names
/// ```
#[derive(Debug, Clone, Copy)]
struct JittingRow<'a> {
    method: u64,
    module: u64,
    il_size: u32,
    names: MethodNames<'a>,
}

impl<'a> JittingRow<'a> {
    fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [method, module]: [u64; 2] = [r.read()?, r.read()?];
        let [_token, il_size]: [u32; 2] = [r.read()?, r.read()?];
        Ok(Self { method, module, il_size, names: MethodNames::read(&mut r) })
    }
}
