//! Names of frames: methods, modules, mappings and symbols by address.
//!
//! # Where names come from
//!
//! | source | rows | names |
//! |---|---|---|
//! | `Microsoft-Windows-DotNETRuntime` | MethodLoadVerbose, MethodUnloadVerbose | code that was compiled or freed during the session, dynamic methods too |
//! | `Microsoft-Windows-DotNETRuntimeRundown` | MethodDCStartVerbose, MethodDCEndVerbose | all code that exists when the session starts or ends; the only source for precompiled methods |
//! | both | ModuleLoad, ModuleDCStart, ModuleDCEnd | the modules of these methods |
//! | `Universal.System` (V6) | ProcessMapping, ProcessSymbol | mapped files and symbols of each process |
//! | a perf map | lines `START SIZE name` | see [`Names::perf_map_line`] |
//!
//! # What a name looks like
//!
//! As TraceEvent prints it: `module!Namespace.Type.Method(argument,types)`. The module is the name of its file without
//! directory, `.dll` and `.exe`, in the case of the trace; TraceEvent prints some in lower case. A method whose module
//! has no row is `ManagedModule!Type.Method()`, an address in a mapped file without a symbol is `module!?`, and any other
//! address is `?!?`. [`Names::place`] returns module and offset of such an address.
//!
//! Memory that holds compiled code is no file (`/memfd:doublemapper` of V6). Its symbols have the form
//! `return-type [module] Type::Method(args)[Tier]` and are `module!Type::Method(args)`; others there, such as stubs, are
//! `unknown!name`.
//!
//! # Addresses that are used again
//!
//! Code can be freed, and its address used for other code. An address therefore has an [`AddressId`] for each owner:
//! when its code is unloaded or replaced, [`Names`] binds the id to the old name, and the next
//! [`address`](Names::address) call returns a new id. This needs events in the order of time; a trace without unloads
//! can have any order, because an address that is not bound gets the name of the code that covers it at the end.
//!
//! # Memory
//!
//! The texts of all methods are in one arena and have at most [`Names::LIMIT`] bytes. They are removed when their code is
//! freed before an address of it was seen; the arena may be twice as large until then. The name of a module has at most
//! 255 bytes, that of a method or a label 4,096, and is cut after that. Methods, modules and mappings together are at most
//! [`Names::ROWS`]. Further rows are ignored, and [`dropped`](Names::dropped) counts them. Addresses and frames are stored
//! until [`forget_addresses`](Names::forget_addresses).
mod spelling;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use ipc_proto::nettrace::{Metadata, TraceEvent};

pub(crate) use self::spelling::push_text;
pub use self::spelling::short_name;
use self::spelling::{MAX_METHOD, cut, is_method, module_name, split_managed, write_name};

use crate::KnownProvider;
use crate::place::{at, at_mut, index};
use crate::rows::{MethodRow, ModuleRow};

/// An address of a process during the lifetime of the code there, or a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressId(pub(crate) u32);

/// A name. Two addresses in code of the same name have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub(crate) u32);

impl FrameId {
    /// The frame of an address of which nothing is known: `?!?`.
    pub const UNKNOWN: Self = Self(0);
}

/// Names addresses by the events of a trace. The [module](self) has the rules.
///
/// ```
/// use ipc_proto::nettrace::{EventAssembler, Limits, Progress};
/// use nettrace_analysis::names::Names;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-small-mixed.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::new(Limits::default());
/// assembler.push(&bytes);
/// let mut names = Names::default();
/// while let Progress::Event = assembler.advance() {
///     let Some(event) = assembler.event() else { break };
///     names.event(&event);
/// }
/// names.perf_map_line(0, "7f0000001000 20 int32 [app] Shop.Cart::Total(int32)[Tier1]");
/// let address = names.address(0, 0x7f00_0000_1010);
/// let frame = names.frame(address);
/// assert_eq!(names.text(frame), "app!Shop.Cart::Total(int32)");
/// assert_eq!(names.short(frame), "Shop.Cart::Total");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Names {
    /// The texts of methods and mapped files.
    arena: String,
    /// The bytes of `arena` that no method has.
    garbage: usize,
    methods: Vec<Method>,
    /// Places in `methods` that are free.
    vacant: Vec<u32>,
    modules: Vec<Module>,
    /// By process and by the runtime's id.
    module_ids: BTreeMap<(u64, u64), u32>,
    /// The methods by process and start. Ranges do not overlap.
    ranges: BTreeMap<(u64, u64), CodeRange>,
    /// Mapped files by process and start.
    mappings: BTreeMap<(u64, u64), Mapping>,
    /// The start of each mapping by process and id.
    mapping_ids: BTreeMap<(u64, u64), u64>,
    addresses: Vec<Address>,
    /// The addresses that are not bound.
    open: BTreeMap<(u64, u64), u32>,
    labels: BTreeMap<Arc<str>, u32>,
    frames: Vec<Arc<str>>,
    frame_ids: BTreeMap<Arc<str>, u32>,
    dropped: u64,
    /// How often addresses were bound.
    generation: u32,
    /// Whether frames are named in short.
    is_short: bool,
    /// For the text of a row.
    buffer: String,
}

