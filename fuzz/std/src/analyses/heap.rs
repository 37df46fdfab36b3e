//! The property of heap snapshots: a graph is that of a simple model.
use core::iter;
use std::collections::{BTreeMap, BTreeSet};

use nettrace::{Event, Metadata, Trace, TraceWriter, Version};
use nettrace_analysis::heap::{Graph, Snapshots};

use super::analysis_work::check_work;
use super::made_up_events::Source;
use super::traces::report_of;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The ids of events with objects, references, roots, and values of conditional weak tables.
const NODES: u32 = 18;
const EDGES: u32 = 19;
const ROOTS: u32 = 16;
const CONDITIONAL: u32 = 17;

/// An object of the model: its address, its size, its type, and the addresses that it refers to.
type Object = (u64, u64, u64, Vec<u64>);

/// A heap, and the damage of its stream.
#[derive(Debug, Default)]
struct Heap {
    objects: Vec<Object>,
    roots: Vec<(u64, u32)>,
    /// Keys and values.
    conditional: Vec<(u64, u64)>,
    /// The number of an event that is lost, and of one whose payload is cut off.
    lost: Option<usize>,
    cut: Option<(usize, usize)>,
    /// The number of elements of an event.
    elements: usize,
}

/// Checks that the graph of any heap has its objects, its references and what its roots keep alive. If events of the
/// stream are lost or cut off, the graph states it. The work is proportional to the bytes of the stream.
pub fn heap(bytes: &[u8]) {
    let heap = Heap::of(&mut Source(bytes));
    let trace = heap.trace();
    check_work("heap", &trace, |trace| {
        for snapshot in report_of(trace, Snapshots::default()) {
            _ = (snapshot.graph.rows(), snapshot.graph.reachable());
        }
    });
    let snapshots = report_of(&trace, Snapshots::default());
    let Some(snapshot) = snapshots.first() else {
        assert!(heap.objects.is_empty() || heap.lost.is_some() || heap.cut.is_some());
        return;
    };
    let graph = &snapshot.graph;
    assert_eq!(snapshot.is_complete, graph.missing().is_empty());
    assert_eq!(graph.rows().iter().map(|row| row.count).sum::<u64>(), u64::from(graph.len()));
    if heap.lost.is_none() && heap.cut.is_none() {
        heap.check(graph);
    }
    assert_eq!(graph.reachable().is_some(), graph.missing().is_empty());
}

impl Heap {
    fn of(source: &mut Source<'_>) -> Self {
        let mut heap = Self { elements: usize::from(source.byte() % 8) + 1, ..Self::default() };
        heap.lost = Some(usize::from(source.byte())).filter(|at| *at < 16);
        heap.cut = Some((usize::from(source.byte()), usize::from(source.byte()))).filter(|cut| cut.0 < 16);
        // Addresses near each other, and some anywhere.
        let address = |source: &mut Source<'_>| match source.byte() {
            0xFF => source.number(),
            near => 0x7F00_0000_0000 + 8 * u64::from(near),
        };
        while !source.0.is_empty() && heap.objects.len() < 200 {
            match source.byte() {
                0..0x10 => heap.roots.push((address(source), u32::from(source.byte() & 3))),
                0x10..0x18 => heap.conditional.push((address(source), address(source))),
                kind => {
                    let edges = iter::repeat_with(|| address(source)).take(usize::from(kind & 3)).collect();
                    heap.objects.push((address(source), source.number(), u64::from(kind >> 4), edges));
                }
            }
        }
        heap
    }

    /// Returns the stream.
    fn trace(&self) -> Vec<u8> {
        let element =
            |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        let nodes =
            self.objects.iter().map(|(at, size, of, to)| element(&[*at, *size, *of, to.len() as u64]));
        let edges =
            self.objects.iter().flat_map(|object| &object.3).map(|to| [element(&[*to]), vec![0; 4]].concat());
        let root =
            |(at, flags): &(u64, u32)| [&element(&[*at])[..], &[2], &flags.to_le_bytes(), &[0; 8]].concat();
        let conditional = self.conditional.iter().map(|(key, value)| element(&[*key, *value, 0]));
        let kinds: [(u32, Vec<Vec<u8>>); 4] = [
            (ROOTS, self.roots.iter().map(root).collect()),
            (CONDITIONAL, conditional.collect()),
            (NODES, nodes.collect()),
            (EDGES, edges.collect()),
        ];
        let mut buf = vec![0; TraceWriter::BUFFER];
        let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).expect("the buffer is large");
        let mut out = Vec::new();
        for (event_id, _) in &kinds {
            let described = Metadata::new(*event_id, RUNTIME, *event_id, "");
            out.extend_from_slice(&writer.describe(&described).expect("a description fits"));
        }
        let mut number = 0;
        for (metadata_id, elements) in kinds {
            for (index, elements) in (0_u32..).zip(elements.chunks(self.elements)) {
                let count = u32::try_from(elements.len()).expect("few elements");
                let head = [index, count].map(u32::to_le_bytes);
                let mut payload = [head.as_flattened(), &[0; 2], &elements.concat()].concat();
                if let Some((_, len)) = self.cut.filter(|(at, _)| *at == number) {
                    payload.truncate(len);
                }
                if self.lost != Some(number) {
                    let event = Event { metadata_id, payload: &payload, ..Event::default() };
                    out.extend_from_slice(&writer.event(&event).expect("an event fits"));
                }
                number += 1;
            }
        }
        out.extend_from_slice(&writer.finish());
        out
    }

    fn check(&self, graph: &Graph) {
        // Of several objects at an address, the first one is found.
        let mut places = BTreeMap::new();
        for (place, object) in (0_u32..).zip(&self.objects) {
            places.entry(object.0).or_insert(place);
        }
        assert_eq!(graph.len() as usize, self.objects.len());
        for (place, (address, size, of_type, to)) in (0_u32..).zip(&self.objects) {
            let node = graph.node(place).expect("each object is a node");
            let id = graph.types()[node.type_place as usize].id;
            assert_eq!((node.address, node.size, id), (*address, *size, *of_type));
            assert_eq!(graph.at(*address), places.get(address).copied());
            assert!(graph.references(place).eq(to.iter().map(|to| places.get(to).copied())));
        }
        let Some(reachable) = graph.reachable() else { return };
        let mut alive = BTreeSet::new();
        let strong = self.roots.iter().filter(|(_, flags)| flags & 2 == 0);
        let mut open: Vec<u32> = strong.filter_map(|(at, _)| places.get(at).copied()).collect();
        while let Some(place) = open.pop() {
            if alive.insert(place) {
                let (.., to) = &self.objects[place as usize];
                let is_key = |(key, _): &&(u64, u64)| places.get(key) == Some(&place);
                let values = self.conditional.iter().filter(is_key).map(|(_, value)| value);
                open.extend(to.iter().chain(values).filter_map(|to| places.get(to)));
            }
        }
        assert_eq!(reachable.count, alive.len() as u64);
        assert!((0..graph.len()).all(|place| reachable.has(place) == alive.contains(&place)));
    }
}
