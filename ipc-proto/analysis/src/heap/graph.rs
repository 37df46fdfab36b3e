//! The objects of a snapshot and what they refer to.
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_u64, to_usize};

use super::addresses::AddressIndex;
use super::edges::{Targets, next_number, push_number, unzigzag, zigzag};
use super::node_columns::NodeColumns;
use super::type_table::HeapType;
use crate::RuntimeEvent;

/// The objects of a heap snapshot, their types, what they refer to, and the roots.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::heap::Snapshots;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/heap/net10-linux.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut snapshots = Snapshots::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     snapshots.event(&event);
/// }
/// let snapshots = snapshots.finish();
/// let graph = &snapshots[0].graph;
/// let rows = graph.rows();
/// let largest = rows.iter().max_by_key(|row| row.bytes).map(|row| graph.types()[row.type_place as usize].name());
/// assert_eq!(largest.as_deref(), Some("System.Byte[]"));
/// let leaves = (0..graph.len()).filter_map(|node| graph.node(node)).filter(|node| node.size == 24).count();
/// assert!(leaves > 1000 && graph.missing().is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Graph {
    pub(super) types: Vec<HeapType>,
    /// `edges` has the place of each node's first reference in `references`.
    nodes: NodeColumns,
    /// For each reference 1 + the difference of the nodes' numbers, or 0 if no node is at the address.
    references: Vec<u8>,
    index: AddressIndex,
    roots: Vec<Root>,
    missing: Missing,
}

/// An object of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The address of the object.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
    /// The place of the type in [`Graph::types`].
    pub type_place: u32,
}

/// A reference that keeps an object alive from outside the heap.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// The address of the object; that of the value if `kind` is [`RootKind::Conditional`].
    pub address: u64,
    /// What refers to the object.
    pub kind: RootKind,
    /// The flags of GCBulkRootEdge: 1 pinning, 2 weak, 4 interior, 8 counted references.
    pub flags: u32,
    /// The runtime's id of the root: the type of a static variable, the address of the key if the root is conditional.
    pub id: u64,
    /// The name of the static variable.
    pub field: Option<Arc<str>>,
}

/// What a [`Root`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RootKind {
    /// A variable or an argument of a method that runs.
    Stack,
    /// The queue of the finalizer.
    Finalizer,
    /// A handle of the runtime or of a `GCHandle`.
    Handle,
    /// Another root of the collector.
    Other,
    /// A static variable.
    Static,
    /// A static variable of a thread.
    ThreadStatic,
    /// Native code that holds the object by COM.
    Com,
    /// The value of a `ConditionalWeakTable` or of a dependent handle: alive while its key is.
    Conditional,
}

impl RootKind {
    /// Returns the kind of this number in GCBulkRootEdge.
    pub(super) const fn of(number: u8) -> Self {
        match number {
            0 => Self::Stack,
            1 => Self::Finalizer,
            2 => Self::Handle,
            _ => Self::Other,
        }
    }
}

impl Root {
    /// Returns whether the root keeps its object alive: a weak root does not, a conditional one depends on its key.
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        self.flags & 2 == 0 && !matches!(self.kind, RootKind::Conditional)
    }
}

/// What a snapshot does not have, because the stream lost events or was damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Missing {
    /// Lost events with objects.
    pub node_events: u64,
    /// Lost events with references.
    pub edge_events: u64,
    /// Lost events with roots.
    pub root_events: u64,
    /// Elements that an event stated but did not have.
    pub elements: u64,
    /// The difference between the references that the objects state and those that arrived.
    pub references: u64,
}

impl Missing {
    /// Returns whether nothing is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn lose(&mut self, of_runtime: RuntimeEvent, events: u64) {
        let lost = match of_runtime {
            RuntimeEvent::GCBulkNode => &mut self.node_events,
            RuntimeEvent::GCBulkEdge => &mut self.edge_events,
            _ => &mut self.root_events,
        };
        *lost = lost.saturating_add(events);
    }
}

/// The size in bytes from which on a runtime places an object in the heap of large objects, unless its settings differ.
/// A snapshot does not state the generations of objects.
pub const LARGE_OBJECT: u64 = 85_000;

/// The objects of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeRow {
    /// The place of the type in [`Graph::types`].
    pub type_place: u32,
    /// The number of objects.
    pub count: u64,
    /// The bytes of all objects, without what they refer to.
    pub bytes: u64,
    /// The size of the largest object in bytes.
    pub largest: u64,
    /// The bytes of the objects with at least [`LARGE_OBJECT`] bytes.
    pub large: u64,
}

/// The objects that roots keep alive.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Reachable {
    /// The number of objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// A bit for each node.
    bits: Vec<u64>,
}

impl Reachable {
    /// Returns whether a node is alive.
    #[must_use]
    pub fn has(&self, node: u32) -> bool {
        let (word, bit) = place_of(node);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Adds a node, and returns whether it is new.
    fn add(&mut self, node: u32, size: u64) -> bool {
        let (word, bit) = place_of(node);
        let Some(bits) = self.bits.get_mut(word).filter(|bits| **bits & bit == 0) else { return false };
        *bits |= bit;
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size);
        true
    }
}

const fn place_of(node: u32) -> (usize, u64) {
    ((node >> 6) as usize, 1 << (node & 63))
}