#[derive(Debug)]
struct Method {
    /// `Type.Method(args)` in the arena.
    start: u32,
    len: u32,
    module: u32,
    /// The frame, once the name is complete.
    frame: Option<FrameId>,
}

#[derive(Debug, Default)]
struct Module {
    name: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy)]
struct CodeRange {
    end: u64,
    method: u32,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    end: u64,
    file_offset: u64,
    module: u32,
}

#[derive(Debug, Clone, Copy)]
struct Address {
    process: u64,
    ip: u64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Open,
    /// Its code was freed or replaced.
    Bound {
        method: u32,
    },
    Label(FrameId),
}

/// The module of code whose module no row states.
const NO_MODULE: u32 = u32::MAX;

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            arena: String::new(),
            garbage: 0,
            methods: Vec::new(),
            vacant: Vec::new(),
            modules: Vec::new(),
            module_ids: BTreeMap::new(),
            ranges: BTreeMap::new(),
            mappings: BTreeMap::new(),
            mapping_ids: BTreeMap::new(),
            addresses: Vec::new(),
            open: BTreeMap::new(),
            labels: BTreeMap::new(),
            frames: Vec::new(),
            frame_ids: BTreeMap::new(),
            dropped: 0,
            generation: 0,
            is_short: false,
            buffer: String::new(),
        };
        names.frame_of("?!?");
        names
    }
}

impl Names {
    /// The bytes that the texts of methods take at most. A runtime with 30,000 methods has about 4 MiB.
    pub const LIMIT: usize = 64 << 20;
    /// How many methods are stored at most; modules and mappings too.
    pub const ROWS: usize = 1 << 20;
    /// How many different addresses and labels are stored at most. Further ones get no id of their own.
    pub const ADDRESSES: usize = 1 << 20;

    /// Takes the next event of the trace. Events that name nothing are ignored.
    pub fn event(&mut self, event: &TraceEvent<'_>) {
        let Some(metadata) = event.metadata() else { return };
        if let Some(provider) = KnownProvider::of(metadata.provider) {
            self.known_event(event, &metadata, provider);
        }
    }

    /// Takes an event whose description is known.
    pub(crate) fn known_event(
        &mut self,
        event: &TraceEvent<'_>,
        metadata: &Metadata<'_>,
        provider: KnownProvider,
    ) {
        let payload = event.header.payload;
        match (provider, metadata.event_id) {
            (KnownProvider::Runtime, 143) | (KnownProvider::Rundown, 143 | 144) => {
                if let Ok(row) = MethodRow::decode(payload) {
                    self.load(process_of(event), &row);
                }
            }
            (KnownProvider::Runtime, 144) => {
                if let Ok(row) = MethodRow::decode(payload) {
                    self.unload(process_of(event), &row);
                }
            }
            (KnownProvider::Runtime, 152) | (KnownProvider::Rundown, 153 | 154) => {
                if let Ok(row) = ModuleRow::decode(payload) {
                    self.load_module(process_of(event), &row);
                }
            }
            (KnownProvider::UniversalSystem, _) if metadata.name == "ProcessMapping" => self.map(event),
            (KnownProvider::UniversalSystem, _) if metadata.name == "ProcessSymbol" => self.symbol(event),
            _ => {}
        }
    }

    /// Takes a line of a perf map, `START SIZE name` with hexadecimal numbers, of a process of the trace: 0 is the
    /// process of a trace of a runtime. Returns whether it is one.
    ///
    /// A name of the runtime has the form `return-type [module] Type::Method(args)[Tier]`. Code that a row of the trace
    /// names already keeps that name.
    pub fn perf_map_line(&mut self, process: u64, line: &str) -> bool {
        let mut parts = line.trim_end().splitn(3, ' ');
        let mut number = || parts.next().and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let (Some(start), Some(size)) = (number(), number()) else { return false };
        let Some(name) = parts.next() else { return false };
        self.named_range(process, start..start.saturating_add(size), name, NO_MODULE);
        true
    }

