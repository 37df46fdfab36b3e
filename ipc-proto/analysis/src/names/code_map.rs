//! The code of processes by address.
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use ipc_proto::wire::{to_u32, to_usize};

use super::frames::FrameId;
use super::frames::{at, at_mut};
use super::modules::ROWS;
use super::rows::MethodNames;
use super::spelling::{MAX_METHOD, cut, push_method_name};

/// The methods of processes by their addresses.
#[derive(Debug, Default)]
pub(super) struct CodeMap {
    /// The names of methods.
    arena: Vec<u8>,
    /// The number of bytes of `arena` that belong to no method.
    garbage: usize,
    methods: Vec<Method>,
    /// The free indexes of `methods`.
    vacant: Vec<u32>,
    /// The methods by process and start. Ranges do not overlap.
    ranges: BTreeMap<(u64, u64), CodeRange>,
}

#[derive(Debug)]
pub(super) struct Method {
    name: NamePlace,
    pub(super) module: u32,
    /// The frame, once it was searched, and whether its name is complete: with the name of the module.
    pub(super) frame: Option<(FrameId, bool)>,
}

/// The place of a name in the arena.
#[derive(Debug, Clone, Copy)]
struct NamePlace {
    start: u32,
    len: u32,
    /// Whether the name is in the form of a row.
    is_row: bool,
}

#[derive(Debug, Clone, Copy)]
struct CodeRange {
    end: u64,
    method: u32,
}

impl CodeMap {
    /// The bytes that the names of methods take at most.
    pub(super) const LIMIT: usize = 64 << 20;

    /// The length of the arena from which on the names of rows are stored as texts, which have less than half of the
    /// bytes.
    const ROW_LIMIT: usize = 16 << 20;

    /// Returns the start of the last range that has an address of `start..end`.
    pub(super) fn overlapping(&self, process: u64, start: u64, end: u64) -> Option<u64> {
        let (key, range) = self.ranges.range(..(process, end)).next_back()?;
        (key.0 == process && range.end > start).then_some(key.1)
    }

    /// Returns the parts of `range` before the first and after the last named address in it.
    pub(super) fn unnamed(&self, process: u64, range: Range<u64>) -> [Range<u64>; 2] {
        let Some(last) = self.overlapping(process, range.start, range.end) else {
            return [range, 0..0];
        };
        let first = match self.range_at(process, range.start) {
            Some(_) => range.start,
            None => {
                let next = self.ranges.range((process, range.start)..).next();
                next.map_or(range.start, |(key, _)| key.1)
            }
        };
        let end = self.ranges.get(&(process, last)).map_or(range.end, |last| last.end);
        [range.start..first, end..range.end]
    }

    /// Returns whether exactly this code is at these addresses.
    pub(super) fn has(&self, process: u64, range: &Range<u64>, name: CodeName<'_>, module: u32) -> bool {
        let known = self.ranges.get(&(process, range.start)).filter(|known| known.end == range.end);
        let method = known.and_then(|known| at(&self.methods, known.method));
        method.is_some_and(|method| method.module == module && self.name(method).is(name))
    }

    /// Adds code at addresses that have none. Returns whether there is room.
    pub(super) fn insert(
        &mut self,
        process: u64,
        range: Range<u64>,
        name: CodeName<'_>,
        module: u32,
    ) -> bool {
        // Compact only if more than half of the arena is garbage: then fewer bytes move than are removed, so that the
        // work is proportional to the bytes that were added.
        if self.garbage > self.arena.len() / 2 && self.garbage > 1 << 16 {
            self.compact();
        }
        let name = self.add_name(name);
        if self.arena.len().saturating_sub(self.garbage) > Self::LIMIT || self.len() >= ROWS {
            self.arena.truncate(to_usize(name.start));
            return false;
        }
        let method = Method { name, module, frame: None };
        let place = match self.vacant.pop() {
            Some(place) => {
                if let Some(slot) = at_mut(&mut self.methods, place) {
                    *slot = method;
                }
                place
            }
            None => {
                self.methods.push(method);
                to_u32(self.methods.len().saturating_sub(1))
            }
        };
        self.ranges.insert((process, range.start), CodeRange { end: range.end, method: place });
        true
    }

