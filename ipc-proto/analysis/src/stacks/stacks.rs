//! Stacks of events, stored once each.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use ipc_proto::wire::{low_u32, steps, to_usize};
use nettrace::TraceEvent;

use super::calls::{Call, Calls};
use crate::names::{AddressId, Names, process_of};

/// A stack: its innermost address, and the stack of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StackId(pub(crate) u32);

impl StackId {
    /// The empty stack.
    pub const EMPTY: Self = Self(0);
}

/// Stores each stack once, as a tree of addresses: two stacks share what their callers have in common.
///
/// # Memory
/// At most [`Stacks::LIMIT`] stacks, each with its innermost [`Stacks::DEPTH`] addresses. A stack for which there is no
/// room lacks its innermost addresses, and [`cut`](Self::cut) counts it.
#[derive(Debug)]
pub struct Stacks {
    /// The stacks, as calls of addresses.
    calls: Calls,
    /// The stacks of the stream that were found lately, by their number and process.
    numbered: BTreeMap<(u32, u64), Numbered>,
    /// Stacks that were found lately, at the index of their hash. A stack replaces an earlier one with the same index.
    recent: Vec<u32>,
    /// Calls that were found lately, at the index of their hash: for them, no tree is searched.
    recent_calls: Vec<u32>,
    /// The addresses of the stack that is being stored.
    ips: Vec<u64>,
    cut: u64,
}

/// A stack of the stream. It is valid for the names of this generation.
#[derive(Debug, Clone, Copy)]
struct Numbered {
    stack: StackId,
    generation: u32,
    is_whole: bool,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            calls: Calls::new(),
            numbered: BTreeMap::new(),
            recent: Vec::new(),
            recent_calls: Vec::new(),
            ips: Vec::new(),
            cut: 0,
        }
    }
}

impl Stacks {
    /// The number of different stacks that are stored at most, each with all stacks of its callers.
    pub const LIMIT: usize = 1 << 20;

    /// The number of addresses of a stack that are stored at most, the innermost ones. Runtimes record 100.
    pub const DEPTH: usize = 1024;

    /// The maximum number of entries of [`Self::numbered`].
    const NUMBERED: usize = 1 << 16;

    /// The number of entries of [`Self::recent`].
    const RECENT: usize = 4096;

    /// The number of entries of [`Self::recent_calls`].
    const RECENT_CALLS: usize = 1 << 15;

    /// Takes events of another assembler from now on, which has other numbers of stacks.
    pub fn begin_trace(&mut self) {
        self.numbered.clear();
    }

    /// Returns the stack of an event. All events must come from one assembler: stacks are recognized by
    /// [`TraceEvent::stack_number`]. For those of another one, call [`begin_trace`](Self::begin_trace) before.
    pub fn of(&mut self, event: &TraceEvent<'_>, names: &mut Names) -> StackId {
        if event.stack().len() == 0 {
            return StackId::EMPTY;
        }
        let process = process_of(event);
        // Any number of events can refer to a stack of any length, so it is read once.
        let Some(number) = event.stack_number() else { return self.of_addresses(event, process, names).0 };
        let generation = names.generation();
        let known = self.numbered.get(&(number, process)).filter(|known| known.generation == generation);
        if let Some(known) = known {
            self.cut = self.cut.saturating_add((!known.is_whole).into());
            return known.stack;
        }
        let (stack, is_whole) = self.of_addresses(event, process, names);
        if self.numbered.len() >= Self::NUMBERED {
            self.numbered.clear();
        }
        self.numbered.insert((number, process), Numbered { stack, generation, is_whole });
        stack
    }

    /// Returns the stack of an event by its addresses, and whether there was room for it.
    fn of_addresses(&mut self, event: &TraceEvent<'_>, process: u64, names: &mut Names) -> (StackId, bool) {
        self.ips.clear();
        self.ips.extend(event.stack().take(Self::DEPTH));
        steps::count(self.ips.len());
        let hash = self.ips.iter().fold(process, |hash, ip| spread(hash ^ ip).rotate_left(29));
        let slot = slot(hash) % Self::RECENT;
        if self.recent.is_empty() {
            self.recent.resize(Self::RECENT, StackId::EMPTY.0);
            self.recent_calls.resize(Self::RECENT_CALLS, StackId::EMPTY.0);
        }
        if let Some(recent) =
            self.recent.get(slot).copied().filter(|recent| self.is_stack(*recent, process, names))
        {
            return (StackId(recent), true);
        }
        let ips = core::mem::take(&mut self.ips);
        let mut stack = StackId::EMPTY.0;
        let is_whole = ips.iter().rev().all(|ip| {
            let called = self.called(stack, process, *ip, names);
            stack = called.unwrap_or(stack);
            called.is_some()
        });
        self.ips = ips;
        if !is_whole {
            self.cut = self.cut.saturating_add(1);
        } else if let Some(recent) = self.recent.get_mut(slot) {
            *recent = stack;
        }
        (StackId(stack), is_whole)
    }