    /// Returns the id of an address of a process: `0` is the process of a trace of a runtime, V6 has others.
    pub fn address(&mut self, process: u64, ip: u64) -> AddressId {
        if let Some(id) = self.open.get(&(process, ip)) {
            return AddressId(*id);
        }
        let id = self.add_address(Address { process, ip, state: State::Open });
        if let Some(id) = id {
            self.open.insert((process, ip), id);
        }
        AddressId(id.unwrap_or(u32::MAX))
    }

    /// Returns the id of a text that is no code, such as the name of an event, to be the frame of a stack.
    pub fn label(&mut self, text: &str) -> AddressId {
        let text = cut(text, MAX_METHOD);
        if let Some(id) = self.labels.get(text) {
            return AddressId(*id);
        }
        if self.addresses.len() >= Self::ADDRESSES {
            return AddressId(u32::MAX);
        }
        let frame = self.frame_of(text);
        let id = self.add_address(Address { process: 0, ip: 0, state: State::Label(frame) });
        if let (Some(id), Some(text)) = (id, at(&self.frames, frame.0)) {
            self.labels.insert(text.clone(), id);
        }
        AddressId(id.unwrap_or(u32::MAX))
    }

    fn add_address(&mut self, address: Address) -> Option<u32> {
        if self.addresses.len() >= Self::ADDRESSES {
            return None;
        }
        let id = index(self.addresses.len());
        self.addresses.push(address);
        Some(id)
    }

    /// Makes [`frame`](Self::frame) return short names from now on: methods without module and arguments. Methods that
    /// differ only in these then have the same frame. Of an unknown method, the name has the module: `module!?`.
    pub const fn shorten(&mut self) {
        self.is_short = true;
    }

    /// Returns the name of an address, as far as it is known now.
    pub fn frame(&mut self, address: AddressId) -> FrameId {
        let frame = self.full_frame(address);
        let is_label = matches!(at(&self.addresses, address.0), Some(Address { state: State::Label(_), .. }));
        if !self.is_short || is_label {
            return frame;
        }
        let text = String::from(self.short(frame));
        self.frame_of(&text)
    }

    fn full_frame(&mut self, address: AddressId) -> FrameId {
        let Some(Address { process, ip, state }) = at(&self.addresses, address.0).copied() else {
            return FrameId::UNKNOWN;
        };
        let method = match state {
            State::Label(frame) => return frame,
            State::Bound { method } => Some(method),
            State::Open => self.method_at(process, ip),
        };
        if let Some(method) = method {
            return self.method_frame(method);
        }
        match self.mapping_at(process, ip).map(|mapping| mapping.module) {
            Some(module) => {
                let text = alloc::format!("{}!?", self.module_name(module));
                self.frame_of(&text)
            }
            None => FrameId::UNKNOWN,
        }
    }

    /// Returns the full name of a frame.
    #[must_use]
    pub fn text(&self, frame: FrameId) -> &str {
        at(&self.frames, frame.0).map_or("?!?", |text| text)
    }

    /// Returns the full name of a frame, shared.
    pub(crate) fn shared_text(&self, frame: FrameId) -> Arc<str> {
        let text = at(&self.frames, frame.0).or_else(|| self.frames.first());
        text.map_or_else(|| "?!?".into(), Arc::clone)
    }

    /// Returns the name of a frame without module and arguments.
    #[must_use]
    pub fn short(&self, frame: FrameId) -> &str {
        short_name(self.text(frame))
    }

    /// Returns whether the method of a frame is known.
    #[must_use]
    pub fn is_named(&self, frame: FrameId) -> bool {
        is_method(self.text(frame))
    }

    /// Returns the module and the offset in its file of an address in a mapped file (V6).
    #[must_use]
    pub fn place(&self, address: AddressId) -> Option<(&str, u64)> {
        let Address { process, ip, state: State::Open } = *at(&self.addresses, address.0)? else {
            return None;
        };
        let (start, mapping) = { self.mappings.range(..=(process, ip)) }.next_back()?;
        (start.0 == process && ip < mapping.end && mapping.module != NO_MODULE).then(|| {
            let offset = ip.wrapping_sub(start.1).wrapping_add(mapping.file_offset);
            (self.module_name(mapping.module), offset)
        })
    }

    /// Returns the instruction pointer of an address; `None` if it is a label.
    #[must_use]
    pub fn ip(&self, address: AddressId) -> Option<u64> {
        let address = at(&self.addresses, address.0)?;
        (!matches!(address.state, State::Label(_))).then_some(address.ip)
    }

