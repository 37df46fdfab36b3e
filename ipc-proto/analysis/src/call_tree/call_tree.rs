use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

use ipc_proto::wire::{to_u32, to_usize};

use super::folding::Folding;
use super::origins::Origins;
use crate::StackId;
use crate::names::{FrameId, Names, at, at_mut};
use crate::samples::{Clock, Samples, ThreadNumber, Weight};
use crate::stacks::Snapshot;

/// A node of a [`CallTree`]: a frame with the frames that called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// The root, which has no frame.
    pub const ROOT: Self = Self(0);

    /// Returns the number of the node: a caller has a smaller number than its callees.
    #[must_use]
    pub const fn number(self) -> usize {
        to_usize(self.0)
    }
}

/// The weights of a frame in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The frame.
    pub frame: FrameId,
    /// The weight of the stacks in which it is the innermost frame.
    pub exclusive: u64,
    /// The weight of the stacks that contain it.
    pub inclusive: u64,
    /// The weight of the stacks in which it is the innermost frame of the program; 0 for other code.
    pub own: u64,
    /// Whether it is code of the program.
    pub is_own: bool,
}

/// The order of a list of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The frames with the largest exclusive weight first.
    #[default]
    Exclusive,
    /// The frames with the largest inclusive weight first.
    Inclusive,
    /// The frames with the largest own weight first.
    Own,
}

/// A frame of two trees with different shares.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<'n> {
    /// The full name of the frame.
    pub name: &'n str,
    /// The exclusive share of the frame in percent, before and after.
    pub exclusive: [f64; 2],
    /// The inclusive share of the frame in percent, before and after.
    pub inclusive: [f64; 2],
    /// The own share of the frame in percent, before and after.
    pub own: [f64; 2],
    /// Whether it is code of the program.
    pub is_own: bool,
}

impl Change<'_> {
    /// Returns the shares of the frame by which an order sorts, before and after.
    #[must_use]
    pub const fn shares(&self, order: Order) -> [f64; 2] {
        match order {
            Order::Exclusive => self.exclusive,
            Order::Inclusive => self.inclusive,
            Order::Own => self.own,
        }
    }
}

/// The calls of a trace by name, with what they weigh by a clock. An example is at [`Samples`].
#[derive(Debug, Clone)]
pub struct CallTree {
    /// A caller precedes its callees. The first node is the root.
    nodes: Vec<CallNode>,
    /// The frames that only carry out what the clock counts.
    left_out: BTreeSet<FrameId>,
}

#[derive(Debug, Clone, Copy)]
struct CallNode {
    frame: FrameId,
    caller: u32,
    first_callee: u32,
    next_sibling: u32,
    exclusive: u64,
    inclusive: u64,
    /// Of the root: the weight of the stacks without code of the program.
    own: u64,
    is_own: bool,
}

/// The calls of several clocks as one tree, with what each thread weighs: for a page whose reader chooses clocks and
/// threads.
#[derive(Debug, Clone)]
pub struct ThreadTree {
    tree: CallTree,
    weights: Vec<Vec<ThreadWeight>>,
}

/// The weight of a thread at a node of a [`ThreadTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadWeight {
    /// The innermost frame of the stacks; the root for empty stacks.
    pub node: NodeId,
    /// The thread.
    pub thread: ThreadNumber,
    /// The weight of the stacks that end at the node.
    pub exclusive: u64,
}

/// A number that no node has.
const NONE: u32 = u32::MAX;

impl CallTree {
    /// Creates the tree of all stacks. `weigh` returns how much of a weight of a thread counts: all of it, only the
    /// part in which the thread ran, or 0 for threads that are left out.
    #[must_use]
    pub fn new(samples: &mut Samples, clock: &Clock, weigh: impl FnMut(ThreadNumber, Weight) -> u64) -> Self {
        Self::weighed(samples, clock, &Origins::default(), false, weigh)
    }

