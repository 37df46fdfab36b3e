//! Reads a `.gcdump` file.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ipc_proto::wire::{Reader, to_u32, to_u64, to_usize};
use nettrace::FileTime;

use super::encoding::{FileReader, TypeVersion, next_compressed, tag};
use super::file::{Gcdump, GcdumpError, GcdumpInfo, OLDEST, SIZE_CLASSES, TICKS_OF_1601, VERSION};
use super::root_tree::{RootPath, is_root_type, read_name, static_field};
use crate::heap::graph::{Graph, Root};
use crate::heap::node_columns::NodeColumns;
use crate::heap::type_table::HeapType;

impl Gcdump {
    /// Reads a file. The work and the memory are proportional to its length.
    ///
    /// # Errors
    /// If the bytes are not a whole `.gcdump` file of version 9 or 10.
    pub fn read(bytes: &[u8]) -> Result<Self, GcdumpError> {
        read(bytes)
    }
}

fn read(bytes: &[u8]) -> Result<Gcdump, GcdumpError> {
    if !bytes.starts_with(Gcdump::MAGIC) {
        return Err(GcdumpError::OtherFormat);
    }
    let mut file = FileReader { bytes, r: Reader::new(bytes) };
    file.r.bytes(Gcdump::MAGIC.len())?;
    let Some(TypeVersion { version, oldest_reader }) = file.begin()? else { return file.corrupt() };
    if version < OLDEST || oldest_reader > VERSION {
        return Err(GcdumpError::Version(version));
    }
    let Some(version) = file.begin()? else { return file.corrupt() };
    let graph = MemoryGraph::read(&mut file, version.oldest_reader >= 1)?.into_graph()?;
    file.byte()?;
    let multipliers = [file.f32()?, file.f32()?];
    if file.begin()?.is_some() {
        file.expect(tag::END)?;
    }
    skip_segments(&mut file)?;
    file.string()?;
    let ticks = file.u64()?;
    file.string()?;
    file.string()?;
    let process_id = file.u32()?;
    let time = ticks.checked_sub(TICKS_OF_1601).map(FileTime);
    let info = GcdumpInfo { process_id, time };
    Ok(Gcdump { graph, info, is_sample: multipliers.iter().any(|multiplier| *multiplier > 1.0) })
}

/// Skips the object `DotNetHeapInfo`.
fn skip_segments(file: &mut FileReader<'_>) -> Result<(), GcdumpError> {
    if file.begin()?.is_none() {
        return Ok(());
    }
    file.u64()?;
    for _ in 0..file.count()? {
        if let Some(segment) = file.begin()? {
            // The start, the end, and the ends of four generations, or of five.
            file.r.bytes(if segment.version >= 1 { 56 } else { 48 })?;
            file.expect(tag::END)?;
        }
    }
    file.expect(tag::END)
}

/// A type of nodes in the file.
struct NodeType {
    /// The size of nodes without a size of their own.
    size: u32,
    /// Whether its nodes stand for roots.
    is_root: bool,
}

/// The number of a node that is no object: one for roots, or one that was never described.
const NO_OBJECT: u32 = u32::MAX;

struct MemoryGraph<'a> {
    root: u32,
    file_types: Vec<NodeType>,
    types: Vec<HeapType>,
    /// For each node its offset in the blob.
    offsets: &'a [u8],
    blob: &'a [u8],
    addresses: &'a [u8],
    /// The offset of the blob in the file.
    at: usize,
    /// How many bytes of references can still be read: nodes that share them would multiply the work.
    left: usize,
}

struct FileNode<'a> {
    type_place: usize,
    size: u64,
    children: u32,
    /// The blob from the references on.
    rest: &'a [u8],
}

