//! Stacks of events, stored once each.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use ipc_proto::wire::{low_u32, steps, to_u32, to_usize};
use nettrace::TraceEvent;

use crate::names::{AddressId, Names, at, at_mut, process_of};

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
    nodes: Vec<StackNode>,
    /// The stacks by their caller and their address, without [`StackNode::first`]: most stacks of a trace without
    /// repetition have no other.
    children: BTreeMap<(u32, u32), u32>,
    /// The stacks of the stream that were found lately, by their number and process.
    numbered: BTreeMap<(u32, u64), Numbered>,
    /// Stacks that were found lately, at the index of their hash. A stack replaces an earlier one with the same index.
    recent: Vec<Recent>,
    /// Calls that were found lately, at the index of their hash: the entries of [`Self::children`], without a search.
    recent_calls: Vec<RecentCall>,
    /// How often the process of the events, or the generation of the names, has changed.
    turn: u32,
    /// The process and the generation of this turn.
    turn_of: (u64, u64),
    /// The addresses of the stack that is being stored.
    ips: Vec<u64>,
    cut: u64,
}

#[derive(Debug, Clone, Copy)]
struct StackNode {
    caller: u32,
    address: AddressId,
    ip: u64,
    /// The last stack that was found whose caller is this one: successive events have most of their callers in common.
    /// It is valid if `turn` equals [`Stacks::turn`].
    latest: u32,
    turn: u32,
    /// The first stack that this one calls; 0 if there is none.
    first: u32,
}

/// A stack of the stream. It is valid for the names of this generation.
#[derive(Debug, Clone, Copy)]
struct Numbered {
    stack: StackId,
    generation: u32,
    is_whole: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    process: u64,
    node: u32,
    /// One more than the generation of the names, so that 0 is not an entry.
    generation: u64,
}

/// The stack of a call. It is valid if `turn` equals [`Stacks::turn`].
#[derive(Debug, Clone, Copy, Default)]
struct RecentCall {
    stack: u32,
    turn: u32,
}

impl Default for Stacks {
    fn default() -> Self {
        let empty =
            StackNode { caller: 0, address: AddressId(u32::MAX), ip: 0, latest: 0, turn: 0, first: 0 };
        Self {
            nodes: [empty].into(),
            children: BTreeMap::new(),
            numbered: BTreeMap::new(),
            recent: Vec::new(),
            recent_calls: Vec::new(),
            turn: 0,
            turn_of: (0, 0),
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
        let generation = u64::from(names.generation()).saturating_add(1);
        let hash = self.ips.iter().fold(process, |hash, ip| spread(hash ^ ip).rotate_left(29));
        let slot = slot(hash) % Self::RECENT;
        if self.recent.is_empty() {
            self.recent.resize(Self::RECENT, Recent::default());
            self.recent_calls.resize(Self::RECENT_CALLS, RecentCall::default());
        }
        if let Some(recent) = self.recent.get(slot) {
            let known = recent.generation == generation && recent.process == process;
            if known && self.is_stack(recent.node) {
                return (StackId(recent.node), true);
            }
        }
        if self.turn_of != (process, generation) {
            self.turn_of = (process, generation);
            // At its largest value the turn stays the same. An address can then keep the name of code that was freed.
            self.turn = self.turn.saturating_add(1);
        }
        let mut node = StackId::EMPTY;
        let mut ips = core::mem::take(&mut self.ips);
        let mut is_whole = true;
        for ip in ips.iter().rev() {
            let latest =
                at(&self.nodes, node.0).filter(|node| node.turn == self.turn).map(|node| node.latest);
            if let Some(latest) = latest.filter(|id| at(&self.nodes, *id).is_some_and(|node| node.ip == *ip))
            {
                node = StackId(latest);
                continue;
            }
            match self.called(node, process, *ip, names) {
                Some(child) => {
                    if let Some(node) = at_mut(&mut self.nodes, node.0) {
                        (node.latest, node.turn) = (child.0, self.turn);
                    }
                    node = child;
                }
                None => {
                    is_whole = false;
                    break;
                }
            }
        }
        ips.clear();
        self.ips = ips;
        if is_whole {
            if let Some(recent) = self.recent.get_mut(slot) {
                *recent = Recent { process, node: node.0, generation };
            }
        } else {
            self.cut = self.cut.saturating_add(1);
        }
        (node, is_whole)
    }

    /// Returns the stack in which `caller` calls `address`, which is usually a label; `caller` if there is no room.
    pub fn call(&mut self, caller: StackId, address: AddressId) -> StackId {
        self.child(caller, address, 0).unwrap_or(caller)
    }

    /// Returns the addresses of a stack, the innermost first.
    pub fn addresses(&self, stack: StackId) -> impl Iterator<Item = AddressId> + '_ {
        self.walk(stack.0).map(|node| node.address)
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
        self.nodes.len()
    }

    /// Returns whether there is no stack but the empty one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Returns the caller's stack and the innermost address of each stack but the empty one. A caller's stack comes
    /// before the stacks that it calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, AddressId)> + '_ {
        self.nodes.iter().skip(1).map(|node| (StackId(node.caller), node.address))
    }

    /// Returns the stack without its innermost address.
    pub(crate) fn caller(&self, stack: StackId) -> StackId {
        at(&self.nodes, stack.0).map_or(StackId::EMPTY, |node| StackId(node.caller))
    }

    fn walk(&self, node: u32) -> impl Iterator<Item = &StackNode> {
        let existing = |node| if node == 0 { None } else { at(&self.nodes, node) };
        core::iter::successors(existing(node), move |node| existing(node.caller))
    }

    /// Returns whether a node has the addresses of [`Self::ips`].
    fn is_stack(&self, node: u32) -> bool {
        self.walk(node).map(|node| node.ip).eq(self.ips.iter().copied())
    }

    /// Returns the stack in which `caller` calls the code at an instruction pointer.
    fn called(&mut self, caller: StackId, process: u64, ip: u64, names: &mut Names) -> Option<StackId> {
        let slot = slot(spread(ip ^ u64::from(caller.0).rotate_left(40))) % Self::RECENT_CALLS;
        if let Some(recent) = self.recent_calls.get(slot).filter(|recent| recent.turn == self.turn) {
            let is_call = |node: &StackNode| node.caller == caller.0 && node.ip == ip;
            if recent.stack != StackId::EMPTY.0 && at(&self.nodes, recent.stack).is_some_and(is_call) {
                return Some(StackId(recent.stack));
            }
        }
        let address = names.address(process, ip);
        let child = self.child(caller, address, ip)?;
        if let Some(recent) = self.recent_calls.get_mut(slot) {
            *recent = RecentCall { stack: child.0, turn: self.turn };
        }
        Some(child)
    }

    fn child(&mut self, caller: StackId, address: AddressId, ip: u64) -> Option<StackId> {
        let first = at(&self.nodes, caller.0).map(|node| node.first).filter(|first| *first != 0);
        if let Some(first) = first {
            if at(&self.nodes, first).is_some_and(|node| node.address == address) {
                return Some(StackId(first));
            }
            if let Some(child) = self.children.get(&(caller.0, address.0)) {
                return Some(StackId(*child));
            }
        }
        if self.nodes.len() >= Self::LIMIT {
            return None;
        }
        let child = to_u32(self.nodes.len());
        self.nodes.push(StackNode { caller: caller.0, address, ip, latest: 0, turn: 0, first: 0 });
        match at_mut(&mut self.nodes, caller.0).filter(|_| first.is_none()) {
            Some(node) => node.first = child,
            None => _ = self.children.insert((caller.0, address.0), child),
        }
        Some(StackId(child))
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