    /// Creates the tree of all stacks, as [`new`](Self::new) does, but with one frame, [`FrameId::FOLDED`], for
    /// each sequence of frames that only start threads, dispatch work items, or start and continue asynchronous
    /// methods. These are methods of the runtime, and state machines (`Type+<Name>d__1.MoveNext`) of methods that do
    /// not belong to the program. The innermost frame of a stack is never folded.
    ///
    /// Nothing is folded with [`Clock::ThreadTime`] and [`Clock::SampledTime`], which have the rules of other tools.
    #[must_use]
    pub fn folded(
        samples: &mut Samples,
        clock: &Clock,
        weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> Self {
        Self::weighed(samples, clock, &Origins::default(), true, weigh)
    }

    /// Creates the tree of all stacks, as [`folded`](Self::folded) does, and without the innermost frames that only carry out
    /// what the clock counts: methods of the runtime that throw the exception, wait for the lock, send the event or
    /// allocate the object. So the innermost frame of a stack is the method that requested it. With
    /// [`Clock::AllocatedTypes`] it remains the type.
    ///
    /// A stack without other frames stays whole. [`left_out`](Self::left_out) returns the frames that are left out.
    #[must_use]
    pub fn of_origins(
        samples: &mut Samples,
        clock: &Clock,
        weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> Self {
        let origins = Origins::new(samples, clock);
        let tree = Self::weighed(samples, clock, &origins, true, weigh);
        let needed: BTreeSet<_> = samples.weights(clock).map(|(_, stack, _)| stack).collect();
        let left_out = origins.left_out(samples, needed.into_iter());
        Self { left_out, ..tree }
    }

    fn weighed(
        samples: &mut Samples,
        clock: &Clock,
        origins: &Origins,
        is_folded: bool,
        mut weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> Self {
        let mut weights: BTreeMap<StackId, u64> = BTreeMap::new();
        for (thread, stack, weight) in samples.weights(clock) {
            let weight = weigh(thread, weight);
            if weight > 0 {
                let sum = weights.entry(origins.of(stack)).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        let is_folded = is_folded && !matches!(clock, Clock::ThreadTime | Clock::SampledTime);
        let (mut tree, places) = Self::of_stacks(samples, weights.keys().copied(), origins, is_folded);
        for (stack, weight) in weights {
            let place = at(&places, stack.0).copied().unwrap_or_default();
            if let Some(node) = at_mut(&mut tree.nodes, place) {
                node.exclusive = node.exclusive.saturating_add(weight);
            }
        }
        tree.add_up();
        tree
    }

    /// Creates the tree of some stacks, without weights. Also returns the index of each of these stacks in the tree.
    fn of_stacks(
        samples: &mut Samples,
        ends: impl Iterator<Item = StackId>,
        origins: &Origins,
        is_folded: bool,
    ) -> (Self, Vec<u32>) {
        let (names, stacks) = samples.names_and_stacks();
        // Mark the stacks, and all their callers.
        let mut is_end = alloc::vec![false; stacks.len()];
        let mut is_caller = alloc::vec![false; stacks.len()];
        for mut stack in ends {
            if let Some(is_end) = at_mut(&mut is_end, stack.0) {
                *is_end = true;
            }
            while stack != StackId::EMPTY {
                stack = origins.caller(stacks, stack);
                match at_mut(&mut is_caller, stack.0) {
                    Some(is_caller @ false) => *is_caller = true,
                    _ => break,
                }
            }
        }
        let root = CallNode::new(FrameId::UNKNOWN, false, NONE);
        let mut tree = Self { nodes: alloc::vec![root], left_out: BTreeSet::new() };
        // The callees of a frame that has several.
        let mut callees: BTreeMap<(u32, FrameId), u32> = BTreeMap::new();
        let mut folding = is_folded.then(Folding::default);
        let mut frames = Snapshot::new(names);
        // Callers come before their callees, so one pass is enough. As the caller of another stack, a stack can have
        // another place than as an end, because its innermost frame is folded then.
        let mut places = alloc::vec![0_u32; stacks.len()];
        let mut caller_places = if is_folded { places.clone() } else { Vec::new() };
        for (stack, (_, address)) in (1..).zip(stacks.iter()) {
            let [is_end, is_caller] = [&is_end, &is_caller].map(|marks| at(marks, stack) == Some(&true));
            if !is_end && !is_caller {
                continue;
            }
            let caller = origins.caller(stacks, StackId(stack));
            let known = if is_folded { &caller_places } else { &places };
            let caller = at(known, caller.0).copied().unwrap_or_default();
            let frame = frames.of(address);
            let caller_frame = at(&tree.nodes, caller).map(|node| node.frame);
            let mut place = |frame: FrameId, names: &Names| {
                let latest = at(&tree.nodes, caller).map_or(NONE, |node| node.first_callee);
                let is_own = names.is_own(frame);
                let Some(callee) = at(&tree.nodes, latest) else { return tree.add(caller, frame, is_own) };
                if callee.frame == frame {
                    return latest;
                }
                if callee.next_sibling == NONE {
                    callees.insert((caller, callee.frame), latest);
                }
                *callees.entry((caller, frame)).or_insert_with(|| tree.add(caller, frame, is_own))
            };
            let Some(folding) = &mut folding else {
                if let Some(slot) = at_mut(&mut places, stack) {
                    *slot = place(frame, frames.names());
                }
                continue;
            };
            let has = folding.has(frames.names(), frame);
            if let Some(slot) = at_mut(&mut places, stack).filter(|_| is_end) {
                *slot = place(frame, frames.names());
            }
            if let Some(slot) = at_mut(&mut caller_places, stack).filter(|_| is_caller) {
                *slot = match has {
                    true if caller_frame == Some(FrameId::FOLDED) => caller,
                    true => place(FrameId::FOLDED, frames.names()),
                    false => place(frame, frames.names()),
                };
            }
        }
        // The place of a caller is the root, so the empty stack has its own place only now. Without any other stack, there
        // is nothing to compare it with.
        if is_end.first() == Some(&true) && tree.nodes.len() > 1 {
            let frame = frames.no_frame();
            if let Some(place) = places.first_mut() {
                *place = tree.add(0, frame, false);
            }
        }
        (tree, places)
    }

    fn add(&mut self, caller: u32, frame: FrameId, is_own: bool) -> u32 {
        let place = to_u32(self.nodes.len());
        let mut node = CallNode::new(frame, is_own, caller);
        if let Some(caller) = at_mut(&mut self.nodes, caller) {
            node.next_sibling = core::mem::replace(&mut caller.first_callee, place);
        }
        self.nodes.push(node);
        place
    }

    /// Sets the inclusive weight of each node: its exclusive weight and the weights of all nodes below it. Of these,
    /// the own weight is the part that no node of the program below it has.
    fn add_up(&mut self) {
        for place in (0..to_u32(self.nodes.len())).rev() {
            let Some(node) = at_mut(&mut self.nodes, place) else { continue };
            node.inclusive = node.inclusive.saturating_add(node.exclusive);
            node.own = node.own.saturating_add(node.exclusive);
            let CallNode { caller, inclusive, is_own, .. } = *node;
            let passed = if is_own || caller == NONE { 0 } else { core::mem::take(&mut node.own) };
            if let Some(caller) = at_mut(&mut self.nodes, caller) {
                caller.inclusive = caller.inclusive.saturating_add(inclusive);
                caller.own = caller.own.saturating_add(passed);
            }
        }
    }

    /// Returns the frames that [`of_origins`](Self::of_origins) leaves out.
    pub fn left_out(&self) -> impl ExactSizeIterator<Item = FrameId> + '_ {
        self.left_out.iter().copied()
    }

    /// Returns the weight of all stacks together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.nodes.first().map_or(0, |root| root.inclusive)
    }

    /// Returns the weight of the stacks without code of the program.
    #[must_use]
    pub fn not_own(&self) -> u64 {
        self.nodes.first().map_or(0, |root| root.own)
    }

    /// Returns the share of a weight in the total, in percent.
    #[must_use]
    pub fn share(&self, weight: u64) -> f64 {
        if self.total() == 0 { 0.0 } else { weight as f64 / self.total() as f64 * 100.0 }
    }

    /// Returns all frames with their weights, the heaviest first. Of frames of equal weight, code of the program comes
    /// first. Then they are ordered by their other weight, and by the order in which they were named.
    #[must_use]
    pub fn top(&self, order: Order) -> Vec<Entry> {
        let mut entries: BTreeMap<FrameId, Entry> = BTreeMap::new();
        self.walk(|_, node, is_outermost| {
            let entry = entries.entry(node.frame).or_insert_with(|| Entry::new(node));
            entry.exclusive = entry.exclusive.saturating_add(node.exclusive);
            entry.own = entry.own.saturating_add(node.own);
            if is_outermost {
                entry.inclusive = entry.inclusive.saturating_add(node.inclusive);
            }
        });
        let mut entries: Vec<_> = entries.into_values().collect();
        entries.sort_by_key(|entry| {
            core::cmp::Reverse(match order {
                Order::Exclusive => (entry.exclusive, entry.is_own, entry.inclusive),
                Order::Inclusive => (entry.inclusive, entry.is_own, entry.exclusive),
                Order::Own => (entry.own, entry.is_own, entry.inclusive),
            })
        });
        entries
    }

    /// Returns the frame of the program that most stacks with code of the program have in common: the innermost one that
    /// is in four fifths of their weight. `None` if there is no such frame.
    ///
    /// Its callees can share the own weight, so that it has none itself.
    #[must_use]
    pub fn common_own(&self) -> Option<Entry> {
        let weight = self.total().saturating_sub(self.not_own());
        let least = weight.saturating_sub(weight / 5).max(1);
        // The first node of each frame: of frames in the same stacks, a callee has a larger number.
        let mut first: BTreeMap<FrameId, usize> = BTreeMap::new();
        for (number, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_own) {
            first.entry(node.frame).or_insert(number);
        }
        let common =
            self.top(Order::Own).into_iter().filter(|entry| entry.is_own && entry.inclusive >= least);
        common.min_by_key(|entry| {
            (entry.inclusive, core::cmp::Reverse((entry.own, first.get(&entry.frame).copied())))
        })
    }

    /// Returns the first functions of the program for a report: up to three by their own weight, and before them the
    /// one that most stacks have [in common](Self::common_own).
    #[must_use]
    pub fn first_own(&self) -> Vec<Entry> {
        let mut own = self.top(Order::Own);
        own.retain(|entry| entry.own > 0);
        own.truncate(3);
        if let Some(common) = self.common_own().filter(|common| !own.contains(common)) {
            own.insert(0, common);
        }
        own
    }

    /// Returns the callers of a frame, the heaviest first. If a frame calls itself, the outermost call counts. Stacks
    /// in which the frame has no caller are left out.
    #[must_use]
    pub fn callers(&self, frame: FrameId) -> Vec<Entry> {
        let mut entries = BTreeMap::new();
        self.walk(|_, node, is_outermost| {
            let caller = (node.caller != NodeId::ROOT.0).then(|| at(&self.nodes, node.caller)).flatten();
            if let (true, true, Some(caller)) = (node.frame == frame, is_outermost, caller) {
                Entry::add(&mut entries, caller, node);
            }
        });
        by_inclusive(entries)
    }

    /// Returns the frames that a frame calls, the heaviest first. Where a frame calls itself, the outermost call
    /// counts.
    #[must_use]
    pub fn callees(&self, frame: FrameId) -> Vec<Entry> {
        let mut entries = BTreeMap::new();
        self.walk(|place, node, is_outermost| {
            if node.frame == frame && is_outermost {
                for callee in self.callees_of(place) {
                    Entry::add(&mut entries, callee.1, callee.1);
                }
            }
        });
        by_inclusive(entries)
    }

    /// Returns the callees of a node, the heaviest first.
    #[must_use]
    pub fn children(&self, node: NodeId) -> Vec<(NodeId, Entry)> {
        let mut children: Vec<_> = self
            .callees_of(node.0)
            .map(|(place, node)| {
                let CallNode { exclusive, inclusive, own, .. } = *node;
                (NodeId(place), Entry { exclusive, inclusive, own, ..Entry::new(node) })
            })
            .collect();
        children.sort_by_key(|(node, entry)| (core::cmp::Reverse((entry.inclusive, entry.is_own)), *node));
        children
    }

    /// Returns the share of frames without a name, in percent: of the frames of all stacks, by their weight.
    #[must_use]
    pub fn unnamed_share(&self, names: &Names) -> f64 {
        let (mut all, mut unnamed) = (0.0, 0.0);
        for node in self.nodes.iter().skip(1) {
            let weight = node.inclusive as f64;
            all += weight;
            if !names.is_named(node.frame) {
                unnamed += weight;
            }
        }
        if all == 0.0 { 0.0 } else { unnamed / all * 100.0 }
    }

    /// Writes each stack on a line with its weight, root first, as flame graph tools read it: `main;parse;read 42`. A
    /// semicolon in a name becomes a colon, and a line break a space.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_folded(&self, names: &Names, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut path = Vec::new();
        // A name is in many stacks, so each name is searched for separators only once.
        let mut plain: Vec<Option<bool>> = Vec::new();
        let mut is_plain = |frame: FrameId, text: &str| {
            let place = to_usize(frame.0);
            if plain.len() <= place {
                plain.resize(place.saturating_add(1), None);
            }
            let search = || !text.contains([';', '\n', '\r']);
            plain.get_mut(place).map_or_else(search, |known| *known.get_or_insert_with(search))
        };
        for node in self.nodes.iter().skip(1).filter(|node| node.exclusive > 0) {
            path.clear();
            let caller = |node: &&CallNode| at(&self.nodes, node.caller).filter(|node| node.caller != NONE);
            path.extend(core::iter::successors(Some(node), caller).map(|node| node.frame));
            for (i, frame) in path.iter().rev().enumerate() {
                if i > 0 {
                    out.write_char(';')?;
                }
                let text = names.text(*frame);
                if is_plain(*frame, text) {
                    out.write_str(text)?;
                    continue;
                }
                for part in text.split_inclusive([';', '\n', '\r']) {
                    match part.strip_suffix(';') {
                        Some(part) => write!(out, "{part}:")?,
                        None => match part.strip_suffix(['\n', '\r']) {
                            Some(part) => write!(out, "{part} ")?,
                            None => out.write_str(part)?,
                        },
                    }
                }
            }
            writeln!(out, " {}", node.exclusive)?;
        }
        Ok(())
    }

    /// Returns the frames whose share differs from an older tree, the largest change first of the share by which `order`
    /// sorts.
    #[must_use]
    pub fn difference<'n>(
        &self,
        names: &'n Names,
        old: &Self,
        old_names: &'n Names,
        order: Order,
    ) -> Vec<Change<'n>> {
        let mut changes: BTreeMap<&'n str, Change<'n>> = BTreeMap::new();
        for (i, tree, names) in [(0, old, old_names), (1, self, names)] {
            for entry in tree.top(Order::Exclusive) {
                let name = names.text(entry.frame);
                let [exclusive, inclusive, own] = [[0.0; 2]; 3];
                let unchanged = || Change { name, exclusive, inclusive, own, is_own: false };
                let change = changes.entry(name).or_insert_with(unchanged);
                change.is_own |= entry.is_own;
                for (shares, weight) in [
                    (&mut change.exclusive, entry.exclusive),
                    (&mut change.inclusive, entry.inclusive),
                    (&mut change.own, entry.own),
                ] {
                    if let Some(share) = shares.get_mut(i) {
                        *share = tree.share(weight);
                    }
                }
            }
        }
        let differs = |change: &Change<'_>| {
            [change.exclusive, change.inclusive, change.own].iter().any(|[old, new]| new != old)
        };
        let mut changes: Vec<_> = changes.into_values().filter(differs).collect();
        let size = |[old, new]: [f64; 2]| if new > old { new - old } else { old - new };
        changes.sort_by(|a, b| {
            let by_exclusive = size(b.exclusive).total_cmp(&size(a.exclusive));
            by_exclusive.then_with(|| size(b.inclusive).total_cmp(&size(a.inclusive)))
        });
        changes.sort_by(|a, b| size(b.shares(order)).total_cmp(&size(a.shares(order))));
        changes
    }

    fn callees_of(&self, place: u32) -> impl Iterator<Item = (u32, &CallNode)> {
        let get = |place| Some((place, at(&self.nodes, place)?));
        let first = at(&self.nodes, place).and_then(|node| get(node.first_callee));
        core::iter::successors(first, move |(_, node)| get(node.next_sibling))
    }

    /// Calls `f` with each node but the root, and with whether no caller of the node has the same frame. Callers come
    /// first.
    fn walk(&self, mut f: impl FnMut(u32, &CallNode, bool)) {
        let frames = self.nodes.iter().map(|node| node.frame.0).max().unwrap_or_default();
        let len = to_usize(frames).saturating_add(1);
        // How often each frame is on the path from the root.
        let mut on_path = alloc::vec![0_u32; len];
        let mut place = NodeId::ROOT.0;
        while let Some(node) = at(&self.nodes, place) {
            if place != NodeId::ROOT.0 {
                if let Some(count) = at_mut(&mut on_path, node.frame.0) {
                    *count = count.saturating_add(1);
                    f(place, node, *count == 1);
                }
            }
            if node.first_callee != NONE {
                place = node.first_callee;
                continue;
            }
            // Go up to the next node that has a sibling.
            let mut last = node;
            loop {
                if let Some(count) = at_mut(&mut on_path, last.frame.0) {
                    *count = count.saturating_sub(1);
                }
                if last.next_sibling != NONE || last.caller == NONE {
                    break;
                }
                match at(&self.nodes, last.caller) {
                    Some(caller) if caller.caller != NONE => last = caller,
                    _ => break,
                }
            }
            place = last.next_sibling;
        }
    }
}

