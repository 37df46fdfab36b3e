//! The property of `.gcdump` files.
use core::convert::Infallible;

use nettrace_analysis::heap::{Gcdump, GcdumpInfo, Graph};

use super::analysis_work::check_work;
use super::made_up_events::Source;

/// Checks that any bytes are harmless as a `.gcdump` file, in work that is proportional to their number. A file that is
/// read and written reads as the same objects, references and roots.
///
/// Bytes that begin like a file are the file. Other bytes are the nodes of one.
pub fn gcdump(bytes: &[u8]) {
    let file = if bytes.starts_with(Gcdump::MAGIC) { bytes.to_vec() } else { made_up(bytes) };
    check_work("gcdump", &file, |file| {
        if let Ok(read) = Gcdump::read(file) {
            _ = (read.graph.rows(), read.graph.reachable(), written(&read.graph));
        }
    });
    let Ok(read) = Gcdump::read(&file) else { return };
    let again = Gcdump::read(&written(&read.graph)).expect("a written file is valid");
    assert_eq!(objects(&again.graph), objects(&read.graph));
    assert_eq!(roots(&again.graph), roots(&read.graph));
}

fn written(graph: &Graph) -> Vec<u8> {
    let mut file = Vec::new();
    let take = |bytes: &[u8]| {
        file.extend_from_slice(bytes);
        Ok::<(), Infallible>(())
    };
    graph.write_gcdump(&GcdumpInfo::default(), take).expect("a small file is written");
    file
}

/// Returns the address, the size, and the references of each object.
fn objects(graph: &Graph) -> Vec<(u64, u64, Vec<u32>)> {
    let object = |place| {
        let node = graph.node(place).expect("each number has a node");
        (node.address, node.size.min(i32::MAX as u64), graph.references(place).flatten().collect())
    };
    (0..graph.len()).map(object).collect()
}

fn roots(graph: &Graph) -> Vec<u64> {
    let mut roots: Vec<u64> = graph.roots().iter().map(|root| root.address).collect();
    roots.sort_unstable();
    roots
}

/// Names of types, each with its module.
const TYPES: [(&str, &str); 8] = [
    ("UNDEFINED", ""),
    ("[.NET Roots]", ""),
    ("[static vars]", ""),
    ("[static var Shop.Cart.all]", ""),
    ("Shop.Item", "Shop.dll"),
    ("Shop.Item[] (Bytes > 1K)", "Shop.dll"),
    ("[RCW Shop.Window]", ""),
    ("UNKNOWN 0x1f", "Module(0x7f)"),
];

/// Returns a file with these nodes: the number of nodes, the root, an offset and an address for each, and the blob.
fn made_up(bytes: &[u8]) -> Vec<u8> {
    let mut source = Source(bytes);
    let (count, root) = (u32::from(source.byte() % 32), source.byte());
    let offsets: Vec<_> = (0..count).map(|_| u32::from(source.byte()).to_le_bytes()).collect();
    let addresses: Vec<_> = (0..count).map(|_| (u64::from(source.byte()) * 8).to_le_bytes()).collect();
    let blob = source.0;
    let string =
        |text: &str| [&u32::try_from(text.len()).expect("short").to_le_bytes(), text.as_bytes()].concat();
    let begin = |name| [&[4, 4, 1, 9, 0, 0, 0, 0, 0, 0, 0][..], &string(name), &[6]].concat();
    let of_type = |(name, module): &(&str, &str)| {
        [string(name), 24_u32.to_le_bytes().to_vec(), string(module)].concat()
    };
    let len = |len: usize| u32::try_from(len).expect("short").to_le_bytes();
    [
        &Gcdump::MAGIC[..],
        &begin("GCHeapDump"),
        &begin("Graphs.MemoryGraph"),
        &[0; 8],
        &u32::from(root).to_le_bytes(),
        &len(TYPES.len()),
        &TYPES.iter().map(of_type).collect::<Vec<_>>().concat(),
        &count.to_le_bytes(),
        offsets.as_flattened(),
        &len(blob.len()),
        blob,
        &count.to_le_bytes(),
        addresses.as_flattened(),
        // The end of the graph, the multipliers, no other objects, no texts and numbers.
        &[8, 1, 6, 1],
        &[0; 8],
        &[1, 1],
        &[0; 24],
    ]
    .concat()
}
