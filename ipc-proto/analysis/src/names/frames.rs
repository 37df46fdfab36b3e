//! The ids of the addresses in stacks (`AddressId`, for the lifetime of the code there), and the ids and texts of their
//! frames (`FrameId`).
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use ipc_proto::wire::{to_u32, to_usize};

use super::spelling::short_name;

/// An address of a process during the lifetime of the code there, or a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressId(pub(crate) u32);

/// A name of code. Addresses in code of the same name have the same frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub(crate) u32);

impl FrameId {
    /// The frame of an address of which nothing is known: `?!?`.
    pub const UNKNOWN: Self = Self(0);
    /// The frame that stands for frames of the runtime between others: `[threads and async]`. See
    /// [`CallTree::folded`](crate::call_tree::CallTree::folded).
    pub const FOLDED: Self = Self(1);

    /// The first frame that is in [`FrameTable::frames`].
    const FIRST: u32 = 2;
}

/// The text of [`FrameId::UNKNOWN`].
pub(super) const UNKNOWN: &str = "?!?";
/// The text of [`FrameId::FOLDED`].
pub(super) const FOLDED: &str = "[threads and async]";

#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub(super) process: u64,
    pub(super) ip: u64,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    Open,
    /// The code at the address was freed or replaced.
    Bound {
        method: u32,
    },
    Label(FrameId),
}

/// An address or a label as it is stored.
#[derive(Debug, Clone, Copy)]
struct Slot {
    ip: u64,
    /// The number of the process, [`Self::BOUND`] or [`Self::LABEL`].
    process: u32,
    /// The next address of the same [`Block`]; the method; or the frame.
    value: u32,
}

impl Slot {
    const BOUND: u32 = u32::MAX;
    const LABEL: u32 = u32::MAX - 1;
}

/// The addresses of a process.
#[derive(Debug)]
struct ProcessAddresses {
    id: u64,
    /// Those that are not bound, by the number of their block.
    open: BTreeMap<u64, Block>,
}

/// The addresses that differ only in their last bits: a list, which takes fewer bytes than an entry of a map for each.
#[derive(Debug, Clone, Copy)]
struct Block {
    first: AddressId,
    /// The last bits of the addresses: a bit for each of their values.
    has: u8,
}

impl Block {
    const EMPTY: Self = Self { first: FrameTable::NONE, has: 0 };

    /// Returns the number of the block of an address, and its bit there.
    const fn place(ip: u64) -> (u64, u8) {
        (ip / 8, 1 << (ip % 8))
    }

    /// Adds an address. Returns the next one.
    const fn add(&mut self, id: AddressId, ip: u64) -> AddressId {
        self.has |= Self::place(ip).1;
        core::mem::replace(&mut self.first, id)
    }
}

#[derive(Debug)]
struct Frame {
    text: Arc<str>,
    /// Whether it is code of the program.
    is_own: bool,
    /// The frame of the short name, once it was searched.
    short: Option<FrameId>,
}

/// The addresses, the labels and the texts of frames by their ids.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    addresses: Vec<Slot>,
    processes: Vec<ProcessAddresses>,
    /// The numbers of the processes by their ids.
    numbers: BTreeMap<u64, u32>,
    labels: BTreeMap<Arc<str>, AddressId>,
    /// The frames from [`FrameId::FIRST`] on.
    frames: Vec<Frame>,
    ids: BTreeMap<Arc<str>, FrameId>,
    /// The number of times that addresses were bound to methods or removed: another number means that addresses have
    /// got other ids.
    generation: u32,
    /// The number of addresses that [`take_new`](Self::take_new) has returned.
    taken: usize,
}

impl FrameTable {
    /// How many addresses and labels are stored at most.
    pub(super) const LIMIT: usize = 1 << 20;
    /// The id of an address or a label for which there is no room.
    const NONE: AddressId = AddressId(u32::MAX);

    pub(super) fn address(&self, id: AddressId) -> Option<Address> {
        let Slot { ip, process, value } = *at(&self.addresses, id.0)?;
        let (process, state) = match process {
            Slot::BOUND => (0, State::Bound { method: value }),
            Slot::LABEL => (0, State::Label(FrameId(value))),
            process => (at(&self.processes, process)?.id, State::Open),
        };
        Some(Address { process, ip, state })
    }

    /// Returns the id of an address with the code that is there now.
    pub(super) fn open(&mut self, process: u64, ip: u64) -> AddressId {
        let Self { addresses, processes, numbers, .. } = self;
        let is_full = addresses.len() >= Self::LIMIT;
        let (place, bit) = Block::place(ip);
        let (number, block) = if is_full {
            let Some(number) = numbers.get(&process) else { return Self::NONE };
            (*number, at_mut(processes, *number).and_then(|process| process.open.get_mut(&place)))
        } else {
            let number = *numbers.entry(process).or_insert_with(|| {
                processes.push(ProcessAddresses { id: process, open: BTreeMap::new() });
                to_u32(processes.len().saturating_sub(1))
            });
            let process = at_mut(processes, number);
            (number, process.map(|process| process.open.entry(place).or_insert(Block::EMPTY)))
        };
        let Some(block) = block else { return Self::NONE };
        let mut id = if block.has & bit == 0 { Self::NONE } else { block.first };
        while let Some(slot) = at(addresses, id.0) {
            if slot.ip == ip {
                return id;
            }
            id = AddressId(slot.value);
        }
        if is_full {
            return Self::NONE;
        }
        let id = AddressId(to_u32(addresses.len()));
        addresses.push(Slot { ip, process: number, value: block.add(id, ip).0 });
        id
    }