    /// Returns how many rows were ignored because they would exceed a limit.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Removes all addresses, labels and frames, and the names of code that was freed: their ids are invalid from now on.
    /// The names of existing code remain. An analysis that runs for a long time needs this from time to time.
    pub fn forget_addresses(&mut self) {
        let addresses = core::mem::take(&mut self.addresses);
        for address in addresses {
            let State::Bound { method } = address.state else { continue };
            // Several addresses can be bound to the same method.
            let Some(row) = at_mut(&mut self.methods, method).filter(|row| row.len > 0) else { continue };
            let len = usize::try_from(core::mem::take(&mut row.len)).unwrap_or_default();
            self.garbage = self.garbage.saturating_add(len);
            self.vacant.push(method);
        }
        self.methods.iter_mut().for_each(|method| method.frame = None);
        self.open.clear();
        self.labels.clear();
        self.frames.clear();
        self.frame_ids.clear();
        self.frame_of("?!?");
        self.generation = self.generation.wrapping_add(1);
    }

    /// Returns how many addresses and labels are stored.
    pub(crate) fn addresses(&self) -> usize {
        self.addresses.len()
    }

    /// Returns a number that changes when an address gets another id.
    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    fn load(&mut self, process: u64, row: &MethodRow<'_>) {
        if row.size == 0 {
            return;
        }
        let mut text = core::mem::take(&mut self.buffer);
        write_name(&mut text, row);
        let module = self.module(process, row.module);
        let end = row.start.saturating_add(row.size.into());
        self.insert(process, row.start..end, &text, module);
        text.clear();
        self.buffer = text;
    }

    fn unload(&mut self, process: u64, row: &MethodRow<'_>) {
        let end = row.start.saturating_add(row.size.into());
        // A row names code that no other row has named: it was compiled before the session.
        if self.overlapping(process, row.start, end).is_none() {
            self.load(process, row);
        }
        while let Some(start) = self.overlapping(process, row.start, end) {
            self.retire(process, start);
        }
    }

    /// Returns the start of the last range that has an address of `start..end`.
    fn overlapping(&self, process: u64, start: u64, end: u64) -> Option<u64> {
        let (key, range) = self.ranges.range(..(process, end)).next_back()?;
        (key.0 == process && range.end > start).then_some(key.1)
    }

    /// Returns what of `range` is before the first and after the last named address in it.
    fn unnamed(&self, process: u64, range: Range<u64>) -> [Range<u64>; 2] {
        let Some(last) = self.overlapping(process, range.start, range.end) else {
            return [range, 0..0];
        };
        let first = match self.range_at(process, range.start) {
            Some(_) => range.start,
            None => {
                { self.ranges.range((process, range.start)..).next() }.map_or(range.start, |(key, _)| key.1)
            }
        };
        let end = self.ranges.get(&(process, last)).map_or(range.end, |last| last.end);
        [range.start..first, end..range.end]
    }