impl ThreadTree {
    /// Creates the tree of all stacks that have a weight by one of the clocks.
    #[must_use]
    pub fn new(samples: &mut Samples, clocks: &[Clock]) -> Self {
        Self::of_stacks(samples, clocks, false)
    }

    /// Creates the tree of all stacks, as [`new`](Self::new) does, with the frames that [`CallTree::folded`] has; for
    /// all clocks.
    #[must_use]
    pub fn folded(samples: &mut Samples, clocks: &[Clock]) -> Self {
        Self::of_stacks(samples, clocks, true)
    }

    fn of_stacks(samples: &mut Samples, clocks: &[Clock], is_folded: bool) -> Self {
        let rows = |clock| samples.weights(clock).filter(|(_, _, weight)| weight.total() > 0).collect();
        let rows: Vec<Vec<_>> = clocks.iter().map(rows).collect();
        let stacks = rows.iter().flatten().map(|(_, stack, _)| *stack);
        let (tree, places) = CallTree::of_stacks(samples, stacks, &Origins::default(), is_folded);
        let node = |stack: StackId| NodeId(at(&places, stack.0).copied().unwrap_or_default());
        let of_node = |(thread, stack, weight): (_, _, Weight)| (node(stack), thread, weight.total());
        let weights = rows.into_iter().map(|rows| {
            let mut rows: Vec<_> = rows.into_iter().map(of_node).collect();
            rows.sort_unstable();
            let sums = rows.chunk_by(|(node, thread, _), (next, other, _)| (node, thread) == (next, other));
            let sum = |rows: &[(NodeId, ThreadNumber, u64)]| {
                let (node, thread, _) = *rows.first()?;
                let exclusive = rows.iter().fold(0_u64, |sum, (_, _, weight)| sum.saturating_add(*weight));
                Some(ThreadWeight { node, thread, exclusive })
            };
            sums.filter_map(sum).collect()
        });
        let weights = weights.collect();
        Self { tree, weights }
    }

