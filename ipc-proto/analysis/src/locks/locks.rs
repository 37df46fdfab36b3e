//! Takes the events of a trace for the report on its locks.
use alloc::collections::BTreeMap;

use nettrace::TraceEvent;

use super::handles::HandleWaits;
use super::lock_report::LockReport;
use super::process_locks::{self, Room};
use super::process_locks::{ContentionRow, contention_time, runtime_version};
use super::process_locks::{ProcessLocks, WaitSample};
use super::report::report;
use crate::event::pointer_size;
use crate::names::{Names, ThreadRow};
use crate::samples::{ThreadNumber, Threads, TraceTables};
use crate::trace::RecordingSpan;
use crate::{Analysis, OwnCode, Part, RuntimeEvent, StackId, Stacks};

/// Finds the locks for which the threads of each process wait. The events must come in the order of time: see
/// [`EventOrder::Time`](nettrace::EventOrder::Time). The [module](super) has the rules.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::locks::Locks;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net10-locks.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut locks = Locks::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     locks.event(&event);
/// }
/// let report = locks.finish();
/// for lock in &report.locks {
///     println!("{:?}: {} waits, {} ns", lock.id, lock.waits.count, lock.waits.total);
/// }
/// # assert!(!report.locks.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Locks {
    span: RecordingSpan,
    names: Names,
    stacks: Stacks,
    threads: Threads,
    events: LockEvents,
}

/// The locks by their events. Names, stacks and threads are those of the analysis that it is a part of.
#[derive(Debug, Default)]
pub(crate) struct LockEvents {
    processes: BTreeMap<Option<u64>, ProcessLocks>,
    handles: HandleWaits,
    room: Room,
}

impl Locks {
    /// How many threads are distinguished at most.
    pub const THREADS: usize = Threads::LIMIT;
    /// How many locks are distinguished at most.
    pub const LOCKS: usize = process_locks::LOCKS;
    /// How many pairs of a lock and a stack are stored at most.
    pub const ENTRIES: usize = process_locks::ENTRIES;

    /// Finds the locks for which the threads of a part of the trace wait, as if only the part had been recorded. Takes all
    /// events of the trace nevertheless: any of them can name code and threads.
    #[must_use]
    pub fn of_part(self, part: Part) -> Self {
        Self { span: RecordingSpan::new(part), ..self }
    }

    /// Sets which methods belong to the program: a wait is shown by the innermost of them.
    #[must_use]
    pub fn with_own_code(mut self, own: OwnCode) -> Self {
        self.names.set_own_code(own);
        self
    }

    /// Returns the names, to add those of a perf map or of native symbols.
    pub const fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }
}

impl LockEvents {
    /// Takes an event of the runtime, which is in the part of the trace that counts or not.
    pub(crate) fn event(
        &mut self,
        event: &TraceEvent<'_>,
        of_runtime: RuntimeEvent,
        is_inside: bool,
        tables: TraceTables<'_>,
    ) {
        let payload = event.payload();
        match of_runtime {
            RuntimeEvent::ContentionStart if is_inside => {
                let row = ContentionRow::decode(payload, pointer_size(event));
                let stack = tables.stacks.of(event, tables.names);
                if let Some((process, thread, room)) = self.thread(event, tables.threads) {
                    process.start(thread, event, &row, stack, room);
                }
            }
            RuntimeEvent::WaitHandleWaitStart if is_inside => {
                if let Some(thread) = tables.threads.of(event) {
                    let stack = tables.stacks.of(event, tables.names);
                    self.handles.start(thread, event.nanoseconds(), stack);
                }
            }
            RuntimeEvent::WaitHandleWaitStop if is_inside => {
                if let Some(thread) = tables.threads.of(event) {
                    self.handles.stop(thread, event.nanoseconds());
                }
            }
            RuntimeEvent::ContentionStop if is_inside => {
                if let Some((process, thread, room)) = self.thread(event, tables.threads) {
                    process.stop(thread, event.nanoseconds(), contention_time(payload), room);
                }
            }
            RuntimeEvent::ThreadCreated | RuntimeEvent::ThreadDC => {
                let Ok(row) = ThreadRow::decode(payload) else { return };
                let thread = tables.threads.of_row(event, &row);
                if let (Some(thread), Some((process, _))) = (thread, self.process(event)) {
                    process.thread_row(thread, &row);
                }
            }
            RuntimeEvent::RuntimeInformationStart | RuntimeEvent::RuntimeInformationDCStart => {
                if let (Some(version), Some((process, _))) = (runtime_version(payload), self.process(event)) {
                    process.version = Some(version);
                }
            }
            RuntimeEvent::DCEndComplete => {
                if let Some((process, _)) = self.process(event) {
                    process.has_rundown = true;
                }
            }
            RuntimeEvent::ThreadSample if is_inside => self.sample(event, tables),
            _ => {}
        }
    }

    fn sample(&mut self, event: &TraceEvent<'_>, tables: TraceTables<'_>) {
        const MANAGED: [u8; 4] = [2, 0, 0, 0];
        let stack = tables.stacks.of(event, tables.names);
        if stack == StackId::EMPTY {
            return;
        }
        let is_managed = event.payload().first_chunk() == Some(&MANAGED);
        let sample = WaitSample { time: event.nanoseconds(), stack, is_managed };
        if let Some((process, thread, room)) = self.thread(event, tables.threads) {
            process.sample(thread, event.thread_id(), sample, room);
        }
    }

    /// Returns the state of the process and the number of the thread of an event, if there is room.
    fn thread(
        &mut self,
        event: &TraceEvent<'_>,
        threads: &mut Threads,
    ) -> Option<(&mut ProcessLocks, ThreadNumber, &mut Room)> {
        let thread = threads.of(event);
        if thread.is_none() {
            self.room.drop_event();
        }
        let (process, room) = self.process(event)?;
        Some((process, thread?, room))
    }

    /// Returns the state of the process of an event, if there is room.
    fn process(&mut self, event: &TraceEvent<'_>) -> Option<(&mut ProcessLocks, &mut Room)> {
        let process_id = event.process_id();
        // Each process has a thread at least.
        if self.processes.len() >= Threads::LIMIT && !self.processes.contains_key(&process_id) {
            self.room.drop_event();
            return None;
        }
        let process = self.processes.entry(process_id).or_insert_with(|| ProcessLocks::new(event));
        Some((process, &mut self.room))
    }

    /// Returns the report on the locks of a recording.
    pub(crate) fn finish(self, span: &RecordingSpan, tables: TraceTables<'_>) -> LockReport {
        let (_, end) = span.times();
        let report = report(self.processes, self.handles, tables, end);
        LockReport { span: span.length(), end, dropped: self.room.dropped, ..report }
    }
}

impl Analysis for Locks {
    type Report = LockReport;

    fn event(&mut self, event: &TraceEvent<'_>) {
        let Self { span, names, stacks, threads, events } = self;
        let Some(kind) = span.event(event) else { return };
        let Some(provider) = kind.provider else { return };
        names.known_event(event, provider, kind.of_runtime);
        if let Some(of_runtime) = kind.of_runtime {
            events.event(event, of_runtime, span.is_inside(), TraceTables { names, stacks, threads });
        }
    }

    fn extend_to(&mut self, nanoseconds: i64) {
        self.span.extend_to(nanoseconds);
    }

    fn finish(self) -> LockReport {
        let Self { span, mut names, mut stacks, mut threads, events } = self;
        let tables = TraceTables { names: &mut names, stacks: &mut stacks, threads: &mut threads };
        events.finish(&span, tables)
    }
}