impl<'a> MemoryGraph<'a> {
    fn read(file: &mut FileReader<'a>, has_native_types: bool) -> Result<Self, GcdumpError> {
        file.u64()?;
        let root = file.u32()?;
        let (mut file_types, mut types) = (Vec::new(), Vec::new());
        for _ in 0..file.count()? {
            let name = file.string()?;
            // -1: no node has the type.
            let size = u32::try_from(file.i32()?).unwrap_or_default();
            let module = file.string()?.filter(|module| !module.is_empty());
            let is_root = is_root_type(name.as_deref().unwrap_or_default(), module.as_deref());
            file_types.push(NodeType { size, is_root });
            types.push(heap_type(name.unwrap_or_default(), module));
        }
        let offsets = file.column(4)?;
        let at = file.r.offset().saturating_add(4);
        let blob = file.column(1)?;
        if has_native_types {
            native_types(file, &mut types)?;
        }
        let addresses = file.column(8)?;
        // Tagged fields, which later versions can append.
        if file.byte()? == tag::BYTE {
            file.byte()?;
            file.expect(tag::END)?;
        }
        Ok(Self { root, file_types, types, offsets, blob, addresses, at, left: blob.len() })
    }

    fn corrupt(&self, offset: u32) -> GcdumpError {
        GcdumpError::Corrupt(self.at.saturating_add(to_usize(offset)))
    }

    /// Reads the record of a node, without its references.
    fn node(&self, number: usize) -> Result<FileNode<'a>, GcdumpError> {
        let place = number.saturating_mul(4);
        let offset = self.offsets.get(place..).and_then(<[u8]>::first_chunk);
        let offset = offset.map_or(u32::MAX, |offset| u32::from_le_bytes(*offset));
        let mut rest = self.blob.get(to_usize(offset)..).unwrap_or_default();
        let mut next = || next_compressed(&mut rest);
        let node = || {
            let head = next()?;
            let type_place = to_usize(head >> 1);
            let stated = if head & 1 == 0 { None } else { Some(next()?) };
            let of_type = self.file_types.get(type_place)?;
            let size = stated.unwrap_or(of_type.size);
            Some((type_place, size.into(), next()?))
        };
        let (type_place, size, children) = { node }().ok_or_else(|| self.corrupt(offset))?;
        Ok(FileNode { type_place, size, children, rest })
    }

    /// Passes the number of each node to which a node refers.
    fn each_child(
        &mut self,
        number: usize,
        node: &FileNode<'a>,
        mut take: impl FnMut(usize),
    ) -> Result<(), GcdumpError> {
        let mut rest = node.rest;
        for _ in 0..node.children {
            let child = next_compressed(&mut rest).map(|difference| to_u32(number).wrapping_add(difference));
            take(to_usize(child.ok_or(GcdumpError::Truncated)?));
        }
        let read = node.rest.len().saturating_sub(rest.len());
        self.left = self.left.checked_sub(read).ok_or(GcdumpError::Corrupt(self.at))?;
        Ok(())
    }

    fn into_graph(mut self) -> Result<Graph, GcdumpError> {
        let count = self.offsets.len() / 4;
        if self.addresses.len() / 8 != count {
            return Err(GcdumpError::Corrupt(self.at));
        }
        let mut nodes = NodeColumns::default();
        // The number of the object of each node.
        let mut numbers: Vec<u32> = Vec::new();
        for (number, address) in (0..count).zip(self.addresses.chunks_exact(8)) {
            let node = self.node(number)?;
            let of_type = self.file_types.get(node.type_place);
            if node.type_place == 0 || of_type.is_none_or(|of_type| of_type.is_root) {
                numbers.push(NO_OBJECT);
                continue;
            }
            numbers.push(to_u32(nodes.addresses.len()));
            let address = address.first_chunk().map_or(0, |address| u64::from_le_bytes(*address));
            nodes.push(address, node.size, to_u32(node.type_place), 0);
        }
        let mut references = Vec::new();
        let object = |number: usize| numbers.get(number).copied().filter(|object| *object != NO_OBJECT);
        for (number, known) in numbers.iter().enumerate().filter(|(_, object)| **object != NO_OBJECT) {
            if let Some(edges) = nodes.edges.get_mut(to_usize(*known)) {
                *edges = to_u64(references.len());
            }
            let node = self.node(number)?;
            self.each_child(number, &node, |child| {
                Graph::push_reference(&mut references, *known, object(child))
            })?;
        }
        let roots = self.roots(&numbers, &nodes.addresses)?;
        Ok(Graph::of_numbers(nodes, references, roots, self.types))
    }

    /// Follows the nodes for roots to the objects.
    fn roots(&mut self, numbers: &[u32], addresses: &[u64]) -> Result<Vec<Root>, GcdumpError> {
        let name = |of_type: usize| self.types.get(of_type).and_then(|of_type| of_type.raw_name.as_deref());
        let field =
            |of_type: usize| name(of_type).and_then(static_field).map(|field| read_name(field).into());
        let fields: Vec<Option<Arc<str>>> = (0..self.types.len()).map(field).collect();
        let mut roots = Vec::new();
        let mut open = alloc::vec![(to_usize(self.root), RootPath::START)];
        let mut seen = alloc::vec![0_u64; numbers.len().div_ceil(64)];
        while let Some((number, path)) = open.pop() {
            let bit = 1 << (number & 63);
            let is_new = numbers.get(number) == Some(&NO_OBJECT)
                && seen
                    .get_mut(number >> 6)
                    .is_some_and(|bits| core::mem::replace(bits, *bits | bit) & bit == 0);
            if !is_new {
                continue;
            }
            let node = self.node(number)?;
            let name = self.types.get(node.type_place).and_then(|of_type| of_type.raw_name.as_deref());
            let path = path.with(name.unwrap_or_default(), node.type_place);
            let field = path.field.and_then(|of_type| fields.get(of_type)).cloned().flatten();
            self.each_child(number, &node, |child| match numbers.get(child) {
                Some(&NO_OBJECT) => open.push((child, path)),
                Some(object) => roots.push(Root {
                    address: addresses.get(to_usize(*object)).copied().unwrap_or_default(),
                    kind: path.kind,
                    flags: path.flags,
                    id: 0,
                    field: field.clone(),
                }),
                None => {}
            })?;
        }
        Ok(roots)
    }
}

