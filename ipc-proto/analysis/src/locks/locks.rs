//! Takes the events of a trace for the report on its locks.
use alloc::collections::BTreeMap;

use nettrace::TraceEvent;

use super::lock_report::LockReport;
use super::process_locks::{self, Room};
use super::process_locks::{ContentionRow, contention_time, runtime_version};
use super::process_locks::{ProcessLocks, WaitSample};
use super::report::report;
use crate::event::{EventKinds, pointer_size};
use crate::names::{Names, ThreadRow};
use crate::trace::{RecordingEnd, elapsed};
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
    part: Part,
    kinds: EventKinds,
    names: Names,
    stacks: Stacks,
    processes: BTreeMap<Option<u64>, ProcessLocks>,
    room: Room,
    own: OwnCode,
    /// The time of the first event of the part.
    start: Option<i64>,
    end: RecordingEnd,
}

impl Locks {
    /// How many threads are distinguished at most.
    pub const THREADS: usize = process_locks::THREADS;
    /// How many locks are distinguished at most.
    pub const LOCKS: usize = process_locks::LOCKS;
    /// How many pairs of a lock and a stack are stored at most.
    pub const ENTRIES: usize = process_locks::ENTRIES;

    /// Finds the locks for which the threads of a part of the trace wait, as if only the part had been recorded. Takes all
    /// events of the trace nevertheless: any of them can name code and threads.
    #[must_use]
    pub fn of_part(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// Sets which methods belong to the program: a wait is shown by the innermost of them.
    #[must_use]
    pub fn with_own_code(self, own: OwnCode) -> Self {
        Self { own, ..self }
    }

    fn contention_start(&mut self, event: &TraceEvent<'_>, time: i64) {
        let row = ContentionRow::decode(event.payload(), pointer_size(event));
        let stack = self.stacks.of(event, &mut self.names);
        if let Some((process, room)) = self.process(event) {
            process.start(event.thread_id(), time, &row, stack, room);
        }
    }

    fn sample(&mut self, event: &TraceEvent<'_>, time: i64) {
        const MANAGED: [u8; 4] = [2, 0, 0, 0];
        let stack = self.stacks.of(event, &mut self.names);
        if stack == StackId::EMPTY {
            return;
        }
        let is_managed = event.payload().first_chunk() == Some(&MANAGED);
        if let Some((process, room)) = self.process(event) {
            process.sample(event.thread_id(), WaitSample { time, stack, is_managed }, room);
        }
    }

    /// Returns the state of the process of an event, if there is room.
    fn process(&mut self, event: &TraceEvent<'_>) -> Option<(&mut ProcessLocks, &mut Room)> {
        let process_id = event.process_id();
        // Each process has a thread at least.
        if self.processes.len() >= Self::THREADS && !self.processes.contains_key(&process_id) {
            self.room.drop_event();
            return None;
        }
        let process = self.processes.entry(process_id).or_insert_with(|| ProcessLocks::new(process_id));
        Some((process, &mut self.room))
    }
}

impl Analysis for Locks {
    type Report = LockReport;

    fn event(&mut self, event: &TraceEvent<'_>) {
        let Some(kind) = self.kinds.of(event) else { return };
        let time = event.nanoseconds();
        let is_inside = self.part.includes(event);
        if self.part.has_time(time) {
            self.start.get_or_insert(time);
        }
        self.end.event(event, kind.is_rundown());
        let Some(provider) = kind.provider else { return };
        self.names.known_event(event, provider, kind.of_runtime);
        let Some(of_runtime) = kind.of_runtime else { return };
        let payload = event.payload();
        match of_runtime {
            RuntimeEvent::ContentionStart if is_inside => self.contention_start(event, time),
            RuntimeEvent::ContentionStop if is_inside => {
                if let Some((process, room)) = self.process(event) {
                    process.stop(event.thread_id(), time, contention_time(payload), room);
                }
            }
            RuntimeEvent::ThreadCreated | RuntimeEvent::ThreadDC => {
                if let (Ok(row), Some((process, room))) = (ThreadRow::decode(payload), self.process(event)) {
                    process.thread_row(&row, room);
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
            RuntimeEvent::ThreadSample if is_inside => self.sample(event, time),
            _ => {}
        }
    }

    fn extend_to(&mut self, nanoseconds: i64) {
        self.end.extend_to(nanoseconds);
    }

    fn finish(self) -> LockReport {
        let Self { part, names, stacks, processes, room, own, start, end, .. } = self;
        let end = end.nanoseconds();
        let end = part.overlap(i64::MIN, end).map_or(end, |(_, end)| end);
        let span = elapsed(start.unwrap_or(end), end);
        let report = report(processes, names, &stacks, &own, end);
        LockReport { span, dropped: room.dropped, ..report }
    }
}
