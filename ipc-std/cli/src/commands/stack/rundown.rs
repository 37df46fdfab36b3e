//! The names of a process, for later stacks too.
use std::collections::{BTreeMap, BTreeSet};

use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;
use nettrace::TraceEvent;
use nettrace_analysis::KnownProvider;
use nettrace_analysis::names::{FrameId, Names};

use super::thread_stack::Stack;

/// The names of a process at the time of its rundown.
#[derive(Debug, Default)]
pub(super) struct Rundown {
    pub(super) names: Names,
    methods: Vec<Method>,
    /// The assembly of each module.
    assemblies: BTreeMap<u64, u64>,
    /// The assemblies that can be unloaded.
    collectible: BTreeSet<u64>,
    /// The code that can be freed: its addresses can have other code at any time. The end by the start.
    freeable: BTreeMap<u64, u64>,
    /// The addresses without a name.
    nameless: BTreeSet<u64>,
}

/// The code of a method.
#[derive(Debug)]
struct Method {
    start: u64,
    end: u64,
    module: u64,
    kind: MethodKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MethodKind {
    /// Its code is freed when nothing refers to it.
    Dynamic,
    /// A generic method, or a stub of the runtime for calls of native code. Its module can be another one than that of
    /// its type arguments.
    Shared,
    Plain,
}

impl Rundown {
    /// Methods beyond this number have no names that last, and neither have those of more modules. With more assemblies
    /// that can be unloaded, no method has one.
    const MAX_ROWS: usize = 1 << 20;
    /// The flag of an assembly that can be unloaded.
    const COLLECTIBLE: u32 = 8;

    /// Takes an event of the trace.
    pub(super) fn event(&mut self, event: &TraceEvent<'_>) {
        self.names.event(event);
        let Some(metadata) = event.metadata() else { return };
        if KnownProvider::of(metadata.provider) != Some(KnownProvider::Rundown) {
            return;
        }
        self.add_row(metadata.event_id, event.header.payload);
    }

    /// Takes a row of the rundown by its event ID.
    fn add_row(&mut self, id: u32, row: &[u8]) {
        match id {
            143 | 144 if self.methods.len() < Self::MAX_ROWS => self.methods.extend(Method::decode(row).ok()),
            153 | 154 if self.assemblies.len() < Self::MAX_ROWS => self.assemblies.extend(module(row).ok()),
            155 | 156 if self.collectible.len() < Self::MAX_ROWS => {
                let assembly = assembly(row).ok().filter(|(_, flags)| flags & Self::COLLECTIBLE != 0);
                self.collectible.extend(assembly.map(|(id, _)| id));
            }
            _ => {}
        }
    }

    /// Ends the rundown, and names the stacks that were sampled with it.
    pub(super) fn finish(&mut self, stacks: Vec<Stack<u64>>) -> Vec<Stack<FrameId>> {
        let is_full = self.collectible.len() >= Self::MAX_ROWS;
        for method in core::mem::take(&mut self.methods) {
            let assembly = self.assemblies.get(&method.module);
            let is_freeable = match method.kind {
                _ if is_full => true,
                MethodKind::Dynamic => true,
                MethodKind::Shared if !self.collectible.is_empty() => true,
                _ => assembly.is_none_or(|assembly| self.collectible.contains(assembly)),
            };
            if is_freeable {
                self.freeable.insert(method.start, method.end);
            }
        }
        let Self { names, nameless, .. } = self;
        let mut name = |ip| {
            let address = names.address(0, ip);
            let frame = names.frame(address);
            if !names.is_named(frame) {
                nameless.insert(ip);
            }
            frame
        };
        stacks.into_iter().map(|stack| stack.map(&mut name)).collect()
    }

    /// Names stacks that were sampled later. `None` if the name of an address is not known, or can have changed.
    pub(super) fn later(&mut self, stacks: Vec<Stack<u64>>) -> Option<Vec<Stack<FrameId>>> {
        let Self { names, nameless, freeable, .. } = self;
        let mut is_known = true;
        let mut name = |ip: u64| {
            let address = names.address(0, ip);
            let frame = names.frame(address);
            // A return address can be the end of the code.
            let freeable = freeable.range(..=ip).next_back().is_some_and(|(_, end)| ip <= *end);
            is_known &= !freeable && (names.is_named(frame) || nameless.contains(&ip));
            frame
        };
        let stacks = stacks.into_iter().map(|stack| stack.map(&mut name)).collect();
        is_known.then_some(stacks)
    }
}

impl Method {
    /// The flag of a dynamic method.
    const DYNAMIC: u32 = 1;
    /// The flags of a generic method, and of code that several instances share.
    const GENERIC: u32 = 6;

    /// Decodes the first fields of a row.
    ///
    /// ```text
    /// u64 method, u64 module, u64 start, u32 size, u32 token, u32 flags, type, name, …      strings UTF-16 and NUL
    /// ```
    fn decode(row: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(row);
        let [_method, module, start]: [u64; 3] = [r.read()?, r.read()?, r.read()?];
        let [size, _token, flags]: [u32; 3] = [r.read()?, r.read()?, r.read()?];
        let mut strings = r.rest().chunks_exact(2).map(|unit| unit == [0, 0]);
        let name = strings
            .position(|is_nul| is_nul)
            .and_then(|units| r.rest().get(units.checked_add(1)?.checked_mul(2)?..));
        let is_stub = name.is_some_and(|name| name.starts_with(b"I\0L\0_\0S\0T\0U\0B\0"));
        let kind = match flags {
            // The runtime's own stubs are dynamic too, but stay.
            _ if is_stub => MethodKind::Shared,
            _ if flags & Self::DYNAMIC != 0 => MethodKind::Dynamic,
            _ if flags & Self::GENERIC != 0 => MethodKind::Shared,
            _ => MethodKind::Plain,
        };
        Ok(Self { start, end: start.saturating_add(size.into()), module, kind })
    }
}

/// Decodes the ids of a module and of its assembly, which begin a row.
fn module(row: &[u8]) -> Result<(u64, u64), DecodeError> {
    let mut r = Reader::new(row);
    Ok((r.read()?, r.read()?))
}

/// Decodes the id and the flags of an assembly: `u64 assembly, u64 domain, u64 binding, u32 flags, …`.
fn assembly(row: &[u8]) -> Result<(u64, u32), DecodeError> {
    let mut r = Reader::new(row);
    let [id, _domain, _binding]: [u64; 3] = [r.read()?, r.read()?, r.read()?];
    Ok((id, r.read()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_has_a_limit() {
        let long = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let mut rundown = Rundown::default();
        rundown.add_row(144, &[long(&[1, 7, 0x1000]), vec![0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat());
        rundown.add_row(154, &long(&[7, 70]));
        for id in 100..103 + u64::try_from(Rundown::MAX_ROWS).unwrap() {
            rundown.add_row(156, &[long(&[id, 0, 0]), vec![8, 0, 0, 0]].concat());
        }
        assert_eq!(rundown.collectible.len(), Rundown::MAX_ROWS);
        // The assembly of the method can be one of those that were not stored.
        rundown.finish(Vec::new());
        assert_eq!(rundown.freeable.get(&0x1000), Some(&0x1010));
    }
}
