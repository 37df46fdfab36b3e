//! `.gcdump` files: one of dotnet-gcdump against its own report, those that are written against the graphs that they are
//! made of, and damaged ones.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod runtime_events;

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::fs;

use nettrace_analysis::heap::{
    Gcdump, GcdumpError, GcdumpInfo, GcdumpWriteError, Graph, HeapSnapshot, Root, RootKind, Snapshots,
};
use nettrace_analysis::{Analysis as _, FileTime};

use crate::runtime_events::{Written, each_event, numbers, path, utf16};

fn file(name: &str) -> Vec<u8> {
    fs::read(path(&format!("heap/{name}"))).unwrap()
}

fn graph_of(trace: &[u8]) -> Graph {
    let mut snapshots = Snapshots::default();
    each_event(trace, |event| snapshots.event(event));
    snapshots.finish().remove(0).graph
}

fn written(graph: &Graph, info: &GcdumpInfo) -> Vec<u8> {
    let mut file = Vec::new();
    let done = graph.write_gcdump(info, |bytes| {
        assert!(bytes.len() < 1 << 18);
        file.extend_from_slice(bytes);
        Ok::<(), Infallible>(())
    });
    done.unwrap();
    file
}

/// Returns the count, the bytes and the largest object by the name of the type and the path of its module.
fn types(graph: &Graph) -> BTreeMap<(String, String), [u64; 3]> {
    let mut types: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    for row in graph.rows() {
        let of_type = &graph.types()[row.type_place as usize];
        let module = of_type.module.as_deref().unwrap_or_default();
        let known = types.entry((of_type.name(), module.to_owned())).or_default();
        *known = [known[0] + row.count, known[1] + row.bytes, known[2].max(row.largest)];
    }
    types
}

/// Returns what each object refers to, by addresses. References to no object are left out.
fn references(graph: &Graph) -> Vec<(u64, Vec<u64>)> {
    let address = |node| graph.node(node).unwrap().address;
    let of_node = |node| (address(node), graph.references(node).flatten().map(address).collect());
    (0..graph.len()).map(of_node).collect()
}

#[test]
fn a_file_of_dotnet_gcdump_is_its_report() {
    let gcdump = Gcdump::read(&file("net10-linux.gcdump")).unwrap();
    let text = String::from_utf8(file("net10-linux.gcdump.report.txt")).unwrap();
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let heading: Vec<u64> =
        text.lines().take(2).map(|line| number(line.split_whitespace().next().unwrap())).collect();
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for line in text.lines().skip_while(|line| !line.contains("Object Bytes")).skip(1) {
        let (_, rest) = line.trim_start().split_once(' ').unwrap();
        let (count, name) = rest.trim_start().split_once("  ").unwrap();
        let (name, module) = name.rsplit_once("  [").unwrap_or((name, ""));
        let name = name.split_once(" (Bytes > ").map_or(name, |(name, _)| name);
        // The compiler's own names begin with `<>`.
        let name = name.strip_prefix("[]").map_or_else(|| name.to_owned(), |rest| format!("<>{rest}"));
        *expected.entry((name, module.trim_end_matches(']').to_owned())).or_default() += number(count);
    }
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for ((name, module), [count, ..]) in types(&gcdump.graph) {
        *counts.entry((name, module.rsplit('/').next().unwrap().to_owned())).or_default() += count;
    }
    assert_eq!(counts, expected);
    assert_eq!(gcdump.graph.rows().iter().map(|row| row.bytes).sum::<u64>(), heading[0]);
    // The heading counts the nodes for roots too.
    assert!(u64::from(gcdump.graph.len()) < heading[1], "{}", gcdump.graph.len());
    let known: BTreeMap<String, u64> = serde_json::from_slice(&file("known-counts.json")).unwrap();
    for (of_type, count) in known {
        assert_eq!(counts[&(of_type.clone(), "Workload.dll".into())], count, "{of_type}");
    }
    // Objects that only weak handles have.
    let reachable = gcdump.graph.reachable().unwrap();
    assert!(reachable.count > 12_000 && reachable.count <= gcdump.graph.len().into(), "{}", reachable.count);
    let kinds = |kind| gcdump.graph.roots().iter().filter(|root: &&Root| root.kind == kind).count();
    assert!(kinds(RootKind::Static) > 0 && kinds(RootKind::Stack) > 0 && kinds(RootKind::Handle) > 7);
}

