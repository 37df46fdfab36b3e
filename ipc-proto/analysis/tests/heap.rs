//! Heap snapshots: recorded ones against the tables of dotnet-gcdump and the objects that the program made, and made
//! ones for each rule.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod runtime_events;

use std::collections::BTreeMap;
use std::fs;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::heap::{Graph, HeapSnapshot, Missing, RootKind, Snapshots};
use nettrace_analysis::names::NativeSymbol;

use crate::runtime_events::{Written, each_event, numbers, path, utf16};

const START: (u32, u32) = (1, 2);
const END: (u32, u32) = (2, 1);
const RESTART: (u32, u32) = (3, 1);
const TYPES: (u32, u32) = (15, 0);
const ROOTS: (u32, u32) = (16, 0);
const CONDITIONAL: (u32, u32) = (17, 0);
const NODES: (u32, u32) = (18, 0);
const EDGES: (u32, u32) = (19, 0);
const STATICS: (u32, u32) = (38, 0);

fn snapshots(trace: &[u8]) -> Vec<HeapSnapshot> {
    let mut snapshots = Snapshots::default();
    each_event(trace, |event| snapshots.event(event));
    snapshots.finish()
}

fn recorded(name: &str) -> HeapSnapshot {
    let mut snapshots = snapshots(&fs::read(path(&format!("heap/{name}.nettrace"))).unwrap());
    assert_eq!(snapshots.len(), 1, "{name}");
    snapshots.remove(0)
}

/// Returns the counts by the name of the type and the file of its module.
fn counts(graph: &Graph) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for row in graph.rows() {
        let of_type = &graph.types()[row.type_place as usize];
        let module = of_type.module.as_deref().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        *counts.entry((of_type.name(), module.to_owned())).or_default() += row.count;
    }
    counts
}

/// Returns the number of bytes, that of objects, and the counts of a table of dotnet-gcdump. It lists large objects in
/// rows of their own, and the roots as types without a module.
fn report(name: &str) -> (u64, BTreeMap<(String, String), u64>) {
    let text = fs::read_to_string(path(&format!("heap/{name}.report.txt"))).unwrap();
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let bytes = text.lines().find(|line| line.ends_with("GC Heap bytes")).unwrap();
    let bytes = number(bytes.split_whitespace().next().unwrap());
    let mut counts = BTreeMap::new();
    for line in text.lines().skip_while(|line| !line.contains("Object Bytes")).skip(1) {
        let mut words = line.trim_start().splitn(2, ' ');
        let (Some(_), Some(rest)) = (words.next(), words.next()) else { continue };
        let (count, name) = rest.trim_start().split_once("  ").unwrap();
        let (name, module) = name.rsplit_once("  [").unwrap_or((name, ""));
        let name = name.split_once(" (Bytes > ").map_or(name, |(name, _)| name);
        *counts.entry((name.to_owned(), module.trim_end_matches(']').to_owned())).or_default() +=
            number(count);
    }
    (bytes, counts)
}

#[test]
fn recorded_heaps_are_those_of_dotnet_gcdump() {
    for name in ["net8-linux", "net10-linux", "net11-linux"] {
        let snapshot = recorded(name);
        assert!(snapshot.is_complete && snapshot.start < snapshot.end, "{name}");
        let (bytes, mut expected) = report(name);
        let rows = snapshot.graph.rows();
        assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), bytes, "{name}");
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), u64::from(snapshot.graph.len()), "{name}");
        let mut counts = counts(&snapshot.graph);
        // The report leaves out types whose first object had size 0, and adds the roots.
        expected.retain(|(name, _), _| !name.starts_with('[') && name != "UNDEFINED");
        counts.retain(|key, _| expected.contains_key(key));
        assert_eq!(counts, expected, "{name}");
    }
}

#[test]
fn the_objects_of_the_program_are_counted() {
    let known = fs::read_to_string(path("heap/known-counts.json")).unwrap();
    let known: BTreeMap<String, u64> = serde_json::from_str(&known).unwrap();
    for name in ["net8-linux", "net10-linux", "net11-linux"] {
        let graph = recorded(name).graph;
        let counts = counts(&graph);
        for (of_type, count) in &known {
            assert_eq!(
                counts.get(&(of_type.clone(), "Workload.dll".into())),
                Some(count),
                "{name} {of_type}"
            );
        }
        // Each object of the list refers to the next one.
        let is_node =
            |node: u32| graph.types()[graph.node(node).unwrap().type_place as usize].name() == "LabHeap.Node";
        let nodes: Vec<u32> = (0..graph.len()).filter(|node| is_node(*node)).collect();
        let next = |node: &u32| graph.references(*node).flatten().filter(|child| is_node(*child)).count();
        assert_eq!(nodes.iter().map(next).sum::<usize>(), 999, "{name}");
        let reachable = graph.reachable().unwrap();
        assert!(nodes.iter().all(|node| reachable.has(*node)), "{name}");
        assert!(
            reachable.count > 12_000 && reachable.count <= graph.len().into(),
            "{name} {}",
            reachable.count
        );
    }
}

