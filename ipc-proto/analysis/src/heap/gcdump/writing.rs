//! Writes a `.gcdump` file.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_u64, to_usize};

use super::encoding::{push_compressed, push_string, tag};
use super::file::{Gcdump, GcdumpInfo, GcdumpWriteError, SIZE_CLASSES, TICKS_OF_1601, VERSION};
use super::root_tree::{cut, root_nodes, written_name};
use crate::heap::graph::{Graph, Node};

/// The number of bytes that are passed on together.
const PIECE: usize = 1 << 16;
/// How many bytes the path of a module has: each of its types repeats it.
const MAX_PATH: usize = 1024;

/// A type of nodes in the file.
struct FileType {
    name: String,
    size: u32,
    module: Option<String>,
}

/// The types of nodes, in the order of their first node.
#[derive(Default)]
struct FileTypes {
    types: Vec<FileType>,
    /// The places of types by name and module.
    known: BTreeMap<(String, Option<String>), u32>,
    /// The places of the types of objects, by the type in the graph and the class of the size; 0 if there is none yet.
    of_objects: Vec<[u32; SIZE_CLASSES.len() + 1]>,
}

impl FileTypes {
    fn add(&mut self, name: String, size: u32, module: Option<String>) -> u32 {
        let next = to_u32(self.types.len());
        let place = *self.known.entry((name.clone(), module.clone())).or_insert(next);
        if place == next {
            self.types.push(FileType { name, size, module });
        }
        place
    }

    /// Returns the place of the type of an object. The first object determines the size of the type.
    fn of_object(&mut self, graph: &Graph, node: &Node) -> u32 {
        let place = to_usize(node.type_place);
        let class =
            SIZE_CLASSES.iter().position(|(above, _)| node.size > *above).unwrap_or(SIZE_CLASSES.len());
        let known = self.of_objects.get(place).and_then(|of| of.get(class)).copied().unwrap_or_default();
        if known != 0 {
            return known;
        }
        let Some(of_type) = graph.types().get(place) else { return 0 };
        let suffix = SIZE_CLASSES.get(class).map_or("", |(_, suffix)| suffix);
        let name = written_name(of_type);
        let module = match of_type.module.as_deref() {
            Some(module) => cut(module.to_owned(), MAX_PATH),
            None => format!("Module(0x{:x})", of_type.module_id),
        };
        let added = self.add(format!("{name}{suffix}"), size_of(node), Some(module));
        if let Some(known) = self.of_objects.get_mut(place).and_then(|of| of.get_mut(class)) {
            *known = added;
        }
        added
    }
}

/// Returns the size of an object as the file has it.
fn size_of(node: &Node) -> u32 {
    u32::try_from(node.size).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

/// The nodes of a file: the objects of the graph, and those for roots after them.
struct Nodes<'g> {
    graph: &'g Graph,
    /// The bytes of all objects.
    bytes: u64,
    types: FileTypes,
    /// The place of the type, and the references.
    roots: Vec<(u32, Vec<u32>)>,
}

impl<'g> Nodes<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut types = FileTypes::default();
        types.add("UNDEFINED".to_owned(), 0, None);
        types.of_objects.resize(graph.types().len(), Default::default());
        let mut bytes = 0_u64;
        for node in (0..graph.len()).filter_map(|node| graph.node(node)) {
            types.of_object(graph, &node);
            bytes = bytes.saturating_add(node.size);
        }
        let roots = root_nodes(graph).into_iter();
        let roots = roots.map(|node| (types.add(node.name, 0, None), node.children)).collect();
        Self { graph, bytes, types, roots }
    }

    fn len(&self) -> u32 {
        self.graph.len().saturating_add(to_u32(self.roots.len()))
    }

    /// Makes the record of a node.
    fn record(&mut self, number: u32, to: &mut Vec<u8>) {
        to.clear();
        let difference = |child: u32| child.wrapping_sub(number);
        if let Some(node) = self.graph.node(number) {
            let of_type = self.types.of_object(self.graph, &node);
            let size = size_of(&node);
            let has_size = self.types.types.get(to_usize(of_type)).is_none_or(|of| of.size != size);
            push_compressed(to, of_type << 1 | u32::from(has_size));
            if has_size {
                push_compressed(to, size);
            }
            let references = || self.graph.references(number).flatten();
            push_compressed(to, to_u32(references().count()));
            references().for_each(|child| push_compressed(to, difference(child)));
        } else if let Some((of_type, children)) =
            self.roots.get(to_usize(number.saturating_sub(self.graph.len())))
        {
            push_compressed(to, of_type << 1);
            push_compressed(to, to_u32(children.len()));
            children.iter().for_each(|child| push_compressed(to, difference(*child)));
        }
    }
}

/// The bytes of the file that are not passed on yet.
struct Pieces<W> {
    write: W,
    bytes: Vec<u8>,
    /// The number of bytes that were passed on.
    passed: u64,
}

type PieceResult<E> = Result<(), GcdumpWriteError<E>>;