    /// Returns whether an id is that of an address with the code that is there now.
    pub(super) fn is_open(&self, id: AddressId, process: u64, ip: u64) -> bool {
        let slot = at(&self.addresses, id.0).filter(|slot| slot.ip == ip);
        slot.and_then(|slot| at(&self.processes, slot.process)).is_some_and(|known| known.id == process)
    }

    pub(super) fn label(&mut self, text: &str) -> AddressId {
        if let Some(id) = self.labels.get(text) {
            return *id;
        }
        if self.addresses.len() >= Self::LIMIT {
            return Self::NONE;
        }
        let frame = self.frame(text, || false);
        let id = AddressId(to_u32(self.addresses.len()));
        self.addresses.push(Slot { ip: 0, process: Slot::LABEL, value: frame.0 });
        self.labels.insert(text.into(), id);
        id
    }

    /// Binds the addresses of a range to the method that was there. Returns whether there were such addresses.
    ///
    /// An address that is the end of the range stays open, although it can be a return address of this code.
    pub(super) fn bind(&mut self, process: u64, range: Range<u64>, method: u32) -> bool {
        let number = self.numbers.get(&process).copied().unwrap_or(u32::MAX);
        let Some(ProcessAddresses { open, .. }) = at_mut(&mut self.processes, number) else { return false };
        let mut is_seen = false;
        let [(first, _), (last, _)] = [range.start, range.end].map(Block::place);
        let blocks: Vec<_> =
            open.range(first..=last).map(|(block, of_block)| (*block, of_block.first)).collect();
        for (block, mut next) in blocks {
            let mut left = Block::EMPTY;
            while let Some(slot) = at_mut(&mut self.addresses, next.0) {
                let id = core::mem::replace(&mut next, AddressId(slot.value));
                if range.contains(&slot.ip) {
                    (slot.process, slot.value) = (Slot::BOUND, method);
                    is_seen = true;
                } else {
                    slot.value = left.add(id, slot.ip).0;
                }
            }
            if left.has == 0 {
                open.remove(&block);
            } else {
                open.insert(block, left);
            }
        }
        self.generation = self.generation.wrapping_add(is_seen.into());
        is_seen
    }

    /// Returns each address that is not bound and was added since the last call.
    pub(super) fn take_new(&mut self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let from = core::mem::replace(&mut self.taken, self.addresses.len());
        let new = self.addresses.get(from..).unwrap_or_default().iter();
        new.filter_map(|slot| Some((at(&self.processes, slot.process)?.id, slot.ip)))
    }

    /// Returns the frame of a text. For a new one, `is_own` returns whether it is code of the program.
    pub(super) fn frame(&mut self, text: &str, is_own: impl FnOnce() -> bool) -> FrameId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        if text == UNKNOWN {
            return FrameId::UNKNOWN;
        }
        let text: Arc<str> = text.into();
        let id = FrameId(to_u32(self.frames.len()).saturating_add(FrameId::FIRST));
        self.frames.push(Frame { text: text.clone(), is_own: is_own(), short: None });
        self.ids.insert(text, id);
        id
    }

    /// Returns the frame of the short name of a frame.
    pub(super) fn short(&mut self, frame: FrameId) -> FrameId {
        let Some(Frame { text, is_own, short }) = self.get(frame) else { return frame };
        if let Some(short) = short {
            return *short;
        }
        let (text, is_own) = (text.clone(), *is_own);
        let short = self.frame(short_name(&text), || is_own);
        // Methods of several modules can have the same short name.
        if let Some(of_short) = self.get_mut(short).filter(|_| is_own) {
            of_short.is_own = true;
        }
        if let Some(frame) = self.get_mut(frame) {
            frame.short = Some(short);
        }
        short
    }

    fn get(&self, frame: FrameId) -> Option<&Frame> {
        at(&self.frames, frame.0.checked_sub(FrameId::FIRST)?)
    }

    fn get_mut(&mut self, frame: FrameId) -> Option<&mut Frame> {
        at_mut(&mut self.frames, frame.0.checked_sub(FrameId::FIRST)?)
    }

    /// Returns the text of a frame; `None` for ids before [`FrameId::FIRST`].
    pub(super) fn text(&self, frame: FrameId) -> Option<&Arc<str>> {
        self.get(frame).map(|frame| &frame.text)
    }

    /// Returns whether a frame is code of the program.
    pub(super) fn is_own(&self, frame: FrameId) -> bool {
        self.get(frame).is_some_and(|frame| frame.is_own)
    }

    /// Removes all addresses, labels and frames, and returns the methods to which addresses were bound.
    pub(super) fn forget(&mut self) -> BTreeSet<u32> {
        let generation = self.generation.wrapping_add(1);
        let Self { addresses, .. } = core::mem::replace(self, Self { generation, ..Self::default() });
        let bound = addresses.into_iter().filter(|slot| slot.process == Slot::BOUND).map(|slot| slot.value);
        // Several addresses can be bound to the same method.
        bound.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Returns a number that changes when an address gets another id.
    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }
}

/// Returns the value at an index.
pub(crate) fn at<T>(values: &[T], place: u32) -> Option<&T> {
    values.get(to_usize(place))
}

/// Returns the value at an index, to change it.
pub(crate) fn at_mut<T>(values: &mut [T], place: u32) -> Option<&mut T> {
    values.get_mut(to_usize(place))
}

/// A value for each frame, or for each of another kind of ids, which is computed once.
#[derive(Debug)]
pub(crate) struct Known<T>(Vec<Option<T>>);

impl<T: Copy> Known<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of an id.
    pub(crate) fn of(&mut self, id: u32, value: impl FnOnce() -> T) -> T {
        let place = to_usize(id);
        if place >= self.0.len() {
            self.0.resize(place.saturating_add(1), None);
        }
        match self.0.get_mut(place) {
            Some(known) => *known.get_or_insert_with(value),
            None => value(),
        }
    }
}
