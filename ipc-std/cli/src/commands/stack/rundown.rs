//! `Rundown`: the names of the methods of a process, and whether later stacks can still use them.
use std::collections::{BTreeMap, BTreeSet};

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
    /// The code that can be freed, after which its addresses can have other code. Maps the start of a range to its end.
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
    /// A dynamic method: its code is freed when nothing refers to it.
    Dynamic,
    /// A generic method, or a stub of the runtime for calls of native code. Its type arguments can come from another
    /// module, so its own module does not show whether its code can be freed.
    Shared,
    Plain,
}

impl Rundown {
    /// The size of each table. A method beyond it has no name that later stacks can use, nor have the methods of a
    /// module beyond it. With more assemblies that can be unloaded, no method has such a name.
    const MAX_ROWS: usize = 1 << 20;

    /// Takes an event of the trace.
    pub(super) fn event(&mut self, event: &TraceEvent<'_>) {
        self.names.event(event);
        let Some(metadata) = event.metadata() else { return };
        if KnownProvider::of(metadata.provider) != Some(KnownProvider::Rundown) {
            return;
        }
        if let Some(row) = Row::of(event, metadata.event_id) {
            self.add(row);
        }
    }

    fn add(&mut self, row: Row) {
        match row {
            Row::Method(method) if self.methods.len() < Self::MAX_ROWS => self.methods.push(method),
            Row::Module { id, assembly } if self.assemblies.len() < Self::MAX_ROWS => {
                self.assemblies.insert(id, assembly);
            }
            Row::Collectible { assembly } if self.collectible.len() < Self::MAX_ROWS => {
                self.collectible.insert(assembly);
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
            // The end counts, too: if a call is the last instruction of a method, its return address is the end of the
            // code.
            let freeable = freeable.range(..=ip).next_back().is_some_and(|(_, end)| ip <= *end);
            is_known &= !freeable && (names.is_named(frame) || nameless.contains(&ip));
            frame
        };
        let stacks = stacks.into_iter().map(|stack| stack.map(&mut name)).collect();
        is_known.then_some(stacks)
    }
}

/// A row of the rundown.
enum Row {
    /// The code of a method.
    Method(Method),
    /// A module, and its assembly.
    Module { id: u64, assembly: u64 },
    /// An assembly that can be unloaded.
    Collectible { assembly: u64 },
}

impl Row {
    /// The flag of an assembly that can be unloaded.
    const COLLECTIBLE: u64 = 8;

    /// Returns what an event of the rundown with this id states; `None` for events that state something else.
    fn of(event: &TraceEvent<'_>, id: u32) -> Option<Self> {
        let number = |field| event.field(field)?.as_u64();
        match id {
            143 | 144 => Method::of(event).map(Self::Method),
            153 | 154 => Some(Self::Module { id: number("ModuleID")?, assembly: number("AssemblyID")? }),
            155 | 156 if number("AssemblyFlags")? & Self::COLLECTIBLE != 0 => {
                Some(Self::Collectible { assembly: number("AssemblyID")? })
            }
            _ => None,
        }
    }
}

impl Method {
    /// The flag of a dynamic method.
    const DYNAMIC: u64 = 1;
    /// The flags of a generic method, and of code that several instances share.
    const GENERIC: u64 = 6;

    fn of(event: &TraceEvent<'_>) -> Option<Self> {
        const STUB: &str = "IL_STUB";
        let number = |field| event.field(field)?.as_u64();
        let (start, flags) = (number("MethodStartAddress")?, number("MethodFlags")?);
        let name = event.field("MethodName").and_then(|name| name.as_str());
        let kind = match flags {
            // Stubs of the runtime also have the flag of dynamic methods, but are not freed one by one as those are.
            _ if name.is_some_and(|name| name.chars().take(STUB.len()).eq(STUB.chars())) => {
                MethodKind::Shared
            }
            _ if flags & Self::DYNAMIC != 0 => MethodKind::Dynamic,
            _ if flags & Self::GENERIC != 0 => MethodKind::Shared,
            _ => MethodKind::Plain,
        };
        let end = start.saturating_add(number("MethodSize")?);
        Some(Self { start, end, module: number("ModuleID")?, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_has_a_limit() {
        let mut rundown = Rundown::default();
        let method = Method { start: 0x1000, end: 0x1010, module: 7, kind: MethodKind::Plain };
        rundown.add(Row::Method(method));
        rundown.add(Row::Module { id: 7, assembly: 70 });
        for assembly in 100..103 + u64::try_from(Rundown::MAX_ROWS).unwrap() {
            rundown.add(Row::Collectible { assembly });
        }
        assert_eq!(rundown.collectible.len(), Rundown::MAX_ROWS);
        // So the method counts as freeable, because its assembly can be one of those that were not stored.
        rundown.finish(Vec::new());
        assert_eq!(rundown.freeable.get(&0x1000), Some(&0x1010));
    }
}