impl Graph {
    pub(super) fn new(
        mut nodes: NodeColumns,
        targets: Targets,
        roots: Vec<Root>,
        types: Vec<HeapType>,
        missing: Missing,
    ) -> Self {
        let index = AddressIndex::new(&nodes.addresses);
        let mut references = Vec::new();
        // The next reference belongs to another node if one before it was lost.
        let knows_edges = missing.edge_events == 0 && missing.node_events == 0 && missing.elements == 0;
        let targets = if knows_edges { targets } else { Targets::default() };
        references.reserve(targets.size());
        let mut arrived = targets.iter();
        let mut near = 0;
        for (node, edges) in nodes.edges.iter_mut().enumerate() {
            let stated = core::mem::replace(edges, to_u64(references.len()));
            for target in (0..stated).map_while(|_| arrived.next()) {
                let found = index.find(&nodes.addresses, target, near);
                near = found.unwrap_or(near);
                Self::push_reference(&mut references, to_u32(node), found);
            }
        }
        drop(arrived);
        Self { types, nodes, references, index, roots, missing }
    }

    /// Makes a graph of references to numbers of nodes: see [`push_reference`](Self::push_reference).
    pub(super) fn of_numbers(
        nodes: NodeColumns,
        references: Vec<u8>,
        roots: Vec<Root>,
        types: Vec<HeapType>,
    ) -> Self {
        let index = AddressIndex::new(&nodes.addresses);
        Self { types, nodes, references, index, roots, missing: Missing::default() }
    }

    /// Appends a reference of a node to another one; `None` if no node is at the address.
    pub(super) fn push_reference(references: &mut Vec<u8>, node: u32, child: Option<u32>) {
        let difference = |child: u32| i64::from(child).wrapping_sub(i64::from(node));
        push_number(references, child.map_or(0, |child| zigzag(difference(child)).saturating_add(1)));
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> u32 {
        to_u32(self.nodes.addresses.len())
    }

    /// Returns whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.addresses.is_empty()
    }

    /// Returns an object by its number, which is below [`len`](Self::len). Numbers follow the order of arrival.
    #[must_use]
    pub fn node(&self, node: u32) -> Option<Node> {
        let place = to_usize(node);
        let address = *self.nodes.addresses.get(place)?;
        let type_place = *self.nodes.types.get(place)?;
        Some(Node { address, size: self.size(node), type_place })
    }

    fn size(&self, node: u32) -> u64 {
        let size = self.nodes.sizes.get(to_usize(node)).copied().unwrap_or_default();
        let large = if size == u32::MAX { self.nodes.large.get(&node) } else { None };
        large.copied().unwrap_or_else(|| size.into())
    }

    /// Returns the number of the object at an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<u32> {
        self.index.find(&self.nodes.addresses, address, u32::MAX)
    }

    /// Returns what an object refers to; `None` for a reference to an address without an object.
    ///
    /// There are none in a graph that lost objects or references: see [`Missing`].
    pub fn references(&self, node: u32) -> impl Iterator<Item = Option<u32>> + '_ {
        let start =
            |node: usize| self.nodes.edges.get(node).copied().and_then(|start| usize::try_from(start).ok());
        let place = to_usize(node);
        let from = start(place).unwrap_or(self.references.len());
        let to = start(place.saturating_add(1)).unwrap_or(self.references.len());
        let mut bytes = self.references.get(from..to).unwrap_or_default();
        core::iter::from_fn(move || {
            let number = next_number(&mut bytes)?;
            let difference = number.checked_sub(1).map(unzigzag);
            Some(
                difference
                    .and_then(|difference| u32::try_from(i64::from(node).saturating_add(difference)).ok()),
            )
        })
    }

    /// Returns the types, those without objects too.
    #[must_use]
    pub fn types(&self) -> &[HeapType] {
        &self.types
    }

    /// Returns the roots in the order of arrival.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Returns what is missing.
    #[must_use]
    pub const fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Returns a row for each type that has objects. The work is linear in the number of objects.
    #[must_use]
    pub fn rows(&self) -> Vec<TypeRow> {
        let none = |type_place| TypeRow { type_place, count: 0, bytes: 0, largest: 0, large: 0 };
        let mut rows: Vec<TypeRow> = (0..to_u32(self.types.len())).map(none).collect();
        for node in 0..self.len() {
            let size = self.size(node);
            let of_type = self.nodes.types.get(to_usize(node)).copied().unwrap_or_default();
            if let Some(row) = rows.get_mut(to_usize(of_type)) {
                row.count = row.count.saturating_add(1);
                row.bytes = row.bytes.saturating_add(size);
                row.largest = row.largest.max(size);
                row.large = row.large.saturating_add(if size < LARGE_OBJECT { 0 } else { size });
            }
        }
        rows.retain(|row| row.count > 0);
        rows
    }

    /// Returns the objects that roots keep alive, directly or by references. The work is linear in the numbers of
    /// objects and references. `None` if objects, references or roots are missing.
    #[must_use]
    pub fn reachable(&self) -> Option<Reachable> {
        if !self.missing.is_empty() {
            return None;
        }
        let words = to_usize(self.len()).div_ceil(64);
        let mut reachable = Reachable { count: 0, bytes: 0, bits: alloc::vec![0; words] };
        let mut values: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for root in self.roots.iter().filter(|root| root.kind == RootKind::Conditional) {
            if let (Some(key), Some(value)) = (self.at(root.id), self.at(root.address)) {
                values.entry(key).or_default().push(value);
            }
        }
        let mut found = Vec::new();
        for root in self.roots.iter().filter(|root| root.is_strong()) {
            found.extend(self.at(root.address));
            while let Some(node) = found.pop() {
                if reachable.add(node, self.size(node)) {
                    found.extend(self.references(node).flatten().filter(|child| !reachable.has(*child)));
                    found.extend(values.get(&node).into_iter().flatten());
                }
            }
        }
        Some(reachable)
    }
}
