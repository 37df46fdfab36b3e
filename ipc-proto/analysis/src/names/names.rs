use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use nettrace::TraceEvent;

use super::code_map::CodeMap;
use super::code_map::CodeName;
use super::frames::{Address, AddressId, FOLDED, FrameId, FrameTable, State, UNKNOWN};
use super::frames::{at, at_mut};
use super::modules::{Modules, NO_MODULE, ROWS};
use super::native_image::{NativeImage, NativeSymbol};
use super::native_symbols::method_of_symbol;
use super::rows::{CodeRow, ModuleRow};
use super::spelling::{MAX_METHOD, cut, is_method, module_name, short_name, split_managed};
use crate::event::{is_named, number, owned, text};
use crate::{KnownProvider, OwnCode, RuntimeEvent};

/// Names addresses by the events of a trace. The [module](super) has the rules.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::names::Names;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-small-mixed.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut names = Names::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     names.event(&event);
/// }
/// names.perf_map_line(0, "7f0000001000 20 int32 [app] Shop.Cart::Total(int32)[Tier1]");
/// let address = names.address(0, 0x7f00_0000_1010);
/// let frame = names.frame(address);
/// assert_eq!(names.text(frame), "app!Shop.Cart::Total(int32)");
/// assert_eq!(names.short(frame), "Shop.Cart::Total");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Names {
    code: CodeMap,
    modules: Modules,
    frames: FrameTable,
    /// The number of methods for which there was no room.
    dropped: u64,
    /// Whether frames are named in short.
    is_short: bool,
    /// The rule for the code of the program.
    own_code: OwnCode,
    /// The frames of addresses, each with the number of changes before it was searched, from 1 on.
    known: Vec<(u32, FrameId)>,
    /// How often a name, or the form of names, has changed.
    changes: u32,
}

impl Names {
    /// The bytes that the names of methods take at most. A runtime with 30,000 methods has about 8 MiB.
    pub const LIMIT: usize = CodeMap::LIMIT;
    /// The most methods that are stored. Modules and mappings each have the same limit.
    pub const ROWS: usize = ROWS;
    /// How many different addresses and labels are stored at most. Further ones get no id of their own.
    pub const ADDRESSES: usize = FrameTable::LIMIT;

    /// Takes the next event of the trace. Events that name nothing are ignored.
    pub fn event(&mut self, event: &TraceEvent<'_>) {
        let Some(description) = event.description() else { return };
        if let Some(provider) = KnownProvider::of(description.provider()) {
            self.known_event(event, provider, RuntimeEvent::new(provider, description.event_id()));
        }
    }

    /// Takes an event whose provider is known.
    pub(crate) fn known_event(
        &mut self,
        event: &TraceEvent<'_>,
        provider: KnownProvider,
        of_runtime: Option<RuntimeEvent>,
    ) {
        use RuntimeEvent as Is;

        let payload = event.payload();
        match of_runtime {
            Some(Is::MethodLoadVerbose | Is::MethodDCStartVerbose | Is::MethodDCEndVerbose) => {
                if let Ok(row) = CodeRow::decode(payload) {
                    self.load(process_of(event), &row);
                }
            }
            Some(Is::MethodUnloadVerbose) => {
                if let Ok(row) = CodeRow::decode(payload) {
                    self.unload(process_of(event), &row);
                }
            }
            Some(Is::ModuleLoad | Is::ModuleDCStart | Is::ModuleDCEnd) => {
                if let Ok(row) = ModuleRow::decode(payload) {
                    self.modules.load(process_of(event), &row);
                    self.change();
                }
            }
            None if provider == KnownProvider::UniversalSystem => {
                if is_named(event, "ProcessMapping") {
                    self.modules.map(process_of(event), event);
                    self.change();
                } else if is_named(event, "ProcessSymbol") {
                    self.symbol(event);
                } else if is_named(event, "ProcessMappingMetadata") {
                    self.modules.describe(event);
                }
            }
            _ => {}
        }
    }

    /// Takes a line of a perf map, `START SIZE name` with hexadecimal numbers, of a process of the trace: 0 is the
    /// process of a trace of a runtime. Returns whether the line has this form.
    ///
    /// A name of the runtime has the form `return-type [module] Type::Method(args)[Tier]`. Code that already has a name
    /// from a row of the trace keeps that name.
    pub fn perf_map_line(&mut self, process: u64, line: &str) -> bool {
        let mut parts = line.trim_end().splitn(3, ' ');
        let mut number = || parts.next().and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let (Some(start), Some(size)) = (number(), number()) else { return false };
        let Some(name) = parts.next() else { return false };
        self.named_range(process, start..start.saturating_add(size), name, NO_MODULE);
        true
    }

    /// Returns the files whose symbols can name addresses that the trace does not name: native libraries and programs that
    /// were compiled ahead of time. Each address is returned once, so call this after the events.
    pub fn native_images(&mut self) -> Vec<NativeImage> {
        let mut images: BTreeMap<(u64, u64), NativeImage> = BTreeMap::new();
        for (process, ip) in
            self.frames.take_new().filter(|(process, ip)| self.code.at(*process, *ip).is_none())
        {
            let Some(place) = self.modules.image_at(process, ip) else { continue };
            let image = images.entry((process, place.bias)).or_insert_with(|| place.image(process));
            // A return address can be the end of its method: see `CodeMap::at`.
            image.wanted.extend([ip, ip.wrapping_sub(1)].map(|ip| ip.wrapping_sub(place.bias)));
        }
        images.into_values().collect()
    }