    /// Adds code, and removes other code at its addresses.
    fn insert(&mut self, process: u64, range: Range<u64>, text: &str, module: u32) {
        let text = cut(text, MAX_METHOD);
        let known = self.ranges.get(&(process, range.start));
        if known.is_some_and(|known| known.end == range.end && self.is_method(known.method, text, module)) {
            return;
        }
        while let Some(start) = self.overlapping(process, range.start, range.end) {
            self.retire(process, start);
        }
        let room = self.arena.len().saturating_sub(self.garbage).saturating_add(text.len());
        let used = self.methods.len().saturating_sub(self.vacant.len());
        if room > Self::LIMIT || used >= Self::ROWS {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        // Half of it, so that each byte is moved at most once for a byte that was added.
        if self.garbage > self.arena.len() / 2 && self.garbage > 1 << 16 {
            self.compact();
        }
        let start = index(self.arena.len());
        self.arena.push_str(text);
        let method = Method { start, len: index(text.len()), module, frame: None };
        let place = match self.vacant.pop() {
            Some(place) => {
                if let Some(slot) = at_mut(&mut self.methods, place) {
                    *slot = method;
                }
                place
            }
            None => {
                self.methods.push(method);
                index(self.methods.len().saturating_sub(1))
            }
        };
        self.ranges.insert((process, range.start), CodeRange { end: range.end, method: place });
    }

    fn is_method(&self, method: u32, text: &str, module: u32) -> bool {
        at(&self.methods, method)
            .is_some_and(|known| known.module == module && self.method_text(known) == text)
    }

    fn method_text(&self, method: &Method) -> &str {
        let start = usize::try_from(method.start).unwrap_or(usize::MAX);
        let len = usize::try_from(method.len).unwrap_or(usize::MAX);
        self.arena.get(start..start.saturating_add(len)).unwrap_or_default()
    }

    /// Removes a range, and binds the addresses that were seen in it.
    fn retire(&mut self, process: u64, start: u64) {
        let Some(CodeRange { end, method }) = self.ranges.remove(&(process, start)) else { return };
        let mut is_seen = false;
        // A return address may be the end of the code, if nothing else begins there.
        while let Some((key, id)) = self.open.range((process, start)..(process, end)).next() {
            let (key, id) = (*key, *id);
            self.open.remove(&key);
            if let Some(address) = at_mut(&mut self.addresses, id) {
                address.state = State::Bound { method };
            }
            is_seen = true;
        }
        if is_seen {
            self.generation = self.generation.wrapping_add(1);
        } else if let Some(method_row) = at_mut(&mut self.methods, method) {
            let len = usize::try_from(method_row.len).unwrap_or_default();
            self.garbage = self.garbage.saturating_add(len);
            method_row.len = 0;
            self.vacant.push(method);
        }
    }

    /// Removes the texts of methods that are gone.
    fn compact(&mut self) {
        let mut arena = String::with_capacity(self.arena.len().saturating_sub(self.garbage));
        let mut methods = core::mem::take(&mut self.methods);
        for method in &mut methods {
            let start = index(arena.len());
            arena.push_str(self.method_text(method));
            method.start = start;
        }
        self.methods = methods;
        self.arena = arena;
        self.garbage = 0;
    }

    /// Returns the module of an id, which a later row may name.
    fn module(&mut self, process: u64, id: u64) -> u32 {
        if let Some(module) = self.module_ids.get(&(process, id)) {
            return *module;
        }
        let module = self.add_module(None);
        if module != NO_MODULE {
            self.module_ids.insert((process, id), module);
        }
        module
    }

    fn add_module(&mut self, name: Option<Arc<str>>) -> u32 {
        if self.modules.len() >= Self::ROWS {
            self.dropped = self.dropped.saturating_add(1);
            return NO_MODULE;
        }
        self.modules.push(Module { name });
        index(self.modules.len().saturating_sub(1))
    }

    fn load_module(&mut self, process: u64, row: &ModuleRow<'_>) {
        let mut path = String::new();
        push_text(&mut path, row.path);
        let name = module_name(&path);
        let name = if row.native_path == row.path { name.strip_suffix(".ni").unwrap_or(name) } else { name };
        if name.is_empty() {
            return;
        }
        let module = self.module(process, row.module);
        let Some(known) = at_mut(&mut self.modules, module) else { return };
        match &known.name {
            Some(known) if **known == *name => {}
            None => known.name = Some(name.into()),
            Some(_) => {
                // The id is used again.
                let module = self.add_module(Some(name.into()));
                self.module_ids.insert((process, row.module), module);
            }
        }
    }

    fn module_name(&self, module: u32) -> &str {
        at(&self.modules, module).and_then(|module| module.name.as_deref()).unwrap_or("?")
    }

    /// ProcessMapping: a file in the memory of a process.
    fn map(&mut self, event: &TraceEvent<'_>) {
        let number = |name| event.field(name).and_then(|value| value.as_u64());
        let (Some(start), Some(last)) = (number("StartAddress"), number("EndAddress")) else { return };
        let Some(path) = event.field("FileName").and_then(|value| value.as_str()) else { return };
        let mut text = String::new();
        push_text(&mut text, path);
        let process = process_of(event);
        if self.mappings.len() >= Self::ROWS {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        let name = module_name(&text);
        // Compiled code: its symbols name their modules.
        let is_file = !name.is_empty() && !text.starts_with("/memfd:doublemapper");
        let module = if is_file { self.add_module(Some(name.into())) } else { NO_MODULE };
        let file_offset = number("FileOffset").unwrap_or_default();
        self.mappings.insert((process, start), Mapping { end: last.saturating_add(1), file_offset, module });
        if let Some(id) = number("Id") {
            self.mapping_ids.insert((process, id), start);
        }
    }

    /// ProcessSymbol: a name of a part of a mapping.
    fn symbol(&mut self, event: &TraceEvent<'_>) {
        let number = |name| event.field(name).and_then(|value| value.as_u64());
        let (Some(start), Some(last)) = (number("StartAddress"), number("EndAddress")) else { return };
        let Some(name) = event.field("Name").and_then(|value| value.as_str()) else { return };
        // The writer of an empty table of kernel symbols states the whole memory.
        if (start, last) == (0, u64::MAX) {
            return;
        }
        let process = process_of(event);
        let mapping = number("MappingId").and_then(|id| self.mapping_ids.get(&(process, id)));
        let mapping = mapping.and_then(|start| self.mappings.get(&(process, *start)));
        let module = match mapping.map(|mapping| mapping.module) {
            Some(NO_MODULE) => self.named_module(process, "unknown"),
            module => module.unwrap_or(NO_MODULE),
        };
        let mut text = core::mem::take(&mut self.buffer);
        push_text(&mut text, name);
        self.named_range(process, start..last.saturating_add(1), &text, module);
        text.clear();
        self.buffer = text;
    }

    /// Adds code that a symbol or a perf map names. Addresses that have a name keep it.
    fn named_range(&mut self, process: u64, range: Range<u64>, name: &str, module: u32) {
        if range.is_empty() {
            return;
        }
        let (module, method) = match split_managed(name) {
            Some((module, method)) => (self.named_module(process, module_name(module)), method),
            None => (module, name),
        };
        for part in self.unnamed(process, range) {
            if !part.is_empty() {
                self.insert(process, part, method, module);
            }
        }
    }

    /// Returns the module of this name that a symbol has. Ids of the runtime are addresses, and symbols have none.
    fn named_module(&mut self, process: u64, name: &str) -> u32 {
        // FNV-1a. Two names of one hash would share a module, so the name is compared.
        let hash = { name.bytes() }.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let module = self.module(process, hash);
        match at_mut(&mut self.modules, module) {
            Some(known) if known.name.is_none() => known.name = Some(name.into()),
            Some(known) if known.name.as_deref() != Some(name) => return self.add_module(Some(name.into())),
            _ => {}
        }
        module
    }

    fn method_at(&self, process: u64, ip: u64) -> Option<u32> {
        // The caller of code that never returns has the end of its own code as its return address.
        self.range_at(process, ip).or_else(|| self.range_at(process, ip.wrapping_sub(1)))
    }

    fn range_at(&self, process: u64, ip: u64) -> Option<u32> {
        let (key, range) = self.ranges.range(..=(process, ip)).next_back()?;
        (key.0 == process && ip < range.end).then_some(range.method)
    }

    fn mapping_at(&self, process: u64, ip: u64) -> Option<Mapping> {
        let (key, mapping) = self.mappings.range(..=(process, ip)).next_back()?;
        (key.0 == process && ip < mapping.end).then_some(*mapping)
    }

    fn method_frame(&mut self, place: u32) -> FrameId {
        let Some(method) = at(&self.methods, place) else { return FrameId::UNKNOWN };
        if let Some(frame) = method.frame {
            return frame;
        }
        let (module, is_complete) = match at(&self.modules, method.module) {
            Some(Module { name: Some(name) }) => (&**name, true),
            Some(Module { name: None }) => ("ManagedModule", false),
            None => ("?", true),
        };
        let text = alloc::format!("{module}!{}", self.method_text(method));
        let frame = self.frame_of(&text);
        if let Some(method) = at_mut(&mut self.methods, place).filter(|_| is_complete) {
            method.frame = Some(frame);
        }
        frame
    }

    fn frame_of(&mut self, text: &str) -> FrameId {
        if let Some(id) = self.frame_ids.get(text) {
            return FrameId(*id);
        }
        let id = index(self.frames.len());
        let text: Arc<str> = text.into();
        self.frames.push(text.clone());
        self.frame_ids.insert(text, id);
        FrameId(id)
    }
}

/// Names of addresses at one moment, each of which is searched once.
#[derive(Debug)]
pub(crate) struct Frames<'n> {
    names: &'n mut Names,
    known: Vec<Option<FrameId>>,
}

impl<'n> Frames<'n> {
    pub(crate) fn new(names: &'n mut Names) -> Self {
        let known = alloc::vec![None; names.addresses()];
        Self { names, known }
    }