#[test]
fn types_of_native_programs_have_a_place_in_the_program() {
    for name in ["net10-aot-linux", "net11-aot-linux"] {
        let snapshot = recorded(name);
        assert!(snapshot.is_complete, "{name}");
        let rows = snapshot.graph.rows();
        assert!(rows.len() > 500, "{name} {}", rows.len());
        let types = rows.iter().map(|row| &snapshot.graph.types()[row.type_place as usize]);
        let is_place = |of: &nettrace_analysis::heap::HeapType| {
            of.is_native()
                && of.id == of.module_id + u64::from(of.name_id)
                && of.name().ends_with(&format!("Type(0x{:x})", of.name_id))
        };
        assert_eq!(types.filter(|of| !is_place(of)).count(), 0, "{name}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let lossy = recorded("net10-lossy");
    assert!(!lossy.is_complete);
    let missing = lossy.graph.missing();
    assert!(missing.node_events == 145 && missing.references == 4348, "{missing:?}");
    assert!(lossy.graph.reachable().is_none());
    assert_eq!((0..lossy.graph.len()).flat_map(|node| lossy.graph.references(node)).count(), 0);
    let second = recorded("net10-second-dump");
    assert!(second.is_complete);
    let unnamed = second.graph.types().iter().filter(|of_type| of_type.raw_name.is_none()).count();
    assert!(unnamed > 100, "{unnamed}");
}

fn bulk(index: u32, elements: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = numbers(&[index, elements.len() as u32]);
    payload.extend([0; 2]);
    payload.extend(elements.concat());
    payload
}

fn element(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn edge(target: u64) -> Vec<u8> {
    [element(&[target]), vec![0; 4]].concat()
}

fn root(address: u64, flags: u32) -> Vec<u8> {
    [element(&[address]), vec![2], numbers(&[flags]), element(&[0])].concat()
}

fn type_row(id: u64, name: &str) -> Vec<u8> {
    let of_type = [element(&[id, 0]), numbers(&[0, 0]), vec![0], utf16(name), numbers(&[0])].concat();
    [numbers(&[1]), vec![0; 2], of_type].concat()
}

/// A heap of four objects: a → b → c, c → b and itself, and d, to which only a weak root points.
fn four_objects(trace: &mut Written) -> &mut Written {
    let [a, b, c, d] = [0x1000, 0x1020, 0x1040, 0x1060];
    trace.event(1, 1, TYPES, &type_row(7, "Shop.Item`1[System.Int32]"));
    trace.event(2, 1, NODES, &bulk(0, &[element(&[a, 24, 7, 2]), element(&[b, 32, 7, 1])]));
    trace.event(3, 1, EDGES, &bulk(0, &[edge(b), edge(0x9999), edge(c)]));
    trace.event(4, 1, EDGES, &bulk(1, &[edge(b), edge(c)]));
    trace.event(5, 1, NODES, &bulk(1, &[element(&[c, 40, 8, 2]), element(&[d, 1 << 33, 7, 0])]));
    trace.event(6, 1, ROOTS, &bulk(0, &[root(a, 1), root(d, 2)]))
}

#[test]
fn references_are_those_of_the_stream() {
    let mut trace = Written::new();
    let snapshots = snapshots(&four_objects(&mut trace).bytes());
    let graph = &snapshots[0].graph;
    assert!(snapshots[0].is_complete);
    let references = |node| graph.references(node).collect::<Vec<_>>();
    assert_eq!(
        [0, 1, 2, 3].map(references),
        [vec![Some(1), None], vec![Some(2)], vec![Some(1), Some(2)], vec![]]
    );
    assert_eq!(graph.references(4).count(), 0);
    assert_eq!((graph.at(0x1040), graph.at(0x1041)), (Some(2), None));
    assert_eq!(graph.node(3).unwrap().size, 1 << 33);
    let rows: Vec<_> =
        graph.rows().iter().map(|row| (row.type_place, row.count, row.bytes, row.largest)).collect();
    assert_eq!(rows, [(0, 3, 56 + (1 << 33), 1 << 33), (1, 1, 40, 40)]);
    assert_eq!(graph.types()[0].name(), "Shop.Item<System.Int32>");
    assert_eq!(graph.types()[1].name(), "Type(0x8)");
    let reachable = graph.reachable().unwrap();
    assert_eq!((reachable.count, reachable.bytes, reachable.has(3)), (3, 96, false));
}

#[test]
fn the_last_complete_snapshot_counts() {
    let start = |number| numbers(&[number, 2, 1, 0]);
    let mut trace = Written::new();
    trace.event(0, 1, START, &start(5));
    four_objects(&mut trace).event(7, 1, END, &numbers(&[5, 2]));
    // One without an object, one that is cut off, and one that is complete.
    trace.event(8, 1, START, &start(6)).event(9, 1, END, &numbers(&[6, 2]));
    let one = bulk(0, &[element(&[0x2000, 64, 7, 0])]);
    trace.event(10, 1, START, &start(7)).event(11, 1, NODES, &one);
    let cut = snapshots(&trace.bytes());
    assert_eq!((cut[0].graph.len(), cut[0].start, cut[0].end, cut[0].is_complete), (4, 0, 7, true));
    trace.event(12, 1, END, &numbers(&[7, 2]));
    assert_eq!(snapshots(&trace.bytes())[0].graph.len(), 1);
}

/// A browser sends no end of the collection.
#[test]
fn a_rundown_ends_a_snapshot() {
    let mut trace = Written::new();
    trace.event(0, 1, START, &numbers(&[5, 2, 1, 0]));
    four_objects(&mut trace);
    assert!(!snapshots(&trace.bytes())[0].is_complete);
    trace.event_of("Microsoft-Windows-DotNETRuntimeRundown", 8, 1, (154, 2), &[0; 28]);
    let found = snapshots(&trace.bytes());
    assert_eq!((found[0].graph.len(), found[0].is_complete), (4, true));
}

#[test]
fn a_snapshot_without_a_collection_ends_when_the_program_runs_again() {
    let mut trace = Written::new();
    four_objects(&mut trace).event(7, 1, RESTART, &[0; 2]);
    let mut live = Snapshots::default();
    each_event(&trace.bytes(), |event| live.event(event));
    assert!(live.has_complete() && live.has_ended());
    assert_eq!((live.objects(), live.bytes()), (4, 96 + (1 << 33)));
    // The next one begins with the index 0.
    let one = bulk(0, &[element(&[0x2000, 64, 7, 0])]);
    let snapshots = snapshots(&trace.event(8, 1, NODES, &one).bytes());
    assert_eq!((snapshots[0].graph.len(), snapshots[0].start), (1, 8));
}

#[test]
fn values_live_while_their_keys_do() {
    let [key, value, dead, of_dead] = [0x1000, 0x1100, 0x1200, 0x1300];
    let nodes: Vec<Vec<u8>> = [key, value, dead, of_dead].iter().map(|at| element(&[*at, 8, 1, 0])).collect();
    let mut trace = Written::new();
    trace.event(1, 1, NODES, &bulk(0, &nodes));
    trace.event(2, 1, CONDITIONAL, &bulk(0, &[element(&[key, value, 0]), element(&[dead, of_dead, 0])]));
    let of_static = [element(&[0, key, 1]), numbers(&[1]), utf16("cache")].concat();
    trace.event(3, 1, STATICS, &[numbers(&[1]), vec![0; 10], of_static].concat());
    let snapshots = snapshots(&trace.bytes());
    let graph = &snapshots[0].graph;
    let reachable = graph.reachable().unwrap();
    assert_eq!([0, 1, 2, 3].map(|node| reachable.has(node)), [true, true, false, false]);
    let of_static = graph.roots().iter().find(|root| root.kind == RootKind::ThreadStatic).unwrap();
    assert_eq!((of_static.field.as_deref(), of_static.id), (Some("cache"), 1));
}

#[test]
fn counts_that_lie_take_nothing() {
    let mut trace = Written::new();
    let mut nodes = bulk(0, &[element(&[0x1000, 8, 1, u64::MAX])]);
    nodes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    trace.event(1, 1, NODES, &nodes).event(2, 1, EDGES, &bulk(3, &[edge(0x1000)]));
    let snapshots = snapshots(&trace.bytes());
    let graph = &snapshots[0].graph;
    assert!(!snapshots[0].is_complete && graph.reachable().is_none());
    let missing = graph.missing();
    assert_eq!((missing.elements, missing.edge_events), (u64::from(u32::MAX) - 1, 3));
    assert_eq!(missing.references, u64::MAX - 1);
    assert_ne!(*missing, Missing::default());
}

/// The program is a native one, so its types have no names. Its symbols have the names of all of them.
#[test]
fn native_types_have_the_names_of_symbols() {
    let mut graph = recorded("net11-aot-linux").graph;
    let images = graph.native_images();
    let [image] = &images[..] else { panic!("{images:?}") };
    assert_eq!((&*image.path, image.wanted.len()), ("/opt/lab/net11-aot-linux/Workload", 685));
    assert_eq!(image.build_id, "0e28593a110399f343913571333a1d767d4a36ed");
    let symbol = |start, name: &str| NativeSymbol { start, size: 0, name: name.into() };
    let symbols = [
        symbol(0x424b70, "_ZTV21Workload_LabHeap_Node"),
        symbol(0x424bc0, "__GCStaticEEType_01"),
        symbol(0x424b71, "_ZTV21Workload_LabHeap_Tree"),
    ];
    graph.native_symbols(image, &symbols);
    let counts = counts(&graph);
    let count = |name: &str, module: &str| counts.get(&(name.to_owned(), module.to_owned())).copied();
    assert_eq!(count("LabHeap.Node", "Workload"), Some(1000));
    assert_eq!(count("__GCStaticEEType_01", "Workload"), Some(4095));
    assert_eq!(graph.native_images()[0].wanted.len(), 683);
}
