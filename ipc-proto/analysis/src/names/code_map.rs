//! The code of processes by address.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use ipc_proto::wire::{to_u32, to_usize};

use super::frames::FrameId;
use super::modules::ROWS;
use super::spelling::{MAX_METHOD, cut};
use crate::place::{at, at_mut};

/// The methods of processes by their addresses.
#[derive(Debug, Default)]
pub(super) struct CodeMap {
    /// The texts of methods.
    arena: String,
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
    /// `Type.Method(args)`.
    text: ArenaText,
    pub(super) module: u32,
    /// The frame, once it was searched, and whether its name is complete: with the name of the module.
    pub(super) frame: Option<(FrameId, bool)>,
}

/// The place of a text in the arena.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ArenaText {
    start: u32,
    len: u32,
}

#[derive(Debug, Clone, Copy)]
struct CodeRange {
    end: u64,
    method: u32,
}

impl CodeMap {
    /// The bytes that the texts of methods take at most.
    pub(super) const LIMIT: usize = 64 << 20;

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
    pub(super) fn has(&self, process: u64, range: &Range<u64>, text: ArenaText, module: u32) -> bool {
        let known = self.ranges.get(&(process, range.start)).filter(|known| known.end == range.end);
        let method = known.and_then(|known| at(&self.methods, known.method));
        method.is_some_and(|method| method.module == module && self.text(method) == self.text_at(text))
    }

    /// Adds a text at the end of the arena, cut at the longest length of a name.
    pub(super) fn add_text(&mut self, push_text: impl FnOnce(&mut String)) -> ArenaText {
        // Compact only if more than half of the arena is garbage: then fewer bytes move than are removed, so that the
        // work is proportional to the bytes that were added.
        if self.garbage > self.arena.len() / 2 && self.garbage > 1 << 16 {
            self.compact();
        }
        let start = self.arena.len();
        push_text(&mut self.arena);
        let len = cut(self.arena.get(start..).unwrap_or_default(), MAX_METHOD).len();
        self.arena.truncate(start.saturating_add(len));
        ArenaText { start: to_u32(start), len: to_u32(len) }
    }

    /// Removes the text that was added last.
    pub(super) fn remove_text(&mut self, text: ArenaText) {
        self.arena.truncate(to_usize(text.start));
    }

    /// Adds code at addresses that have none, with the text that was added last. Returns whether there is room;
    /// otherwise, removes the text.
    pub(super) fn insert(&mut self, process: u64, range: Range<u64>, text: ArenaText, module: u32) -> bool {
        if self.arena.len().saturating_sub(self.garbage) > Self::LIMIT || self.len() >= ROWS {
            self.remove_text(text);
            return false;
        }
        let method = Method { text, module, frame: None };
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

    /// Removes the range with this start. Returns its addresses, and its method, which remains.
    pub(super) fn remove(&mut self, process: u64, start: u64) -> Option<(Range<u64>, u32)> {
        let CodeRange { end, method } = self.ranges.remove(&(process, start))?;
        Some((start..end, method))
    }

    /// Removes a method whose range was removed.
    pub(super) fn free(&mut self, place: u32) {
        let Some(method) = at_mut(&mut self.methods, place) else { return };
        self.garbage = self.garbage.saturating_add(to_usize(core::mem::take(&mut method.text.len)));
        self.vacant.push(place);
    }

    /// Removes the texts of methods that were freed.
    fn compact(&mut self) {
        let mut arena = String::with_capacity(self.arena.len().saturating_sub(self.garbage));
        let mut methods = core::mem::take(&mut self.methods);
        for method in &mut methods {
            let start = to_u32(arena.len());
            arena.push_str(self.text(method));
            method.text.start = start;
        }
        self.methods = methods;
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

    /// Returns `Type.Method(args)`.
    pub(super) fn text(&self, method: &Method) -> &str {
        self.text_at(method.text)
    }

    fn text_at(&self, text: ArenaText) -> &str {
        let start = to_usize(text.start);
        self.arena.get(start..start.saturating_add(to_usize(text.len))).unwrap_or_default()
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