    /// Names addresses by the symbols of a file. Addresses that have a name keep it.
    ///
    /// The symbol of a method of .NET becomes its assembly, its type and its name, as far as its form is known. Any other
    /// one is the name as it is.
    pub fn native_symbols(&mut self, image: &NativeImage, symbols: &[NativeSymbol]) {
        let program = module_name(&image.path);
        for NativeSymbol { start, size, name } in symbols {
            let start = start.wrapping_add(image.bias);
            let range = start..start.saturating_add(*size);
            let (module, method) = match method_of_symbol(name, program) {
                Some((assembly, method)) => (self.modules.of_name(cut(&assembly, MAX_METHOD), false), method),
                None => (self.modules.of_name(program, true), name.clone()),
            };
            self.named_range(image.process, range, &method, module);
        }
    }

    /// Returns the id of an address of a process: `0` is the process of a trace of a runtime, V6 has others.
    pub fn address(&mut self, process: u64, ip: u64) -> AddressId {
        self.frames.open(process, ip)
    }

    /// Returns whether [`address`](Self::address) returns this id for an address.
    pub(crate) fn is_address(&self, id: AddressId, process: u64, ip: u64) -> bool {
        self.frames.is_open(id, process, ip)
    }

    /// Returns the id of a label: the text of a frame that is not code, such as the name of an event.
    pub fn label(&mut self, text: &str) -> AddressId {
        self.frames.label(cut(text, MAX_METHOD))
    }

    /// Returns the frame that stands for a stack without frames, so that what it weighs is part of every result.
    pub(crate) fn no_frame(&mut self) -> FrameId {
        let label = self.label("(no frame)");
        self.frame(label)
    }

    /// Makes [`frame`](Self::frame) return short names from now on: methods without module and arguments. Methods that
    /// differ only in module or arguments then have the same frame. The short name of an unknown method is `module!?`.
    pub const fn shorten(&mut self) {
        self.is_short = true;
        self.change();
    }

    /// Sets which code belongs to the program. Frames that have a name already keep what they are, so call this first.
    pub fn set_own_code(&mut self, own_code: OwnCode) {
        self.own_code = own_code;
        self.change();
    }

    /// Returns the name of an address, as far as it is known now.
    pub fn frame(&mut self, address: AddressId) -> FrameId {
        let now = self.changes.saturating_add(1);
        if let Some((_, frame)) = at(&self.known, address.0).filter(|(at, _)| *at == now) {
            return *frame;
        }
        let mut frame = self.full_frame(address);
        if self.is_short && self.ip(address).is_some() {
            frame = self.frames.short(frame);
        }
        if self.known.len() < self.addresses() {
            self.known.resize(self.addresses(), (0, FrameId::UNKNOWN));
        }
        at_mut(&mut self.known, address.0).into_iter().for_each(|known| *known = (now, frame));
        frame
    }

    /// Makes frames be searched again. At its largest value the number stays the same, so that no frame is.
    const fn change(&mut self) {
        self.changes = self.changes.saturating_add(1);
    }

    fn full_frame(&mut self, address: AddressId) -> FrameId {
        let Some(Address { process, ip, state }) = self.frames.address(address) else {
            return FrameId::UNKNOWN;
        };
        let method = match state {
            State::Label(frame) => return frame,
            State::Bound { method } => Some(method),
            State::Open => self.code.at(process, ip),
        };
        if let Some(method) = method {
            return self.method_frame(method);
        }
        match self.modules.at(process, ip) {
            Some((module, _)) => {
                self.frames.frame(&alloc::format!("{}!?", self.modules.name(module)), || false)
            }
            None => FrameId::UNKNOWN,
        }
    }

    /// Returns the full name of a frame.
    #[must_use]
    pub fn text(&self, frame: FrameId) -> &str {
        match self.frames.text(frame) {
            Some(text) => text,
            None => text_without_code(frame),
        }
    }

    /// Returns the full name of a frame, shared.
    pub(crate) fn shared_text(&self, frame: FrameId) -> Arc<str> {
        self.frames.text(frame).map_or_else(|| text_without_code(frame).into(), Arc::clone)
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

    /// Returns whether a frame is code of the program, by its full name, also if [`shorten`](Self::shorten) was called.
    #[must_use]
    pub fn is_own(&self, frame: FrameId) -> bool {
        self.frames.is_own(frame)
    }

    /// Returns the module and the offset in its file of an address in a mapped file (V6).
    #[must_use]
    pub fn place(&self, address: AddressId) -> Option<(&str, u64)> {
        let Address { process, ip, state: State::Open } = self.frames.address(address)? else {
            return None;
        };
        let (module, offset) = self.modules.at(process, ip).filter(|(module, _)| *module != NO_MODULE)?;
        Some((self.modules.name(module), offset))
    }

    /// Returns the instruction pointer of an address; `None` if it is a label.
    #[must_use]
    pub fn ip(&self, address: AddressId) -> Option<u64> {
        let address = self.frames.address(address)?;
        (!matches!(address.state, State::Label(_))).then_some(address.ip)
    }

    /// Returns how many rows were ignored because they would exceed a limit.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped.saturating_add(self.modules.dropped())
    }