impl<E, W: FnMut(&[u8]) -> Result<(), E>> Pieces<W> {
    fn pass_on(&mut self, at_least: usize) -> PieceResult<E> {
        if self.bytes.len() >= at_least {
            (self.write)(&self.bytes).map_err(GcdumpWriteError::Write)?;
            self.passed = self.passed.saturating_add(to_u64(self.bytes.len()));
            self.bytes.clear();
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> PieceResult<E> {
        self.bytes.extend_from_slice(bytes);
        self.pass_on(PIECE)
    }

    fn i32(&mut self, number: u64) -> PieceResult<E> {
        let number = i32::try_from(number).map_err(|_| GcdumpWriteError::TooLarge)?;
        self.add(&number.to_le_bytes())
    }

    fn string(&mut self, text: Option<&str>) -> PieceResult<E> {
        push_string(&mut self.bytes, text);
        self.pass_on(PIECE)
    }

    /// Begins an object of a type that was not written before.
    fn begin(&mut self, name: &str, version: i32, oldest_reader: i32) -> PieceResult<E> {
        self.add(&[tag::BEGIN, tag::BEGIN, tag::NULL])?;
        self.add(&version.to_le_bytes())?;
        self.add(&oldest_reader.to_le_bytes())?;
        self.string(Some(name))?;
        self.add(&[tag::END])
    }

    /// Writes the offset of the next byte.
    fn offset(&mut self) -> u64 {
        self.passed.saturating_add(to_u64(self.bytes.len()))
    }
}

impl Graph {
    /// Writes a `.gcdump` file in pieces of some 64 KiB, with little memory beside that for the roots.
    ///
    /// Weak roots and references to addresses without an object are left out. Sizes from 2 GiB on become 2 GiB.
    ///
    /// # Errors
    /// Those of `write`, and [`GcdumpWriteError::TooLarge`].
    pub fn write_gcdump<E>(
        &self,
        info: &GcdumpInfo,
        write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), GcdumpWriteError<E>> {
        write_file(self, info, write)
    }
}

fn write_file<E>(
    graph: &Graph,
    info: &GcdumpInfo,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> PieceResult<E> {
    let mut out = Pieces { write, bytes: Vec::new(), passed: 0 };
    out.add(Gcdump::MAGIC)?;
    // Version 8 is the oldest reader.
    out.begin("GCHeapDump", VERSION, 8)?;
    memory_graph(&mut Nodes::new(graph), &mut out)?;
    out.add(&[1])?;
    out.add(&[1_f32.to_le_bytes(), 1_f32.to_le_bytes()].concat())?;
    // No JSHeapInfo and no DotNetHeapInfo.
    out.add(&[tag::NULL; 2])?;
    out.string(None)?;
    let ticks = info.time.map_or(0, |time| time.0.saturating_add(TICKS_OF_1601));
    out.add(&ticks.to_le_bytes())?;
    // No names of the machine and of the process.
    out.string(None)?;
    out.string(None)?;
    out.add(&info.process_id.to_le_bytes())?;
    // The committed bytes, the working set, and no multipliers.
    out.add(&[0; 20])?;
    out.add(&[tag::SKIP, 0, 0, 0, 0, tag::NULL])?;
    let skipped = out.offset();
    out.add(&[tag::STRING])?;
    out.string(Some("dotnet-ipc"))?;
    out.add(&[tag::END; 2])?;
    // The table of forward references, and where it is.
    let table = out.offset();
    out.i32(1)?;
    out.i32(skipped)?;
    let place = out.offset();
    out.i32(table)?;
    out.i32(place)?;
    out.pass_on(0)
}

fn memory_graph<E>(
    nodes: &mut Nodes<'_>,
    out: &mut Pieces<impl FnMut(&[u8]) -> Result<(), E>>,
) -> PieceResult<E> {
    out.begin("Graphs.MemoryGraph", 0, 0)?;
    let graph = nodes.graph;
    out.add(&nodes.bytes.to_le_bytes())?;
    out.i32(graph.len().into())?;
    out.i32(to_u64(nodes.types.types.len()))?;
    for of_type in &nodes.types.types {
        out.string(Some(&of_type.name))?;
        out.add(&of_type.size.to_le_bytes())?;
        out.string(of_type.module.as_deref())?;
    }
    out.i32(nodes.len().into())?;
    let (mut offset, mut record) = (0_u64, Vec::new());
    for number in 0..nodes.len() {
        out.i32(offset)?;
        nodes.record(number, &mut record);
        offset = offset.saturating_add(to_u64(record.len()));
    }
    out.i32(offset)?;
    for number in 0..nodes.len() {
        nodes.record(number, &mut record);
        out.add(&record)?;
    }
    out.i32(nodes.len().into())?;
    for number in 0..nodes.len() {
        let address = graph.node(number).map_or(0, |node| node.address);
        out.add(&address.to_le_bytes())?;
    }
    out.add(&[tag::BYTE, 1, tag::END])
}