/// Reads the types of native programs, which have no name: an offset in a module, for each type.
fn native_types(file: &mut FileReader<'_>, types: &mut [HeapType]) -> Result<(), GcdumpError> {
    file.expect(tag::SKIP)?;
    file.i32()?;
    // The path and the base address of modules, by their offset in the file.
    let mut modules: BTreeMap<usize, (Option<Arc<str>>, u64)> = BTreeMap::new();
    for place in 0..file.count()? {
        let name_id = file.u32()?;
        let at = file.r.offset();
        let module = if file.r.rest().first() == Some(&tag::REFERENCE) {
            file.byte()?;
            let at = file.count()?;
            modules.get(&at).cloned()
        } else if file.begin()?.is_some() {
            let path = file.string()?.map(Into::into);
            let base = file.u64()?;
            // The size and the build time.
            file.r.bytes(12)?;
            file.string()?;
            // The GUID and the age.
            file.r.bytes(20)?;
            file.expect(tag::END)?;
            Some(modules.entry(at).or_insert((path, base)).clone())
        } else {
            None
        };
        file.string()?;
        if let (Some((path, base)), Some(of_type)) = (module, types.get_mut(place)) {
            *of_type = HeapType {
                id: base.wrapping_add(name_id.into()),
                raw_name: Some(String::new()),
                module_id: base,
                module: path,
                build_id: Arc::default(),
                name_id,
                flags: 0x10,
            };
        }
    }
    file.expect(tag::END)
}

/// Returns the type of a name in the file.
fn heap_type(name: String, module: Option<String>) -> HeapType {
    let hex = |text: &str, before, after| {
        let digits = text.strip_prefix(before)?.strip_suffix(after)?;
        u64::from_str_radix(digits, 16).ok()
    };
    let name = SIZE_CLASSES.iter().find_map(|(_, suffix)| name.strip_suffix(suffix)).unwrap_or(&name);
    let unknown = hex(name, "UNKNOWN 0x", "");
    let of_com = name.strip_prefix("[RCW ").and_then(|rest| rest.strip_suffix(']'));
    let module_id = module.as_deref().and_then(|module| hex(module, "Module(0x", ")"));
    HeapType {
        id: unknown.unwrap_or_default(),
        raw_name: unknown.is_none().then(|| read_name(of_com.unwrap_or(name))),
        module_id: module_id.unwrap_or_default(),
        module: module.filter(|_| module_id.is_none()).map(Into::into),
        build_id: Arc::default(),
        name_id: 0,
        flags: if of_com.is_some() { 4 } else { 0 },
    }
}
