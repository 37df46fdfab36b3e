//! The methods of the program that cause what a clock counts.
use std::collections::{BTreeMap, HashMap};

use nettrace_analysis::names::{FrameId, source_name};
use nettrace_analysis::samples::{Clock, Samples, Weight};
use nettrace_analysis::{OwnCode, StackId};

use super::main_thread::is_entry_point;

/// What a clock counts, by the innermost method of the program in each stack.
#[derive(Debug, Default)]
pub(super) struct OwnShares {
    /// The sum of all stacks, also of those without a method of the program.
    pub(super) total: u64,
    /// The methods with their weights, the heaviest first.
    pub(super) methods: Vec<(String, u64)>,
}

impl OwnShares {
    pub(super) fn new(
        samples: &mut Samples,
        clock: &Clock,
        code: &OwnCode,
        weight: impl Fn(Weight) -> u64,
    ) -> Self {
        let rows: Vec<_> = samples.weights(clock).map(|(_, stack, of)| (stack, weight(of))).collect();
        let mut own = OwnFrames::new(code);
        let (mut total, mut frames) = (0_u64, BTreeMap::<FrameId, u64>::new());
        for (stack, weight) in rows.into_iter().filter(|(_, weight)| *weight > 0) {
            total = total.saturating_add(weight);
            if let Some(frame) = own.of(samples, stack) {
                let sum = frames.entry(frame).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        let mut by_name = BTreeMap::<String, u64>::new();
        for (frame, weight) in frames {
            let sum = by_name.entry(source_name(samples.names().short(frame))).or_default();
            *sum = sum.saturating_add(weight);
        }
        let mut methods: Vec<_> = by_name.into_iter().collect();
        methods.sort_by_key(|(_, weight)| core::cmp::Reverse(*weight));
        Self { total, methods }
    }

    /// Returns the heaviest method with its share of the total, if the share is not small.
    pub(super) fn heaviest(&self) -> Option<(&str, f64)> {
        self.share(self.methods.first()?)
    }

    /// Returns the heaviest method that is not the entry point of the program, which is below everything at a start.
    pub(super) fn heaviest_callee(&self) -> Option<(&str, f64)> {
        self.share(self.methods.iter().find(|(method, _)| !is_entry_point(method))?)
    }

    fn share<'s>(&self, (method, weight): &'s (String, u64)) -> Option<(&'s str, f64)> {
        const SMALL: f64 = 0.1;
        let share = *weight as f64 / self.total.max(1) as f64;
        (share >= SMALL).then_some((method, share))
    }

    /// Returns the total of each second.
    pub(super) fn per_second(&self, seconds: f64) -> f64 {
        self.total as f64 / seconds.max(1e-3)
    }
}

/// The innermost frame of the program in each stack.
pub(super) struct OwnFrames<'c> {
    code: &'c OwnCode,
    stacks: HashMap<StackId, Option<FrameId>>,
    frames: BTreeMap<FrameId, bool>,
}

impl<'c> OwnFrames<'c> {
    pub(super) fn new(code: &'c OwnCode) -> Self {
        Self { code, stacks: HashMap::new(), frames: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, samples: &mut Samples, stack: StackId) -> Option<FrameId> {
        let Self { code, stacks, frames } = self;
        *stacks.entry(stack).or_insert_with(|| {
            let mut names = samples.frames(stack).into_iter();
            names.find(|frame| {
                *frames.entry(*frame).or_insert_with(|| code.owns(samples.names().text(*frame)))
            })
        })
    }
}

/// Returns a share as a percentage without a fraction.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