#[test]
fn a_written_file_has_the_graph() {
    for name in ["net8-linux", "net10-linux", "net11-linux", "net10-second-dump", "net11-aot-linux"] {
        let graph = graph_of(&file(&format!("{name}.nettrace")));
        let info = GcdumpInfo { process_id: 4242, time: Some(FileTime(134_000_000_000_000_000)) };
        let bytes = written(&graph, &info);
        assert!(bytes.len() < 700_000, "{name} {}", bytes.len());
        let read = Gcdump::read(&bytes).unwrap();
        assert_eq!((read.info, read.is_sample), (info, false));
        assert_eq!(types(&read.graph), types(&graph), "{name}");
        assert_eq!(references(&read.graph), references(&graph), "{name}");
        // A weak root, and one of an address without an object, is left out.
        let strong =
            graph.roots().iter().filter(|root| root.flags & 2 == 0 && graph.at(root.address).is_some());
        let mut expected: Vec<u64> = strong.map(|root| root.address).collect();
        let mut roots: Vec<u64> = read.graph.roots().iter().map(|root| root.address).collect();
        expected.sort_unstable();
        roots.sort_unstable();
        assert_eq!(roots, expected, "{name}");
        // A file is a fixed point.
        let snapshot = HeapSnapshot::from(read);
        assert_eq!((snapshot.process_id, snapshot.is_complete), (Some(4242), true));
        let again = Gcdump::read(&written(&snapshot.graph, &info)).unwrap();
        assert_eq!(types(&again.graph), types(&graph), "{name}");
        assert_eq!(again.graph.roots().len(), snapshot.graph.roots().len(), "{name}");
    }
    // Without references, objects are still counted.
    let lossy = graph_of(&file("net10-lossy.nettrace"));
    assert_eq!(types(&Gcdump::read(&written(&lossy, &GcdumpInfo::default())).unwrap().graph), types(&lossy));
}

fn element(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn bulk(elements: &[Vec<u8>]) -> Vec<u8> {
    [numbers(&[0, elements.len() as u32]), vec![0; 2], elements.concat()].concat()
}

/// A heap of large and small objects, with a root of each kind.
fn heap_with_roots() -> Graph {
    let mut trace = Written::new();
    let sizes = [24, 1_000, 1_001, 10_001, 100_001, 1_000_001, 10_000_001, 100_000_001, 1 << 33, 40];
    let nodes: Vec<_> = (0..).zip(sizes).map(|(n, size)| element(&[0x1000 + 32 * n, size, 7, 0])).collect();
    let of_type = [element(&[7, 0]), numbers(&[0, 0]), vec![0], utf16("Shop.Café\u{1F600}[]"), numbers(&[0])];
    trace.event(1, 1, (15, 0), &[numbers(&[1]), vec![0; 2], of_type.concat()].concat());
    trace.event(2, 1, (18, 0), &bulk(&nodes));
    let root = |node: u64, kind, flags| {
        [element(&[0x1000 + 32 * node]), vec![kind], numbers(&[flags]), element(&[0])].concat()
    };
    let roots = [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 3, 0), (5, 2, 8), (6, 2, 2)];
    let roots: Vec<_> = roots.iter().map(|(node, kind, flags)| root(*node, *kind, *flags)).collect();
    trace.event(3, 1, (16, 0), &bulk(&roots));
    trace.event(4, 1, (17, 0), &bulk(&[element(&[0x1000, 0x1000 + 32 * 7, 0])]));
    let variable =
        |node: u64, flags| [element(&[0, 0x1000 + 32 * node, 7]), numbers(&[flags]), utf16("all")].concat();
    trace.event(5, 1, (38, 0), &[numbers(&[2]), vec![0; 10], variable(8, 0), variable(9, 1)].concat());
    graph_of(&trace.bytes())
}