    /// Returns what [`Names::frame`] returns.
    pub(crate) fn of(&mut self, address: AddressId) -> FrameId {
        match at_mut(&mut self.known, address.0) {
            Some(known) => *known.get_or_insert_with(|| self.names.frame(address)),
            None => self.names.frame(address),
        }
    }
}

/// Returns the process of an event: `0` is the process of the trace, if the trace states one.
pub(crate) fn process_of(event: &TraceEvent<'_>) -> u64 {
    event.thread().and_then(|thread| thread.process_id()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use ipc_proto::nettrace::Str;

    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// Calls `f` with the row of a method of module 7.
    fn with_row(start: u64, size: u32, name: &str, f: impl FnOnce(&MethodRow<'_>)) {
        let [type_name, name, signature] = ["Shop.Cart", name, "instance void  (int32)"].map(utf16);
        let [type_name, name, signature] = [&type_name, &name, &signature].map(|units| Str::Utf16(units));
        f(&MethodRow { module: 7, start, size, type_name, name, signature });
    }

    fn load(names: &mut Names, start: u64, size: u32, name: &str) {
        with_row(start, size, name, |row| names.load(0, row));
    }

    fn load_module(names: &mut Names, path: &str, native_path: &str) {
        let [path, native_path] = [path, native_path].map(utf16);
        let [path, native_path] = [&path, &native_path].map(|units| Str::Utf16(units));
        names.load_module(0, &ModuleRow { module: 7, path, native_path });
    }

    fn text(names: &mut Names, address: AddressId) -> String {
        let frame = names.frame(address);
        names.text(frame).into()
    }

    #[test]
    fn a_module_names_earlier_methods() {
        let mut names = Names::default();
        load(&mut names, 0x1000, 0x10, "Add");
        let address = names.address(0, 0x1008);
        assert_eq!(text(&mut names, address), "ManagedModule!Shop.Cart.Add(int32)");
        load_module(&mut names, "C:\\shop\\Shop.App.dll", "");
        assert_eq!(text(&mut names, address), "Shop.App!Shop.Cart.Add(int32)");
        let frame = names.frame(address);
        assert_eq!(names.short(frame), "Shop.Cart.Add");
        assert!(names.is_named(frame));
        // The id is used again.
        load_module(&mut names, "/shop/Other.ni.dll", "/shop/Other.ni.dll");
        load(&mut names, 0x2000, 0x10, "Add");
        let other = names.address(0, 0x2000);
        assert_eq!(text(&mut names, other), "Other!Shop.Cart.Add(int32)");
        assert_eq!(text(&mut names, address), "Shop.App!Shop.Cart.Add(int32)");
    }

    #[test]
    fn an_address_has_the_name_of_its_time() {
        let mut names = Names::default();
        load_module(&mut names, "/shop.dll", "");
        load(&mut names, 0x1000, 0x20, "First");
        let first = names.address(0, 0x1010);
        with_row(0x1000, 0x20, "First", |row| names.unload(0, row));
        // Nothing is there for a while.
        let nothing = names.address(0, 0x1018);
        assert_eq!(text(&mut names, nothing), "?!?");
        load(&mut names, 0x1000, 0x10, "Second");
        // Replaced without an unload.
        let second = names.address(0, 0x1008);
        load(&mut names, 0x1008, 0x10, "Third");
        let third = names.address(0, 0x1008);
        let texts = [first, second, third].map(|address| text(&mut names, address));
        let expected =
            ["First", "Second", "Third"].map(|name| alloc::format!("shop!Shop.Cart.{name}(int32)"));
        assert_eq!(texts, expected);
        assert_ne!(second, third);
        // The same row again, as the rundown has it, changes nothing.
        load(&mut names, 0x1008, 0x10, "Third");
        assert_eq!(names.address(0, 0x1008), third);
    }

    #[test]
    fn a_return_address_can_be_the_end_of_the_code() {
        let mut names = Names::default();
        load(&mut names, 0x1000, 0x10, "Throw");
        let [end, after] = [0x1010, 0x1011].map(|ip| names.address(0, ip));
        assert_eq!(text(&mut names, end), "ManagedModule!Shop.Cart.Throw(int32)");
        assert_eq!(text(&mut names, after), "?!?");
        // Unless other code begins there.
        load(&mut names, 0x1010, 0x10, "Next");
        assert_eq!(text(&mut names, end), "ManagedModule!Shop.Cart.Next(int32)");
        let top = names.address(0, u64::MAX);
        assert_eq!(text(&mut names, top), "?!?");
        load(&mut names, u64::MAX - 4, 0x10, "Last");
        assert_eq!(names.address(0, u64::MAX), top);
    }

    #[test]
    fn code_that_was_never_seen_takes_no_memory() {
        let mut names = Names::default();
        for i in 0..30_000 {
            load(&mut names, 0x1000, 0x10, &alloc::format!("Dynamic{i}"));
        }
        assert_eq!(names.methods.len(), 1);
        assert!(names.arena.len() < 300_000, "{}", names.arena.len());
        let address = names.address(0, 0x1000);
        assert_eq!(text(&mut names, address), "ManagedModule!Shop.Cart.Dynamic29999(int32)");
    }

    #[test]
    fn addresses_are_forgotten_and_names_remain() {
        let mut names = Names::default();
        load(&mut names, 0x1000, 0x10, "Stays");
        for i in 0..1_000 {
            load(&mut names, 0x2000, 0x10, &alloc::format!("Dynamic{i}"));
            // Two addresses of each.
            for ip in [0x2000, 0x2008] {
                let address = names.address(0, ip);
                assert_eq!(
                    text(&mut names, address),
                    alloc::format!("ManagedModule!Shop.Cart.Dynamic{i}(int32)")
                );
            }
            if i % 100 == 0 {
                names.forget_addresses();
                assert_eq!((names.addresses(), names.frames.len()), (0, 1));
            }
        }
        assert!(names.methods.len() < 110, "{}", names.methods.len());
        names.forget_addresses();
        assert_eq!(names.methods.len() - names.vacant.len(), 2);
        let addresses = [0x1000, 0x2004, 0x3000].map(|ip| names.address(0, ip));
        let texts = addresses.map(|address| text(&mut names, address));
        assert_eq!(
            texts,
            ["ManagedModule!Shop.Cart.Stays(int32)", "ManagedModule!Shop.Cart.Dynamic999(int32)", "?!?"]
        );
    }

    #[test]
    fn names_have_a_limit() {
        let mut names = Names::default();
        load_module(&mut names, &"\u{e9}".repeat(20_000), "");
        load(&mut names, 0x1000, 0x10, "Add");
        let long = "m".repeat(20_000);
        assert!(names.perf_map_line(0, &alloc::format!("1010 10 int32 [{long}] Add()")));
        load(&mut names, 0x2000, 0x10, &long);
        let [add, other, method] = [0x1000, 0x1010, 0x2000].map(|ip| names.address(0, ip));
        let [method, label] = [method, names.label(&long)].map(|address| text(&mut names, address).len());
        assert_eq!((method, label), ("\u{e9}".len() * 127 + "!".len() + 4096, 4096));
        let addresses = [add, other];
        let texts = addresses.map(|address| text(&mut names, address));
        let expected = [
            alloc::format!("{}!Shop.Cart.Add(int32)", "\u{e9}".repeat(127)),
            alloc::format!("{}!Add()", &long[..255]),
        ];
        assert_eq!(texts, expected);
    }

    /// Code that was compiled before the session has no other row.
    #[test]
    fn an_unload_names_code() {
        let mut names = Names::default();
        let before = names.address(0, 0x1004);
        with_row(0x1000, 0x10, "Freed", |row| names.unload(0, row));
        let after = names.address(0, 0x1004);
        assert_eq!(text(&mut names, before), "ManagedModule!Shop.Cart.Freed(int32)");
        assert_eq!(text(&mut names, after), "?!?");
    }

    #[test]
    fn memory_has_a_limit() {
        let mut names = Names::default();
        let long = "m".repeat(MAX_METHOD);
        let fit = Names::LIMIT / MAX_METHOD;
        for i in 0..fit + 3 {
            names.perf_map_line(0, &alloc::format!("{:x} 10 {long}", 0x1000 + i * 0x10));
        }
        assert_eq!((names.dropped(), names.arena.len()), (3, Names::LIMIT));
        for ip in 0..Names::ADDRESSES as u64 {
            names.address(0, ip);
        }
        for address in [names.address(0, u64::MAX), names.label("EventName: A/B")] {
            assert_eq!(text(&mut names, address), "?!?");
        }
        assert_eq!((names.addresses.len(), names.frames.len()), (Names::ADDRESSES, 1));
    }

    #[test]
    fn perf_maps() {
        let mut names = Names::default();
        assert!(names.perf_map_line(0, "1000 10 int32 [app] Shop.Cart::Total(int32[])[OptimizedTier1]\n"));
        assert!(names.perf_map_line(0, "1010 10 stub<1> GenerateLookupStub"));
        assert!(names.perf_map_line(0, "1020 10 [app] Shop.Cart::Add()"));
        for line in ["", "1000", "x 10 name", "1000 10"] {
            assert!(!names.perf_map_line(0, line), "{line}");
        }
        // The trace's own row counts.
        load(&mut names, 0x1030, 0x10, "Known");
        assert!(names.perf_map_line(0, "1038 10 other"));
        let addresses = [0x1001, 0x1011, 0x1021, 0x1039].map(|ip| names.address(0, ip));
        let texts = addresses.map(|address| text(&mut names, address));
        let expected =
            ["app!Shop.Cart::Total(int32[])", "?!stub<1> GenerateLookupStub", "app!Shop.Cart::Add()"];
        assert_eq!(texts[..3], expected);
        assert_eq!(texts[3], "ManagedModule!Shop.Cart.Known(int32)");
        // Only the addresses without a name get one.
        assert!(names.perf_map_line(0, "1000 80 outer"));
        let addresses = [0x1001, 0x1039, 0x1040, 0x1047, 0x1050].map(|ip| names.address(0, ip));
        let texts = addresses.map(|address| text(&mut names, address));
        let expected = ["app!Shop.Cart::Total(int32[])", "ManagedModule!Shop.Cart.Known(int32)", "?!other"];
        assert_eq!(texts[..3], expected);
        assert_eq!(texts[3..], ["?!other", "?!outer"]);
        // Of another process nothing is known.
        let other = names.address(1, 0x1001);
        assert_eq!(text(&mut names, other), "?!?");
    }
}
