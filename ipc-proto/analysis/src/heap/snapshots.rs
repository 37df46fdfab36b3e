//! The snapshots of a trace.
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ipc_proto::wire::{Reader, to_u64};
use nettrace::TraceEvent;

use super::graph::Graph;
use super::rows::{BulkHead, TypeElement};
use super::snapshot::{Draft, indexed_slot};
use super::type_table::TypeTable;
use crate::event::{EventKinds, owned, pointer_size, row_text};
use crate::{Analysis, RuntimeEvent};

/// Finds the heap snapshots of each process in the events of a trace, which must come in the order of time: see
/// [`EventOrder::Time`](nettrace::EventOrder::Time).
///
/// The last complete snapshot of a process counts; without a complete one, the last one. The memory is proportional to
/// the bytes of the events, and the work for each event to its bytes: see [`Graph`]. The events of at most 65,536
/// processes are taken. While a session records, [`objects`](Self::objects) and [`bytes`](Self::bytes) show the
/// progress, and [`has_complete`](Self::has_complete) when it can be stopped.
#[derive(Debug, Default)]
pub struct Snapshots {
    kinds: EventKinds,
    processes: BTreeMap<Option<u64>, Process>,
}

/// A heap snapshot of a process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HeapSnapshot {
    /// The id of the process; `None` if the trace does not state it.
    pub process_id: Option<u64>,
    /// The time of the first event, in nanoseconds from the start of the trace.
    pub start: i64,
    /// The time of the last event.
    pub end: i64,
    /// Whether the snapshot has all its events. One of a runtime that sends no collections is complete if nothing is
    /// missing at the end of the trace.
    pub is_complete: bool,
    /// The objects.
    pub graph: Graph,
}

#[derive(Debug, Clone, Default)]
struct Process {
    types: TypeTable,
    /// The paths of modules by id.
    modules: BTreeMap<u64, Arc<str>>,
    current: Option<Draft>,
    last: Option<Draft>,
}

/// The number of processes whose events are taken.
const MAX_PROCESSES: usize = 1 << 16;

impl Snapshots {
    /// Returns whether a process has a complete snapshot.
    #[must_use]
    pub fn has_complete(&self) -> bool {
        self.processes.values().any(|process| process.last.as_ref().is_some_and(Draft::is_whole))
    }

    /// Returns whether a snapshot has ended, complete or not: no later event belongs to it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.processes.values().any(|process| process.last.is_some())
    }

    /// Returns the number of objects of the latest snapshots so far.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.latest().map(|draft| to_u64(draft.nodes.addresses.len())).fold(0, u64::saturating_add)
    }

    /// Returns the bytes of the objects of the latest snapshots so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.latest().map(|draft| draft.bytes).fold(0, u64::saturating_add)
    }

    fn latest(&self) -> impl Iterator<Item = &Draft> {
        self.processes.values().filter_map(|process| process.current.as_ref().or(process.last.as_ref()))
    }
}

impl Analysis for Snapshots {
    type Report = Vec<HeapSnapshot>;

    fn event(&mut self, event: &TraceEvent<'_>) {
        let Some(of_runtime) = self.kinds.of(event).and_then(|kind| kind.of_runtime) else { return };
        if !is_needed(of_runtime) {
            return;
        }
        let process_id = event.process_id();
        if self.processes.len() >= MAX_PROCESSES && !self.processes.contains_key(&process_id) {
            return;
        }
        let _ = self.processes.entry(process_id).or_default().event(event, of_runtime);
    }

    /// Returns the snapshot of each process that has one.
    fn finish(self) -> Vec<HeapSnapshot> {
        let processes = self.processes.into_iter();
        processes.filter_map(|(process_id, process)| process.finish(process_id)).collect()
    }
}

const fn is_needed(of_runtime: RuntimeEvent) -> bool {
    use RuntimeEvent as E;
    matches!(of_runtime, E::GCStart | E::GCEnd | E::GCRestartEEEnd | E::BulkType)
        || matches!(of_runtime, E::ModuleLoad | E::ModuleDCStart | E::ModuleDCEnd)
        || indexed_slot(of_runtime).is_some()
        || matches!(of_runtime, E::GCBulkRootCCW | E::GCBulkRootStaticVar)
}

impl Process {
    fn event(&mut self, event: &TraceEvent<'_>, of_runtime: RuntimeEvent) -> Option<()> {
        let now = event.nanoseconds();
        let r = &mut Reader::new(event.payload());
        match of_runtime {
            RuntimeEvent::BulkType => {
                let head = BulkHead::read(r, false).ok()?;
                head.each(r, |r| TypeElement::read(r).map(|element| self.types.describe(&element)));
            }
            RuntimeEvent::ModuleLoad | RuntimeEvent::ModuleDCStart | RuntimeEvent::ModuleDCEnd => {
                // u64 module, u64 assembly, u32 flags, u32 reserved, path of the module, …
                let module = r.read().ok()?;
                r.bytes(16).ok()?;
                self.modules.insert(module, owned(row_text(r)).into());
            }
            RuntimeEvent::GCStart => {
                let [number, depth, reason, kind]: [u32; 4] =
                    [r.read().ok()?, r.read().ok()?, r.read().ok()?, r.read().ok()?];
                // An induced collection of everything that blocks the program.
                if depth >= 2 && reason == 1 && kind == 0 {
                    self.end(now, false);
                    self.current = Some(Draft::new(now, Some(number)));
                }
            }
            RuntimeEvent::GCEnd => {
                let number = r.read().ok()?;
                if self.current.as_ref()?.collection == Some(number) {
                    self.end(now, true);
                }
            }
            RuntimeEvent::GCRestartEEEnd => self.end(now, true),
            bulk => {
                let is_later = |draft: &Draft| {
                    let index = Reader::new(event.payload()).read().ok();
                    indexed_slot(bulk).zip(index).is_some_and(|(slot, index)| draft.is_before(slot, index))
                };
                if self.current.as_ref().is_some_and(is_later) {
                    self.end(now, false);
                }
                let draft = self.current.get_or_insert_with(|| Draft::new(now, None));
                draft.end = now;
                draft.bulk(bulk, event.payload(), pointer_size(event), &mut self.types)?;
            }
        }
        Some(())
    }

    /// Ends the current snapshot. It counts if it has objects, unless the one before it was complete and it is not.
    fn end(&mut self, now: i64, has_ended: bool) {
        let Some(mut draft) = self.current.take().filter(|draft| !draft.nodes.addresses.is_empty()) else {
            return;
        };
        draft.end = now;
        draft.is_open = draft.collection.is_some() && !has_ended;
        let is_better = |last: &Draft| draft.is_whole() || !last.is_whole();
        if self.last.as_ref().is_none_or(is_better) {
            self.last = Some(draft);
        }
    }

    fn finish(mut self, process_id: Option<u64>) -> Option<HeapSnapshot> {
        if let Some(end) = self.current.as_ref().map(|draft| draft.end) {
            self.end(end, false);
        }
        let draft = self.last?;
        let (start, end, is_complete) = (draft.start, draft.end, draft.is_whole());
        let graph = draft.into_graph(&self.types, &self.modules);
        Some(HeapSnapshot { process_id, start, end, is_complete, graph })
    }
}