#[test]
fn roots_of_each_kind_and_sizes_return() {
    let graph = heap_with_roots();
    let bytes = written(&graph, &GcdumpInfo::default());
    let read = Gcdump::read(&bytes).unwrap().graph;
    let mut roots: Vec<_> = read.roots().iter().map(|root| (root.address, root.kind, root.flags)).collect();
    roots.sort_unstable_by_key(|root| root.0);
    let expected = [
        (0, RootKind::Stack, 0),
        (1, RootKind::Finalizer, 0),
        (2, RootKind::Handle, 0),
        (3, RootKind::Handle, 1),
        (4, RootKind::Other, 0),
        (5, RootKind::Com, 0),
        (7, RootKind::Handle, 0),
        (8, RootKind::Static, 0),
        (9, RootKind::ThreadStatic, 0),
    ];
    assert_eq!(roots, expected.map(|(node, kind, flags)| (0x1000 + 32 * node, kind, flags)));
    let field = |root: &Root| root.field.as_deref().map(ToOwned::to_owned);
    let fields: Vec<_> = read.roots().iter().filter_map(field).collect();
    assert_eq!(fields, ["Shop.Café\u{1F600}[].all"; 2]);
    // The format has 31 bits for a size.
    let sizes: Vec<u64> = (0..10).map(|node| read.node(node).unwrap().size).collect();
    assert_eq!(sizes[..8], (0..8).map(|node| graph.node(node).unwrap().size).collect::<Vec<_>>());
    assert_eq!(sizes[8..], [i32::MAX as u64, 40]);
    // Each class of sizes is a type of its own in the file, and one in the table.
    let text = String::from_utf8_lossy(&bytes);
    for suffix in ["1K", "10K", "100K", "1M", "10M", "100M"] {
        assert!(text.contains(&format!("(Bytes > {suffix})")), "{suffix}");
    }
    assert_eq!(types(&read).len(), 1);
}

#[test]
fn an_output_that_fails_ends_the_writing() {
    let mut left = 2;
    let failed = graph_of(&file("net10-linux.nettrace")).write_gcdump(&GcdumpInfo::default(), |_| {
        left -= 1;
        if left == 0 { Err("full") } else { Ok(()) }
    });
    assert_eq!((failed, left), (Err(GcdumpWriteError::Write("full")), 0));
}

#[test]
fn damaged_files_are_refused_or_read() {
    let small = written(&heap_with_roots(), &GcdumpInfo::default());
    for len in 0..small.len() {
        let expected = match Gcdump::read(&small[..len]) {
            Err(GcdumpError::OtherFormat) => len < 24,
            // What follows the id of the process is not read.
            Ok(_) => len > small.len() - 80,
            Err(e) => e == GcdumpError::Truncated,
        };
        assert!(expected, "{len}");
    }
    // Any byte can be anything.
    for place in 0..small.len() {
        for byte in [0, 1, 6, 0x7F, 0x80, 0xFF] {
            let mut bytes = small.clone();
            bytes[place] = byte;
            if let Ok(read) = Gcdump::read(&bytes) {
                let graph = read.graph;
                assert!(
                    graph.len() as usize <= bytes.len() / 12 && graph.rows().len() <= graph.len() as usize
                );
                let count: usize = (0..graph.len()).map(|node| graph.references(node).count()).sum();
                assert!(count <= bytes.len());
                assert!(graph.reachable().unwrap().count <= graph.len().into());
            }
        }
    }
    let mut old = small.clone();
    old[27..31].copy_from_slice(&8_u32.to_le_bytes());
    assert_eq!(Gcdump::read(&old).unwrap_err(), GcdumpError::Version(8));
    assert_eq!(GcdumpError::Version(8).to_string(), "version 8 of the format .gcdump is not supported");
}

/// A part of a file: an object begins with its type.
fn begin(name: &str, version: u32, oldest_reader: u32) -> Vec<u8> {
    [&[4, 4, 1][..], &numbers(&[version, oldest_reader]), &string(name), &[6]].concat()
}

fn string(text: &str) -> Vec<u8> {
    [&numbers(&[text.len() as u32])[..], text.as_bytes()].concat()
}

/// A file with these types (name, size, module), nodes and native types.
fn made(types: &[Vec<u8>], offsets: &[u32], blob: &[u8], native: Option<&[u8]>) -> Vec<u8> {
    let addresses: Vec<u64> = (0..offsets.len() as u64).map(|node| 0x1000 + 8 * node).collect();
    [
        Gcdump::MAGIC,
        &begin("GCHeapDump", 10, 8)[..],
        &begin("Graphs.MemoryGraph", 1, native.is_some().into()),
        &[0; 8],
        &numbers(&[0, types.len() as u32]),
        &types.concat(),
        &numbers(&[offsets.len() as u32]),
        &numbers(offsets),
        &numbers(&[blob.len() as u32]),
        blob,
        native.unwrap_or_default(),
        &numbers(&[offsets.len() as u32]),
        &element(&addresses),
        &[8, 1, 6, 1],
        // A sample, and segments.
        &[2.0_f32.to_le_bytes(), 1.5_f32.to_le_bytes()].concat(),
        &[1],
        &begin("DotNetHeapInfo", 0, 0),
        &element(&[0]),
        &numbers(&[2]),
        &begin("GCHeapDumpSegment", 1, 0),
        &[0; 56],
        &[6, 1, 6],
        &string("log"),
        &[0; 8],
        &string("machine"),
        &string("process"),
        &numbers(&[77]),
    ]
    .concat()
}