    /// Returns the stack in which `caller` calls `address`, which is usually a label; `caller` if there is no room.
    pub fn call(&mut self, caller: StackId, address: AddressId) -> StackId {
        self.call_of(caller.0, address).map_or(caller, StackId)
    }

    /// Returns the addresses of a stack, the innermost first.
    pub fn addresses(&self, stack: StackId) -> impl Iterator<Item = AddressId> + '_ {
        self.walk(stack.0).map(|call| AddressId(call.code))
    }

    /// Returns how many stacks lost their innermost addresses because there was no room.
    #[must_use]
    pub const fn cut(&self) -> u64 {
        self.cut
    }

    /// Returns the number of stored stacks, with the stacks of all callers and the empty one. Each id is below this
    /// number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns whether there is no stack but the empty one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Returns the caller's stack and the innermost address of each stack but the empty one. A caller's stack comes
    /// before the stacks that it calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, AddressId)> + '_ {
        self.calls.iter().map(|(_, call)| (StackId(call.caller), AddressId(call.code)))
    }

    /// Names the frames of all stacks in the order of their addresses. Entries of equal weight have this order.
    pub(crate) fn name(&self, names: &mut Names) {
        self.iter().for_each(|(_, address)| _ = names.frame(address));
    }

    /// Returns the stack without its innermost address.
    pub(crate) fn caller(&self, stack: StackId) -> StackId {
        self.calls.get(stack.0).map_or(StackId::EMPTY, |call| StackId(call.caller))
    }

    fn walk(&self, stack: u32) -> impl Iterator<Item = Call> {
        let existing = |stack| self.calls.get(stack).filter(|_| stack != StackId::EMPTY.0);
        core::iter::successors(existing(stack), move |call| existing(call.caller))
    }

    /// Returns whether a stack has the addresses of [`Self::ips`].
    fn is_stack(&self, stack: u32, process: u64, names: &Names) -> bool {
        let mut ips = self.ips.iter();
        self.walk(stack)
            .all(|call| ips.next().is_some_and(|ip| names.is_address(AddressId(call.code), process, *ip)))
            && ips.next().is_none()
    }

    /// Returns the stack in which `caller` calls the code at an instruction pointer.
    fn called(&mut self, caller: u32, process: u64, ip: u64, names: &mut Names) -> Option<u32> {
        let is_call = |stack: u32| {
            let call = self.calls.get(stack).filter(|call| call.caller == caller);
            call.is_some_and(|call| names.is_address(AddressId(call.code), process, ip))
        };
        let next = caller.saturating_add(1);
        if is_call(next) {
            return Some(next);
        }
        let slot = slot(spread(ip ^ u64::from(caller).rotate_left(40))) % Self::RECENT_CALLS;
        // No stack comes after the last one, so that it calls nothing.
        let recent = self.recent_calls.get(slot).copied().filter(|_| to_usize(next) < self.len());
        if let Some(recent) = recent.filter(|recent| is_call(*recent)) {
            return Some(recent);
        }
        let address = names.address(process, ip);
        let stack = self.call_of(caller, address)?;
        if let Some(recent) = self.recent_calls.get_mut(slot) {
            *recent = stack;
        }
        Some(stack)
    }

    /// Returns the stack in which `caller` calls `address`; `None` if there is no room.
    fn call_of(&mut self, caller: u32, address: AddressId) -> Option<u32> {
        self.calls
            .find(caller, address.0)
            .or_else(|| (self.len() < Self::LIMIT).then(|| self.calls.add(caller, address.0)))
    }
}

/// Returns the highest 24 bits of a hash.
const fn slot(hash: u64) -> usize {
    to_usize(low_u32(hash >> 40))
}

/// Returns a hash of a number: the highest bits differ for most numbers.
const fn spread(number: u64) -> u64 {
    // 2^64 divided by the golden ratio.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
