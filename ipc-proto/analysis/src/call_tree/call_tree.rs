use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

use ipc_proto::wire::{to_u32, to_usize};

use super::folding::Folding;
use super::origins::Origins;
use crate::StackId;
use crate::names::{FrameId, Known, Names, at, at_mut};
use crate::samples::{Clock, Samples, ThreadNumber, Weight};
use crate::stacks::{Call, Calls};

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
    /// The calls of frames.
    calls: Calls,
    /// Whether no caller of a call has the same frame, by the number of the call.
    is_outermost: Vec<bool>,
    /// The weights of the stacks that contain a call, by its number.
    inclusive: Vec<u64>,
    /// The weights of the stacks that end with a call.
    exclusive: BTreeMap<u32, u64>,
    /// The weights of the stacks whose innermost call of the program is this one. Of the root: the weight of the stacks
    /// without code of the program.
    own: BTreeMap<u32, u64>,
    /// Whether a frame is code of the program, by its number.
    is_own: Vec<bool>,
    /// The frames that only carry out what the clock counts.
    left_out: BTreeSet<FrameId>,
}

/// The calls of several clocks as one tree, with what each thread weighs: for a page whose reader chooses clocks and
/// threads.
#[derive(Debug, Clone)]
pub struct ThreadTree {
    calls: Calls,
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
        Self { left_out: origins.left_out, ..tree }
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
                add(weights.entry(origins.of(stack)).or_default(), weight);
            }
        }
        let is_folded = is_folded && !matches!(clock, Clock::ThreadTime | Clock::SampledTime);
        let ends: Vec<_> = weights.keys().copied().collect();
        let (calls, places) = call_places(samples, &ends, origins, is_folded);
        let mut exclusive = BTreeMap::new();
        for (place, weight) in places.into_iter().zip(weights.into_values()) {
            add(exclusive.entry(place).or_default(), weight);
        }
        Self::of_calls(calls, exclusive, samples.names())
    }

    fn of_calls(calls: Calls, exclusive: BTreeMap<u32, u64>, names: &Names) -> Self {
        let frames = calls.iter().map(|(_, call)| call.code.saturating_add(1)).max().unwrap_or_default();
        let is_own: Vec<_> = (0..frames).map(|frame| names.is_own(FrameId(frame))).collect();
        let is_outermost = outermost(&calls, is_own.len());
        // The innermost call of the program, for each call: itself, one of its callers, or else the root.
        let mut owners = alloc::vec![Calls::ROOT];
        for (number, call) in calls.iter() {
            let of_caller = at(&owners, call.caller).copied().unwrap_or_default();
            owners.push(if at(&is_own, call.code) == Some(&true) { number } else { of_caller });
        }
        let mut own = BTreeMap::new();
        for (place, weight) in &exclusive {
            let owner = at(&owners, *place).copied().unwrap_or_default();
            add(own.entry(owner).or_default(), *weight);
        }
        drop(owners);
        let mut inclusive = alloc::vec![0; calls.len()];
        for (number, weight) in &exclusive {
            at_mut(&mut inclusive, *number).into_iter().for_each(|sum| *sum = *weight);
        }
        for number in (1..to_u32(calls.len())).rev() {
            let weight = at(&inclusive, number).copied().unwrap_or_default();
            let caller = calls.get(number).and_then(|call| at_mut(&mut inclusive, call.caller));
            caller.into_iter().for_each(|sum| add(sum, weight));
        }
        Self { calls, is_outermost, inclusive, exclusive, own, is_own, left_out: BTreeSet::new() }
    }

    /// Returns the frames that [`of_origins`](Self::of_origins) leaves out.
    pub fn left_out(&self) -> impl ExactSizeIterator<Item = FrameId> + '_ {
        self.left_out.iter().copied()
    }

    /// Returns the weight of all stacks together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.inclusive.first().copied().unwrap_or_default()
    }

    /// Returns the weight of the stacks without code of the program.
    #[must_use]
    pub fn not_own(&self) -> u64 {
        self.own.get(&Calls::ROOT).copied().unwrap_or_default()
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
        let mut entries = alloc::vec![None; self.is_own.len()];
        let mut count = |number, weight, sum: fn(&mut Entry) -> &mut u64| {
            let Some(Call { code, .. }) = self.calls.get(number) else { return };
            if let Some(entry) = at_mut(&mut entries, code) {
                add(sum(entry.get_or_insert_with(|| self.unweighed(code))), weight);
            }
        };
        for (number, (inclusive, is_outermost)) in (0..).zip(self.inclusive.iter().zip(&self.is_outermost)) {
            count(number, if *is_outermost { *inclusive } else { 0 }, |entry| &mut entry.inclusive);
        }
        for (number, exclusive) in &self.exclusive {
            count(*number, *exclusive, |entry| &mut entry.exclusive);
        }
        for (number, own) in &self.own {
            count(*number, *own, |entry| &mut entry.own);
        }
        let mut entries: Vec<_> = entries.into_iter().flatten().collect();
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
        let mut first = Known::new();
        for (number, call) in self.calls.iter() {
            first.of(call.code, || number);
        }
        let common =
            self.top(Order::Own).into_iter().filter(|entry| entry.is_own && entry.inclusive >= least);
        common.min_by_key(|entry| {
            (entry.inclusive, core::cmp::Reverse((entry.own, first.of(entry.frame.0, || Calls::ROOT))))
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
        for (number, Call { caller, .. }) in
            self.outermost(frame).filter(|(_, call)| call.caller != Calls::ROOT)
        {
            self.add(&mut entries, caller, number);
        }
        by_inclusive(entries)
    }

    /// Returns the frames that a frame calls, the heaviest first. Where a frame calls itself, the outermost call
    /// counts.
    #[must_use]
    pub fn callees(&self, frame: FrameId) -> Vec<Entry> {
        let mut entries = BTreeMap::new();
        for callee in self.outermost(frame).flat_map(|(number, _)| self.calls.of(number)) {
            self.add(&mut entries, callee, callee);
        }
        by_inclusive(entries)
    }

    /// Returns the callees of a node, the heaviest first.
    #[must_use]
    pub fn children(&self, node: NodeId) -> Vec<(NodeId, Entry)> {
        let mut children: Vec<_> =
            self.calls.of(node.0).filter_map(|number| Some((NodeId(number), self.entry(number)?))).collect();
        children.sort_by_key(|(node, entry)| (core::cmp::Reverse((entry.inclusive, entry.is_own)), *node));
        children
    }

    /// Returns the share of frames without a name, in percent: of the frames of all stacks, by their weight.
    #[must_use]
    pub fn unnamed_share(&self, names: &Names) -> f64 {
        let (mut all, mut unnamed) = (0.0, 0.0);
        let mut is_named = Known::new();
        for ((_, call), inclusive) in self.calls.iter().zip(self.inclusive.iter().skip(1)) {
            let weight = *inclusive as f64;
            all += weight;
            if !is_named.of(call.code, || names.is_named(FrameId(call.code))) {
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
        let mut is_plain = Known::new();
        for (number, exclusive) in self.exclusive.iter().filter(|(number, _)| **number != Calls::ROOT) {
            path.clear();
            let existing = |number| self.calls.get(number).filter(|_| number != Calls::ROOT);
            path.extend(
                core::iter::successors(existing(*number), |call| existing(call.caller)).map(|call| call.code),
            );
            for (i, frame) in path.iter().rev().enumerate() {
                if i > 0 {
                    out.write_char(';')?;
                }
                let text = names.text(FrameId(*frame));
                if is_plain.of(*frame, || !text.contains([';', '\n', '\r'])) {
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
            writeln!(out, " {exclusive}")?;
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

    /// Returns the calls of a frame whose callers have other frames.
    fn outermost(&self, frame: FrameId) -> impl Iterator<Item = (u32, Call)> + '_ {
        let is_outermost = |number| at(&self.is_outermost, number) == Some(&true);
        self.calls.iter().filter(move |(number, call)| call.code == frame.0 && is_outermost(*number))
    }

    /// Returns the frame of a call with its weights.
    fn entry(&self, number: u32) -> Option<Entry> {
        let weight = |weights: &BTreeMap<_, _>| weights.get(&number).copied().unwrap_or_default();
        Some(Entry {
            exclusive: weight(&self.exclusive),
            inclusive: at(&self.inclusive, number).copied()?,
            own: weight(&self.own),
            ..self.unweighed(self.calls.get(number)?.code)
        })
    }

    fn unweighed(&self, frame: u32) -> Entry {
        let [exclusive, inclusive, own] = [0; 3];
        Entry {
            frame: FrameId(frame),
            exclusive,
            inclusive,
            own,
            is_own: at(&self.is_own, frame) == Some(&true),
        }
    }

    /// Adds the weights of a call to the entry for the frame of the call `of`.
    fn add(&self, entries: &mut BTreeMap<u32, Entry>, of: u32, number: u32) {
        let (Some(of), Some(weights)) = (self.calls.get(of), self.entry(number)) else { return };
        let entry = entries.entry(of.code).or_insert_with(|| self.unweighed(of.code));
        add(&mut entry.exclusive, weights.exclusive);
        add(&mut entry.inclusive, weights.inclusive);
        add(&mut entry.own, weights.own);
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
        let ends: BTreeSet<_> = rows.iter().flatten().map(|(_, stack, _)| *stack).collect();
        let ends: Vec<_> = ends.into_iter().collect();
        let (calls, places) = call_places(samples, &ends, &Origins::default(), is_folded);
        let place = |stack| places.get(ends.binary_search(&stack).ok()?);
        let node = |stack: StackId| NodeId(place(stack).copied().unwrap_or_default());
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
        Self { calls, weights }
    }

    /// Returns each node but the root by its number, from 1 on: the node of its caller, and its frame.
    pub fn calls(&self) -> impl Iterator<Item = (NodeId, FrameId)> + '_ {
        self.calls.iter().map(|(_, call)| (NodeId(call.caller), FrameId(call.code)))
    }

    /// Returns the weights by one clock in the order of nodes. `clock` is the index of the clock in the list of
    /// [`new`](Self::new).
    #[must_use]
    pub fn weights(&self, clock: usize) -> &[ThreadWeight] {
        self.weights.get(clock).map_or(&[], Vec::as_slice)
    }
}

/// Returns the calls of stacks by frame, and the innermost call of each of them. The stacks are passed in the order of
/// their ids.
fn call_places(
    samples: &mut Samples,
    ends: &[StackId],
    origins: &Origins,
    is_folded: bool,
) -> (Calls, Vec<u32>) {
    const NONE: u32 = u32::MAX;
    let (names, stacks) = samples.names_and_stacks();
    // The call of each stack that calls another one: at first the root.
    let mut callers = alloc::vec![NONE; stacks.len()];
    for end in ends {
        let mut stack = *end;
        while stack != StackId::EMPTY {
            stack = origins.caller(stacks, stack);
            match at_mut(&mut callers, stack.0) {
                Some(caller @ &mut NONE) => *caller = Calls::ROOT,
                _ => break,
            }
        }
    }
    let mut calls = Calls::new();
    let mut folding = Folding::new();
    let mut left = ends.iter().filter(|end| **end != StackId::EMPTY).peekable();
    let mut places: Vec<_> = ends.iter().filter(|end| **end == StackId::EMPTY).map(|_| Calls::ROOT).collect();
    // Callers come before their callees, so one pass is enough.
    for (stack, (_, address)) in (1..).map(StackId).zip(stacks.iter()) {
        let is_end = left.next_if_eq(&&stack).is_some();
        let is_caller = at(&callers, stack.0).is_some_and(|caller| *caller != NONE);
        if !is_end && !is_caller {
            continue;
        }
        let caller = at(&callers, origins.caller(stacks, stack).0).copied().unwrap_or_default();
        let frame = names.frame(address);
        let is_in_fold = calls.get(caller).is_some_and(|call| call.code == FrameId::FOLDED.0);
        let mut call = |frame| match frame {
            FrameId::FOLDED if is_in_fold => caller,
            FrameId(frame) => calls.find(caller, frame).unwrap_or_else(|| calls.add(caller, frame)),
        };
        if is_end {
            places.push(call(frame));
        }
        // As the caller of another stack, a stack can have another place than as an end, because its innermost frame is
        // folded then.
        if let Some(place) = at_mut(&mut callers, stack.0).filter(|_| is_caller) {
            let is_folded = is_folded && folding.has(names, frame);
            *place = call(if is_folded { FrameId::FOLDED } else { frame });
        }
    }
    // The place of a caller is the root, so the empty stack has its own place only now. Without any other stack, there
    // is nothing to compare it with.
    if let (Some(place), Some(&StackId::EMPTY), true) = (places.first_mut(), ends.first(), calls.len() > 1) {
        *place = calls.add(Calls::ROOT, names.no_frame().0);
    }
    (calls, places)
}

/// Returns for each call whether no caller of it has the same frame.
fn outermost(calls: &Calls, frames: usize) -> Vec<bool> {
    // The first callee of each call, and the next callee of its caller; the root if there is none.
    let mut links = alloc::vec![(Calls::ROOT, Calls::ROOT); calls.len()];
    for (number, call) in calls.iter() {
        let next = at_mut(&mut links, call.caller).map(|(first, _)| core::mem::replace(first, number));
        if let (Some((_, link)), Some(next)) = (at_mut(&mut links, number), next) {
            *link = next;
        }
    }
    let mut is_outermost = alloc::vec![false; calls.len()];
    // How often each frame is on the path from the root.
    let mut on_path = alloc::vec![0_u32; frames];
    let mut path = alloc::vec![Calls::ROOT];
    let mut left = alloc::vec![links.first().map_or(Calls::ROOT, |(first, _)| *first)];
    while let Some(number) = left.pop() {
        let Some(call) = calls.get(number).filter(|_| number != Calls::ROOT) else { continue };
        while path.last().is_some_and(|last| *last != call.caller) {
            let done = path.pop().and_then(|done| calls.get(done));
            if let Some(count) = done.and_then(|done| at_mut(&mut on_path, done.code)) {
                *count = count.saturating_sub(1);
            }
        }
        path.push(number);
        if let (Some(count), Some(slot)) =
            (at_mut(&mut on_path, call.code), at_mut(&mut is_outermost, number))
        {
            *slot = *count == 0;
            *count = count.saturating_add(1);
        }
        left.extend(at(&links, number).into_iter().flat_map(|(first, next)| [*next, *first]));
    }
    is_outermost
}

/// Adds a weight to a sum.
const fn add(sum: &mut u64, weight: u64) {
    *sum = sum.saturating_add(weight);
}

fn by_inclusive(entries: BTreeMap<u32, Entry>) -> Vec<Entry> {
    let mut entries: Vec<_> = entries.into_values().collect();
    entries.sort_by_key(|entry| core::cmp::Reverse((entry.inclusive, entry.is_own, entry.exclusive)));
    entries
}