    /// Returns each node but the root by its number, from 1 on: the node of its caller, and its frame.
    pub fn calls(&self) -> impl Iterator<Item = (NodeId, FrameId)> + '_ {
        self.tree.nodes.iter().skip(1).map(|node| (NodeId(node.caller), node.frame))
    }

    /// Returns the weights by one clock in the order of nodes. `clock` is the index of the clock in the list of
    /// [`new`](Self::new).
    #[must_use]
    pub fn weights(&self, clock: usize) -> &[ThreadWeight] {
        self.weights.get(clock).map_or(&[], Vec::as_slice)
    }
}

impl CallNode {
    const fn new(frame: FrameId, is_own: bool, caller: u32) -> Self {
        let [exclusive, inclusive, own] = [0; 3];
        Self { frame, caller, first_callee: NONE, next_sibling: NONE, exclusive, inclusive, own, is_own }
    }
}

impl Entry {
    /// Creates an entry for the frame of a node, without weight.
    const fn new(node: &CallNode) -> Self {
        let [exclusive, inclusive, own] = [0; 3];
        Self { frame: node.frame, exclusive, inclusive, own, is_own: node.is_own }
    }

    /// Adds the weights of a node to the entry for the frame of `of`.
    fn add(entries: &mut BTreeMap<FrameId, Self>, of: &CallNode, node: &CallNode) {
        let entry = entries.entry(of.frame).or_insert_with(|| Self::new(of));
        entry.exclusive = entry.exclusive.saturating_add(node.exclusive);
        entry.inclusive = entry.inclusive.saturating_add(node.inclusive);
        entry.own = entry.own.saturating_add(node.own);
    }
}

fn by_inclusive(entries: BTreeMap<FrameId, Entry>) -> Vec<Entry> {
    let mut entries: Vec<_> = entries.into_values().collect();
    entries.sort_by_key(|entry| core::cmp::Reverse((entry.inclusive, entry.is_own, entry.exclusive)));
    entries
}