    /// Removes all addresses, labels and frames, and the names of code that was freed. All their ids are invalid from
    /// now on. The names of existing code remain. An analysis that runs for a long time needs this from time to time.
    pub fn forget_addresses(&mut self) {
        self.frames.forget().into_iter().for_each(|method| self.code.free(method));
        self.code.forget_frames();
        self.known = Vec::new();
    }

    /// Returns how many addresses and labels are stored.
    pub(crate) fn addresses(&self) -> usize {
        self.frames.len()
    }

    /// Returns a number that changes when an address gets another id.
    pub(crate) const fn generation(&self) -> u32 {
        self.frames.generation()
    }

    fn load(&mut self, process: u64, row: &CodeRow<'_>) {
        if row.size == 0 {
            return;
        }
        let module = self.modules.of_id(process, row.module);
        let end = row.start.saturating_add(row.size.into());
        self.insert(process, row.start..end, module, CodeName::Row(row.names));
    }

    fn unload(&mut self, process: u64, row: &CodeRow<'_>) {
        let end = row.start.saturating_add(row.size.into());
        let mut overlapping = self.code.overlapping(process, row.start, end);
        // The row of an unload names its code too. If no other row has named the code, it was compiled before the
        // session.
        if overlapping.is_none() {
            self.load(process, row);
            overlapping = self.code.overlapping(process, row.start, end);
        }
        while let Some(start) = overlapping {
            self.retire(process, start);
            overlapping = self.code.overlapping(process, row.start, end);
        }
    }

    /// Adds code, and removes other code at its addresses.
    fn insert(&mut self, process: u64, range: Range<u64>, module: u32, name: CodeName<'_>) {
        let mut overlapping = self.code.overlapping(process, range.start, range.end);
        if overlapping.is_some() && self.code.has(process, &range, name, module) {
            return;
        }
        while let Some(start) = overlapping {
            self.retire(process, start);
            overlapping = self.code.overlapping(process, range.start, range.end);
        }
        self.change();
        if !self.code.insert(process, range, name, module) {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Removes a range of code, and binds the addresses that were seen in it to the method.
    fn retire(&mut self, process: u64, start: u64) {
        let Some((range, method)) = self.code.remove(process, start) else { return };
        self.change();
        if !self.frames.bind(process, range, method) {
            self.code.free(method);
        }
    }

    /// Takes a ProcessSymbol: the name of a part of a mapping.
    fn symbol(&mut self, event: &TraceEvent<'_>) {
        let [start, last] = ["StartAddress", "EndAddress"].map(|name| number(event, name));
        let (Some(start), Some(last), Some(name)) = (start, last, text(event, "Name")) else { return };
        // A writer without kernel symbols states the whole memory as the range of an empty table.
        if (start, last) == (0, u64::MAX) {
            return;
        }
        let process = process_of(event);
        let module = self.modules.of_mapping(process, number(event, "MappingId"));
        self.named_range(process, start..last.saturating_add(1), &owned(name), module);
    }

    /// Adds code that a symbol or a perf map names. Addresses that have a name keep it.
    fn named_range(&mut self, process: u64, range: Range<u64>, name: &str, module: u32) {
        if range.is_empty() {
            return;
        }
        let (module, method) = match split_managed(name) {
            Some((module, method)) => (self.modules.of_name(module_name(module), false), method),
            None => (module, name),
        };
        for part in self.code.unnamed(process, range) {
            if !part.is_empty() {
                self.insert(process, part, module, CodeName::Text(method));
            }
        }
    }

    fn method_frame(&mut self, place: u32) -> FrameId {
        let Some(method) = self.code.method(place) else { return FrameId::UNKNOWN };
        let (module, is_complete) = self.modules.of_method(method.module);
        if let Some((frame, _)) = method.frame.filter(|(_, was_complete)| *was_complete == is_complete) {
            return frame;
        }
        let text = alloc::format!("{module}!{}", self.code.name(method).text());
        let of_framework = self.modules.is_of_framework(method.module);
        let frame = self.frames.frame(&text, || self.own_code.owns_at(&text, of_framework));
        if let Some(method) = self.code.method_mut(place) {
            method.frame = Some((frame, is_complete));
        }
        frame
    }
}

/// Returns the text of a frame that is not in the table.
fn text_without_code(frame: FrameId) -> &'static str {
    if frame == FrameId::FOLDED { FOLDED } else { UNKNOWN }
}

/// Returns the process of an event: `0` is the process of the trace, if the trace states one.
pub(crate) fn process_of(event: &TraceEvent<'_>) -> u64 {
    event.thread().and_then(|thread| thread.process_id()).unwrap_or(0)
}