fn made_type(name: &str, size: u32, module: &str) -> Vec<u8> {
    [string(name), numbers(&[size]), string(module)].concat()
}

#[test]
fn files_of_perfview_and_of_native_programs() {
    let types = [
        made_type("UNDEFINED", 0, ""),
        made_type("[.NET Roots]", 0, ""),
        numbers(&[u32::MAX, 16, u32::MAX]),
        made_type("[RCW Shop.Window]", 1016, "Module(0x7f)"),
        made_type("UNKNOWN 0x1234", 8, "Shop.dll"),
    ];
    // A node: the type, the number of references, the differences.
    let (blob, offsets) = ([2, 3, 1, 2, 3, 4, 0, 6, 1, 1, 8, 0], [0, 5, 7, 10]);
    let before = made(&types, &offsets, &blob, None);
    let at = before.windows(blob.len()).position(|bytes| bytes == blob).unwrap() + blob.len();
    let none = [numbers(&[0]), vec![1], numbers(&[u32::MAX])].concat();
    let module =
        [&begin("Graphs.Module", 0, 0)[..], &string("/app/Native"), &element(&[0x4000_0000])].concat();
    let module = [&module[..], &[0; 12], &string("x.pdb"), &[0; 20], &[6]].concat();
    let described = [&numbers(&[0x50])[..], &module, &numbers(&[u32::MAX])].concat();
    // The same module again, by its offset: it comes after a tag, two numbers, two types without a module, and a number.
    let label = (at + 1 + 8 + 2 * none.len() + 4) as u32;
    let again = [&numbers(&[0x60])[..], &[2], &numbers(&[label]), &numbers(&[u32::MAX])].concat();
    let rows = |native: &[&[u8]]| {
        let native = [&[12][..], &numbers(&[0, native.len() as u32]), &native.concat(), &[6]].concat();
        let gcdump = Gcdump::read(&made(&types, &offsets, &blob, Some(&native))).unwrap();
        assert!(gcdump.is_sample && gcdump.info.process_id == 77 && gcdump.info.time.is_none());
        let graph = &gcdump.graph;
        assert_eq!((graph.roots().len(), graph.references(1).collect::<Vec<_>>()), (3, vec![Some(2)]));
        let of_type = |place| graph.types()[place as usize].clone();
        graph.rows().iter().map(|row| (of_type(row.type_place), row.bytes)).collect::<Vec<_>>()
    };
    let [native, rcw, unknown] = rows(&[&none, &none, &described]).try_into().unwrap();
    assert_eq!((native.0.name(), native.0.module_id, native.1), ("Type(0x50)".into(), 0x4000_0000, 16));
    assert!(native.0.is_native() && native.0.module.as_deref() == Some("/app/Native"));
    assert_eq!((rcw.0.name(), rcw.0.module_id, rcw.1), ("[RCW Shop.Window]".into(), 0x7F, 1016));
    assert_eq!((unknown.0.name(), unknown.0.raw_name), ("Type(0x1234)".into(), None));
    let rows = rows(&[&none, &none, &described, &again]);
    assert_eq!((rows[1].0.name(), rows[1].0.module.as_deref()), ("Type(0x60)".into(), Some("/app/Native")));
}

#[test]
fn references_that_nodes_share_do_not_multiply_the_work() {
    let types = [made_type("UNDEFINED", 0, ""), made_type("Shop.Item", 24, "Shop.dll")];
    let blob = [&[2, 0x80, 100][..], &[0; 100]].concat();
    let one = Gcdump::read(&made(&types, &[0], &blob, None)).unwrap().graph;
    assert_eq!(one.references(0).count(), 100);
    let many = Gcdump::read(&made(&types, &[0; 1000], &blob, None));
    assert!(matches!(many, Err(GcdumpError::Corrupt(_))), "{many:?}");
    // A count that lies.
    let lie = [2, 0x87, 0xFF, 0xFF, 0xFF, 0x7F];
    assert_eq!(Gcdump::read(&made(&types, &[0], &lie, None)).unwrap_err(), GcdumpError::Truncated);
}
