//! A snapshot that is being received.
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ipc_proto::wire::Reader;

use super::edges::Targets;
use super::graph::{Graph, Missing, Root, RootKind};
use super::node_columns::NodeColumns;
use super::rows::{BulkHead, NodeElement, pointers};
use super::type_table::TypeTable;
use crate::RuntimeEvent;
use crate::event::{owned, row_text};

/// The events of a snapshot so far. Its sizes follow the bytes of the events.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    pub(super) start: i64,
    pub(super) end: i64,
    /// The number of the collection, if its start was in the trace.
    pub(super) collection: Option<u32>,
    /// Whether the trace has the start of the collection, and not its end.
    pub(super) is_open: bool,
    pub(super) nodes: NodeColumns,
    pub(super) targets: Targets,
    /// The number of references that the nodes state.
    stated: u64,
    pub(super) bytes: u64,
    roots: Vec<Root>,
    missing: Missing,
    /// The index that the next event of each indexed kind must have.
    next: [u32; 4],
}

impl Draft {
    pub(super) fn new(start: i64, collection: Option<u32>) -> Self {
        Self { start, end: start, collection, ..Self::default() }
    }

    /// Returns whether an event with this index belongs to a later snapshot.
    pub(super) fn is_before(&self, slot: usize, index: u32) -> bool {
        self.next.get(slot).is_some_and(|next| index < *next)
    }

    /// Takes an event with elements. `None` if its head is cut off.
    pub(super) fn bulk(
        &mut self,
        of_runtime: RuntimeEvent,
        payload: &[u8],
        pointer: usize,
        types: &mut TypeTable,
    ) -> Option<()> {
        let mut r = Reader::new(payload);
        let slot = indexed_slot(of_runtime);
        let head = match of_runtime {
            RuntimeEvent::GCBulkRootStaticVar => BulkHead::read_static(&mut r),
            _ => BulkHead::read(&mut r, slot.is_some()),
        };
        let head = head.ok()?;
        if let (Some(index), Some(next)) = (head.index, slot.and_then(|slot| self.next.get_mut(slot))) {
            let lost = index.saturating_sub(*next);
            *next = index.saturating_add(1);
            self.missing.lose(of_runtime, lost.into());
        }
        let r = &mut r;
        let cut = match of_runtime {
            RuntimeEvent::GCBulkNode => head.each(r, |r| {
                let node = NodeElement::read(r, pointer)?;
                // The last place means "no node".
                if self.nodes.addresses.len() >= u32::MAX as usize {
                    return None;
                }
                self.nodes.push(node.address, node.size, types.place(node.type_id), node.edges);
                self.bytes = self.bytes.saturating_add(node.size);
                self.stated = self.stated.saturating_add(node.edges);
                Some(())
            }),
            RuntimeEvent::GCBulkEdge => head.each(r, |r| {
                let [target] = pointers(r, pointer)?;
                r.bytes(4).ok()?;
                self.targets.push(target);
                Some(())
            }),
            RuntimeEvent::GCBulkRootEdge => head.each(r, |r| {
                let [address] = pointers(r, pointer)?;
                let (kind, flags): (u8, u32) = (r.read().ok()?, r.read().ok()?);
                let [id] = pointers(r, pointer)?;
                self.roots.push(Root { address, kind: RootKind::of(kind), flags, id, field: None });
                Some(())
            }),
            RuntimeEvent::GCBulkRootConditionalWeakTableElementEdge => head.each(r, |r| {
                let [key, address, _root] = pointers(r, pointer)?;
                self.roots.push(Root {
                    address,
                    kind: RootKind::Conditional,
                    flags: 0,
                    id: key,
                    field: None,
                });
                Some(())
            }),
            RuntimeEvent::GCBulkRootCCW => head.each(r, |r| {
                let [id, address]: [u64; 2] = [r.read().ok()?, r.read().ok()?];
                r.bytes(28).ok()?;
                self.roots.push(Root { address, kind: RootKind::Com, flags: 0, id, field: None });
                Some(())
            }),
            RuntimeEvent::GCBulkRootStaticVar => head.each(r, |r| {
                let [_, address, id]: [u64; 3] = [r.read().ok()?, r.read().ok()?, r.read().ok()?];
                let flags: u32 = r.read().ok()?;
                let kind = if flags & 1 == 0 { RootKind::Static } else { RootKind::ThreadStatic };
                self.roots.push(Root { address, kind, flags: 0, id, field: Some(owned(row_text(r)).into()) });
                Some(())
            }),
            _ => 0,
        };
        self.missing.elements = self.missing.elements.saturating_add(cut);
        Some(())
    }

    /// Makes the graph.
    pub(super) fn into_graph(self, types: &TypeTable, modules: &BTreeMap<u64, [Arc<str>; 2]>) -> Graph {
        let mut missing = self.missing;
        missing.references = self.stated.abs_diff(self.targets.len);
        Graph::new(self.nodes, self.targets, self.roots, types.with_modules(modules), missing)
    }

    /// Returns whether no event is missing so far.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_open
            && self.missing == Missing::default()
            && self.stated == self.targets.len
            && !self.nodes.addresses.is_empty()
    }
}

/// Returns the place of an event in [`Draft::next`], if such events have an index.
pub(super) const fn indexed_slot(of_runtime: RuntimeEvent) -> Option<usize> {
    match of_runtime {
        RuntimeEvent::GCBulkRootEdge => Some(0),
        RuntimeEvent::GCBulkRootConditionalWeakTableElementEdge => Some(1),
        RuntimeEvent::GCBulkNode => Some(2),
        RuntimeEvent::GCBulkEdge => Some(3),
        _ => None,
    }
}