    /// Adds a name at the end of the arena.
    fn add_name(&mut self, name: CodeName<'_>) -> NamePlace {
        let start = self.arena.len();
        let is_row = match name {
            CodeName::Row(row) if start <= Self::ROW_LIMIT && row.len() <= CodeName::LONGEST_ROW => {
                self.arena.extend_from_slice(row);
                true
            }
            name => {
                self.arena.extend_from_slice(name.text().as_bytes());
                false
            }
        };
        NamePlace { start: to_u32(start), len: to_u32(self.arena.len().saturating_sub(start)), is_row }
    }

    /// Removes the range with this start. Returns its addresses, and its method, which remains.
    pub(super) fn remove(&mut self, process: u64, start: u64) -> Option<(Range<u64>, u32)> {
        let CodeRange { end, method } = self.ranges.remove(&(process, start))?;
        Some((start..end, method))
    }

    /// Removes a method whose range was removed.
    pub(super) fn free(&mut self, place: u32) {
        let Some(method) = at_mut(&mut self.methods, place) else { return };
        self.garbage = self.garbage.saturating_add(to_usize(core::mem::take(&mut method.name.len)));
        self.vacant.push(place);
    }

    /// Removes the names of methods that were freed.
    fn compact(&mut self) {
        let mut arena = Vec::with_capacity(self.arena.len().saturating_sub(self.garbage));
        for method in &mut self.methods {
            let start = to_u32(arena.len());
            arena.extend_from_slice(bytes_at(&self.arena, method.name));
            method.name.start = start;
        }
        self.arena = arena;
        self.garbage = 0;
    }

    /// Forgets the frames of all methods.
    pub(super) fn forget_frames(&mut self) {
        self.methods.iter_mut().for_each(|method| method.frame = None);
    }

    pub(super) fn method(&self, place: u32) -> Option<&Method> {
        at(&self.methods, place)
    }

    pub(super) fn method_mut(&mut self, place: u32) -> Option<&mut Method> {
        at_mut(&mut self.methods, place)
    }

    pub(super) fn name(&self, method: &Method) -> CodeName<'_> {
        let bytes = bytes_at(&self.arena, method.name);
        match method.name.is_row {
            true => CodeName::Row(bytes),
            false => CodeName::Text(core::str::from_utf8(bytes).unwrap_or_default()),
        }
    }

    /// Returns the method of an address.
    pub(super) fn at(&self, process: u64, ip: u64) -> Option<u32> {
        // A call of code that never returns can be the last instruction of a method. Its return address is then the end
        // of the method, so the byte before it is searched too.
        self.range_at(process, ip).or_else(|| self.range_at(process, ip.wrapping_sub(1)))
    }

    fn range_at(&self, process: u64, ip: u64) -> Option<u32> {
        let (key, range) = self.ranges.range(..=(process, ip)).next_back()?;
        (key.0 == process && ip < range.end).then_some(range.method)
    }

    /// Returns the number of methods.
    fn len(&self) -> usize {
        self.methods.len().saturating_sub(self.vacant.len())
    }
}

fn bytes_at(arena: &[u8], place: NamePlace) -> &[u8] {
    let start = to_usize(place.start);
    arena.get(start..start.saturating_add(to_usize(place.len))).unwrap_or_default()
}

/// A name. A trace names all methods of the process, but samples are in few of them. So the names of a row stay as they
/// are until a sample is in the method.
#[derive(Debug, Clone, Copy)]
pub(super) enum CodeName<'n> {
    /// The names of a row, and the bytes that follow them in the row.
    Row(&'n [u8]),
    /// `Type.Method(args)`.
    Text(&'n str),
}

impl<'n> CodeName<'n> {
    /// The most bytes of a row that is stored as it is. The text of a longer row has at most half as many.
    pub(super) const LONGEST_ROW: usize = 2 * MAX_METHOD;

    /// Returns `Type.Method(args)`, cut at the longest length of a name.
    pub(super) fn text(self) -> Cow<'n, str> {
        match self {
            Self::Row(row) => {
                let mut text = String::new();
                push_method_name(&mut text, &MethodNames::decode(row));
                text.truncate(cut(&text, MAX_METHOD).len());
                Cow::Owned(text)
            }
            Self::Text(text) => Cow::Borrowed(cut(text, MAX_METHOD)),
        }
    }

    /// Returns whether both are the same name. A row that states a name in other bytes than a row before is another one.
    pub(super) fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Row(row), Self::Row(other)) => row == other,
            (name, other) => name.text() == other.text(),
        }
    }
}
