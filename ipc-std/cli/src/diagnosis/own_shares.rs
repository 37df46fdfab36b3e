//! The methods of the program that cause what a clock counts.
use std::collections::{BTreeMap, HashMap};

use nettrace_analysis::StackId;
use nettrace_analysis::names::{FrameId, source_name};
use nettrace_analysis::samples::{Clock, Samples, Weight};

use super::entry_point::is_entry_point;

/// What a clock counts, by the innermost method of the program in each stack.
#[derive(Debug, Default)]
pub(super) struct OwnShares {
    /// The sum of all stacks, also of those without a method of the program.
    pub(super) total: u64,
    /// The methods, the heaviest first.
    pub(super) methods: Vec<OwnMethod>,
}

/// A method of the program.
#[derive(Debug)]
pub(super) struct OwnMethod {
    name: String,
    pub(super) weight: u64,
    /// The weight together with the methods that it calls directly.
    inclusive: u64,
    /// The method of the program that calls it most, unless that is the entry point or itself.
    caller: Option<String>,
}

/// A method of the program with a share that is not small.
#[derive(Debug)]
pub(super) struct OwnShare {
    pub(super) method: String,
    /// The share, as `62 %`.
    pub(super) percent: String,
    pub(super) share: f64,
    /// The method with its caller, for texts.
    pub(super) place: String,
}

impl OwnShares {
    pub(super) fn new(samples: &mut Samples, clock: &Clock, weight: impl Fn(Weight) -> u64) -> Self {
        let rows: Vec<_> = samples.weights(clock).map(|(_, stack, of)| (stack, weight(of))).collect();
        let mut own = OwnFrames::default();
        let (mut total, mut calls) = (0_u64, BTreeMap::<(FrameId, Option<FrameId>), u64>::new());
        for (stack, weight) in rows.into_iter().filter(|(_, weight)| *weight > 0) {
            total = total.saturating_add(weight);
            if let [Some(frame), caller] = own.of(samples, stack) {
                let sum = calls.entry((frame, caller)).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        let name = |frame| source_name(samples.names().short(frame));
        let mut by_name = BTreeMap::<String, BTreeMap<Option<String>, u64>>::new();
        let mut by_caller = BTreeMap::<String, u64>::new();
        for ((frame, caller), weight) in calls {
            let (name, caller) = (name(frame), caller.map(name));
            if let Some(caller) = caller.as_ref().filter(|caller| **caller != name) {
                let sum = by_caller.entry(caller.clone()).or_default();
                *sum = sum.saturating_add(weight);
            }
            let sum = by_name.entry(name).or_default().entry(caller).or_default();
            *sum = sum.saturating_add(weight);
        }
        let methods = by_name.into_iter().map(|(name, callers)| {
            let weight = callers.values().fold(0, |sum: u64, weight| sum.saturating_add(*weight));
            let caller = callers.into_iter().max_by_key(|(_, weight)| *weight).and_then(|(caller, _)| caller);
            let caller = caller.filter(|caller| *caller != name && !is_entry_point(caller));
            let inclusive = by_caller.get(&name).map_or(weight, |callees| weight.saturating_add(*callees));
            OwnMethod { name, weight, inclusive, caller }
        });
        let mut methods: Vec<_> = methods.collect();
        methods.sort_by_key(|method| core::cmp::Reverse(method.weight));
        Self { total, methods }
    }

    /// Returns the heaviest method, if its share is not small.
    pub(super) fn heaviest(&self) -> Option<OwnShare> {
        self.share(self.methods.first()?)
    }

    /// Returns the heaviest method that is not the entry point of the program, which is below everything at a start.
    pub(super) fn heaviest_callee(&self) -> Option<OwnShare> {
        self.share(self.methods.iter().find(|method| !is_entry_point(&method.name))?)
    }

    fn share(&self, method: &OwnMethod) -> Option<OwnShare> {
        const SMALL: f64 = 0.1;
        let of_total = |weight: u64| weight as f64 / self.total.max(1) as f64;
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let OwnMethod { name, weight, caller, .. } = method;
        let mut share = of_total(*weight);
        if share < SMALL {
            return None;
        }
        let (mut method, mut place) = (name.clone(), name.clone());
        if let Some(caller) = caller {
            let inclusive = self.methods.iter().find(|of| of.name == *caller).map_or(0, |of| of.inclusive);
            place = format!("{name} (called by {caller})");
            // The caller does much of it in other ways, too.
            if inclusive / 3 >= *weight / 2 {
                place = format!("{caller} ({} in {name})", percent(share));
                (method, share) = (caller.clone(), of_total(inclusive));
            }
        }
        Some(OwnShare { method, percent: percent(share), share, place })
    }
}

/// The innermost frame of the program in each stack, and the next one.
#[derive(Debug, Default)]
pub(super) struct OwnFrames(HashMap<StackId, [Option<FrameId>; 2]>);

impl OwnFrames {
    pub(super) fn of(&mut self, samples: &mut Samples, stack: StackId) -> [Option<FrameId>; 2] {
        *self.0.entry(stack).or_insert_with(|| {
            let frames = samples.frames(stack);
            let mut own = frames.into_iter().filter(|frame| samples.names().is_own(*frame));
            [own.next(), own.next()]
        })
    }
}
